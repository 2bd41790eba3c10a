"""`podium improve`: what people asked becomes what the orchestrator of a pool learns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from studio.cli.options import HomeOption, JsonOption, open_prepared_store

if TYPE_CHECKING:
    from trainer.results.improvement import ImprovementReport

REFUSED, NOTHING_TO_DO = 1, 3  # exit codes


def improve(
    pool: Annotated[str, typer.Option(help="Name of the pool.")],
    serving: Annotated[
        str, typer.Option(help="The orchestrator that serves it. Default: what the Run page chooses for the pool.")
    ] = "",
    stage: Annotated[
        str, typer.Option(help="What is trained: who, plans or right_runs. Default: the cheapest that applies.")
    ] = "",
    samples: Annotated[int, typer.Option(help="Runs of each held-out task.", min=1, max=64)] = 1,
    general_tasks: Annotated[int, typer.Option(help="Tasks of other pools to measure on; 0 for none.", min=0)] = 20,
    steps: Annotated[int | None, typer.Option(help="Of training a reader. Default: as its tasks need.", min=1)] = None,
    minutes: Annotated[float, typer.Option(help="Of training a choice of workers.", min=0.05, max=240)] = 3.0,
    replay: Annotated[float, typer.Option(help="The share of old tasks in what is learnt from.", min=0, max=0.9)] = 0.5,
    held_out: Annotated[
        int, typer.Option(help="New tasks that are measured on at most, and as many old ones.", min=10)
    ] = 200,
    seconds_on_top: Annotated[float, typer.Option(help="That a query may take longer than now.", min=0)] = 2.0,
    seed: Annotated[int, typer.Option(help="Of what is drawn.", min=0)] = 0,
    max_cost: Annotated[float | None, typer.Option(help="US dollars for each of its jobs.", min=0.0001)] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also tasks that were set aside because a candidate got worse with them.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="Give up an improvement that was interrupted, and begin another.")
    ] = False,
    every: Annotated[
        str,
        typer.Option(help="Improve it by itself, beside the studio: night, 03:30, sun 03:30, or off. Not now."),
    ] = "",
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and improve at the times of --every, without a studio.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Learn from the new tasks of a pool, and say whether the result is better than what serves it. Promotes nothing.

    Exit code 0: it may be promoted, 1: the gate refuses it, 2: bad input or a job that failed (the same command goes
    on), 3: there are too few new tasks, and nothing was done.
    """
    from studio.improving.start import find_serving, list_deployed
    from trainer.improve.choose_tasks import TooFewTasks
    from trainer.improve.record import find_unfinished
    from trainer.improve.run import ImprovementOptions
    from trainer.improve.run import improve as run_improvement
    from trainer.improve.site import Site
    from trainer.jobs.queue import JobStore

    if every or watch:
        _set_and_watch(pool, every, serving, watch, home)
        return
    with open_prepared_store(home) as store:
        name = serving or find_serving(store, pool)
        names = [key for key, state in list_deployed(store, pool).items() if state.serving.orchestrator == name]
        options = ImprovementOptions(
            name,
            stage,
            samples,
            general_tasks,
            steps,
            minutes,
            replay,
            held_out,
            seconds_on_top,
            seed,
            max_cost,
            again,
        )
        site = Site(store, JobStore(store.engine, store.home), lambda line: typer.echo(line, err=True))
        try:
            unfinished = find_unfinished(store.home, pool)
            no_longer_serves = unfinished is not None and not serving and unfinished.plan.serving != name
            improvement, report = run_improvement(site, pool, options, anew or no_longer_serves)
        except TooFewTasks as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(NOTHING_TO_DO) from error
    typer.echo(report.model_dump_json(indent=1) if as_json else "\n".join(describe_report(report)))
    if not as_json:
        typer.echo("\n".join([f"Report: {improvement.folder}", *list_next_steps(report, names)]))
    if not report.promotable:
        raise typer.Exit(REFUSED)


def _set_and_watch(pool: str, every: str, serving: str, watch: bool, home: str | None) -> None:
    """Set a timer, and with `watch` begin what is due until Ctrl-C."""
    from studio.improving.schedule import describe_timer, set_timer
    from studio.improving.start import watch_timers

    with open_prepared_store(home) as store:
        store.pools.latest(pool)  # says so when there is no such pool
        if every:
            typer.echo(describe_timer(pool, set_timer(store.home, pool, every, serving)))
        if watch:
            watch_timers(store, lambda line: typer.echo(line, err=True))


def list_next_steps(report: ImprovementReport, deployments: Sequence[str]) -> list[str]:
    """The commands that let a candidate take the place of what serves these deployments."""
    if not report.promotable:
        return []
    candidate = report.candidate
    return [
        f"To let it serve: podium candidate {name} --orchestrator {candidate} --shadow, then podium promote {name}"
        for name in deployments
    ]


def describe_report(report: ImprovementReport) -> list[str]:
    """A report in lines for a person."""
    verdict = "may be promoted" if report.promotable else "is not to be promoted"
    lines = [f"{report.candidate} {verdict}, in the place of {report.serving}.", *report.reasons]
    for figure in report.guarded:
        lines.append(f"{figure.name}: {figure.before:.4g} before, {figure.after:.4g} after, in {figure.unit}.")
    if report.worse:
        quoted = (json.dumps(query, ensure_ascii=False) for query in report.worse[:5])  # as `podium forget` finds them
        lines.append(f"Right before and wrong now: {'; '.join(quoted)}.")
    lines.append(f"It took {report.hours:.2f} hours and ${report.cost:.4f}.")
    return lines
