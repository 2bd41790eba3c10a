"""The command `tasks candidates`: what people and clients asked, judged by somebody, as tasks that may be accepted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pool_registry.text import one_line
from trainer.cli.options import HomeOption, JsonOption
from trainer.cli.practice import PoolOption, open_pool

if TYPE_CHECKING:
    from trainer.traffic.candidates import Candidate

ALL = "all"
SHOWN = 4  # pieces of evidence of a candidate
Ids = Annotated[list[str] | None, typer.Option(help="A candidate by its id, or all that nothing is against.")]


def candidates(
    pool: PoolOption,
    accept: Ids = None,
    strike: Annotated[list[str] | None, typer.Option(help="A candidate by its id. It does not come back.")] = None,
    query: Annotated[str, typer.Option(help="Better words for the one that is accepted.")] = "",
    answer: Annotated[str, typer.Option(help="The right answer of the one that is accepted.")] = "",
    split: Annotated[str, typer.Option(help="train, validation or test, for what is accepted.")] = "",
    confirm: Annotated[bool, typer.Option("--confirm", help="What looks like personal data may stay.")] = False,
    clients: Annotated[
        bool | None, typer.Option(help="Say whether requests of clients may become tasks of this pool. Default: no.")
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List what people and clients asked a pool and somebody judged: candidates for tasks of its own, near-duplicates
    as one group, personal data marked. Accept them as they are or edited, or strike them. Exit code 1 when one was
    refused."""
    from trainer.errors import UnusableTasks
    from trainer.tasks.suite import SPLITS
    from trainer.traffic.accept import GONE, Choice, accept_candidates, set_consent, strike_candidates
    from trainer.traffic.candidates import list_candidates

    if (query or answer) and (len(accept or ()) != 1 or ALL in (accept or ())):
        raise UnusableTasks("--query and --answer go with one --accept ID")
    if split not in ("", *SPLITS):
        raise UnusableTasks(f"there is no split {split!r}; use one of: {', '.join(SPLITS)}")
    with open_pool(pool, home) as store:
        if clients is not None:
            set_consent(pool, clients)
        before = list_candidates(store, pool)
        clear = [row.id for row in before if not row.concern]
        ids = dict.fromkeys(name for chosen in accept or () for name in (clear if chosen == ALL else [chosen]))
        choices = [Choice(name, query, answer, split, confirm) for name in ids]
        acceptance = accept_candidates(store, pool, choices)
        struck = strike_candidates(store, pool, strike or ())
        ids_before = {row.id for row in before}
        acceptance.refused.update({name: GONE for name in strike or () if name not in ids_before})
        after = list_candidates(store, pool) if ids or struck else before
    if as_json:
        done = {"added": acceptance.added, "refused": acceptance.refused, "struck": len(struck)}
        listed = [asdict(row) for row in after]
        typer.echo(json.dumps({**done, "candidates": listed}, indent=1, ensure_ascii=False))
    else:
        for query_added in acceptance.added:
            typer.echo(f"added: {query_added}")
        for name, reason in acceptance.refused.items():
            typer.echo(f"{name}: {reason}", err=True)
        print_candidates(pool, after)
    if acceptance.refused:
        raise typer.Exit(1)


def print_candidates(pool: str, rows: Sequence[Candidate]) -> None:
    """Print the candidates, near-duplicates below each other, or what makes some."""
    for row in rows:
        also = f" (also: {'; '.join(row.also)})" if row.also else ""
        answer = row.answer or (f"perhaps {' or '.join(row.choices)}" if row.choices else "not known")
        typer.echo(f"{row.id}  {row.split or 'no split':10}  {one_line(row.query)}{also}")
        typer.echo(f"    near-duplicates: {row.group}; answer: {one_line(answer)}")
        typer.echo(f"    {'; '.join(evidence.describe() for evidence in row.evidence[:SHOWN])}")
        if row.reason:
            typer.echo(f"    look at it: {row.reason}")
    if not rows:
        typer.echo(
            f"Nothing waits: judge answers on the pool {pool} with the thumbs of the Run page, with What if, or with "
            "POST /v1/verdicts/ID of a served model; requests of clients wait only with --clients"
        )
