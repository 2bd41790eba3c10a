"""The table of worker kinds: the one place to register an adapter.

A new kind is a file in workers/ and a line here; README.md shows both. Classes are imported only
when a worker of that kind is opened, so that the table costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.worker import Worker, WorkerSpec

Role = Literal["agent", "tool", "recursion"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One line of the table. `role` decides icon and colour, and who counts as an agent for policies."""

    name: str
    role: Role
    label: str
    summary: str
    target: str  # "module:Class"

    def load(self) -> type[Worker[Any]]:
        module, _, attribute = self.target.partition(":")
        loaded: type[Worker[Any]] = getattr(import_module(module), attribute)
        return loaded


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("chat", "agent", "Chat model", "Any OpenAI-compatible endpoint.", "pool_registry.workers.chat:Chat"),
        Kind("local_model", "agent", "Local model", "A transformers checkpoint on this machine.", "pool_registry.workers.local_model:LocalModel"),
        Kind("calculator", "tool", "Calculator", "Evaluates one arithmetic expression.", "pool_registry.workers.calculator:Calculator"),
        Kind("python", "tool", "Python sandbox", "Runs a snippet without network, files or processes.", "pool_registry.workers.python:Python"),
        Kind("sql", "tool", "SQL database", "Reads a database; nothing can be written.", "pool_registry.workers.sql:Sql"),
        Kind("search", "tool", "Document search", "BM25 over a corpus.", "pool_registry.workers.search:Search"),
        Kind("extractor", "tool", "Extractor", "Rules that pull a number or a name out of passages. Stands in for an LLM reader.", "pool_registry.starter.workers.extractor:Extractor"),
        Kind("units", "tool", "Units", "Converts between units of measure.", "pool_registry.workers.units:Units"),
        Kind("calendar", "tool", "Calendar", "Business days and public holidays.", "pool_registry.workers.calendar:Calendar"),
        Kind("airports", "tool", "Airports", "Country, time zone and place of an airport.", "pool_registry.starter.workers.airports:Airports"),
        Kind("great_circle", "tool", "Great circle", "Distance between two airports.", "pool_registry.starter.workers.great_circle:GreatCircle"),
        Kind("clock", "tool", "Clock", "Local times across time zones.", "pool_registry.starter.workers.clock:Clock"),
        Kind("elements", "tool", "Elements", "Molar mass of a compound.", "pool_registry.starter.workers.elements:Elements"),
        Kind("memos", "tool", "Memo room", "Generated memos, whose figures stand nowhere else.", "pool_registry.starter.workers.memos:Memos"),
        Kind("function", "tool", "Python function", "Your own function, in a process of its own.", "pool_registry.workers.function:Function"),
        Kind("mcp", "tool", "MCP tool", "A tool of an MCP server: a program on this machine, or a URL.", "pool_registry.workers.mcp:Mcp"),
        Kind("flaky", "tool", "Flaky tool", "Another tool that fails now and then, to practise recovery.", "pool_registry.starter.workers.flaky:Flaky"),
        Kind("documents", "tool", "Documents", "BM25 over your own txt, md, pdf, csv and jsonl files.", "pool_registry.workers.documents:Documents"),
        Kind("web_fetch", "tool", "Web fetch", "Reads one public page as text.", "pool_registry.workers.web_fetch:WebFetch"),
        Kind("http", "tool", "HTTP endpoint", "One address of an HTTP API, described by hand.", "pool_registry.workers.http:Http"),
        Kind("openapi", "tool", "OpenAPI operation", "One operation of an HTTP API.", "pool_registry.workers.openapi:OpenApi"),
        Kind("space", "tool", "Hugging Face Space", "One endpoint of a Space, or of any Gradio app.", "pool_registry.workers.space:Space"),
        Kind("orchestrator", "recursion", "Orchestrator", "Runs an episode of its own, one level deeper.", "pool_registry.workers.orchestrator:Recursion"),
    )
}  # fmt: skip


def kind_of(spec: WorkerSpec) -> Kind:
    """The kind of a worker; InvalidPool names the known ones when it is not among them."""
    try:
        return KINDS[spec.kind]
    except KeyError:
        known = ", ".join(sorted(KINDS))
        raise InvalidPool([("kind", f"there is no kind {spec.kind!r}; use one of: {known}")]) from None


def load_config(spec: WorkerSpec) -> BaseModel:
    """`spec.config` as the kind's own model; InvalidPool lists every field that is wrong."""
    try:
        return kind_of(spec).load().Config.model_validate(spec.config)
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error


def open_worker(spec: WorkerSpec) -> Worker[Any]:
    """A callable worker. Raises InvalidPool when its kind or configuration is wrong."""
    return kind_of(spec).load()(spec, load_config(spec))


PLAIN_WORDS = {
    "string_too_short": "this must not be empty",
    "string_pattern_mismatch": "use small letters, digits, _ and -, starting with a letter; 48 at most",
    "missing": "this is missing",
    "extra_forbidden": "there is no such setting here",
}


def field_problems(error: ValidationError) -> list[tuple[str, str]]:
    """pydantic's errors as (field, plain sentence)."""
    return [
        (
            ".".join(str(part) for part in item["loc"]),
            PLAIN_WORDS.get(item["type"], item["msg"].removeprefix("Value error, ")),
        )
        for item in error.errors(include_url=False)
    ]
