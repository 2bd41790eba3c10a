// As much of a page as the tests need: elements that hold others, hear events and have attributes. Nothing is drawn.

class FakeElement {
  /** @param {string} tag */
  constructor(tag) {
    Object.assign(this, { tagName: tag.toUpperCase(), type: "", className: "", value: "", dataset: {}, childNodes: [], style: {} });
    Object.assign(this, { hidden: false, disabled: false, checked: false, open: false, isConnected: true, data: "" });
    this.attributes = new Map();
    this.listeners = new Map();
    this.classList = { add: () => {}, toggle: () => {}, remove: () => {} };
  }

  get children() {
    return this.childNodes.filter((node) => node.tagName !== "#TEXT");
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get firstElementChild() {
    return this.children[0] ?? null;
  }

  get textContent() {
    return this.data + this.childNodes.map((node) => node.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(...(text === "" ? [] : [text]));
  }

  append(...nodes) {
    this.childNodes.push(...nodes.map((node) => (node instanceof FakeElement ? node : makeText(String(node)))));
  }

  replaceChildren(...nodes) {
    this.childNodes = [];
    this.append(...nodes);
  }

  setAttribute(name, value) {
    this.attributes.set(name, String(value));
    if (name === "class") this.className = String(value);
    if (["type", "value", "name", "id"].includes(name)) this[name] = String(value);
  }

  getAttribute(name) {
    return this.attributes.get(name) ?? null;
  }

  addEventListener(kind, work) {
    this.listeners.set(kind, [...(this.listeners.get(kind) ?? []), work]);
  }

  /** Tell its listeners of an event; they are all waited for. */
  async hear(kind, event = {}) {
    await Promise.all((this.listeners.get(kind) ?? []).map((work) => work({ target: this, currentTarget: this, preventDefault: () => {}, ...event })));
  }

  click() {
    return this.hear("click");
  }

  /** Every element inside, at any depth. */
  get inside() {
    return this.children.flatMap((node) => [node, ...node.inside]);
  }

  /** By tags alone, such as "input, select". */
  querySelectorAll(tags) {
    const names = tags.split(",").map((name) => name.trim().split(/[:.[]/)[0].toUpperCase());
    return this.inside.filter((node) => names.includes(node.tagName));
  }

  querySelector(tags) {
    return this.querySelectorAll(tags)[0] ?? null;
  }

  contains(node) {
    return this === node || this.inside.includes(node);
  }

  closest() {
    return null;
  }

  matches() {
    return false;
  }

  focus() {}

  scrollIntoView() {}

  insertBefore(node) {
    this.append(node);
  }

  showPopover() {}

  hidePopover() {}

  showModal() {
    this.open = true;
  }

  close() {
    this.open = false;
  }
}

/** @param {string} text */
function makeText(text) {
  return Object.assign(new FakeElement("#text"), { data: text });
}

const startTimer = globalThis.setTimeout;

/** Put a page in place of the one that a test under Node lacks. `at` is its address. */
export function openFakePage(at = "http://podium/") {
  const document = Object.assign(new FakeElement("html"), {
    createElement: (tag) => new FakeElement(tag), createElementNS: (_space, tag) => new FakeElement(tag), createTextNode: makeText,
    body: new FakeElement("body"), visibilityState: "visible",
  });
  Object.assign(globalThis, { document, Element: FakeElement, HTMLElement: FakeElement, location: new URL(at), history: { state: null, replaceState() {} } });
  globalThis.setTimeout = (...given) => startTimer(...given).unref(); // no test waits for what a page does later
  globalThis.MutationObserver = class { observe() {} disconnect() {} };
  return document;
}

/**
 * Let a test answer the page's requests: `answers` holds, in the order of the requests, {address, body, reply}.
 */
export function holdRequests() {
  const held = [];
  globalThis.fetch = (address, { body } = {}) => new Promise((resolve, reject) => {
    const reply = (document) => {
      resolve({ ok: true, json: async () => document });
      return settle();
    };
    const fail = () => {
      reject(new Error("no answer"));
      return settle();
    };
    held.push({ address, body: body ? JSON.parse(body) : null, reply, fail });
  });
  return held;
}

/** Wait until everything that can go on has gone on. */
export function settle() {
  return new Promise((done) => setImmediate(done));
}
