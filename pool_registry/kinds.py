"""The kinds of workers by name: those that ship, and those of other installed packages.

A kind is one class; what it is called, how the page draws it, how the gallery offers it and whether it can be published
are attributes of that class (see worker.py). A kind that ships has a row here. Another package adds one by an entry
point, and nothing else:

    [project.entry-points."podium.workers"]
    reverse = "my_package.reverse:Reverse"

The classes of the table are imported when they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from pydantic import BaseModel, ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.extensions.extension_table import ExtensionTable
from pool_registry.validation_words import field_problems as field_problems
from pool_registry.worker import Role, Worker, WorkerSpec


@dataclass(frozen=True, slots=True)
class Kind:
    """One row: the name that workers give as their `kind`, the class as "module:Class", and the installed package
    (distribution) that adds it, "" for ours."""

    name: str
    target: str
    distribution: str = ""

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    def load(self) -> type[Worker[Any]]:
        """Import the class."""
        loaded: type[Worker[Any]] = getattr(import_module(self.module), self.target.partition(":")[2])
        return loaded

    @property
    def role(self) -> Role:
        return self.load().role

    @property
    def label(self) -> str:
        return self.load().label or self.name

    @property
    def summary(self) -> str:
        return self.load().summary

    @property
    def icon(self) -> str:
        return self.load().icon


def _make_kind(entry: EntryPoint, loaded: object) -> object:
    """The row for the class that another package's entry point gives."""
    if isinstance(loaded, type) and issubclass(loaded, Worker):
        return Kind(entry.name, entry.value, entry.dist.name if entry.dist is not None else "")
    return loaded


_TARGETS = {
    "chat": "pool_registry.workers.chat:Chat",
    "local_model": "pool_registry.workers.local_model:LocalModel",
    "calculator": "pool_registry.workers.calculator:Calculator",
    "python": "pool_registry.workers.python:Python",
    "sql": "pool_registry.workers.sql:Sql",
    "search": "pool_registry.workers.search:Search",
    "extractor": "pool_registry.starter.workers.extractor:Extractor",
    "units": "pool_registry.workers.units:Units",
    "calendar": "pool_registry.workers.calendar:Calendar",
    "airports": "pool_registry.starter.workers.airports:Airports",
    "great_circle": "pool_registry.starter.workers.great_circle:GreatCircle",
    "clock": "pool_registry.starter.workers.clock:Clock",
    "elements": "pool_registry.starter.workers.elements:Elements",
    "memos": "pool_registry.starter.workers.memos:Memos",
    "function": "pool_registry.workers.function:Function",
    "mcp": "pool_registry.workers.mcp:Mcp",
    "a2a": "pool_registry.workers.a2a:A2a",
    "flaky": "pool_registry.starter.workers.flaky:Flaky",
    "delayed": "pool_registry.starter.workers.delayed:Delayed",
    "renamed_parameters": "pool_registry.starter.workers.renamed_parameters:RenamedParameters",
    "documents": "pool_registry.workers.documents:Documents",
    "web_fetch": "pool_registry.workers.web_fetch:WebFetch",
    "http": "pool_registry.workers.http:Http",
    "openapi": "pool_registry.workers.openapi:OpenApi",
    "space": "pool_registry.workers.space:Space",
    "recorded": "pool_registry.workers.recorded:Recorded",
    "orchestrator": "pool_registry.workers.orchestrator:Recursion",
    "skill": "pool_registry.workers.skill:Skill",
}
KINDS = ExtensionTable("podium.workers", Kind, (Kind(name, target) for name, target in _TARGETS.items()), _make_kind)


def add_kind(name: str, worker: type[Worker[Any]]) -> None:
    """Make a class a kind in this process alone: for scripts and tests. A package has an entry point instead."""
    KINDS.built_in[name] = Kind(name, f"{worker.__module__}:{worker.__qualname__}")


def role_of(kind: str) -> Role:
    """Return the role of a kind; that of a tool when the kind is not installed."""
    return KINDS[kind].role if kind in KINDS else "tool"


def icon_of(kind: str) -> str:
    """Return the icon of a kind as an SVG path; "" where the page shows that of its role."""
    return KINDS[kind].icon if kind in KINDS else ""


def wording_of(kind: str) -> tuple[str, ...]:
    """Return the settings of a kind that do not tell two works apart; none when the kind is not installed."""
    return KINDS[kind].load().wording if kind in KINDS else ()


def kind_of(spec: WorkerSpec) -> Kind:
    """Return the kind of a worker. Raises InvalidPool naming the kinds, or why a package's kind is left out."""
    kind = KINDS.get(spec.kind)
    if kind is None:
        problem = KINDS.explain_absence(spec.kind)
        choices = f"there is no kind {spec.kind!r}; use one of: {', '.join(sorted(KINDS))}"
        raise InvalidPool([("kind", f"the kind {spec.kind!r} {problem}" if problem else choices)])
    return kind


def load_config(spec: WorkerSpec) -> BaseModel:
    """Validate `spec.config` with the kind's model. Raises InvalidPool listing every field that is wrong."""
    try:
        return kind_of(spec).load().Config.model_validate(spec.config)
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error


def open_worker(spec: WorkerSpec) -> Worker[Any]:
    """Open a worker for calls. Raises InvalidPool when its kind or configuration is wrong."""
    return kind_of(spec).load()(spec, load_config(spec))
