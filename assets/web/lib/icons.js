// Every icon of the studio: one path each, drawn on a 24 px grid with a round 2 px line.

export const KINDS = {
  chat: "M4 5h16v11H9l-5 4z M8 9h8 M8 12h5",
  local_model: "M7 7h10v10H7z M10 3v4 M14 3v4 M10 17v4 M14 17v4 M3 10h4 M3 14h4 M17 10h4 M17 14h4",
  calculator: "M6 3h12v18H6z M9 7h6 M9 12h.01 M12 12h.01 M15 12h.01 M9 16h.01 M12 16h.01 M15 16h.01",
  python: "M8 8l-4 4 4 4 M16 8l4 4-4 4 M13.5 5l-3 14",
  sql: "M5 6c0-3.5 14-3.5 14 0v12c0 3.5-14 3.5-14 0z M5 6c0 3.5 14 3.5 14 0 M5 12c0 3.5 14 3.5 14 0",
  search: "M10.5 4a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13z M15.5 15.5L21 21",
  extractor: "M5 4h9l5 5v11H5z M14 4v5h5 M8 13h8 M8 16h5",
  units: "M3 16L16 3l5 5L8 21z M7 12l2 2 M10 9l2 2 M13 6l2 2",
  calendar: "M4 6h16v14H4z M4 10h16 M8 3v5 M16 3v5",
  airports: "M21 4L3 11l6 3 3 6z M9 14l5-4",
  great_circle: "M4 18a16 16 0 0 1 16-12 M4 18h.01 M20 6h.01 M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0",
  clock: "M12 4a8 8 0 1 0 .01 0 M12 8v4l3 2",
  elements: "M9 4h6 M10 4v5l-5 9a1.5 1.5 0 0 0 1.3 2.2h11.4A1.5 1.5 0 0 0 19 18l-5-9V4 M8 14h8",
  memos: "M5 4h14v16H5z M9 8h6 M9 12h6 M9 16h3",
  flaky: "M13 3L5 14h6l-1 7 9-12h-6z",
  documents: "M8 3h8l4 4v11H8z M16 3v4h4 M4 7v14h12",
  web_fetch: "M12 4a8 8 0 1 0 .01 0 M4 12h16 M12 4c-5 5-5 11 0 16 M12 4c5 5 5 11 0 16",
  http: "M4 8h16 M16 4l4 4-4 4 M20 16H4 M8 12l-4 4 4 4",
  openapi: "M8 4c-3 0-3 3-3 5s-1 3-2 3c1 0 2 1 2 3s0 5 3 5 M16 4c3 0 3 3 3 5s1 3 2 3c-1 0-2 1-2 3s0 5-3 5",
  function: "M15 4c-4 0-4 3-5 8s-1 8-5 8 M7 11h8",
  mcp: "M9 3v5 M15 3v5 M6 8h12v4a6 6 0 0 1-12 0z M12 18v3",
  space: "M12 4l8 4.5v7L12 20l-8-4.5v-7z M4 8.500l8 4.500 8-4.500 M12 13v7",
  pool_file: "M5 4h9l5 5v11H5z M14 4v5h5 M12 11v6 M9 14l3 3 3-3",
  orchestrator: "M20 12a8 8 0 1 1-2.6-5.9 M20 3v5h-5",
};

/** What the role agents of the gallery do. */
const JOBS = {
  planner: "M4 6h3 M4 12h3 M4 18h3 M10 6h10 M10 12h10 M10 18h6",
  reasoner: "M9 18h6 M10 21h4 M12 3a6 6 0 0 0-4 10.500c1 1 1 1.500 1 2.500h6c0-1 0-1.500 1-2.500A6 6 0 0 0 12 3z",
  coder: KINDS.python,
  critic: "M4 12c4-7 12-7 16 0c-4 7-12 7-16 0z M12 9.500a2.500 2.500 0 1 0 .01 0",
  searcher: KINDS.search,
  summarizer: "M4 6h16 M6 10h12 M8 14h8 M10 18h4",
};

/** light -> [word, path]: each is told apart by its shape alone */
export const LIGHTS = {
  ok: ["Healthy", "M12 4a8 8 0 1 0 .01 0 M8.500 12l2.500 2.500 4.500-5"],
  degraded: ["Degraded", "M12 4l9 16H3z M12 10v4 M12 17v.01"],
  failing: ["Failing", "M8 3.500h8l4.500 4.500v8L16 20.500H8L3.500 16V8z M9 9l6 6 M15 9l-6 6"],
  unknown: ["Not tested", "M12 4a8 8 0 1 0 .01 0"],
  off: ["Disabled", "M12 4a8 8 0 1 0 .01 0 M6.500 6.500l11 11"],
};

/** what a template needs -> path */
export const NEEDS = {
  nothing: "M5 12.500l5 5L19.500 7",
  "a key": "M8 11a4 4 0 1 0 .01 0 M11 13l9-9 M16 8l3 3",
  "a running server": "M4 5h16v6H4z M4 13h16v6H4z M8 8h.01 M8 16h.01",
  "a file": "M5 4h9l5 5v11H5z M14 4v5h5",
  "a model": KINDS.local_model,
  "an address": "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.7-5.7L12 7 M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.7 5.7L12 17",
  "a program": "M4 5h16v14H4z M8 10l3 2.500-3 2.500 M13 15h4",
};

const ROLES = {
  agent: "M12 4a4 4 0 1 1 0 8a4 4 0 0 1 0-8 M4 21c0-5 4-7 8-7s8 2 8 7",
  tool: "M14.5 5.5a4.5 4.5 0 0 0-5.8 5.8L3 17v4h4l5.7-5.7a4.5 4.5 0 0 0 5.8-5.8L15.5 12.5l-4-4z",
  recursion: KINDS.orchestrator,
};

/** status -> [word, path] */
export const STATUSES = {
  PENDING: ["Waiting", "M12 4a8 8 0 1 0 .01 0 M12 8v4l3 2"],
  RUNNING: ["Running", "M12 4a8 8 0 0 1 8 8"],
  OK: ["OK", "M5 12.5l5 5L19.5 7"],
  PARSE_ERR: ["PARSE_ERR", "M7 7l10 10 M17 7L7 17"],
  EXEC_ERR: ["EXEC_ERR", "M7 7l10 10 M17 7L7 17"],
  TIMEOUT: ["TIMEOUT", "M12 4a8 8 0 1 0 .01 0 M12 8v4 M12 15.5v.01"],
};

export const ACTIONS = {
  check: "M5 12.5l5 5L19.5 7",
  back: "M15 5l-7 7 7 7",
  cross: "M7 7l10 10 M17 7L7 17",
  plus: "M12 5v14 M5 12h14",
  minus: "M5 12h14",
  play: "M8 5l11 7-11 7z",
  pulse: "M3 12h4l3-7 4 14 3-7h4",
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

export function templateIcon(template) {
  return JOBS[template.id] || kindIcon(template.kind, template.group === "models" ? "agent" : "tool");
}

export function kindIcon(kind, role) {
  return KINDS[kind] || ROLES[role] || ROLES.tool;
}
