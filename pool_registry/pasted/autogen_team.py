"""A team of AutoGen Studio, in AutoGen's own format of components: each participant becomes an agent with its role, its
model and its tools.

A tool that is Python source becomes a function in the sandbox, once a person has let it be saved and loaded; nothing
of the file runs before. Who speaks when is the orchestrator's to decide, so that part of a team is named and left out.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.imports import Offer, worker_name
from pool_registry.pasted.agent_draft import AgentDraft, Model, make_agents
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, Source, UnfitText, refuse
from pool_registry.pasted.mcp_servers import make_server_source
from pool_registry.processes.function_process import FunctionPermissions
from pool_registry.storage.data_folder import find_home

Component = Mapping[str, Any]
MAX_DEPTH = 5  # of teams in teams
MAX_PARTICIPANTS = 100
NAMESPACES = ("autogen_", "autogenstudio", "autogen.")

# Participants that are no language model, by the class of their provider: why, and what to do in place of them.
NO_MODELS: Mapping[str, str] = {
    "UserProxyAgent": "it stands for a person: in the deployment mode review a person looks at every plan",
    "CodeExecutorAgent": "it runs code: add a worker of the kind python, a sandbox",
    "MultimodalWebSurfer": "it drives a browser: add a worker of the kind web_fetch, or an MCP server for a browser",
    "FileSurfer": "it looks into files: add a worker of the kind documents",
}


@dataclass(frozen=True, slots=True)
class Client:
    """A row: how AutoGen's model client of a class is reached."""

    provider: str
    read_url: Callable[[Component], str]


def _read_base_url(config: Component) -> str:
    return str(config.get("base_url") or "")


def _read_azure_url(config: Component) -> str:
    return f"{str(config.get('azure_endpoint') or '').rstrip('/')}/openai/v1"


def _read_ollama_url(config: Component) -> str:
    return f"{str(config['host']).rstrip('/')}/v1" if config.get("host") else ""


CLIENTS: Mapping[str, Client] = {
    "OpenAIChatCompletionClient": Client("openai", _read_base_url),
    "AzureOpenAIChatCompletionClient": Client("azure", _read_azure_url),
    "AnthropicChatCompletionClient": Client("anthropic", _read_base_url),
    "OllamaChatCompletionClient": Client("ollama", _read_ollama_url),
}


@dataclass(slots=True)
class Team:
    """What a file holds, as far as a pool can."""

    drafts: list[AgentDraft] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)  # by name: the source, with its imports
    servers: list[tuple[str, Component]] = field(default_factory=list)
    misfits: list[Offer] = field(default_factory=list)
    omissions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def is_autogen_team(pasted: PastedText) -> bool:
    return bool(_list_roots(pasted.document))


def read_autogen_team(pasted: PastedText, settings: ImportSettings) -> Recognition:
    """Raises UnfitText where it has no participant."""
    team = Team()
    for root in _list_roots(pasted.document):
        _read_component(root, team, MAX_DEPTH)
    if not team.drafts and not team.misfits:
        raise UnfitText("this team has no participants")
    if team.omissions:
        names = ", ".join(dict.fromkeys(team.omissions))
        team.notes.append(f"Not carried over: {names}. The orchestrator plans who is called, and when a run ends.")
    sources = _list_servers(team, settings)
    if not team.functions:
        return Recognition((*make_agents(team.drafts, settings), *team.misfits), sources, tuple(team.notes))
    functions = _make_function_source(team, settings)
    return Recognition(tuple(team.misfits), (functions, *sources), tuple(team.notes))


def _list_roots(document: JsonValue) -> list[Component]:
    """The teams and agents of a file: a component, one in an envelope of the Studio, or those of a gallery."""
    if not isinstance(document, Mapping):
        return []
    if _is_component(document):
        return [document]
    if isinstance(document.get("component"), Mapping):
        return _list_roots(document["component"])
    gallery = document.get("config", document)
    gallery = gallery.get("components") if isinstance(gallery, Mapping) else None
    if not isinstance(gallery, Mapping):
        return []
    entries = [*_list_components(gallery.get("teams")), *_list_components(gallery.get("agents"))]
    return [entry for entry in entries if _is_component(entry)]


def _is_component(value: Any) -> bool:
    provider = value.get("provider") if isinstance(value, Mapping) else None
    if not isinstance(provider, str):
        return False
    config = value.get("config")
    participants = isinstance(config, Mapping) and ("participants" in config or "model_client" in config)
    return participants and (provider.startswith(NAMESPACES) or value.get("component_type") in ("team", "agent"))


def _list_components(value: Any) -> list[Component]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _class_of(component: Component) -> str:
    return str(component.get("provider") or "").rpartition(".")[2]


def _config_of(component: Component) -> Component:
    config = component.get("config")
    return config if isinstance(config, Mapping) else {}


def _read_component(component: Component, team: Team, depth: int) -> None:
    config = _config_of(component)
    inner = config.get("team")
    participants = _list_components(config.get("participants")) or ([inner] if isinstance(inner, Mapping) else [])
    if participants and depth:
        team.omissions += [f"the turns of {_class_of(component)}", *_list_rules(config)]
        for participant in participants[:MAX_PARTICIPANTS]:
            _read_component(participant, team, depth - 1)
    else:
        _read_agent(component, team)


def _list_rules(config: Component) -> Iterator[str]:
    rules = {"termination_condition": "its end condition", "selector_prompt": "its selector's prompt"}
    yield from (label for name, label in rules.items() if config.get(name))


def _read_agent(component: Component, team: Team) -> None:
    """A participant with a model becomes a draft; any other one is offered with the reason why not."""
    config, kind = _config_of(component), _class_of(component)
    name = str(config.get("name") or component.get("label") or kind or "agent")
    if kind in NO_MODELS or not (config.get("model_client") or config.get("system_message")):
        reason = NO_MODELS.get(kind, f"{kind or 'this'} has no model and no system message, of which an agent is made")
        team.misfits.append(refuse(name, "chat", reason))
        return
    description = " ".join(str(config.get("description") or "").split())
    tools = tuple(_read_tools(name, config, team))
    model = _read_model(name, config.get("model_client"), team)
    team.omissions += [f"the handoffs of {name}"] if config.get("handoffs") else []
    team.omissions += [f"the memory of {name}"] if config.get("memory") else []
    role = str(config.get("system_message") or "")
    team.drafts.append(AgentDraft(name, description, role, model, tools))


def _read_model(agent: str, component: Any, team: Team) -> Model | None:
    if not isinstance(component, Mapping):
        return None
    config, client = _config_of(component), CLIENTS.get(_class_of(component))
    name = config.get("azure_deployment") or config.get("model")
    if client is None or not isinstance(name, str):
        team.notes.append(f"{agent} asks its model through {_class_of(component)}; here it runs on one of this pool's.")
        return None
    temperature, max_tokens = config.get("temperature"), config.get("max_tokens")
    return Model(
        name,
        client.provider,
        client.read_url(config),
        str(config.get("api_key") or ""),
        float(temperature) if isinstance(temperature, int | float) else None,
        max_tokens if isinstance(max_tokens, int) and max_tokens > 0 else None,
    )


def _read_tools(agent: str, config: Component, team: Team) -> Iterator[str]:
    """The names of an agent's functions; they and its MCP servers go to the team."""
    holders = config.get("workbench")
    workbenches = _list_components(holders if isinstance(holders, list) else [holders])
    tools = _list_components(config.get("tools"))
    for workbench in workbenches:
        tools += _list_components(_config_of(workbench).get("tools"))
        server = _config_of(workbench).get("server_params")
        if isinstance(server, Mapping):
            team.servers.append((agent, server))
    for tool in tools:
        settings = _config_of(tool)
        name, source = settings.get("name"), settings.get("source_code")
        if isinstance(name, str) and isinstance(source, str) and name.isidentifier():
            code = "\n".join([*_list_imports(settings.get("global_imports")), source])
            if team.functions.setdefault(name, code) != code:
                team.notes.append(f"Two tools are called {name}; the first one is taken for both.")
            yield worker_name(name)
        else:
            team.notes.append(f"The tool {name or _class_of(tool)} of {agent} is no Python source, and is left out.")


def _list_imports(imports: Any) -> Iterator[str]:
    """The import statements of AutoGen's `global_imports`: a module, a module under an alias, or names of a module."""
    for item in imports if isinstance(imports, list) else []:
        if isinstance(item, str):
            yield f"import {item}"
        elif isinstance(item, Mapping) and "alias" in item:
            yield f"import {item.get('name')} as {item['alias']}"
        elif isinstance(item, Mapping):
            names = item.get("imports")
            yield f"from {item.get('module')} import {', '.join(_list_names(names))}"


def _list_names(names: Any) -> Iterator[str]:
    for name in names if isinstance(names, list) else []:
        yield f"{name.get('name')} as {name.get('alias')}" if isinstance(name, Mapping) else str(name)


def _list_servers(team: Team, settings: ImportSettings) -> tuple[Source, ...]:
    """A source for each MCP server of the agents, each once. One that cannot be asked is offered with the reason."""
    alone = replace(settings, key="", name="")  # what a person gave is the models'
    sources: dict[str, Source] = {}
    for agent, server in team.servers:
        try:
            source = make_server_source("", server, alone)
        except UnfitText as reason:
            team.misfits.append(refuse(f"{agent} server", "mcp", f"the MCP server of {agent}: {reason}"))
            continue
        sources.setdefault(source.name, source)
        team.notes.append(f"{agent} uses tools of the MCP server {source.name}: name them under its Tools.")
    return tuple(sources.values())


def _make_function_source(team: Team, settings: ImportSettings) -> Source:
    code = "\n\n\n".join(team.functions.values()) + "\n"
    digest = hashlib.sha256(code.encode()).hexdigest()[:12]
    file = find_home().artifacts / "functions" / f"autogen_{digest}.py"
    names = ", ".join(team.functions)

    async def list_offers() -> Sequence[Offer]:
        from pool_registry.imports.functions import list_functions

        await asyncio.to_thread(_write_file, file, code)
        functions = await list_functions(str(file), permissions=FunctionPermissions())
        ready = [offer.spec.name for offer in functions if not offer.problem]
        return [*make_agents(team.drafts, settings, ready), *functions]

    action = f"Saves the team's functions ({names[:200]}) as {file} and loads them in the sandbox"
    return Source("functions", action, {"source": "function", "target": str(file)}, list_offers)


def _write_file(file: Path, code: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(code, encoding="utf-8")
