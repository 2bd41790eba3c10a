"""Teams of AutoGen Studio and exports of OpenAI's Agent Builder, against what their own packages read in them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.table import RecognisedText, find_kind, recognise
from pool_registry.pool import Pool
from tests.framework_python import find_python

KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
CODE = "def stock(item: str) -> str:\n    return json.dumps({item: 3})\n"


OPENAI = "openai.OpenAIChatCompletionClient"


def model(name: str = "gpt-4o-mini", client: str = OPENAI, **config: Any) -> dict[str, Any]:
    return {"provider": f"autogen_ext.models.{client}", "component_type": "model", "config": {"model": name, **config}}


def agent(name: str, kind: str = "AssistantAgent", **config: Any) -> dict[str, Any]:
    provider = f"autogen_agentchat.agents.{kind}"
    return {"provider": provider, "component_type": "agent", "config": {"name": name, **config}}


def team(*participants: dict[str, Any], **config: Any) -> dict[str, Any]:
    provider = "autogen_agentchat.teams.RoundRobinGroupChat"
    return {"provider": provider, "component_type": "team", "config": {"participants": list(participants), **config}}


def function_tool(name: str, code: str, imports: list[Any]) -> dict[str, Any]:
    config = {"source_code": code, "name": name, "description": "", "global_imports": imports}
    return {"provider": "autogen_core.tools.FunctionTool", "component_type": "tool", "config": config}


def read(text: object, **settings: Any) -> RecognisedText:
    return recognise(text if isinstance(text, str) else json.dumps(text), ImportSettings(**settings))


def list_offers(text: RecognisedText) -> dict[str, Offer]:
    """What a text offers once a person has let its sources be asked."""
    offers = list(text.recognition.offers)
    for source in text.recognition.sources:
        offers += asyncio.run(source.list_offers())
    return {offer.spec.name: offer for offer in offers}


def test_participants_become_agents_with_their_role_and_model():
    local = model("qwen3", base_url="http://127.0.0.1:8000/v1", temperature=0.2, max_tokens=300, api_key="none")
    described = agent("Writer", system_message="Write.", description="Writes.", model_client=local)
    claude = model("claude-sonnet-5", "anthropic.AnthropicChatCompletionClient", api_key=KEY)
    text = read(team(described, agent("critic", system_message="Judge.", model_client=claude)))
    offers = list_offers(text)
    writer, critic = offers["writer"].spec, offers["critic"].spec
    assert writer.description == "Writes." and writer.config["role"] == "Write."
    assert (writer.config["base_url"], writer.config["model"]) == ("http://127.0.0.1:8000/v1", "qwen3")
    assert (writer.config["temperature"], writer.config["max_tokens"]) == (0.2, 300)
    assert critic.config["api_key"] == "env:ANTHROPIC_API_KEY" and text.recognition.keys == 1
    assert not any(offer.problem for offer in offers.values()) and KEY not in str(offers)


@pytest.mark.parametrize(("key", "reference"), [("**********", "env:OPENAI_API_KEY"), ("", "env:OPENAI_API_KEY")])
def test_a_key_that_a_file_hides_is_the_usual_one(key, reference):
    [offer] = list_offers(read(team(agent("a", system_message="b", model_client=model(api_key=key))))).values()
    assert offer.spec.config["api_key"] == reference


def test_what_a_pool_has_no_place_for_is_named():
    swarm = team(
        agent("a", system_message="b", model_client=model(), handoffs=["c"], memory=[{}]),
        agent("me", "UserProxyAgent", description="A person"),
        agent("odd", system_message="c", model_client=model(client="replay.ReplayChatCompletionClient")),
        termination_condition={"provider": "x"},
        selector_prompt="Pick",
    )
    text = read(swarm)
    notes = " ".join(text.recognition.notes)
    for part in ("turns of RoundRobinGroupChat", "end condition", "selector's prompt", "handoffs of a", "memory of a"):
        assert part in notes
    assert "odd asks its model through ReplayChatCompletionClient" in notes
    offers = list_offers(text)
    assert "stands for a person" in offers["me"].problem and not offers["odd"].problem


@pytest.mark.medium
def test_a_teams_functions_run_in_the_sandbox_once_a_person_lets_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    tools = [function_tool("stock", CODE, ["json"]), function_tool("untyped", "def untyped(a):\n    return a\n", [])]
    clerk = agent("stock", system_message="Sell.", model_client=model(), workbench=[{"config": {"tools": tools}}])
    text = read(team(clerk))
    assert not list(tmp_path.rglob("*.py")) and not text.recognition.offers, "nothing is saved before"
    [source] = text.recognition.sources
    assert "Saves the team's functions (stock, untyped)" in source.action and "in the sandbox" in source.action
    offers = list_offers(text)
    assert offers["stock_2"].spec.config["tools"] == ["stock"], "an agent keeps the tools that can be called"
    assert offers["untyped"].problem and offers["stock"].spec.config["permissions"]["network"] is False

    async def call() -> object:
        async with live_pool(Pool(name="p", workers=(offers["stock"].spec,))) as pool:
            return (await pool.call(Action("stock", {"item": "tea"}))).value

    assert asyncio.run(call()) == '{"tea": 3}'


def test_mcp_servers_and_inner_teams_of_a_team_are_read_too():
    server = {"command": "npx", "args": ["-y", "@acme/files"], "env": {"A_TOKEN": KEY}, "type": "StdioServerParams"}
    bench = {"provider": "autogen_ext.tools.mcp.McpWorkbench", "config": {"server_params": server}}
    inner = team(agent("reader", system_message="Read.", model_client=model(), workbench=bench))
    text = read({"component": team(inner, agent("critic", system_message="Judge.", model_client=model()))})
    assert [offer.spec.name for offer in text.recognition.offers] == ["reader", "critic"]
    [source] = text.recognition.sources
    assert source.action.startswith("Starts npx") and KEY not in json.dumps(source.fields)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["config", "participants", "model_client", "tools", "workbench", "name", "provider"]), inner
    ),
    max_leaves=15,
)  # fmt: skip


@given(JSON)
def test_a_broken_team_is_read_or_refused_in_words(value):
    document = {"provider": "autogen_agentchat.teams.Swarm", "config": {"participants": value, "model_client": value}}
    try:
        read(document)
    except InvalidPool as error:
        assert str(error)


MAKE_TEAM = """
import sys
from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

def stock(item: str, count: int = 1) -> str:
    "Units of an item."
    return f"{count} {item}"

client = OpenAIChatCompletionClient(model="gpt-4o-mini", api_key="sk-abcdefghijklmnopqrstuvwxyz0123456789")
clerk = AssistantAgent("clerk", client, tools=[FunctionTool(stock, description="Units.")], system_message="Sell.",
                       description="Sells.")
critic = AssistantAgent("critic", client, system_message="Judge.", description="Judges.")
inner = RoundRobinGroupChat([critic], name="inner")
team = SelectorGroupChat([clerk, inner, UserProxyAgent("me")], model_client=client,
                         termination_condition=MaxMessageTermination(3))
document = team.dump_component().model_dump_json()
SelectorGroupChat.load_component(document and team.dump_component())
print(document)
"""


def run_python(python: str, code: str, folder: Path) -> str:
    file = folder / "script.py"
    file.write_text(code)
    return subprocess.run([python, str(file)], check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.slow
def test_a_team_that_autogen_writes_becomes_its_agents_and_functions(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    written = run_python(find_python("autogen_agentchat"), MAKE_TEAM, tmp_path)
    assert KEY not in written
    text = read(written)
    assert text.kind.name == "autogen_team"
    offers = list_offers(text)
    assert {name for name, offer in offers.items() if not offer.problem} == {"clerk", "critic", "stock"}
    assert offers["clerk"].spec.config["tools"] == ["stock"] and offers["clerk"].spec.description == "Sells."
    assert offers["stock"].spec.config["parameters"]["required"] == ["item"]


EXPORT = '''
from agents import function_tool, HostedMCPTool, WebSearchTool, Agent, ModelSettings, Runner, RunConfig, trace
from agents import RunContextWrapper
from pydantic import BaseModel


# Tool definitions
@function_tool
def get_offers(customer: str):
  pass


web_search = WebSearchTool(search_context_size="medium")
mcp = HostedMCPTool(tool_config={
  "type": "mcp", "server_label": "crm", "authorization": "sk-abcdefghijklmnopqrstuvwxyz0123456789",
  "require_approval": "never", "server_url": "https://crm.example.com/mcp"
})


class RouteSchema(BaseModel):
  route: str


class WriterContext:
  def __init__(self, workflow_input_as_text: str) -> None:
    self.workflow_input_as_text = workflow_input_as_text


def writer_instructions(run_context: RunContextWrapper[WriterContext], _agent: Agent[WriterContext]):
  workflow_input_as_text = run_context.context.workflow_input_as_text
  return f"""Answer {workflow_input_as_text}."""


route = Agent(
  name="Route",
  instructions="""Classify the intent: "buy" or "ask".""",
  model="gpt-4.1-mini",
  output_type=RouteSchema,
  model_settings=ModelSettings(temperature=0.2, top_p=1, max_tokens=300, store=True)
)
writer = Agent(name="Writer", instructions=writer_instructions, model="gpt-5", tools=[get_offers, web_search, mcp])


def approval_request(message: str):
  # TODO: Implement
  return True


async def run_workflow(workflow_input):
  with trace("New workflow"):
    await Runner.run(route, input="x", run_config=RunConfig(trace_metadata={"__trace_source__": "agent-builder"}))
    if approval_request("ok?"):
      await Runner.run(writer, input="x")
'''


def test_an_export_of_agent_builder_becomes_its_agents_and_servers():
    text = read(EXPORT)
    assert text.kind.name == "agent_builder" and text.recognition.keys == 1
    route, writer = text.recognition.offers
    assert route.spec.config["role"] == 'Classify the intent: "buy" or "ask".'
    assert (route.spec.config["model"], route.spec.config["api_key"]) == ("gpt-4.1-mini", "env:OPENAI_API_KEY")
    assert (route.spec.config["temperature"], route.spec.config["max_tokens"]) == (0.2, 300)
    assert writer.spec.config["role"] == "Answer {workflow_input_as_text}."
    assert not route.problem and not writer.problem
    [source] = text.recognition.sources
    assert source.action == "Asks https://crm.example.com/mcp" and KEY not in json.dumps(source.fields)
    notes = " ".join(text.recognition.notes)
    for part in ("get_offers", "web search", "approvals", "output type of Route", "the order of its agents", "MCP"):
        assert part in notes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('import { Agent } from "@openai/agents";\nAgent(', "names no agent"),
        ("from agents import Agent\nagent = Agent(name='A'", "a part of it may be missing"),
        ("from agents import Agent\nAgent(name='A')", "names no agent"),
        ("from langgraph.graph import StateGraph\n\ngraph = 1", "keep it as a file and import that"),
    ],
)
def test_code_that_cannot_be_read_says_what_to_do(text, reason):
    with pytest.raises(InvalidPool, match=reason):
        read(text)


TYPESCRIPT = """
import { hostedMcpTool, webSearchTool, tool, Agent, RunContext, Runner, withTrace } from "@openai/agents";
import { z } from "zod";

// Tool definitions
const getOffers = tool({ name: "getOffers", parameters: z.object({ a: z.string() }), execute: async (input) => {
  // TODO: Unimplemented
} });
const webSearch = webSearchTool({ searchContextSize: "medium", userLocation: { type: "approximate" } })
const mcp = hostedMcpTool({
  serverLabel: "crm", authorization: "sk-abcdefghijklmnopqrstuvwxyz0123456789",
  allowedTools: ["find"], requireApproval: "never", serverUrl: "https://crm.example.com/mcp"
})
const RouteSchema = z.object({ route: z.enum(["buy", "ask"]) });
interface WriterContext { workflowInputAsText: string; }
const writerInstructions = (runContext: RunContext<WriterContext>, _agent: Agent<WriterContext>) => {
  const { workflowInputAsText } = runContext.context;
  return `Answer ${workflowInputAsText}.`
}
const route = new Agent({
  name: "Route",
  instructions: `Classify the intent: "buy" or \\`ask\\`.`,
  model: "gpt-4.1-mini",
  outputType: RouteSchema,
  modelSettings: { temperature: 0.2, topP: 1, maxTokens: 300, store: true }
});
const writer = new Agent({ name: "Writer", instructions: writerInstructions, model: "gpt-5" as const, tools: [
  getOffers, webSearch, mcp
] });
const approvalRequest = (message: string) => { return true; }
export const runWorkflow = async (workflow: WorkflowInput) => {
  const resultTemp = await runner.run(route, [...conversationHistory]);
  if (approvalRequest("ok?")) { await runner.run(writer, []); }
}
"""


def test_the_typescript_of_an_export_becomes_the_same_pool():
    typescript, python = read(TYPESCRIPT), read(EXPORT)
    [served], [same] = typescript.recognition.sources, python.recognition.sources
    assert served.fields == same.fields and KEY not in json.dumps(served.fields)
    for made, other in zip(typescript.recognition.offers, python.recognition.offers, strict=True):
        assert made.spec.config | {"role": ""} == other.spec.config | {"role": ""}
    roles = [offer.spec.config["role"] for offer in typescript.recognition.offers]
    assert roles == ['Classify the intent: "buy" or `ask`.', "Answer {workflowInputAsText}."]
    notes = " ".join(typescript.recognition.notes)
    for part in ("getOffers", "web search", "approvals", "output type of Route", "the order of its agents", "MCP"):
        assert part in notes


NEVER_CLOSED = ["const a = (\n", "const a = [[[{{\n", "const a = `${`${\n", "const a = x /*/*\n", "[[{("]


@pytest.mark.parametrize("part", NEVER_CLOSED)
def test_code_that_never_closes_is_read_in_seconds(part):
    started = time.perf_counter()
    with pytest.raises(InvalidPool):
        read(('import { Agent } from "@openai/agents";\nAgent(\nconst b = ' + part * 100_000)[:290_000])
    assert time.perf_counter() - started < 20


TOO_DEEP = [
    'from agents import Agent\na = Agent(name=f"{' + "+".join("x" * 900) + '}")',
    'import { Agent } from "@openai/agents";\nconst a = ' + "new " * 5_000 + "Agent",
]


@pytest.mark.parametrize("code", TOO_DEEP, ids=["Python", "TypeScript"])
def test_code_that_is_nested_too_deep_is_refused_in_words(code):
    with pytest.raises(InvalidPool):
        read(code)


@given(st.text(alphabet="{}[]()`'\"$,:;=.\\/*\n aA0-newAgt", max_size=120))
def test_any_typescript_is_read_or_refused_in_words(code):
    try:
        read(f'import {{ Agent }} from "@openai/agents";\nconst a = new Agent({{{code}\nAgent(')
    except InvalidPool as error:
        assert str(error)


@given(st.text(alphabet="Agent(name='')\n =[]{}:f\"x", max_size=200))
def test_any_code_is_read_or_refused_in_words(code):
    text = f"from agents import Agent\n{code}\na = Agent("
    assert find_kind(text) is not None
    with pytest.raises(InvalidPool):
        read(text)


@pytest.mark.slow
def test_an_export_has_the_agents_that_openais_sdk_makes_of_it(tmp_path):
    show = """
import json
print(json.dumps([[a.name, a.model, a.instructions if isinstance(a.instructions, str) else None]
                  for a in (route, writer)]))
"""
    made = json.loads(run_python(find_python("agents"), EXPORT + show, tmp_path))
    offers = [offer.spec for offer in read(EXPORT).recognition.offers]
    assert [spec.name for spec in offers] == [name.lower() for name, _, _ in made]
    assert [spec.config["model"] for spec in offers] == [model for _, model, _ in made]
    assert offers[0].config["role"] == made[0][2]
