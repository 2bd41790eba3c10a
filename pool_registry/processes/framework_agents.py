"""Agents of other frameworks in a person's file: each becomes a function, which function_host.py lists and calls.

To add a framework, write a row: which of its classes are agents, and how one is asked. Classes are recognised by their
names and by what their package holds: a framework is imported by the person's file alone. Runs in the process of a
function, perhaps in another interpreter: the standard library is all that it imports.
"""

from __future__ import annotations

import inspect
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Optional, get_type_hints

MAX_ABOUT_CHARS = 600
STARTED = frozenset({"__start__"})  # LangGraph's own state of a graph without a schema


class NoAnswer(Exception):
    """An agent ended without an answer; the message says why and what to do."""


@dataclass(frozen=True)
class Framework:
    """A row: the classes of `package` whose objects are agents, what one says of itself ("" for nothing), and the
    function that asks one. A person's own package may have the same name: it does not hold `landmark`."""

    label: str
    package: str
    classes: tuple[str, ...]
    describe: Callable[[Any], str]
    make_function: Callable[[Any], Callable[..., Any]]
    landmark: str = ""


def find_agents(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The agents that a module holds under public names, or under those of its `__all__`; each once."""
    named, seen = getattr(module, "__all__", None), set[int]()
    for name, value in vars(module).items():
        public = name in named if named is not None else not name.startswith("_")
        if public and id(value) not in seen and _find_framework(value) is not None:
            seen.add(id(value))
            yield name, value


def make_function(name: str, value: Any) -> Callable[..., Any] | None:
    """The function that asks an agent, with its arguments as signature; None where the value is no agent."""
    framework = _find_framework(value)
    if framework is None:
        return None
    about = ""
    try:
        function = framework.make_function(value)
        about = " ".join(framework.describe(value).split())[:MAX_ABOUT_CHARS]
    except Exception as error:  # noqa: BLE001  another package's, about this agent alone
        problem = f"{framework.label} cannot describe it ({type(error).__name__}: {error})"
        function = _make_unusable("; ".join(filter(None, (problem, find_hint(error)))))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = about or f"The {framework.label} agent {name}."
    return function


def find_problem(function: Callable[..., Any]) -> str:
    """Why an agent cannot be asked; "" where it can."""
    return getattr(function, "problem", "")


def is_agent(function: Callable[..., Any]) -> bool:
    """Whether a function asks an agent."""
    return function.__module__ == __name__


def _find_framework(value: Any) -> Framework | None:
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(value).__mro__}
    rows = (row for row in FRAMEWORKS if any((row.package, name) in names for name in row.classes))
    return next((row for row in rows if hasattr(sys.modules.get(row.package), row.landmark or "__name__")), None)


def _make_unusable(problem: str) -> Callable[..., Any]:
    async def refuse(message: str) -> Any:  # noqa: ARG001
        raise NoAnswer(problem)

    refuse.problem = problem  # type: ignore[attr-defined]  # read by find_problem
    return refuse


def _with_arguments(function: Callable[..., Any], hints: Mapping[str, Any], required: bool) -> Callable[..., Any]:
    """The function with named arguments of these types as its signature."""
    kind = inspect.Parameter.KEYWORD_ONLY
    default: Any = inspect.Parameter.empty if required else None
    types = {name: hint if required else Optional[hint] for name, hint in hints.items()}  # noqa: UP045  at run time
    parameters = [inspect.Parameter(name, kind, default=default, annotation=hint) for name, hint in types.items()]
    function.__annotations__ = types
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect looks up first
    return function


# LangGraph


def _make_graph_function(graph: Any) -> Callable[..., Any]:
    """A graph over messages is asked in words. Any other one takes the fields of its state: all of them where it has
    an input schema of its own; else some are what it writes, and each may be left out."""

    async def ask_with_fields(**fields: Any) -> Any:
        state = {name: value for name, value in fields.items() if value is not None}
        return _read_state(await graph.ainvoke(state, _make_thread()))

    async def ask(message: str) -> Any:
        state = {"messages": [{"role": "user", "content": message}]}
        return _read_state(await graph.ainvoke(state, _make_thread()))

    builder = getattr(graph, "builder", None)
    schema = getattr(builder, "input_schema", None) or graph.get_input_schema()
    hints = {name: hint for name, hint in get_type_hints(schema).items() if name not in STARTED}
    if "messages" in hints or not hints:
        return ask
    return _with_arguments(ask_with_fields, hints, schema is not getattr(builder, "state_schema", None))


def _make_thread() -> dict[str, Any]:
    """A thread of its own for each call: a graph with a checkpointer wants one, and calls share nothing."""
    return {"configurable": {"thread_id": uuid.uuid4().hex}}


def _read_state(state: Any) -> Any:
    """The text of the last message, or the whole state of a graph without messages. Raises NoAnswer."""
    if not isinstance(state, Mapping):
        return state
    if state.get("__interrupt__"):
        raise NoAnswer("the graph waits for a person (interrupt), whom a worker has not; let it run through")
    messages = state.get("messages")
    return _write_text(messages[-1]) if messages else dict(state)


def _write_text(message: Any) -> str:
    """The text of a message: its content, or the text parts of it."""
    content = getattr(message, "content", message)
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text", "") if isinstance(part, dict) else part for part in parts)
    return "".join(str(text) for text in texts)


# OpenAI Agents SDK


def _make_sdk_function(agent: Any) -> Callable[..., Any]:
    async def ask(message: str) -> Any:
        from agents import Runner  # type: ignore[import-not-found]  # the person's file has imported it

        result = await Runner.run(agent, message)
        if result.final_output is None:
            raise NoAnswer("the run ended without a final output: it may wait for an approval of a tool")
        return result.final_output

    return ask


def _describe_sdk_agent(agent: Any) -> str:
    instructions = agent.instructions if isinstance(agent.instructions, str) else ""
    return agent.handoff_description or f"{agent.name}: {instructions}".rstrip(": ")


# CrewAI


def _make_crew_function(crew: Any) -> Callable[..., Any]:
    """A crew takes a text for each {placeholder} of its tasks and agents."""

    async def ask(**inputs: str) -> Any:
        return _read_output(await crew.kickoff_async(inputs=inputs))

    return _with_arguments(ask, dict.fromkeys(sorted(crew.fetch_inputs()), str), required=True)


def _describe_crew(crew: Any) -> str:
    return " ".join(str(task.description) for task in crew.tasks)


def _make_crew_class_function(crew_class: Any) -> Callable[..., Any]:
    """A class with `@CrewBase` is asked through the crew that it builds, from its files of agents and tasks."""
    return _make_crew_function(crew_class().crew())


def _describe_crew_class(crew_class: Any) -> str:
    """What the class says of itself, else the tasks of its crew."""
    return inspect.getdoc(crew_class) or _describe_crew(crew_class().crew())


def _make_crew_agent_function(agent: Any) -> Callable[..., Any]:
    async def ask(message: str) -> Any:
        return _read_output(await agent.kickoff_async(message))

    return ask


def _read_output(output: Any) -> Any:
    if not output.raw and output.pydantic is None:
        raise NoAnswer("it ended without an output")
    return output.pydantic if output.pydantic is not None else output.raw


FRAMEWORKS: tuple[Framework, ...] = (
    Framework("LangGraph", "langgraph", ("Pregel",), lambda _graph: "", _make_graph_function),
    Framework("OpenAI Agents SDK", "agents", ("Agent",), _describe_sdk_agent, _make_sdk_function, "Runner"),
    Framework("CrewAI", "crewai", ("Crew",), _describe_crew, _make_crew_function),
    Framework("CrewAI", "crewai", ("CrewBaseMeta",), _describe_crew_class, _make_crew_class_function),
    Framework("CrewAI", "crewai", ("Agent",), lambda agent: f"{agent.role}: {agent.goal}", _make_crew_agent_function),
)

# What to do about an error of the libraries that agents ask models with, by the name of its class.
_NO_KEY = "its key is missing or refused; in the sandbox it sees the keys that you allow (--allow key:env:NAME)"
_NO_NETWORK = "it reached no model; in the sandbox it has the network where you allow it (--allow network)"
_NO_PLACE = (
    "in the sandbox it has the network and the folders that you allow "
    "(--allow network, --allow read:FOLDER, --allow write:FOLDER)"
)
_NO_MODULE = "install it in Podium's environment, or name the interpreter that has it (--python)"
HINTS: Mapping[str, str] = {
    "ModuleNotFoundError": _NO_MODULE,
    "PermissionError": _NO_PLACE,
    "OpenAIError": _NO_KEY,
    "AuthenticationError": _NO_KEY,
    "APIConnectionError": _NO_NETWORK,
    "ConnectError": _NO_NETWORK,
}


def find_hint(error: BaseException) -> str:
    """What to do about an error; "" where that stands in its own words."""
    return HINTS.get(type(error).__name__, "")
