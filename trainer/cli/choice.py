"""The command `who`: train the success predictor on a pool's own log."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.options import HomeOption, JsonOption, open_data_folder

if TYPE_CHECKING:
    from trainer.choice.own import OwnFigures
    from trainer.choice.own_log import OwnLog


def who(
    pool: Annotated[str, typer.Argument(help="Name of the pool whose outcomes it learns from.")],
    minutes: Annotated[
        float, typer.Option(help="Of training at most; what is held out is read beside that.", min=0.05, max=240)
    ] = 3.0,
    seed: Annotated[int, typer.Option(help="Of which questions are held out, and of the training.", min=0)] = 0,
    remove: Annotated[bool, typer.Option("--remove", help="Go back to the predictor that ships.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Train the success predictor on a pool's own outcomes; `+who=predictor` uses it there where it is better."""
    from orchestrator.choice.own_predictors import find_own_predictor, remove_own_predictor
    from trainer.choice.own import train_own

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    log = asyncio.run(read_log(pool, home, remove))
    if log is None:
        removed = remove_own_predictor(pool)
        if as_json:
            typer.echo(json.dumps({"removed": removed}))
            return
        typer.echo(f"{'removed: ' if removed else 'there was none: '}the predictor that ships chooses on {pool}")
        return
    figures = train_own(pool, log, minutes, seed, tell)
    if as_json:
        typer.echo(json.dumps({**asdict(figures), "is_better": figures.is_better}, indent=1))
    else:
        typer.echo(describe_figures(figures, find_own_predictor(pool) is not None))


async def read_log(pool: str, home: str | None, remove: bool) -> OwnLog | None:
    """The log of a pool; None where its predictor is only removed. Raises PoolNotFound, TrainingFailed."""
    from orchestrator.choice.predictor import check_installed
    from pool_registry.calls.live_pool import live_pool
    from trainer.choice.own_log import read_own_log, read_record_to_learn_from
    from trainer.run_recipe import load_pool

    with open_data_folder(home) as store:
        chosen = load_pool(store, pool)
        if remove:
            return None
        check_installed()
        record = read_record_to_learn_from(store.engine, chosen.name)
    async with live_pool(chosen) as live:
        return await asyncio.to_thread(read_own_log, live, record)


def describe_figures(figures: OwnFigures, has_own: bool) -> str:
    """What a training came to, in lines for a person."""
    rows = (("shipped", figures.before), ("trained", figures.after), ("log", figures.log))
    lines = [
        f"{figures.outcomes} outcomes of {figures.questions} questions, {figures.held_out_outcomes} of "
        f"{figures.held_out_questions} held out; {f'{figures.steps} steps' if figures.steps else 'a scale alone'}",
        f"{'':10}log loss  calibration error  right choices",
    ]
    for name, row in rows:
        choice = f"{row.choice_right:.3f}" if row.choice_right is not None else "-"
        lines.append(f"{name:10}{row.log_loss:8.4f}  {row.calibration_error:17.4f}  {choice:>13}")
    if figures.is_better:
        lines.append(f"Better on what was held out: +who=predictor uses it on {figures.pool} from now on.")
    else:
        stays = "the pool's earlier one stays in use" if has_own else "the one that ships stays in use"
        lines.append(f"Not better on what was held out, so it was not kept: {stays}.")
    return "\n".join(lines)
