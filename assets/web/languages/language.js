// The pages in another language than English: texts are put in place of the English ones as they come onto the page.
// What people, models and workers write stays as it is.

import { getDocument } from "../lib/api.js";
import { Catalogue } from "./catalogue.js";
import { DATA } from "./data.js";

const STORED = "podium-language";
const ATTRIBUTES = ["aria-label", "aria-description", "title", "placeholder", "alt"];
/** A file of this folder. @param {string} name */
const read = (name) => getDocument(new URL(name, import.meta.url).pathname);

/** The language that was chosen, or the first of the browser's that there is; "en" without one. */
async function chooseLanguage() {
  const chosen = localStorage.getItem(STORED);
  const wishes = chosen ? [chosen] : navigator.languages.map((tag) => tag.split("-")[0].toLowerCase());
  const names = wishes[0] === "en" ? {} : await read("names.json");
  return wishes.find((wish) => wish === "en" || Object.hasOwn(names, wish)) ?? "en";
}

/** Whether a choice is the name that it stands for, such as a pool's. @param {Element} element */
function isName(element) {
  return element instanceof HTMLOptionElement && element.value !== "" && element.value === element.textContent;
}

class Translator {
  /** @param {Catalogue} catalogue */
  constructor(catalogue) {
    this.catalogue = catalogue;
    /** @type {WeakMap<Node, string>} what stands in a text of ours, so that it is not translated again */
    this.written = new WeakMap();
  }

  /** @param {Node} node */
  translate(node) {
    if (node instanceof Text) return this.translateText(node);
    if (!(node instanceof Element) || node.closest(DATA)) return undefined;
    for (const element of [node, ...node.querySelectorAll("*")]) this.translateAttributes(element);
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) this.translateText(/** @type {Text} */ (walker.currentNode));
    return undefined;
  }

  /** @param {Text} node */
  translateText(node) {
    const around = node.parentElement;
    if (this.written.get(node) === node.data || !around || around.closest(DATA) || isName(around)) return;
    const translation = this.catalogue.translate(node.data);
    if (translation === null || translation === node.data) return;
    this.written.set(node, translation);
    node.data = translation;
  }

  /** @param {Element} element */
  translateAttributes(element) {
    if (element.closest(DATA) && !element.matches("textarea")) return;
    for (const name of ATTRIBUTES) {
      const text = element.getAttribute(name);
      const translation = text && this.catalogue.translate(text);
      if (translation && translation !== text) element.setAttribute(name, translation);
    }
  }

  /** Translate what is there, and what comes. */
  watch() {
    const options = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES };
    new MutationObserver((changes) => {
      for (const change of changes) {
        if (change.type === "childList") for (const node of change.addedNodes) this.translate(node);
        else if (change.type === "attributes") this.translateAttributes(/** @type {Element} */ (change.target));
        else this.translate(change.target);
      }
    }).observe(document.body, options);
    this.translate(document.body);
  }
}

/** @param {string} language */
async function showIn(language) {
  new Translator(new Catalogue(await read(`${language}.json`))).watch();
}

/** The select of the navigation, which Gradio may draw anew. @param {string} language */
function watchChoice(language) {
  document.addEventListener("change", (event) => {
    if (!(event.target instanceof HTMLSelectElement) || !event.target.matches(".podium-language select")) return;
    localStorage.setItem(STORED, event.target.value);
    location.reload();
  });
  const show = () => {
    for (const select of document.querySelectorAll(".podium-language select")) {
      if (select instanceof HTMLSelectElement && select.value !== language) select.value = language;
    }
  };
  new MutationObserver(show).observe(document.body, { childList: true, subtree: true });
  show();
}

const language = await chooseLanguage();
watchChoice(language);
if (language !== "en") await showIn(language);
document.documentElement.lang = language; // not before its words stand there
