"""Where tasks come from: a person's own, those of the Hub, and the families and sources of other packages.

A recipe or a command names a source as NAME or NAME:ARGUMENT, and several families with commas between them. Another
package adds a source by an entry point:

    [project.entry-points."podium.tasks"]
    riddles = "podium_riddles:riddles"

Its value is one of
- a `Suite`, class or object: a generated family, with levels, splits and reference plans like the built-in ones;
- a `TaskSource`: an object with `tasks(split, count, seed, levels)`, and `levels` where its tasks have some;
- a `TaskProvider` of that name: a row of the table as it stands, which is opened with what stands behind the colon;
- a function that returns a `TaskSource`, or an iterable of tasks: pairs (query, answer), mappings like the lines of a
  JSONL file, or `Task` objects. Where a row names no split, the hash of its query decides. A function with a parameter
  is given what stands behind the colon, "" without one.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from pool_registry.extensions.extension_table import ExtensionTable
from pool_registry.extensions.known_packages import find_package
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import (
    MixedSource,
    SuiteSource,
    TaskList,
    TaskSource,
    explain_failure,
    guard_source,
)
from trainer.tasks.starter_examples import NAME, find_example, open_examples, recognize_example
from trainer.tasks.suite import Suite
from trainer.tasks.task import Task

log = logging.getLogger(__name__)
_SHARE = re.compile(r"(.+?)(?:\*([1-9][0-9]?))?", re.DOTALL)
MAX_RECOGNIZED_CHARS = 2000  # no suite writes longer queries


@dataclass(frozen=True, slots=True)
class TaskProvider:
    """A row of the table: a name under which recipes get tasks.

    `open` gets what stands behind the colon, and raises UnusableTasks when there is no such source. `argument` shows
    it in help texts, in brackets where it may be left out: ":PATH". `example` is what the recipe's form
    suggests. `suite` is the family of a row that is one.
    """

    name: str
    summary: str
    open: Callable[[str], TaskSource]
    argument: str = ""
    example: str = ""
    suite: Suite[Any] | None = None

    def accepts(self, has_argument: bool) -> bool:
        """Whether a source may be named so, with a colon and what follows, or without."""
        return bool(self.argument) if has_argument else not self.argument.startswith(":")


def _provide_suite(suite: Suite[Any]) -> TaskProvider:
    return TaskProvider(suite.name, suite.description, lambda _: SuiteSource(suite.name, [suite]), suite=suite)


def _open_file(argument: str) -> TaskSource:
    from trainer.tasks.sources.files.reader import open_task_file
    from trainer.tasks.tool_use.places import refuse_tool_data

    refuse_tool_data(argument)
    return open_task_file(Path(argument).expanduser(), f"file:{argument}")


def _open_hub(argument: str) -> TaskSource:
    from trainer.tasks.sources.hub import load_hub

    return TaskList(f"hub:{argument}", load_hub(argument))


def _open_gym(argument: str) -> TaskSource:
    from trainer.tasks.sources.reasoning_gym import GymSource, open_family

    return GymSource(f"reasoning_gym:{argument}", open_family(argument))


def _open_taskset(argument: str) -> TaskSource:
    from trainer.tasks.sources.verifiers.source import open_taskset

    return open_taskset(argument)


def _open_practice(argument: str) -> TaskSource:
    from trainer.tasks.practice.stored import open_practice

    return open_practice(argument)


def _make_provider(entry: EntryPoint, value: object) -> TaskProvider:
    """The row of an entry point's value."""
    if isinstance(value, TaskProvider):
        return value
    name = entry.name
    if isinstance(value, type) and issubclass(value, Suite):
        value = value()
    if isinstance(value, Suite):
        return _provide_suite(value)
    summary = (inspect.getdoc(value) or "").partition("\n")[0]
    if callable(value):
        function: Callable[..., object] = value
        takes_argument = bool(inspect.signature(function).parameters)
        return TaskProvider(
            name,
            summary,
            lambda argument: _to_source(name, function(argument) if takes_argument else function()),
            "[:ARGUMENT]" if takes_argument else "",
            name,
        )
    if not hasattr(value, "tasks"):
        raise TypeError(
            f"{entry.value} is a {type(value).__name__}, not a Suite, a source or a function that gives one"
        )
    return TaskProvider(name, summary, lambda _: _to_source(name, value), "", name)


def _to_source(name: str, result: Any) -> TaskSource:
    """What another package gave, as a source."""
    if hasattr(result, "tasks"):
        source: TaskSource = result
        return source
    if not isinstance(result, Iterable):
        raise TypeError(f"it returned a {type(result).__name__}, not a task source or tasks")
    from trainer.tasks.sources.jsonl import make_tasks

    return TaskList(name, make_tasks(result, name))


PROVIDERS = ExtensionTable(
    "podium.tasks",
    TaskProvider,
    (
        TaskProvider(
            "file",
            "Your own tasks: JSONL, JSON, CSV, TSV or Parquet.",
            _open_file,
            ":PATH",
            "file:tasks.jsonl",
        ),
        TaskProvider(NAME, "A few tasks of the starter pool with reference plans, to try things with.", open_examples),
        TaskProvider(
            "practice",
            "Practice tasks made for a pool (podium tasks make).",
            _open_practice,
            ":POOL",
            "practice:starter",
        ),
        TaskProvider(
            "hub",
            "A data set of the Hugging Face Hub with questions and answers.",
            _open_hub,
            ":OWNER/NAME[:CONFIG]",
            "hub:openai/gsm8k:main",
        ),
        TaskProvider(
            "reasoning_gym",
            "A family of that package whose grader cannot be fooled (pip install reasoning-gym).",
            _open_gym,
            ":FAMILY",
            "reasoning_gym:basic_arithmetic",
        ),
        TaskProvider(
            "verifiers",
            "A task set of the package verifiers, whose rewards grade the answers.",
            _open_taskset,
            ":TASKSET[?SETTING=VALUE]",
            "verifiers:gsm8k?split=test",
        ),
    ),
    _make_provider,
)


class _SuiteTable(Mapping[str, Suite[Any]]):
    """The rows of PROVIDERS that are generated families."""

    def __getitem__(self, name: str) -> Suite[Any]:
        suite = PROVIDERS[name].suite
        if suite is None:
            raise KeyError(name)
        return suite

    def __iter__(self) -> Iterator[str]:
        return (name for name, provider in PROVIDERS.items() if provider.suite is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


SUITES: Mapping[str, Suite[Any]] = _SuiteTable()


def list_train_families() -> tuple[str, ...]:
    """The families to learn from."""
    return tuple(name for name, suite in SUITES.items() if not suite.held_out)


def list_held_out_families() -> tuple[str, ...]:
    """The families that no orchestrator learns from."""
    return tuple(name for name, suite in SUITES.items() if suite.held_out)


def is_held_out(family: str) -> bool:
    """Whether this is a family that no orchestrator learns from."""
    suite = SUITES.get(family)
    return suite is not None and suite.held_out


def describe_sources() -> str:
    """Every way to name a source in one line, as help texts and errors list them."""
    families = [f"families with commas between them ({', '.join(SUITES)})"] if SUITES else []
    others = [f"{row.name}{row.argument}" for row in PROVIDERS.values() if row.suite is None]
    return f"{', '.join([*families, *others[:-1]])} or {others[-1]}"


def explain_missing_package(text: str) -> str:
    """Say which package gives a source that the text of a recipe or a command names, and that is not there; "" where
    all of them are."""
    problems = ((name, PROVIDERS.explain_absence(name)) for name in list_names(text))
    return next((f"the task source {name!r} {problem}" for name, problem in problems if problem), "")


def refuse_missing_packages(texts: Iterable[str]) -> None:
    """Raise UnknownTask where a named source comes with a package that is not installed."""
    problem = next(filter(None, map(explain_missing_package, texts)), "")
    if problem:
        raise UnknownTask(problem)


def find_missing_package(texts: Iterable[str]) -> str:
    """The name of a package that gives one of the named sources and is not installed; "" where none is missing."""
    names = (name for text in texts for name in list_names(text) if name not in PROVIDERS)
    return next((package.name for name in names if (package := find_package(PROVIDERS.group, name))), "")


def get_suite(name: str) -> Suite[Any]:
    """The suite called `name`. Raises UnknownTask, which lists those there are."""
    try:
        return SUITES[name]
    except KeyError:
        choices = f"one of: {', '.join(SUITES)}" if SUITES else "a package that has some, or another source"
        raise UnknownTask(explain_missing_package(name) or f"there is no family {name!r}; use {choices}") from None


def find_task(family: str, level: int, split: str, index: int) -> Task:
    """One generated task; of a family whose package is not installed, one of the examples. Raises UnknownTask."""
    example = find_example(family, level, split, index) if family not in SUITES else None
    return example or get_suite(family).task(level, split, index)


def recognize_task(query: str) -> Task | None:
    """The task behind a query in any suite's words, or the example that asks it, or None."""
    if len(query) > MAX_RECOGNIZED_CHARS:
        return None
    tasks = (_recognize_with(suite, query) for suite in SUITES.values())
    return next(filter(None, tasks), None) or recognize_example(query)


def _recognize_with(suite: Suite[Any], query: str) -> Task | None:
    package = PROVIDERS.package_of(suite.name)
    if not package:
        return suite.recognize(query)
    try:
        return suite.recognize(query)
    except Exception:  # another package's family must not keep the others from being recognised
        log.exception("the family %s of %s failed to read a query", suite.name, package)
        return None


def open_source(text: str) -> TaskSource:
    """The source that a recipe or a command names. Several are joined by " + ", each with the share of draws that
    stands behind it: `worlds*3 + everyday + ledger,atlas`.

    Raises UnknownTask, or UnusableTasks when it cannot be opened.
    """
    if len(parts := text.split(" + ")) == 1:
        return _open_one(text)
    shares = [_SHARE.fullmatch(part.strip()) for part in parts]
    named = [(match[1], int(match[2] or 1)) for match in shares if match]
    return MixedSource(text.strip(), [(_open_one(name), share) for name, share in named])


def _open_one(text: str) -> TaskSource:
    name = text.strip()
    head, colon, argument = name.partition(":")
    families = [part.strip() for part in (argument if head == "suite" else name).split(",") if part.strip()]
    if families and all(family in SUITES for family in families):
        families = list(dict.fromkeys(families))
        source: TaskSource = SuiteSource(name, [SUITES[family] for family in families])
        return _with_package(name, families, source)
    provider = PROVIDERS.get(head)
    if provider is None or not provider.accepts(bool(colon)):
        unknown = f"there is no source of tasks {text[:200]!r}; use {describe_sources()}"
        raise UnknownTask(explain_missing_package(text) or unknown)
    package = PROVIDERS.package_of(head)
    if not package:
        return provider.open(argument)
    with explain_failure(name, package):
        return guard_source(name, package, provider.open(argument))


def _with_package(name: str, families: list[str], source: TaskSource) -> TaskSource:
    packages = list(dict.fromkeys(filter(None, map(PROVIDERS.package_of, families))))
    return guard_source(name, ", ".join(packages), source) if packages else source


def list_names(text: str) -> list[str]:
    """The names of the table in the text of a source: what stands before a colon, and every family."""
    matches = filter(None, (_SHARE.fullmatch(part.strip()) for part in text.split(" + ")))
    return [name for match in matches for name in _list_names(match[1])]


def _list_names(part: str) -> list[str]:
    head, colon, argument = part.partition(":")
    names = [head] if colon and head != "suite" else (argument or head).split(",")
    return [name.strip() for name in names]
