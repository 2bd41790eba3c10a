// The texts that the pages' JavaScript shows, as keys of the catalogues in assets/web/languages: a literal is its own
// key, a template has {} where it puts something in.

import { readdirSync, readFileSync } from "node:fs";
import { Linter } from "eslint";

const ROOT = new URL("..", import.meta.url).pathname;
// Attributes and fields whose values nobody reads.
const TECHNICAL =
  /^(class|className|id|type|role|d|viewBox|href|src|rel|target|name|for|style|method|key|kind|code|value|command|event|points|transform|fill|stroke|autocomplete|inputmode|accept|data-.*|aria-(?!label$|description$).*)$/;
// Functions and methods whose arguments nobody reads.
const SILENT_FUNCTIONS = /^(fetch|import|svg|icon|append_?class|CustomEvent|RegExp|URL|matchMedia)$/;
const SILENT_METHODS =
  /^(querySelector(All)?|closest|matches|addEventListener|removeEventListener|getElementById|getItem|setItem|removeItem|add|remove|toggle|contains|has|startsWith|endsWith|includes|split|indexOf|replace|replaceAll|createElement(NS)?|getAttribute|hasAttribute|removeAttribute|toggleAttribute|setProperty|join|getPropertyValue|get|set|supports|padStart|padEnd|toLocaleString|NumberFormat|DateTimeFormat|localeCompare)$/;
const CHILDREN = new Set(["el", "fill"]); // their third and later arguments are what an element shows

/** The English texts of one module. @param {string} code @returns {Set<string>} */
export function findTexts(code) {
  const texts = new Set();
  const collect = {
    create: () => ({
      Literal: (node) => typeof node.value === "string" && keep(node, node.value),
      TemplateLiteral: (node) => keep(node, node.quasis.map((part) => part.value.cooked).join("{}")),
    }),
  };
  const keep = (node, text) => {
    const key = text.replace(/\s+/g, " ").trim();
    if (!text.includes("\n") && isShown(node) && isText(key, isChild(node))) texts.add(key);
  };
  const config = { plugins: { texts: { rules: { collect } } }, rules: { "texts/collect": "error" } };
  const problems = new Linter().verify(code, { ...config, linterOptions: { reportUnusedDisableDirectives: "off" } });
  const fatal = problems.find((problem) => problem.fatal);
  if (fatal) throw new SyntaxError(fatal.message);
  return texts;
}

/** All texts of the pages. @returns {string[]} */
export function listTexts() {
  const files = readdirSync(`${ROOT}assets/web`, { recursive: true }).map(String);
  const ours = files.filter((file) => file.endsWith(".js") && !/^(vendor|languages)/.test(file));
  const texts = ours.flatMap((file) => [...findTexts(readFileSync(`${ROOT}assets/web/${file}`, "utf8"))]);
  return [...new Set(texts)].sort();
}

/** Whether a text stands where people read it. */
function isShown(node) {
  for (let [child, parent] = [node, node.parent]; parent; [child, parent] = [parent, parent.parent]) {
    if (/^(Import|Export)/.test(parent.type) && child.type === "Literal") return false;
    if (parent.type === "BinaryExpression" && parent.operator !== "+") return false;
    if (parent.type === "SwitchCase" && parent.test === child) return false;
    if (parent.type === "MemberExpression" && (parent.property === child || parent.object === node)) return false;
    if (parent.type === "TaggedTemplateExpression" || parent.type === "ImportExpression") return false;
    if (parent.type === "Property" && (parent.key === child || TECHNICAL.test(nameOf(parent.key)))) return false;
    if (parent.type === "AssignmentExpression" && TECHNICAL.test(nameOf(parent.left))) return false;
    if (parent.type === "CallExpression" || parent.type === "NewExpression") {
      const place = parent.arguments.indexOf(child);
      if (place < 0) continue; // an array that a method is called of
      const name = nameOf(parent.callee);
      const silent = parent.callee.type === "MemberExpression" ? SILENT_METHODS : SILENT_FUNCTIONS;
      if (silent.test(name) || (CHILDREN.has(name) && place === 0)) return false;
      if (name === "setAttribute") return place === 1 && !TECHNICAL.test(String(parent.arguments[0].value));
    }
    if (/Statement|Declaration|Function/.test(parent.type)) return true;
  }
  return true;
}

/** Whether it is what an element shows, however short. */
function isChild(node) {
  for (let [child, parent] = [node, node.parent]; parent; [child, parent] = [parent, parent.parent]) {
    if (parent.type === "CallExpression") return CHILDREN.has(nameOf(parent.callee)) && parent.arguments.indexOf(child) > 1;
    if (!/Conditional|Logical|Template/.test(parent.type)) return false;
  }
  return false;
}

/** Whether a string is words for people rather than a name of the machine's. */
function isText(text, isChild) {
  const letters = text.replaceAll("{}", "").replace(/[^\p{L}]/gu, "");
  if (letters.length < 2 || /px [A-Z]|^(https?:|(GET|POST) \/|\/|\.\/|#|--|\$)|[<>]|[a-z]+_[a-z]+$|^[A-Z]{2,5}$/.test(text)) return false;
  if (/^([a-z]+-[a-z-]+ ?)+$/.test(text) || /^\w+\([^)]*\)$/.test(text)) return false;
  return isChild || /^[^a-z]*[A-Z]/.test(text.replaceAll("{}", "")) || /\p{L} \p{L}|\p{L} \{\}|\{\} \p{L}/u.test(text);
}

function nameOf(node) {
  return String(node.name ?? node.value ?? node.property?.name ?? "");
}

if (process.argv[1] === new URL(import.meta.url).pathname) console.log(JSON.stringify(listTexts(), null, 1));
