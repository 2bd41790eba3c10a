// What the Compare page shows lives in its address: a name may occur several times (o=, e=, job=).

import { getDocument } from "../lib/api.js";

export function one(name) {
  return new URL(location.href).searchParams.get(name) || "";
}

export function all(name) {
  return [...new Set(new URL(location.href).searchParams.getAll(name).filter(Boolean))];
}

/** Write names into the address: a list becomes several, nothing takes the name out. */
export function put(values) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(values)) {
    url.searchParams.delete(name);
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== null && item !== undefined && item !== "") url.searchParams.append(name, item);
  }
  history.replaceState(history.state, "", url);
}

/** A question to the server with the given names; lists become several. */
export function query(values) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== null && item !== undefined && item !== "") params.append(name, item);
  return String(params);
}

/** What the server answers; a failure is an answer with a `hint`, too. */
export async function ask(path, values = {}) {
  try {
    return await getDocument(`/api/compare/${path}?${query(values)}`);
  } catch (error) {
    return { ok: false, hint: error.message };
  }
}
