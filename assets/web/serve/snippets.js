// Ready-made ways to call a served model, as [title, text].

const QUESTION = "What can you do?";

/**
 * `server` is one that runs; `where` has python, home and whether a token is needed.
 * @param {import("../types").ServedModel} server
 * @param {{ python: string, home: string, guarded?: boolean }} where
 */
export function snippets(server, where) {
  const key = where.guarded ? 'os.environ["PODIUM_TOKEN"]' : '"none"';
  const imports = where.guarded ? "import os\n" : "";
  return [
    ["curl", curl(server, where.guarded)],
    [
      "Python",
      `${imports}from openai import OpenAI\n\nclient = OpenAI(base_url=${quoted(server.url)}, api_key=${key})\ndone = client.chat.completions.create(\n    model=${quoted(server.model)},\n    messages=[{"role": "user", "content": ${quoted(QUESTION)}}],\n)\nprint(done.choices[0].message.content)`,
    ],
    [
      "Stream",
      `${imports}from openai import OpenAI\n\nclient = OpenAI(base_url=${quoted(server.url)}, api_key=${key})\nstream = client.chat.completions.create(\n    model=${quoted(server.model)},\n    messages=[{"role": "user", "content": ${quoted(QUESTION)}}],\n    stream=True,\n)\nfor chunk in stream:  # first the steps, then the answer\n    delta = chunk.choices[0].delta\n    print(getattr(delta, "reasoning_content", None) or delta.content or "", end="")`,
    ],
    [
      "LangChain",
      `${imports}from langchain_openai import ChatOpenAI\n\nmodel = ChatOpenAI(\n    base_url=${quoted(server.url)},\n    api_key=${key},\n    model=${quoted(server.model)},\n)\nprint(model.invoke(${quoted(QUESTION)}).content)`,
    ],
    ["MCP", mcp(server, where)],
  ];
}

/**
 * @param {import("../types").ServedModel} server
 * @param {boolean} guarded
 */
function curl(server, guarded) {
  const body = JSON.stringify({ model: server.model, messages: [{ role: "user", content: QUESTION }] }, null, 1);
  const token = guarded ? '  -H "Authorization: Bearer $PODIUM_TOKEN" \\\n' : "";
  return `curl ${server.url}/chat/completions \\\n${token}  -H "Content-Type: application/json" \\\n  -d '${body.replaceAll("'", "'\\''")}'`;
}

/**
 * Over HTTP from the running server, and over stdio as a process of the client's own.
 * @param {import("../types").ServedModel} server
 * @param {{ python: string, home: string, guarded?: boolean }} where
 */
function mcp(server, where) {
  /** @type {{ type: string, url: string, headers?: object }} */
  const http = { type: "http", url: server.url.replace(/\/v1$/, "/mcp") };
  if (where.guarded) http.headers = { Authorization: "Bearer ${PODIUM_TOKEN}" };
  const args = ["-m", "studio", "serve", "--mcp", "--pool", server.pool, "--orchestrator", server.orchestrator, "--home", where.home];
  return JSON.stringify({ mcpServers: { podium: http, "podium-over-stdio": { command: where.python, args } } }, null, 2);
}

/** @param {string} text */
const quoted = (text) => JSON.stringify(text);
