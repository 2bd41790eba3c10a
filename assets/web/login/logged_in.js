// Below the navigation: who is logged in, and the way out.

import { el } from "../lib/dom.js";

async function show() {
  const { user } = await (await fetch("/api/me")).json();
  const box = el("section", "podium-me", null, { "aria-label": "Who is logged in" });
  const out = el("button", "podium-link", "Log out", { type: "button" });
  out.addEventListener("click", async () => {
    await fetch("/logout", { method: "POST" });
    location.assign("/login");
  });
  box.append(el("span", "podium-me-name", user, { title: user }), out);
  const place = () => {
    const nav = document.querySelector("#nav nav");
    if (nav && !document.querySelector(".podium-me")) nav.after(box);
  };
  place();
  new MutationObserver(place).observe(document.body, { childList: true, subtree: true });
}

show();
