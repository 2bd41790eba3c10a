"""The commands about jobs: one for each method, `train`, `run`, `recipes`, `jobs ...`, `demonstrations`, `compare`."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pool_registry.errors import writing_to
from trainer.cli.options import HomeOption, JsonOption, WithoutOption, open_data_folder, open_jobs
from trainer.errors import InvalidRecipe, UnusableTasks
from trainer.methods.base import Method
from trainer.methods.table import METHODS
from trainer.recipe import dump_recipe, list_presets, load_recipe, parse_recipe

if TYPE_CHECKING:
    from orchestrator.traces.store import Store
    from trainer.jobs.queue import JobRow, JobStore
    from trainer.recipe import Recipe

RecipeFile = Annotated[str, typer.Argument(help="A recipe's YAML file, or the name of a preset.")]
Detach = Annotated[bool, typer.Option("--detach", help="Queue the job and return at once.")]
Job = Annotated[str, typer.Argument(help="The job's id.")]

LOG_FORMAT = "%(asctime)s %(message)s"

jobs_app = typer.Typer(help="Jobs: list, show, stop, resume.", no_args_is_help=True)


def add_job_commands(app: typer.Typer) -> None:
    """Add these commands to the trainer's command line."""
    app.add_typer(jobs_app, name="jobs")
    for method in METHODS.values():
        app.command(method.name)(_make_stage_command(method))
    for command in (train, run, recipes, demonstrations, compare):
        app.command()(command)
    app.command("rented", hidden=True)(run_sent_job)
    app.command("rank", hidden=True)(run_rank)


def _make_stage_command(method: Method[Any]) -> Callable[..., None]:
    """The command that runs one stage of a recipe alone."""

    def command(recipe: RecipeFile, detach: Detach = False, home: HomeOption = None) -> None:
        start_job(load_recipe(recipe).with_only(method.name), detach, home)

    command.__doc__ = method.summary
    return command


def train(
    recipe: RecipeFile,
    pool: Annotated[str, typer.Option(help="The pool, in place of the recipe's; with its own practice tasks.")] = "",
    where: Annotated[
        str,
        typer.Option(
            "--on", help="Where it runs, in place of the recipe's `where`: here, hf:FLAVOR or ray://HOST:PORT."
        ),
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="Agree to what a rented machine costs without being asked.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars for the whole job; at the cap it stops.", min=0)
    ] = None,
    teacher: Annotated[
        str,
        typer.Option(
            help="With own-agents: an agent of the pool whose plans are imitated before GRPO, where their runs solve "
            "the tasks. Default: none, as measured."
        ),
    ] = "",
    without: WithoutOption = None,
    detach: Detach = False,
    home: HomeOption = None,
) -> None:
    """Every stage of a recipe, one after the other."""
    from trainer.pool_recipe import PRESETS, fit_recipe_to_pool

    chosen = load_recipe(recipe)
    if pool and recipe in PRESETS:
        chosen = _make_pool_recipe(pool, recipe, home)
    elif pool:
        chosen = fit_recipe_to_pool(chosen, pool)
    if teacher:
        chosen = _add_teacher(chosen, recipe, teacher, home)
    if max_cost is not None:
        chosen = parse_recipe(dump_recipe(chosen.model_copy(update={"max_cost": max_cost})))
    chosen = chosen.without_repairs(without or ())
    start_job(chosen.with_place(where) if where else chosen, detach, home, yes)


def _add_teacher(chosen: Recipe, preset: str, teacher: str, home: str | None) -> Recipe:
    """The recipe with the plans of an agent imitated first. Raises InvalidRecipe with why this agent cannot show any,
    and for other presets."""
    from trainer.pool_recipe import AGENTS
    from trainer.run_recipe import load_pool

    if preset != AGENTS:
        problem = f"--teacher goes with {AGENTS}; a recipe of your own names its teacher itself: model:{teacher}"
        raise InvalidRecipe([("", problem)])
    taught = chosen.with_teacher(teacher)
    with open_data_folder(home) as store:
        pool = load_pool(store, chosen.pool)
        gaps = [
            gap
            for stage in taught.training_stages
            for gap in stage.method.find_gaps(stage.settings, taught, pool, store)
            if gap.blocks
        ]
    if gaps:
        raise InvalidRecipe([(gap.key, gap.sentence) for gap in gaps])
    return taught


def _make_pool_recipe(pool: str, preset: str, home: str | None) -> Recipe:
    """The recipe of *Train on this pool*: its tasks are made where there are none, and its steps fit their number."""
    from orchestrator.made_for import find_reader_of_records
    from trainer.pool_recipe import PLANS, build_pool_recipe
    from trainer.run_recipe import load_pool
    from trainer.tasks.practice.stored import SOURCE, count_learnt, count_planned, make_missing_tasks
    from trainer.tasks.teachers import EXPLAIN_NO_PLANS

    with open_data_folder(home) as store:
        make_missing_tasks([f"{SOURCE}{pool}"], store)
        count = count_planned(pool) if preset == PLANS else count_learnt(pool)
        start = find_reader_of_records(load_pool(store, pool))
    if not count:
        raise UnusableTasks(EXPLAIN_NO_PLANS)
    return build_pool_recipe(pool, count, preset, start=start)


def start_job(recipe: Recipe, detach: bool, home: str | None, yes: bool = False) -> None:
    """Queue a job and follow it in this terminal. Ctrl-C stops it, with a checkpoint where it runs here.

    With `yes` the price of a rented machine is agreed to without a question.
    """
    from trainer.tasks.registry import refuse_missing_packages

    refuse_missing_packages(recipe.list_sources())
    with open_jobs(home) as (store, jobs):
        if recipe.place.is_rented:
            _agree_to_rent(recipe, store, jobs, yes)
        _check_clusters(recipe, store)
        row = jobs.submit(recipe, here=not detach)
        if detach:
            jobs.start(row.id)
            typer.echo(row.id)
            return
        typer.echo(f"{row.id}: Ctrl-C stops it; `python -m trainer jobs show {row.id}` says how far it is", err=True)
        ended = row
        while ended.state == "queued":  # the claim may be lost to another waiting terminal
            try:
                _wait_for_turn(jobs, row)
            except KeyboardInterrupt:  # else it would start by itself, with nobody at the terminal
                jobs.stop(row.id)
                raise
            ended = _run_here(row.id, store, jobs)
    if ended.state == "failed":
        typer.echo(f"podium: {ended.message}", err=True)
        sys.exit(1)
    typer.echo(f"{ended.id}: {ended.state}")
    if ended.state == "stopped" and ended.message:
        typer.echo(f"podium: {ended.message}", err=True)
    _print_outcome(ended, recipe, jobs)


def _check_clusters(recipe: Recipe, store: Store) -> None:
    """Raise InvalidRecipe with what keeps a recipe from its clusters, and TrainingFailed where one does not answer."""
    from trainer.cluster.connection import check_address
    from trainer.cluster.preflight import list_clusters, refuse_cluster_problems
    from trainer.run_recipe import load_pool

    for place in list_clusters(recipe):
        refuse_cluster_problems(recipe, [load_pool(store, recipe.pool)])
        check_address(place)


def _agree_to_rent(recipe: Recipe, store: Store, jobs: JobStore, yes: bool) -> None:
    """Print what a rented machine costs and what it will not have, and ask. Exits with 2 where the answer is no."""
    from trainer.rented.hub_jobs import open_hub_jobs
    from trainer.rented.plan import plan_rental, refuse_problems

    plan = plan_rental(recipe, store, jobs, open_hub_jobs())
    refuse_problems(plan)
    typer.echo("\n".join(plan.describe()), err=True)
    if not yes and not typer.confirm("Rent it?", err=True):
        raise typer.Exit(2)


def run_sent_job(
    job: Job,
    sent: Annotated[Path, typer.Argument(help="The folder of what was sent.")],
    written: Annotated[Path, typer.Argument(help="The folder of the bucket that the job writes to.")],
    attempt: Annotated[int, typer.Option(min=1)] = 1,
    home: HomeOption = None,
) -> None:
    """Run a job that was sent to this rented machine (used there; you want `train --on`)."""
    from trainer.job_process import run_job
    from trainer.rented.bundle import RECIPE
    from trainer.rented.inside import Mirror, unpack_job, write_end

    recipe = load_recipe(str(sent / RECIPE))
    with open_jobs(home) as (store, jobs):
        unpack_job(sent, written, store, jobs.folder(job))
        jobs.submit(recipe, here=True, key=job)
        logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)  # what the machine prints is the job's log
        logging.getLogger("trainer").setLevel(logging.INFO)
        with Mirror(jobs.folder(job), written):
            run_job(job, store, jobs)
        ended = jobs.get(job)
        write_end(ended, attempt, store, written)
    sys.exit(1 if ended.state == "failed" else 0)


def _print_outcome(row: JobRow, recipe: Recipe, jobs: JobStore) -> None:
    """Say what a job came to, and what can be done with its checkpoint."""
    from trainer.jobs.outcome import describe_outcome

    outcome = describe_outcome(row.id, recipe, jobs.folder(row.id)) if row.state == "done" else None
    if outcome is None:
        return
    name, pool = outcome.orchestrator, outcome.pool
    typer.echo(outcome.sentence)
    if outcome.lacks_own:
        typer.echo(f'  add      podium tasks add --pool {pool} --split test --query "..." --answer "..."')
    if outcome.verdict == "worse":
        typer.echo(f'  before   podium run "..." --pool {pool} --orchestrator {outcome.start}')
    typer.echo(f'  run      podium run "..." --pool {pool} --orchestrator {name}')
    typer.echo(f"  compare  python -m trainer compare {row.id}")
    typer.echo(f"  serve    podium serve --pool {pool} --orchestrator {name}")
    typer.echo(f"  publish  podium publish --orchestrator {name} --pool {pool} ...")


def run(job: Job, home: HomeOption = None) -> None:
    """Run a queued job in this process (used to start jobs; you want `train`)."""
    with open_jobs(home) as (store, jobs):
        jobs.get(job)  # says so when there is no such job
        ended = _run_here(job, store, jobs)
    sys.exit(1 if ended.state == "failed" else 0)


def run_rank(
    job: Job,
    stage: Annotated[str, typer.Argument(help="A stage that trains.")],
    ends: Annotated[Path, typer.Option(help="The folder in which each process says how it ended.")],
    parent: Annotated[int, typer.Option(help="The pid of the job's process, with which this one ends.")],
    part: Annotated[int, typer.Option("--round", min=1)] = 1,
    home: HomeOption = None,
) -> None:
    """Train as one of the processes of a job (used to start them; you want `train`)."""
    from trainer.job_process import train_as_rank
    from trainer.learner.ranks import write_end

    with open_jobs(home) as (store, jobs):
        if os.environ["RANK"] == "0":  # it alone writes the log
            write_log_to(jobs.folder(job).log)
        end = train_as_rank(job, stage, part, parent, store, jobs)
    write_end(ends, end)
    if end.code:
        os._exit(1)  # threads that still wait for the others would abort it, as if it had been killed


def recipes(as_json: JsonOption = False) -> None:
    """List the recipes that ship."""
    presets = {name: load_recipe(name) for name in list_presets()}
    if as_json:
        rows = [{"name": name, "title": recipe.title, "stages": recipe.stages} for name, recipe in presets.items()]
        typer.echo(json.dumps(rows))
        return
    from trainer.cli.terminal_tables import print_rich, table_of

    lines = [(name, "+".join(recipe.stages), _describe(recipe)) for name, recipe in presets.items()]
    print_rich(table_of(("recipe", "stages", "what it is"), lines))


def _describe(recipe: Recipe) -> str:
    """The title of a recipe, and the package that it needs where that is not installed."""
    from trainer.tasks.registry import find_missing_package

    package = find_missing_package(recipe.list_sources())
    return f"{recipe.title} (needs {package}, which is not installed)" if package else recipe.title


def demonstrations(
    job: Job,
    out: Annotated[Path, typer.Option(help="FILE.jsonl, or a folder for a `datasets` data set.")],
    home: HomeOption = None,
) -> None:
    """Export what a job has imitated."""
    from trainer.demonstrations.transcripts import load_demonstrations, save_demonstrations
    from trainer.errors import JobRefused

    with open_jobs(home) as (_, jobs):
        file = jobs.folder(jobs.get(job).id).demonstrations
    if not file.exists():
        raise JobRefused(f"job {job} has collected no demonstrations (yet)")
    rows = load_demonstrations(file)
    with writing_to(out):
        save_demonstrations(out, rows)
    typer.echo(f"{len(rows)} demonstrations written to {out}")


def compare(
    jobs: Annotated[list[str], typer.Argument(help="Evaluation jobs; of equal results the last one counts.")],
    reference: Annotated[
        str | None,
        typer.Option(help="An orchestrator, or JOB/ORCHESTRATOR. Default: the recipe's, or the first orchestrator."),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Break down by family or level.")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="For a model card.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Every figure, for a spreadsheet.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Compare orchestrators: intervals, paired differences, protocol, access lists, cost and time."""
    from trainer.evaluation.side_by_side import compare_jobs
    from trainer.results import tables

    with open_jobs(home) as (_, store):
        comparison = compare_jobs(store, jobs, reference, by)
    if as_json:
        typer.echo(json.dumps([{**row.document(), "judges": comparison.judges} for row in comparison.rows], indent=1))
    elif as_csv:
        typer.echo(tables.render_csv(comparison.rows, comparison.reference), nl=False)
    elif as_markdown:
        notes = [f"\n{sentence}" for sentence in comparison.judges]
        typer.echo("\n".join([tables.render_markdown(comparison.rows, comparison.reference), *notes]))
    else:
        from trainer.cli.terminal_tables import comparison_text, print_rich

        print_rich(comparison_text(comparison.rows, comparison.reference, comparison.judges))


@jobs_app.command("list")
def list_jobs(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Every job, newest first."""
    with open_jobs(home) as (_, jobs):
        rows = jobs.all()
    if as_json:
        typer.echo(json.dumps([build_job_document(row) for row in rows], indent=1))
        return
    from trainer.cli.terminal_tables import print_rich, table_of

    lines = [
        (row.id, row.kind, row.where, row.state, f"{row.stage} {row.step}/{row.steps}", row.message) for row in rows
    ]
    print_rich(table_of(("job", "stages", "where", "state", "step", ""), lines))


@jobs_app.command("show")
def show_job(job: Job, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """One job: its state, figures, checkpoints and the end of its log."""
    from orchestrator.checkpoints import complete_steps
    from trainer.jobs.job_folder import read_lines
    from trainer.jobs.outcome import describe_outcome

    with open_jobs(home) as (_, jobs):
        jobs.mark_lost()
        job_row, job_folder, recipe = jobs.get(job), jobs.folder(job), jobs.recipe(job)
    figures = read_lines(job_folder.metrics)
    outcome = describe_outcome(job, recipe, job_folder) if job_row.state == "done" else None
    document = build_job_document(job_row) | {
        "folder": str(job_folder.path),
        "checkpoints": [f"{job}@{step}" for step, _ in complete_steps(job_folder.checkpoints)],
        "figures": figures[-1] if figures else {},
        "evaluations": [
            {key: row.get(key) for key in ("orchestrator", "condition", "tasks", "samples", "mean", "interval")}
            for row in read_lines(job_folder.evaluations)
        ],
        **({"outcome": outcome.sentence} if outcome else {}),
        "log": read_log_tail(job_folder.log),
    }
    if as_json:
        typer.echo(json.dumps(document, indent=1))
        return
    for key, value in document.items():
        typer.echo(f"{key:12} {value}" if key != "log" else f"log\n{value}")


@jobs_app.command("stop")
def stop_job(job: Job, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Ask a job to save a checkpoint and end."""
    with open_jobs(home) as (_, jobs):
        _print_state(jobs.stop(job), as_json)


@jobs_app.command("resume")
def resume_job(
    job: Job,
    max_cost: Annotated[
        float | None, typer.Option(help="US dollars that it may spend in all, where its cap has stopped it.", min=0)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Start a proposed job without being asked: for people.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Continue a stopped or failed job from its last complete checkpoint, or start a proposed one, detached."""
    with open_jobs(home) as (_, jobs):
        if (proposed := jobs.get(job)).state == "proposed":
            typer.echo(f"{proposed.message}\n\n{dump_recipe(jobs.recipe(job))}", err=True)
            if not yes:
                typer.confirm("Start this job?", abort=True, err=True)
        row = jobs.resume(job, max_cost)
        jobs.start(job)
        _print_state(row, as_json)


def build_job_document(row: JobRow) -> dict[str, object]:
    """Build the JSON document of a job; times in ISO 8601, UTC."""
    return {
        key: f"{value.replace(tzinfo=None).isoformat()}Z" if hasattr(value, "isoformat") else value
        for key, value in row.model_dump().items()
    }


def read_log_tail(path: Path, chars: int = 4000) -> str:
    """Read the last characters of a log file; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - chars))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _print_state(row: JobRow, as_json: bool) -> None:
    typer.echo(json.dumps(build_job_document(row)) if as_json else f"{row.id}: {row.state}")


def _wait_for_turn(jobs: JobStore, row: JobRow) -> None:
    announced = False
    while row.place.is_here and (busy := jobs.find_blocking(row)) is not None:
        if not announced:
            typer.echo(f"{row.id} waits for {busy.id} to end", err=True)
            announced = True
        time.sleep(1.0)


def _run_here(job: str, store: Store, jobs: JobStore) -> JobRow:
    from trainer.job_process import run_job

    write_log_to(jobs.folder(job).log)
    run_job(job, store, jobs)
    return jobs.get(job)


def write_log_to(file: Path) -> None:
    """Write log lines to the job's file, and to the terminal where there is one."""
    handlers: list[logging.Handler] = [logging.FileHandler(file, encoding="utf-8")]
    if sys.stderr.isatty():
        handlers.append(logging.StreamHandler())
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT, handlers=handlers, force=True)
    logging.getLogger("trainer").setLevel(logging.INFO)
