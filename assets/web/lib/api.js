// The only module that talks to the studio: documents, commands and event streams.

/** @typedef {{ action: string, [field: string]: any }} Command of a page */

/** The studio could not be reached (`status` 0), or it refused; the message is a sentence for people. */
class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} address
 * @param {RequestInit} options
 */
async function request(address, options = {}) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new ApiError("The studio does not answer. Is it still running?");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(typeof body.detail === "string" ? body.detail : body.message || response.statusText, response.status);
}

/**
 * The document at an address. Throws ApiError.
 * @param {string} address
 */
export async function getDocument(address) {
  return (await request(address)).json();
}

/**
 * The file at an address. Throws ApiError.
 * @param {string} address
 */
export async function getFile(address) {
  return (await request(address)).blob();
}

/**
 * Send a file, form fields or an object (as JSON); returns the reply's document. Throws ApiError.
 * @param {string} address
 * @param {any} body
 */
export async function post(address, body) {
  const options = body instanceof Blob || body instanceof URLSearchParams
    ? { body }
    : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await request(address, { method: "POST", ...options })).json();
}

/**
 * Send a command of a page: `{action, ...fields}`. Never throws: a studio that does not answer is a reply with a problem.
 * @param {string} page
 * @param {Command} command
 */
export async function sendCommand(page, { action, ...fields }) {
  try {
    return await post(`/api/pages/${page}/${action}`, fields);
  } catch (error) {
    return { ok: false, message: "", problems: [["", error.message]] };
  }
}

/**
 * Follow an event stream; the browser reconnects by itself. `handlers` are by event name and get the event's document;
 * `onState` hears "open", "lost" (reconnecting) and "gone" (the studio has no such stream). Returns the EventSource.
 * @param {string} address
 * @param {Record<string, (document: any) => void>} handlers
 * @param {(state: string) => void} onState
 */
export function followEvents(address, handlers, onState = (_state) => {}) {
  const stream = new EventSource(address);
  for (const [name, handle] of Object.entries(handlers)) stream.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  stream.addEventListener("open", () => onState("open"));
  stream.addEventListener("error", () => onState(stream.readyState === EventSource.CLOSED ? "gone" : "lost"));
  return stream;
}
