// Below the navigation: who is logged in, and the way out.

import { getDocument, post } from "../lib/api.js";
import { el } from "../lib/dom.js";

async function show() {
  const { user } = await getDocument("/api/me");
  const out = el("button.podium-link", { type: "button" }, "Log out");
  out.addEventListener("click", async () => {
    await post("/logout", {});
    location.assign("/login");
  });
  const box = el("section.podium-me", { "aria-label": "Who is logged in" }, el("span.podium-me-name", { title: user }, user), out);
  const place = () => {
    const nav = document.querySelector("#nav nav");
    if (nav && !document.querySelector(".podium-me")) nav.after(box);
  };
  place();
  new MutationObserver(place).observe(document.body, { childList: true, subtree: true });
}

show();
