// What the Compare page shows lives in its address: a name may occur several times (o=, e=, job=).

import { getDocument } from "../lib/api.js";

/** @typedef {Record<string, unknown>} Values */

/** @param {string} name */
export function one(name) {
  return new URL(location.href).searchParams.get(name) || "";
}

/** @param {string} name */
export function all(name) {
  return [...new Set(new URL(location.href).searchParams.getAll(name).filter(Boolean))];
}

/**
 * Write names into the address: a list becomes several, nothing takes the name out.
 * @param {Values} values
 */
export function put(values) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    url.searchParams.delete(name);
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== null && item !== undefined && item !== "") url.searchParams.append(name, String(item));
  }
  history.replaceState(history.state, "", url);
}

/**
 * A question to the server with the given names; lists become several.
 * @param {Values} values
 */
export function query(values) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== null && item !== undefined && item !== "") params.append(name, String(item));
  return String(params);
}

/**
 * What the server answers; a failure is an answer with a `hint`, too.
 * @param {string} path
 * @param {Values} values
 * @returns {Promise<any>}
 */
export async function ask(path, values = {}) {
  try {
    return await getDocument(`/api/compare/${path}?${query(values)}`);
  } catch (error) {
    return { ok: false, hint: error.message };
  }
}
