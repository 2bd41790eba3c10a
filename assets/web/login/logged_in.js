// Below the navigation: who is logged in, and the way out.

import { getDocument, post } from "../lib/api.js";
import { el } from "../lib/dom.js";
import { holdToRights } from "../lib/rights.js";
import { AccountDrawer } from "./account_drawer.js";

async function show() {
  const { user, role, ...rights } = await getDocument("/api/me");
  holdToRights(rights);
  const drawer = new AccountDrawer(user, role);
  const about = el("span.podium-me-role", {}, ` · ${role}`);
  const name = el("button.podium-link.podium-me-name", { type: "button", title: "Your sessions, and who may log in" }, user, about);
  name.addEventListener("click", () => drawer.open());
  const out = el("button.podium-link", { type: "button" }, "Log out");
  out.addEventListener("click", async () => {
    await post("/logout", {});
    location.assign("/login");
  });
  const box = el("section.podium-me", { "aria-label": "Who is logged in" }, name, out);
  const place = () => {
    const nav = document.querySelector("#nav nav");
    if (nav && !document.querySelector(".podium-me")) nav.after(box);
    if (!drawer.drawer.node.isConnected) document.querySelector(".gradio-container")?.append(drawer.drawer.node);
  };
  place();
  new MutationObserver(place).observe(document.body, { childList: true, subtree: true });
}

show();
