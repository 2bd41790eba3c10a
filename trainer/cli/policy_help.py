"""Help texts that list the policies, with those of installed packages."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption

POLICY_NAMES = "POLICY_NAMES"


class PolicyHelp(TyperCommand):
    """A command in whose help POLICY_NAMES stands for every policy. The table is read only when help is printed,
    because that imports the engine and the packages that extend it."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from orchestrator.policies.registry import policy_names

        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.help:
                parameter.help = parameter.help.replace(POLICY_NAMES, policy_names())
        super().format_help(ctx, formatter)
