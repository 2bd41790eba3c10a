// The login page: sends name and password, then goes on to the page that was asked for.

import { post } from "../lib/api.js";

const form = /** @type {HTMLFormElement} */ (document.getElementById("login"));
const problem = document.getElementById("problem");
const button = form.querySelector("button");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  button.disabled = true;
  button.textContent = "Logging in …";
  try {
    await post("/login", new URLSearchParams(/** @type {any} */ (new FormData(form))));
    location.assign(goOn());
  } catch (error) {
    tell(error.message);
  } finally {
    button.disabled = false;
    button.textContent = "Log in";
  }
});

/** @param {string} text */
function tell(text) {
  problem.textContent = text;
  form.password.value = "";
  form.password.focus();
}

/** The page of this studio that was asked for; never another site's. */
function goOn() {
  const address = new URLSearchParams(location.search).get("next") || "/";
  const there = new URL(address, location.origin);
  return there.origin === location.origin && address.startsWith("/") ? there.pathname + there.search + there.hash : "/";
}
