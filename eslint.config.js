// The rules for the pages' JavaScript: ESLint's recommended ones, and a few of our own.

import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import js from "@eslint/js";
import globals from "globals";

const ROOT = join(import.meta.dirname, "assets");
// What the page itself loads by name: assets/**/NAME.
const ENTRIES = new Set(["mount", "head", "alone", "attach"]);
const IMPORT = /^import \{([^}]*)\} from "([^"]+)";/gm;

/** {file: names that other modules import from it}. */
function readImports() {
  const imports = new Map();
  const files = readdirSync(ROOT, { recursive: true }).filter((name) => name.endsWith(".js") && !name.includes("vendor"));
  for (const file of files.map((name) => join(ROOT, name))) {
    for (const [, names, target] of readFileSync(file, "utf8").matchAll(IMPORT)) {
      const module = resolve(dirname(file), target);
      if (!imports.has(module)) imports.set(module, new Set());
      for (const name of names.split(",")) imports.get(module).add(name.trim().split(" as ")[0]);
    }
  }
  return imports;
}

const imports = readImports();

const unusedExports = {
  meta: { type: "problem", schema: [] },
  create: (context) => ({
    ExportNamedDeclaration(node) {
      const declared = node.declaration?.declarations ?? [node.declaration];
      for (const { id } of declared.filter(Boolean)) {
        const used = ENTRIES.has(id.name) || imports.get(context.filename)?.has(id.name);
        if (!used) context.report({ node: id, message: `No module imports ${id.name}.` });
      }
    },
  }),
};

export default [
  { ignores: ["assets/web/vendor/**"] },
  js.configs.recommended,
  {
    files: ["assets/**/*.js"],
    plugins: { podium: { rules: { "unused-exports": unusedExports } } },
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "podium/unused-exports": "error",
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
];
