"""`python -m trainer`: look at tasks, train, evaluate."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.orchestrator_name import TurnOptions, add_options
from pool_registry.storage.data_folder import choose_home
from trainer.cli import candidates, choice, practice, regrade, set_aside
from trainer.cli.command_line import run_command_line
from trainer.cli.jobs import add_job_commands, start_job
from trainer.cli.lessons import lessons_app
from trainer.cli.options import (
    AnswerColumnOption,
    AnswersOption,
    EncodingOption,
    HomeOption,
    JsonOption,
    QueryColumnOption,
    WithoutOption,
    open_data_folder,
)
from trainer.cli.recorded_tools import check_tool_data
from trainer.cli.table_help import FAMILY_NAMES, POLICY_NAMES, TASK_SOURCES, TableHelp
from trainer.errors import InvalidRecipe, UnknownTask
from trainer.recipe import load_recipe
from trainer.tasks import SUITES, find_task, get_suite
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import CONDITIONS_TEXT

if TYPE_CHECKING:
    from trainer.results.summary import Evaluation

app = typer.Typer(
    help="Tasks with exact answers, training and evaluation of orchestrators.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
tasks_app = typer.Typer(help="Make tasks for a pool, look at them, and check your own.", no_args_is_help=True)
for own_command in (
    practice.make,
    practice.add,
    practice.strike,
    practice.restore,
    candidates.candidates,
    set_aside.aside,
):
    tasks_app.command()(own_command)
app.add_typer(tasks_app, name="tasks")
add_job_commands(app)
app.command()(choice.who)
app.command()(regrade.regrade)
app.add_typer(lessons_app, name="lessons")

Split = Annotated[str, typer.Option(help="train, validation or test.")]
Source = Annotated[str | None, typer.Option(help=f"Instead of a family: {TASK_SOURCES}.")]


@tasks_app.command("list")
def list_families(
    pool: Annotated[str, typer.Option(help="List this pool's own tasks instead.")] = "",
    split: Annotated[str, typer.Option(help="Of a pool's tasks: train, validation or test. Default: all.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the families with their levels and workers, and the other sources of tasks; or the own tasks of a pool."""
    if pool:
        practice.list_own(pool, split, as_json, home)
        return
    from trainer.cli.terminal_tables import build_families_table, build_sources_document, print_rich, sources_table

    if as_json:
        typer.echo(json.dumps(build_sources_document(), indent=1, ensure_ascii=False))
        return
    if SUITES:
        print_rich(build_families_table())
    print_rich(sources_table())


@tasks_app.command("show", cls=TableHelp)
def show_task(
    family: Annotated[str | None, typer.Option(help=f"One of: {FAMILY_NAMES}.")] = None,
    source: Source = None,
    level: Annotated[int, typer.Option(help="1 to 4.")] = 1,
    index: Annotated[int, typer.Option(help="Which task, from 0.")] = 0,
    split: Split = "test",
    as_json: JsonOption = False,
) -> None:
    """Print a task: its query, its answer and the oracle's plan."""
    from trainer.cli.terminal_tables import build_task_document, print_rich, task_text

    source_tasks = load_source_tasks(source, family, level, split, index + 1)
    if source_tasks is None:
        task = find_task(family or "", level, split, index)
    elif 0 <= index < len(source_tasks):
        task = source_tasks[index]
    else:
        raise UnknownTask(f"{source} has {len(source_tasks):,} tasks like this; choose an index from 0 on")
    if as_json:
        typer.echo(json.dumps(build_task_document(task), indent=1, ensure_ascii=False))
    else:
        print_rich(task_text(task))


@tasks_app.command("check")
def check_file(
    file: Annotated[str, typer.Argument(help="JSONL, JSON, CSV, TSV or Parquet; or hub:OWNER/NAME[:CONFIG].")],
    answers: AnswersOption = None,
    encoding: EncodingOption = "",
    query_column: QueryColumnOption = "",
    answer_column: AnswerColumnOption = "",
    pool: Annotated[str, typer.Option(help="Also name the workers that plans call and this pool lacks.")] = "",
    home: HomeOption = None,
) -> None:
    """Read a file of your own tasks, say how, and list every problem in it. Exit code 2 when it holds no task."""
    from trainer.cli.terminal_tables import print_rich, task_file_text
    from trainer.tasks.sources.files.reader import ReadOptions
    from trainer.tasks.sources.places import read_place

    options = ReadOptions(encoding, query_column, answer_column)
    if check_tool_data(file, options, answers or ()):
        return
    read = read_place(file, options)
    lacking: list[str] = []
    if pool:
        with open_data_folder(home) as store:
            lacking = read.list_lacking_workers(store.pools.latest(pool).pool)
    print_rich(task_file_text(Path(file).name, read, lacking))
    if not any(line.task for line in read.lines):
        raise typer.Exit(2)


@app.command(cls=TableHelp)
def evaluate(
    context: typer.Context,
    recipe: Annotated[str | None, typer.Argument(help="A recipe with an evaluate stage, run as a job.")] = None,
    orchestrator: Annotated[
        str | None,
        typer.Option(help=f"A checkpoint (starter-sft, starter-grpo, base, JOB@STEP), {POLICY_NAMES}."),
    ] = None,
    family: Annotated[str | None, typer.Option(help=f"One of: {FAMILY_NAMES}; or all.")] = None,
    source: Source = None,
    level: Annotated[int, typer.Option(help="1 to 4; 0 for all.")] = 1,
    split: Split = "test",
    tasks: Annotated[int, typer.Option(help="How many: of each level, or of the source.", min=1, max=100_000)] = 20,
    pool: Annotated[str, typer.Option(help="Name of the pool.")] = "starter",
    concurrency: Annotated[int, typer.Option(help="Episodes at a time.", min=1, max=256)] = 8,
    condition: Annotated[
        str,
        typer.Option(help=f"{CONDITIONS_TEXT}."),
    ] = "seen",
    samples: Annotated[
        int, typer.Option(help="Episodes per task. One is greedy, several are sampled at temperature 1.", min=1, max=64)
    ] = 1,
    seed: Annotated[int, typer.Option(help="Of the condition, a source's draw and the samples.", min=0)] = 0,
    binding: Annotated[
        bool,
        typer.Option(help="Call another pool's workers by their descriptions where a checkpoint learnt one pool."),
    ] = True,
    without: WithoutOption = None,
    finalizer: Annotated[
        bool,
        typer.Option("--finalizer", help="Grade the final answers that the pool's finalizer writes. Not of a RECIPE."),
    ] = False,
    where: Annotated[
        str, typer.Option("--on", help="Of a RECIPE: where it runs, here or ray://HOST:PORT, a Ray cluster.")
    ] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Score an orchestrator on tasks with known answers; every episode is recorded.

    With a RECIPE, its evaluate stage runs as a job: `compare JOB` then shows the tables.
    """
    from trainer.cli.terminal_tables import evaluation_text, print_rich

    if recipe is not None:
        if finalizer:
            sentence = "a RECIPE names it itself: write +finalizer=on behind an orchestrator of its evaluate section"
            raise InvalidRecipe([("finalizer", sentence)])
        _refuse_options_beside_recipe(context)
        evaluation = load_recipe(recipe).with_only("evaluate").without_repairs(without or ())
        start_job(evaluation.with_place(where) if where else evaluation, detach=False, home=home)
        return
    if where:
        raise InvalidRecipe([("where", "only a recipe runs elsewhere: give a RECIPE with an evaluate section")])
    if orchestrator is None:
        raise UnknownTask("say what to evaluate: --orchestrator NAME, or a RECIPE with an evaluate stage")
    choose_home(home)  # a pool's own tasks lie in the data folder
    chosen = load_source_tasks(source, family, level, split, tasks, seed)
    if chosen is None:
        chosen = load_family_tasks(family or "", level, split, tasks)
    if not chosen:
        raise UnknownTask(
            "there is no task like this: change --level or --split, or install what the source comes with"
        )
    options = TurnOptions(without=tuple(without or ()), finalizer=finalizer or None)
    named = add_options(orchestrator, options)
    measured = EvaluationOptions(named, pool, condition, concurrency, samples, seed, binding)
    result = asyncio.run(run_evaluation(measured, chosen, home))
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        print_rich(evaluation_text(result))


def _refuse_options_beside_recipe(context: typer.Context) -> None:
    """Raise InvalidRecipe where a command line names what its RECIPE says: else another thing than was meant would be
    measured, and paid."""
    allowed = {"recipe", "without", "where", "home"}
    options = [option for option in context.command.params if option.name and option.name not in allowed]
    sources = [(option.opts[0], context.get_parameter_source(option.name or "")) for option in options]
    if beside := [name for name, source in sources if source and source.name == "COMMANDLINE"]:
        sentence = "a RECIPE is evaluated as its own section `evaluate` says: change that, and leave this option out"
        raise InvalidRecipe([(name, sentence) for name in beside])


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The options of `evaluate` that say what is measured and how."""

    orchestrator: str
    pool: str
    condition: str
    concurrency: int
    samples: int
    seed: int
    binding: bool


def load_source_tasks(
    source: str | None, family: str | None, level: int, split: str, count: int, seed: int = 0
) -> list[Task] | None:
    """Load tasks from a source; None where a family was given instead. Raises TrainerError."""
    if (source is None) == (family is None):
        raise UnknownTask("say where the tasks come from: give either --family or --source")
    if source is None:
        return None
    from trainer.tasks.registry import open_source

    return open_source(source).tasks(split, max(1, count), seed, None if level == 0 else (level,))


def load_family_tasks(family: str, level: int, split: str, count: int) -> list[Task]:
    """Load the first `count` tasks of each family and level (\"all\" and 0 stand for every one). Raises UnknownTask."""
    suites = list(SUITES.values()) if family == "all" else [get_suite(family)]
    cells = [(suite, number) for suite in suites for number in (suite.levels if level == 0 else (level,))]
    return [suite.task(number, split, index) for suite, number in cells for index in range(count)]


async def run_evaluation(options: EvaluationOptions, tasks: list[Task], home: str | None) -> Evaluation:
    """Evaluate on the data folder's pool and record traces there. Returns when every event is on disk."""
    from orchestrator.binding.bind_workers import BindingSettings
    from orchestrator.engine.gc_settings import expect_many_episodes
    from pool_registry.calls.live_pool import live_pool
    from trainer.evaluation.trials import evaluate_orchestrator as evaluate_tasks
    from trainer.evaluation.trials import make_by_name
    from trainer.run_recipe import load_pool
    from trainer.tasks.task_conditions import apply_condition_to_tasks

    expect_many_episodes()
    with open_data_folder(home) as store:
        base = load_pool(store, options.pool)
        chosen, changed_tasks, _ = apply_condition_to_tasks(options.condition, base, tasks, options.seed)
        async with live_pool(chosen) as live:
            if chosen != base:
                store.traces.keep_pool(chosen, live.hash)
            result = await evaluate_tasks(
                options.orchestrator,
                changed_tasks,
                live,
                sink=store.traces,
                concurrency=options.concurrency,
                samples=options.samples,
                seed=options.seed,
                condition=options.condition,
                make=make_by_name(live, binding=BindingSettings(options.binding, store.bindings.read)),
            )
        store.traces.flush()
    return result


def main() -> None:
    """Run the command line."""
    run_command_line(app, "python -m trainer")


if __name__ == "__main__":
    main()
