// The official client for Node with every feature. record.py runs a copy of this beside its node_modules.
import assert from "node:assert";
import OpenAI from "openai";

const [base] = process.argv.slice(2);
const model = "podium-edge";
const client = (feature) =>
  new OpenAI({ baseURL: `${base}/openai-node/${feature}/v1`, apiKey: "none", maxRetries: 0 });
const user = [{ role: "user", content: "say hello" }];
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const weather = { name: "get_weather", description: "The weather of a city.", parameters };
const schema = {
  type: "object",
  properties: { word: { type: "string" }, count: { type: "integer" } },
  required: ["word", "count"],
  additionalProperties: false,
};

await client("chat").chat.completions.create({
  model, messages: user, temperature: 0.4, top_p: 0.9, seed: 1, stop: "END", max_tokens: 100, user: "u",
});
for await (const chunk of await client("streaming").chat.completions.create({
  model, messages: user, stream: true, stream_options: { include_usage: true },
})) assert(chunk.object === "chat.completion.chunk");
await client("structured").chat.completions.create({
  model, messages: user,
  response_format: { type: "json_schema", json_schema: { name: "reply", strict: true, schema } },
});
const done = await client("tools").chat.completions.runTools({
  model,
  messages: [{ role: "user", content: 'call get_weather {"city": "Paris"}' }],
  tools: [{
    type: "function",
    function: { ...weather, parse: JSON.parse, function: ({ city }) => `21 degrees in ${city}` },
  }],
}).finalContent();
assert(done.includes("21 degrees"), done);
const api = client("responses");
const first = await api.responses.create({ model, input: "say hello" });
assert(first.output_text === "hello");
await api.responses.create({ model, input: "say more", previous_response_id: first.id });
for await (const event of await client("responses-streaming").responses.create({
  model, input: "say hello", stream: true,
})) assert(event.type);
await client("responses-structured").responses.create({
  model, input: "say hello", text: { format: { type: "json_schema", name: "reply", strict: true, schema } },
});
const tools = [{ type: "function", strict: true, ...weather }];
const asked = await client("responses-tools").responses.create({
  model, input: 'call get_weather {"city": "Paris"}', tools,
});
const call = asked.output.find((item) => item.type === "function_call");
const answered = await client("responses-tools").responses.create({
  model, tools, previous_response_id: asked.id,
  input: [{ type: "function_call_output", call_id: call.call_id, output: "21 degrees in Paris" }],
});
assert(answered.output_text.includes("21 degrees"));
