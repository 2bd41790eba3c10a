// The icons of roles, states and actions: one path each, drawn on a 24 px grid with a round 2 px line.
// The icon of a worker's kind comes from the server.

/** light -> [word, path]: each is told apart by its shape alone
 * @type {Record<string, string[]>} */
export const LIGHTS = {
  ok: ["No known fault", "M12 4a8 8 0 1 0 .01 0 M8.500 12l2.500 2.500 4.500-5"],
  degraded: ["Degraded", "M12 4l9 16H3z M12 10v4 M12 17v.01"],
  failing: ["Failing", "M8 3.500h8l4.500 4.500v8L16 20.500H8L3.500 16V8z M9 9l6 6 M15 9l-6 6"],
  unknown: ["Not tested", "M12 4a8 8 0 1 0 .01 0"],
  off: ["Disabled", "M12 4a8 8 0 1 0 .01 0 M6.500 6.500l11 11"],
};

/** what a template needs -> path
 * @type {Record<string, string>} */
export const NEEDS = {
  nothing: "M5 12.500l5 5L19.500 7",
  "a key": "M8 11a4 4 0 1 0 .01 0 M11 13l9-9 M16 8l3 3",
  "a running server": "M4 5h16v6H4z M4 13h16v6H4z M8 8h.01 M8 16h.01",
  "a file": "M5 4h9l5 5v11H5z M14 4v5h5",
  "a model": "M7 7h10v10H7z M10 3v4 M14 3v4 M10 17v4 M14 17v4 M3 10h4 M3 14h4 M17 10h4 M17 14h4",
  "an address": "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.7-5.7L12 7 M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.7 5.7L12 17",
  "a program": "M4 5h16v14H4z M8 10l3 2.500-3 2.500 M13 15h4",
};

/** @type {Record<string, string>} */
const ROLES = {
  agent: "M12 4a4 4 0 1 1 0 8a4 4 0 0 1 0-8 M4 21c0-5 4-7 8-7s8 2 8 7",
  tool: "M14.5 5.5a4.5 4.5 0 0 0-5.8 5.8L3 17v4h4l5.7-5.7a4.5 4.5 0 0 0 5.8-5.8L15.5 12.5l-4-4z",
  recursion: "M20 12a8 8 0 1 1-2.6-5.9 M20 3v5h-5",
};

/** status -> [word, path]
 * @type {Record<string, string[]>} */
export const STATUSES = {
  PENDING: ["Waiting", "M12 4a8 8 0 1 0 .01 0 M12 8v4l3 2"],
  RUNNING: ["Running", "M12 4a8 8 0 0 1 8 8"],
  OK: ["OK", "M5 12.5l5 5L19.5 7"],
  TRIED: ["No match", "M5 12h14"],
  PARSE_ERR: ["PARSE_ERR", "M7 7l10 10 M17 7L7 17"],
  EXEC_ERR: ["EXEC_ERR", "M7 7l10 10 M17 7L7 17"],
  TIMEOUT: ["TIMEOUT", "M12 4a8 8 0 1 0 .01 0 M12 8v4 M12 15.5v.01"],
};

export const ACTIONS = {
  check: "M5 12.5l5 5L19.5 7",
  thumbUp: "M7 11v9H4v-9z M7 11l4-8a2.5 2.5 0 0 1 2.5 2.5V9H19a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.8 20H7",
  thumbDown: "M17 13V4h3v9z M17 13l-4 8a2.5 2.5 0 0 1-2.5-2.5V15H5a2 2 0 0 1-2-2.3l1.2-7A2 2 0 0 1 6.2 4H17",
  back: "M15 5l-7 7 7 7",
  cross: "M7 7l10 10 M17 7L7 17",
  plus: "M12 5v14 M5 12h14",
  minus: "M5 12h14",
  play: "M8 5l11 7-11 7z",
  pulse: "M3 12h4l3-7 4 14 3-7h4",
  scale: "M12 4v16 M7 20h10 M5 7h14 M5 7l-3 7h6z M19 7l-3 7h6z",
  pencil: "M4 20l1-4L16 5l3 3L8 19z",
  copy: "M9 9h11v11H9z M5 15H4V4h11v1",
  trash: "M5 7h14 M10 11v6 M14 11v6 M7 7l1 13h8l1-13 M9 7V4h6v3",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.7-5.7L12 7 M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.7 5.7L12 17",
  star: "M12 4l2.5 5.2 5.5.8-4 4 1 5.6-5-2.7-5 2.7 1-5.6-4-4 5.5-.8z",
  stop: "M7 7h10v10H7z",
  again: "M20 12a8 8 0 1 1-2.6-5.9 M20 3v5h-5",
  warn: "M12 4l9 16H3z M12 10v4 M12 17v.01",
  tune: "M4 7h9 M17 7h3 M4 17h3 M11 17h9 M15 5v4 M9 15v4",
  download: "M12 4v11 M7.5 11l4.5 4.5L16.5 11 M5 20h14",
};

/**
 * The icon of a worker, a step or a template: that of its kind, which the server sends, or else that of its role.
 * @param {{ icon?: string, kind?: string, role: string }} item
 */
export function kindIcon(item) {
  return item.icon || ROLES[item.role] || ROLES.tool;
}
