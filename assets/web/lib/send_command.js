// Commands of a page: what the server answers to them, and the line that tells it.

import { el } from "./dom.js";

/** Send a command. A studio that does not answer is an answer with a problem, too. */
export async function ask(send, request) {
  try {
    return await send(request);
  } catch (error) {
    return { ok: false, problems: [["", `The studio did not answer: ${error.message || error}`]] };
  }
}

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
