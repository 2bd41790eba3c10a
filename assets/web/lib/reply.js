// What a page shows of a command's reply: its problems, and a line at the lower edge.

import { el } from "./dom.js";

/** Problems of a reply as one line, without the fields that they belong to. */
export const plain = (problems) => problems.map(([, what]) => what).join("; ");

/** A line at the lower edge that goes by itself. */
export class Toast {
  constructor() {
    this.node = el("div.page-toast", { role: "status" });
  }

  say(text, bad = false) {
    if (!text) return;
    this.node.textContent = text;
    this.node.classList.toggle("page-bad", bad);
    this.node.classList.add("page-shown");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.node.classList.remove("page-shown"), bad ? 8000 : 3500);
  }
}
