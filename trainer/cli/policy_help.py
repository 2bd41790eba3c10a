"""Help texts that list the orchestrators, with those of installed packages."""

from __future__ import annotations

import click
from typer.core import TyperCommand, TyperOption

POLICY_NAMES = "POLICY_NAMES"


class PolicyHelp(TyperCommand):
    """A command in whose help POLICY_NAMES stands for every policy. The table is read when help is asked for only:
    it imports the engine and the packages that extend it."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from orchestrator.policies.registry import policy_names

        for parameter in self.params:
            if isinstance(parameter, TyperOption) and parameter.help:
                parameter.help = parameter.help.replace(POLICY_NAMES, policy_names())
        super().format_help(ctx, formatter)
