// The rules for the pages' JavaScript: ESLint's recommended ones, and a few of our own.

import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import js from "@eslint/js";
import globals from "globals";

const ROOT = join(import.meta.dirname, "assets");
// What the page itself loads by name: assets/**/NAME.
const ENTRIES = new Set(["mount", "head", "alone", "attach"]);
const IMPORT = /^import \{([^}]*)\} from "([^"]+)";/gm;
const TYPE_IMPORT = /import\("([^"]+\.js)"\)\.(\w+)/g; // in JSDoc

const files = readdirSync(ROOT, { recursive: true }).filter((name) => name.endsWith(".js") && !name.includes("vendor"));
const sources = files.map((name) => join(ROOT, name)).map((file) => [file, readFileSync(file, "utf8")]);

/** Every import of the pages' modules, and every one of a type alone, as {file, target, names}. */
const imports = sources.flatMap(([file, text]) =>
  [...text.matchAll(IMPORT)].map(([, names, target]) => ({
    file, target: resolve(dirname(file), target), names: names.split(",").map((name) => name.trim().split(" as ")[0]),
  })),
);

const typeImports = sources.flatMap(([file, text]) =>
  [...text.matchAll(TYPE_IMPORT)].map(([, target, name]) => ({ file, target: resolve(dirname(file), target), names: [name] })),
);

/** The shortest way from a module over its imports back to itself, or undefined. */
function findCircle(start) {
  const paths = [[start]];
  const visited = new Set();
  for (const path of paths) {
    for (const { target } of imports.filter(({ file }) => file === path.at(-1))) {
      if (target === start) return [...path, start];
      if (!visited.has(target)) paths.push([...path, target]);
      visited.add(target);
    }
  }
  return undefined;
}

const unusedExports = {
  meta: { type: "problem", schema: [] },
  create: (context) => ({
    ExportNamedDeclaration(node) {
      const declared = node.declaration?.declarations ?? [node.declaration];
      for (const { id } of declared.filter(Boolean)) {
        const used = ENTRIES.has(id.name) ||
          [...imports, ...typeImports].some(({ target, names }) => target === context.filename && names.includes(id.name));
        if (!used) context.report({ node: id, message: `No module imports ${id.name}.` });
      }
    },
  }),
};

const importCircles = {
  meta: { type: "problem", schema: [] },
  create: (context) => ({
    Program(node) {
      const circle = findCircle(context.filename);
      if (circle) context.report({ node, message: `Modules import each other: ${circle.map((file) => relative(ROOT, file)).join(" -> ")}.` });
    },
  }),
};

export default [
  { ignores: ["assets/web/vendor/**"] },
  js.configs.recommended,
  {
    files: ["assets/**/*.js"],
    plugins: { podium: { rules: { "unused-exports": unusedExports, "import-circles": importCircles } } },
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "podium/unused-exports": "error",
      "podium/import-circles": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "prefer-const": "error",
      "no-var": "error",
      eqeqeq: "error",
      "max-len": ["error", { code: 140, ignoreStrings: true, ignoreTemplateLiterals: true }],
      "object-shorthand": "error",
      "no-eval": "error",
      "no-restricted-globals": [
        "error",
        { name: "fetch", message: "Use lib/api.js." },
        { name: "EventSource", message: "Use lib/api.js." },
      ],
      "no-restricted-properties": ["error", { property: "innerHTML", message: "Data reaches the page through textContent only." }],
    },
  },
  { files: ["assets/web/lib/api.js"], rules: { "no-restricted-globals": "off" } },
  { files: ["tests/web/**/*.js", "scripts/**/*.mjs"], languageOptions: { globals: globals.node } },
];
