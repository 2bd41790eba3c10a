"""`podium notices`: where notices go when a job ends, a cap is reached or a gate decides."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from studio.cli.options import HomeOption, JsonOption, open_prepared_store


def notices(
    webhook: Annotated[
        str | None,
        typer.Option(help="Address that gets each notice as JSON; env:NAME or keyring:NAME where it is a secret."),
    ] = None,
    authorization: Annotated[
        str | None, typer.Option(help="env:NAME or keyring:NAME of what the header Authorization says.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="job_ended, cap_reached, gate_refused or candidate_ready; repeat. Default: all."),
    ] = None,
    queries: Annotated[
        bool | None, typer.Option("--queries/--no-queries", help="Whether a notice may hold texts of queries.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Send nothing any more.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Send one now, and say what came of it.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show or change where notices go. With --test exit code 2 says that the notice was not taken, and why."""
    from trainer.notices.send import Notice, post_notice
    from trainer.notices.settings import NoticeSettings, read_settings, write_settings

    changes: dict[str, Any] = {"webhook": webhook, "authorization": authorization, "kinds": kind, "queries": queries}
    changes = {name: value for name, value in changes.items() if value is not None}
    with open_prepared_store(home) as store:
        settings = NoticeSettings() if off else read_settings(store.home)
        if changes or off:
            settings = NoticeSettings.model_validate({**settings.model_dump(), **changes})
            write_settings(store.home, settings)
    if test:
        if not settings.webhook:
            raise typer.BadParameter("there is no webhook yet: name one with --webhook")
        notice = Notice(kind="job_ended", title="A notice of Podium", text="This one was asked for by podium notices.")
        asyncio.run(post_notice(settings, notice))
    typer.echo(settings.model_dump_json(indent=1) if as_json else _describe(settings.webhook, settings.kinds))
    if test:
        typer.echo("The notice was taken.")


def _describe(webhook: str, kinds: tuple[str, ...]) -> str:
    return f"{', '.join(kinds)}: to {webhook}" if webhook else "No notice is sent: there is no webhook."
