"""`podium share`: a link to one run that opens without a login."""

from __future__ import annotations

from typing import Annotated

import typer

from studio.cli.options import HomeOption, open_prepared_store

STUDIO = "http://127.0.0.1:7860"


def share(
    episode: Annotated[str, typer.Argument(help="The run's id. Without one all links are listed.")] = "",
    days: Annotated[float, typer.Option(help="For how many days the link works, at most 365.")] = 30,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back every link to the run.")] = False,
    address: Annotated[str, typer.Option(help="How others reach the studio.")] = STUDIO,
    home: HomeOption = None,
) -> None:
    """Make a link to a run that another person can open without a login, to read that run and nothing else."""
    from studio.access.shared_runs import SharedRuns, ShareRefused

    with open_prepared_store(home) as store:
        links = SharedRuns(store.engine)
        if not episode:
            if revoke:
                raise ShareRefused("say which run's links to take back: podium share RUN --revoke")
            listed = links.list()
            for link in listed:
                typer.echo("\t".join(filter(None, (link.episode, f"until {link.expires_at}", link.user))))
            if not listed:
                typer.echo("No link works; make one with: podium share RUN", err=True)
        elif revoke:
            typer.echo(f"Taken back: {links.revoke_all(episode)}. Nobody opens the run by a link any more.")
        else:
            typer.echo(f"{address.rstrip('/')}{links.add(episode, days)}")
