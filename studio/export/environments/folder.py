"""A pool and tasks as an installable environment of another package's trainers.

The folder needs nothing of Podium to be read, only to be run: it starts `podium rollout` for each episode, which may
lie in an environment of its own (the packages ask for different versions of the MCP SDK).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from assets import asset
from orchestrator.dialects import find_dialect
from orchestrator.errors import OrchestratorError
from pool_registry.atomic_write import draft_folder
from pool_registry.errors import writing_to
from pool_registry.pool import Pool, export_pool
from studio.export.environments.forms import EnvironmentForm
from trainer.errors import UnknownTask
from trainer.tasks.registry import open_source
from trainer.tasks.sources.source import TaskSource
from trainer.tasks.sources.task_line import write_task_line
from trainer.tasks.suite import SPLITS
from trainer.tasks.task import Task

VARIABLE = re.compile(r"\benv:([A-Za-z_][A-Za-z0-9_]*)")


class NoEnvironment(OrchestratorError):
    """Raised when a pool and tasks make no environment; the message says what to do."""


def export_environment(
    form: EnvironmentForm, pool: Pool, tasks: str, out: Path, dialect: str = "plan", count: int = 1000
) -> int:
    """Write the folder `out` with at most `count` tasks of each split, and return how many tasks it holds.

    Raises NoEnvironment, UnknownTask, UnusableTasks, UnknownOrchestrator and UnwritablePath.
    """
    find_dialect(dialect)
    source = open_source(tasks)
    lines, problems = _collect_lines(source, count)
    if not lines:
        reason = problems[0] if problems else "it has none"
        raise NoEnvironment(f"no task of {tasks} can go along ({reason}); choose another source with --tasks")
    document = export_pool(pool)
    variables = sorted(set(VARIABLE.findall(document)))
    package = f"podium_{pool.name.replace('-', '_')}"
    names = {"name": package.replace("_", "-"), "package": package, "pool": pool.name, "tasks": tasks}
    about = {**names, "dialect": dialect, "count": f"{len(lines):,}", "variables": _describe_variables(variables)}
    files = {
        **{name.format(**about): text.format(**about) for name, text in form.texts.items()},
        f"{package}/{form.module}": asset(form.seat).read_text(encoding="utf-8"),
        f"{package}/pool.json": document,
        f"{package}/tasks.jsonl": "".join(f"{line}\n" for line in lines),
        f"{package}/settings.json": json.dumps({"dialect": dialect, "variables": variables}),
    }
    _write_files(out.expanduser().absolute(), files)
    return len(lines)


def _collect_lines(source: TaskSource, count: int) -> tuple[list[str], list[str]]:
    """The lines of the tasks, and why some of them have none."""
    lines, problems = [], []
    for task in _draw_tasks(source, count):
        try:
            lines.append(write_task_line(task).model_dump_json(exclude_none=True))
        except ValueError as error:
            problems.append(str(error))
    return lines, problems


def _draw_tasks(source: TaskSource, count: int) -> Iterator[Task]:
    for split in SPLITS:
        try:
            yield from source.tasks(split, count)
        except UnknownTask:  # a file may have no task of this split
            continue


def _describe_variables(variables: list[str]) -> str:
    if not variables:
        return ""
    return f" Set the keys that they name: {', '.join(f'`{name}`' for name in variables)}."


def _write_files(out: Path, files: dict[str, str]) -> None:
    if out.exists():
        raise NoEnvironment(f"{out} is there already; choose another folder with --out")
    with writing_to(out), draft_folder(out) as draft:
        for name, content in files.items():
            path = draft / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
