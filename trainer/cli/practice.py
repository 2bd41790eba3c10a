"""The commands about a pool's own tasks: `tasks make`, and `tasks list|add|strike|restore` with --pool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.command_line import INTERRUPTED
from trainer.cli.making import STOPPED, make_with_progress
from trainer.cli.options import (
    AnswerColumnOption,
    AnswersOption,
    EncodingOption,
    HomeOption,
    JsonOption,
    QueryColumnOption,
    open_data_folder,
)
from trainer.cli.recorded_tools import add_tool_data

if TYPE_CHECKING:
    from orchestrator.traces.store import Store
    from trainer.tasks.practice.task_book import TaskBook
    from trainer.tasks.sources.jsonl import TaskLine


def make(
    pool: Annotated[str, typer.Option(help="Name of the pool.")],
    count: Annotated[int, typer.Option(help="How many tasks at most.", min=1, max=10_000)] = 100,
    max_steps: Annotated[int, typer.Option(help="Steps of a plan at most.", min=1, max=4)] = 4,
    allow: Annotated[
        list[str] | None, typer.Option(help="A worker that may be called although its kind may have effects.")
    ] = None,
    words: Annotated[str, typer.Option(help="An agent of the pool that words the queries.")] = "",
    tries: Annotated[
        int,
        typer.Option(help="An agent of the pool must solve a task in one of so many tries; 0: none is asked.", min=0),
    ] = 0,
    checker: Annotated[str, typer.Option(help="The agent that tries. Default: that of --words, else the first.")] = "",
    author: Annotated[
        str, typer.Option(help="An agent of the pool that writes questions for the agents; others check the answers.")
    ] = "",
    answerers: Annotated[str, typer.Option(help="Agents that answer, with commas. Default: all but the author.")] = "",
    judge: Annotated[
        str, typer.Option(help="An agent that says whether answers in other words are the same: one that has no vote.")
    ] = "",
    agree: Annotated[
        int, typer.Option(help="How many answers must agree; 0: 3, or all where fewer are asked.", min=0)
    ] = 0,
    max_cost: Annotated[
        float | None,
        typer.Option(help="Most US dollars that the questions may cost now. The same command goes on."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the agents will take.")] = False,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The task file. Default: tasks/POOL.jsonl in the data folder.")
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Make practice tasks for a pool: queries with answers and reference plans, from calls that its workers answer.

    Workers whose calls may have effects are left out; --allow NAME takes one in. Agents get questions that --author
    writes about the field of each, kept where the answers of several agree. What you added or edited in the file stays,
    and what you struck is not made again. Ctrl-C stops it, with what is kept so far; the same command goes on.
    """
    from trainer.cli.terminal_tables import practice_text, print_rich
    from trainer.tasks.practice.agents.panel import PanelOptions
    from trainer.tasks.practice.make_tasks import PracticeOptions
    from trainer.tasks.practice.stored import estimate_questions, find_practice_file

    with open_data_folder(home) as store:
        names = tuple(name.strip() for name in answerers.split(",") if name.strip())
        panel = PanelOptions(author, names, judge, agree, max_cost)
        options = PracticeOptions(count, max_steps, seed, frozenset(allow or ()), words, tries, checker, panel=panel)
        if out is not None:
            _check_task_file(out)
        file = out or find_practice_file(pool)
        estimate = asyncio.run(estimate_questions(store, pool, options, file))
        if estimate is not None or dry_run:
            words = estimate.describe() if estimate else "No agent writes questions."
            typer.echo(json.dumps({"estimate": words}) if dry_run and as_json else words, err=not dry_run)
        if dry_run:
            return
        making = make_with_progress(store, pool, options, file)
    tasks, merge = making.tasks, making.merge
    if as_json:
        document: dict[str, object] = {"file": str(file), "tasks": tasks.count_splits(), "calls": dict(tasks.calls)}
        document |= {"made": merge.made, "own": merge.own, "struck": merge.struck, "checked": tasks.checked}
        document |= {"agents": tasks.agents}
        typer.echo(json.dumps({**document, "left_out": dict(tasks.reasons)}, indent=1))
    else:
        print_rich(practice_text(tasks, merge, file))
    if making.is_stopped:
        typer.echo(STOPPED, err=True)
        raise typer.Exit(INTERRUPTED)


PoolOption = Annotated[str, typer.Option(help="Name of the pool.")]
Query = Annotated[str, typer.Argument(help="The task's query.")]


def _check_task_file(file: Path) -> None:
    """Raise UnusableTasks where a file would be taken for tasks that it does not hold, and be written anew."""
    from trainer.errors import UnusableTasks
    from trainer.tasks.practice.task_book import TaskBook

    if file.is_dir() or not file.name:
        raise UnusableTasks(f"--out names a file, such as tasks.jsonl; {file} is a folder")
    if file.is_file() and file.stat().st_size and not any(row.task for row in TaskBook(file).read()):
        raise UnusableTasks(f"{file} holds no tasks: name a new file, or one that this command wrote")


def list_own(pool: str, split: str, as_json: bool, home: str | None) -> None:
    """Print a pool's own tasks, and every line of its file that is no task."""
    from trainer.cli.terminal_tables import own_tasks_text, print_rich
    from trainer.errors import UnusableTasks
    from trainer.tasks.practice.stored import open_task_book
    from trainer.tasks.suite import SPLITS

    if split not in ("", *SPLITS):
        raise UnusableTasks(f"there is no split {split!r}; use one of: {', '.join(SPLITS)}")
    with open_pool(pool, home):
        book = open_task_book(pool)
        lines = book.read()
    rows = [row for row in lines if row.task is not None and split in ("", row.task.ref.split)]
    if not as_json:
        print_rich(own_tasks_text(book.file, rows, [row for row in lines if row.problems]))
        return
    tasks = [
        {
            "line": row.number,
            "made": row.is_made,
            **row.line.model_dump(mode="json", exclude={"made"}, exclude_none=True),
        }
        for row in rows
        if row.line is not None
    ]
    problems = [{"line": row.number, "problem": text} for row in lines for text in row.problems]
    typer.echo(json.dumps({"file": str(book.file), "tasks": tasks, "problems": problems}, indent=1, ensure_ascii=False))


def add(
    pool: PoolOption,
    query: Annotated[str, typer.Option(help="A query; give its --answer too.")] = "",
    answer: Annotated[str, typer.Option(help="Its answer: a number, or text; of --episode, where that is wrong.")] = "",
    plan: Annotated[Path | None, typer.Option(help="A file with its reference plan as JSON.")] = None,
    episode: Annotated[
        str, typer.Option(help="A recorded run, or a what-if of one. Unless it was verified, say --right or --answer.")
    ] = "",
    split: Annotated[
        str,
        typer.Option(help="What the task of --query is for: train, validation, or test (measured, never trained on)."),
    ] = "",
    right: Annotated[bool, typer.Option("--right", help="The answer of --episode is right.")] = False,
    file: Annotated[
        str,
        typer.Option(
            help="A file with queries and answers: JSONL, JSON, CSV, TSV or Parquet; or a data set, "
            "hub:OWNER/NAME[:CONFIG]. Of tool use (OpenAI messages, ShareGPT, Gemini, Hermes, Glaive, ToolBench, xLAM, "
            "BFCL), it makes --pool, which must be new, of workers that replay what is recorded."
        ),
    ] = "",
    answers: AnswersOption = None,
    encoding: EncodingOption = "",
    query_column: QueryColumnOption = "",
    answer_column: AnswerColumnOption = "",
    home: HomeOption = None,
) -> None:
    """Add tasks of your own to a pool's. `tasks make` never overwrites them."""
    from trainer.demonstrations.episode_task import Judgement, keep_run
    from trainer.errors import UnusableTasks
    from trainer.tasks.practice.stored import change_tasks, find_practice_file
    from trainer.tasks.sources.files.reader import ReadOptions, require_tasks
    from trainer.tasks.sources.places import read_place

    if sum(map(bool, (query, episode, file))) != 1:
        raise UnusableTasks("say what to add: --query with --answer, --episode, or --file")
    if split and not query:
        raise UnusableTasks("--split goes with --query; the lines of a --file name their own split")
    options = ReadOptions(encoding, query_column, answer_column)
    if file and add_tool_data(file, options, answers or (), pool, home):
        return
    with open_pool(pool, home) as store:
        if episode:
            kept = keep_run(store, episode, pool, Judgement(right, answer, place="command"))
            typer.echo(f"1 added to {find_practice_file(pool)}{'' if kept.line.plan else ', without a plan'}")
            try_failed_run_again(store, episode)
            return
        problems: list[str] = []
        if file:
            read = read_place(file, options)
            typer.echo(read.form, err=True)
            lines = require_tasks(read, file)
            problems = [f"{read.unit} {row.number}: {problem}" for row in read.lines for problem in row.problems]
        else:
            lines = [write_line(query, answer, plan, split)]
        for problem in problems:
            typer.echo(problem, err=True)
        with change_tasks(store.pools, pool) as book:
            book.add(lines)
    typer.echo(f"{len(lines)} added to {book.file}")


def try_failed_run_again(store: Store, episode: str) -> None:
    """Draw the consequences of what was said of a run: where its pool wants it, a wrong one is tried once more now."""
    from orchestrator.failure_memory.describe_retry import describe_retry
    from pool_registry.calls.live_pool import live_pool
    from trainer.demonstrations.second_try import make_second_try, open_budget, take_verdict

    second = take_verdict(store, episode)
    if second is None:
        return
    typer.echo("The question is tried once more, with a lesson from this run ...", err=True)

    async def make() -> None:
        await make_second_try(second, live_pool(second.pool), open_budget(second), store)

    asyncio.run(make())
    retried = store.traces.episode(episode).retried
    if retried is not None:
        typer.echo(f"{describe_retry(retried)}. That run is {retried.episode}.")


def write_line(query: str, answer: str, plan: Path | None, split: str = "") -> TaskLine:
    """The line of a task that is given by options. Raises UnusableTasks where it cannot be one."""
    from pydantic import ValidationError

    from pool_registry.kinds import field_problems
    from trainer.errors import UnusableTasks
    from trainer.tasks.sources.files.cells import read_answer
    from trainer.tasks.sources.files.encoding import read_text_file
    from trainer.tasks.sources.jsonl import TaskLine

    try:
        written = json.loads(read_text_file(plan)) if plan else None
        fields = {"query": query, "answer": read_answer(answer) if answer else None, "plan": written}
        return TaskLine.model_validate({**fields, "split": split or None})
    except ValidationError as error:
        problems = "; ".join(f"{key}: {what}" for key, what in field_problems(error))
        raise UnusableTasks(f"this is no task: {problems}") from error
    except (ValueError, RecursionError) as error:
        raise UnusableTasks(f"{plan} is no plan: it is not JSON ({error})") from error


def strike(pool: PoolOption, query: Query, home: HomeOption = None) -> None:
    """Take a task out of a pool's. It is not made again."""
    with open_book(pool, home) as book:
        book.strike(query)
    typer.echo(f"struck from {book.file}")


def restore(pool: PoolOption, query: Query, home: HomeOption = None) -> None:
    """Put a struck task back."""
    with open_book(pool, home) as book:
        book.restore(query)
    typer.echo(f"put back into {book.file}")


@contextmanager
def open_book(pool: str, home: str | None) -> Iterator[TaskBook]:
    """The book of a pool's own tasks, to change. Raises PoolNotFound."""
    from trainer.tasks.practice.stored import change_tasks

    with open_pool(pool, home) as store, change_tasks(store.pools, pool) as book:
        yield book


@contextmanager
def open_pool(pool: str, home: str | None) -> Iterator[Store]:
    """The data folder with this pool. Raises PoolNotFound."""
    from trainer.run_recipe import load_pool

    with open_data_folder(home) as store:
        load_pool(store, pool)
        yield store
