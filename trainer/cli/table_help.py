"""Help texts that list the rows of tables, with those of installed packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperOption

POLICY_NAMES, FAMILY_NAMES, TASK_SOURCES = "POLICY_NAMES", "FAMILY_NAMES", "TASK_SOURCES"


class TableHelp(TyperCommand):
    """A command in whose help POLICY_NAMES and its like stand for the rows of a table. A table is read only when help
    is printed, because that imports the engine and the packages that extend it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.help:
                for word, describe in _LISTS.items():
                    if word in parameter.help:
                        parameter.help = parameter.help.replace(word, describe())
        super().format_help(ctx, formatter)


def _list_policies() -> str:
    from orchestrator.policies.registry import policy_names

    return policy_names()


def _list_families() -> str:
    from trainer.tasks import SUITES

    return ", ".join(SUITES)


def _list_sources() -> str:
    from trainer.tasks.registry import describe_sources

    return describe_sources()


_LISTS: dict[str, Callable[[], str]] = {
    POLICY_NAMES: _list_policies,
    FAMILY_NAMES: _list_families,
    TASK_SOURCES: _list_sources,
}
