"""A workflow of OpenAI's Agent Builder, as it is exported: Python or TypeScript for the Agents SDK. The code is read
and never run.

Each agent becomes an agent with its instructions and its model, hosted MCP servers become sources. The way through the
workflow (which agent follows which) is the orchestrator's to decide here; what else is lost is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pool_registry.pasted.agent_draft import AgentDraft, Model, make_agents
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, Source, UnfitText
from pool_registry.pasted.mcp_servers import make_server_source
from pool_registry.pasted.python_calls import NamedCall, Reference, read_source
from pool_registry.pasted.python_calls import Source as Code
from pool_registry.pasted.typescript_calls import read_typescript

_PYTHON = re.compile(r"^[ \t]*(?:from agents(?:\.\w+)* import|import agents\b)", re.MULTILINE)
_TYPESCRIPT = re.compile(r"""^[ \t]*import\b[^;]*["']@openai/agents["']""", re.MULTILINE)
MAX_CHARS = 300_000
_DEFAULT_MODEL = "gpt-4.1"  # of the Agents SDK, where an agent names none

# Tools that run at OpenAI, by the name of their class: what to add to a pool in place of each.
HOSTED: Mapping[str, str] = {
    "WebSearchTool": "web search (add an MCP server that searches, or a worker of the kind web_fetch)",
    "FileSearchTool": "search in OpenAI's vector stores (add your files as a worker of the kind documents)",
    "CodeInterpreterTool": "the code interpreter (add a worker of the kind python)",
    "ImageGenerationTool": "image generation",
    "ComputerTool": "the use of a computer",
    "LocalShellTool": "a shell",
}
FUNCTION_MAKERS = frozenset({"tool"})  # in TypeScript; in Python a function has a decorator
# Steps of a workflow, by what its code calls: what they are.
STEPS: Mapping[str, str] = {
    "approval_request": "the approvals (the deployment mode review lets a person look at every plan)",
    "run_and_apply_guardrails": "the guardrails",
    "run_guardrails": "the guardrails",
}


@dataclass(slots=True)
class Workflow:
    """What stands beside the agents of an export."""

    sources: dict[str, Source] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def is_agent_builder_export(pasted: PastedText) -> bool:
    return bool(_PYTHON.search(pasted.text) or _TYPESCRIPT.search(pasted.text)) and "Agent(" in pasted.text


def read_agent_builder_export(pasted: PastedText, settings: ImportSettings) -> Recognition:
    """Raises UnfitText."""
    if len(pasted.text) > MAX_CHARS:
        raise UnfitText(f"this code has more than {MAX_CHARS:,} characters; paste the part with the agents")
    written_in_typescript = _TYPESCRIPT.search(pasted.text) is not None
    code = read_typescript(pasted.text) if written_in_typescript else read_source(pasted.text)
    if code is None:
        raise UnfitText("this begins like Python for the Agents SDK, but is none: a part of it may be missing")
    agents = [call.arguments for call in code.calls.values() if call.function == "Agent"]
    if not agents:
        raise UnfitText("this code names no agent, such as: agent = Agent(name=..., instructions=...)")
    workflow = Workflow()
    drafts = [_read_agent(arguments, code, workflow, settings) for arguments in agents]
    workflow.left_out += [STEPS[name] for name in code.called if name in STEPS]
    if len(drafts) > 1:
        workflow.left_out.append("the order of its agents, which the orchestrator plans")
    if workflow.left_out:
        workflow.notes.append(f"Not carried over: {'; '.join(dict.fromkeys(workflow.left_out))}.")
    offers = tuple(make_agents(drafts, settings))
    return Recognition(offers, tuple(workflow.sources.values()), tuple(dict.fromkeys(workflow.notes)))


def _read_agent(arguments: Mapping[str, Any], code: Code, workflow: Workflow, settings: ImportSettings) -> AgentDraft:
    name = _read_text(arguments.get("name"), code) or "agent"
    role = _read_text(arguments.get("instructions"), code)
    if not role:
        workflow.notes.append(f"The instructions of {name} are made by its code: write its role yourself.")
    elif re.search(r"\{[A-Za-z_][\w.\[\]'\"]*\}", role):
        workflow.notes.append(f"The code fills in a part of the instructions of {name}; it stands there as {{...}}.")
    for tool in _list_tools(arguments.get("tools"), code):
        _read_tool(name, tool, workflow, settings)
    if arguments.get("output_type") is not None:
        workflow.left_out.append(f"the output type of {name}")
    if arguments.get("handoffs"):
        workflow.left_out.append(f"the handoffs of {name}")
    description = _read_text(arguments.get("handoff_description"), code)
    return AgentDraft(name, description, role, _read_model(name, arguments, code, workflow))


def _read_text(value: Any, code: Code) -> str:
    """A literal, or what the variable or the function of this name holds."""
    if isinstance(value, Reference):
        value = code.texts.get(value.name, "")
    return value if isinstance(value, str) else ""


def _read_model(name: str, arguments: Mapping[str, Any], code: Code, workflow: Workflow) -> Model | None:
    value = arguments.get("model", _DEFAULT_MODEL)
    model = _read_text(value, code)
    if not model:
        workflow.notes.append(f"The model of {name} is made by its code; here it runs on one of this pool's.")
        return None
    call = arguments.get("model_settings")
    settings = call.arguments if isinstance(call, NamedCall) else call if isinstance(call, Mapping) else {}
    temperature, max_tokens = settings.get("temperature"), settings.get("max_tokens")
    return Model(
        model,
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
        max_tokens=max_tokens if isinstance(max_tokens, int) and max_tokens > 0 else None,
    )


def _list_tools(value: Any, code: Code) -> Iterator[tuple[str, NamedCall | None]]:
    """The tools of an agent, each with its name and the call that makes it; None for a function."""
    for tool in value if isinstance(value, list) else []:
        if isinstance(tool, Reference):
            yield tool.name, code.calls.get(tool.name)
        elif isinstance(tool, NamedCall):
            yield tool.function, tool


def _read_tool(agent: str, tool: tuple[str, NamedCall | None], workflow: Workflow, settings: ImportSettings) -> None:
    name, call = tool
    config = call.arguments.get("tool_config", call.arguments) if call is not None else {}
    if isinstance(config, Mapping) and "server_label" in config:
        _add_server(agent, config, workflow, settings)
    elif call is not None and call.function not in FUNCTION_MAKERS:
        maker = call.function[:1].upper() + call.function[1:]  # webSearchTool in TypeScript
        workflow.left_out.append(HOSTED.get(maker, f"the tool {name}"))
    else:
        how = "save the code as a file with the function in it, and import that (Python function)"
        workflow.notes.append(f"The function {name} of {agent} is not carried over: {how}.")


def _add_server(agent: str, config: Mapping[str, Any], workflow: Workflow, settings: ImportSettings) -> None:
    """The hosted MCP server of a tool, which is asked from this machine instead."""
    label, url = str(config.get("server_label") or ""), config.get("server_url")
    if not isinstance(url, str):
        workflow.left_out.append(f"the connector {config.get('connector_id') or label} of OpenAI")
        return
    headers = dict(config["headers"]) if isinstance(config.get("headers"), Mapping) else {}
    if isinstance(config.get("authorization"), str):
        headers["Authorization"] = f"Bearer {config['authorization']}"
    entry = {"url": url, "headers": {key: value for key, value in headers.items() if isinstance(value, str)}}
    try:
        source = make_server_source(label, entry, replace(settings, key="", name=""))
    except UnfitText as reason:
        workflow.notes.append(f"The MCP server {label} is left out: {reason}.")
        return
    workflow.sources.setdefault(source.name, source)
    workflow.notes.append(f"{agent} uses tools of the MCP server {source.name}: name them under its Tools.")
