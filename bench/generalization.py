"""What an orchestrator does on pools, worlds, words and questions that it has not learnt.

    python bench/generalization.py CHECKPOINT... [--tasks 100] [--cells seen renamed ...]
                                   [--unbound] [--odd | --even] [--without REPAIR ... | all]
                                   [--out bench/results/generalization.json]

Every cell is a set of tasks of the test split with the pools that they are run on:
    seen         the four families on the starter pool
    renamed      on the starter pool with every worker under another name and description, in another order
    redescribed  on the starter pool with descriptions that no training uses
    shuffled     on the needed workers and up to eight others, in another order
    distractors  with two to five more workers that look useful
    missing      one tool is gone, a substitute does its work under another name
    flaky        about half of the tools fail on some calls; each has a twin that does not
    added        with a worker that was added after training, which the task needs
    held_out     the two families that nothing is trained on, on the starter pool
    worlds       generated worlds whose domains are held out, every task on a pool of its own
    projects     what people ask of functions of their own, in projects that are kept from training
    catalog      calls of tools with the parameters and results of real ones, of fields of work that are kept from
                 training; one call, two, or more
    tools        the same in words that were written for each tool by hand
    composed     look-ups, hops, lists, calculations and sums over functions that return objects, in domains that are
                 kept from training
    everyday     questions written by hand, on the starter pool
    problems     word problems of GSM8K and SVAMP that are kept from training, on pools of their own
    plain        the questions that a person types first (bench/data/plain_questions.yaml), on the starter pool
    own          questions on four pools that a person might register (bench/data/own_pools), written by hand; their
                 failures were read while the reader was made
    fresh        questions on three more such pools (bench/data/fresh_pools), written after that
    blind        questions on six more pools (bench/data/blind_pools), written by somebody who had seen neither what
                 readers learn from nor the other questions
    object       questions on five pools of functions with several parameters, most of which return objects
                 (bench/data/object_pools), written in the same way
    words        tasks of the four families in a person's words (bench/data/own_words.yaml), on the starter pool
    refusals     questions that no worker of their pool can answer, of `worlds` and `everyday`
A checkpoint that learnt one pool is bound to the pool of the cell by descriptions; not with `--unbound`.
`--odd` takes the tasks at odd places alone: of the everyday questions those that nobody reads to improve the reader;
`--even` the others, with which choices are made.
Greedy, or k plans where a checkpoint is named as NAME+samples=k. Intervals are 95 %, bootstrapped over tasks.
`readable`: the share of turns that hold a plan. `workers`: the share of tasks whose plan calls the reference plan's
workers, each as often; none where a cell's tasks have no reference plan. `uses_added`: the share of tasks of `added` in
which the worker that was added is called.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from orchestrator.binding.bind_workers import BindingSettings
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink
from orchestrator.engine.events import TaskRef
from orchestrator.orchestrator_name import TurnOptions, add_options
from orchestrator.policies.registry import orchestrator_factory
from orchestrator.reader.refusal import is_refusal
from orchestrator.repairs.table import OWN_TURNS
from podium_lessons.sources import HELD_OUT_FAMILIES, TRAIN_FAMILIES
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.language_models.completion import Draw
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from trainer.evaluation.trials import run_task
from trainer.results.statistics import bootstrap_mean
from trainer.tasks import find_task
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks
from trainer.tasks.verifier import AnyVerifier, NumberWithin, RefusalVerifier, StatesAll

DATA = Path(__file__).parent / "data"
CONDITIONS = ("renamed", "redescribed", "shuffled", "distractors", "missing", "flaky", "added")
POOLS = 5  # pools of a condition: every fifth task has another seed
DEADLINE_S = 7200.0  # a task waits for the batches of others


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one task."""

    task: Task
    correct: bool
    readable: bool
    same_workers: bool
    called: frozenset[str]
    seconds: float
    tokens: int
    repairs: frozenset[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+")
    parser.add_argument("--tasks", type=int, default=100, help="of each cell")
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=tuple(CELLS))
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--show", type=int, default=0, help="print so many wrong episodes of each cell")
    parser.add_argument("--saved", default="", help="print the right episodes in which this repair, or turn, acted")
    parser.add_argument("--unbound", action="store_true", help="leave checkpoints that learnt one pool as they are")
    parser.add_argument("--without", nargs="+", default=(), help="repairs that are off; all: the model alone")
    half = parser.add_mutually_exclusive_group()
    half.add_argument("--odd", action="store_true", help="only the tasks at odd places")
    half.add_argument("--even", action="store_true", help="only the tasks at even places")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for cell in options.cells:
        measure_cell(cell, options)


def measure_cell(cell: str, options: argparse.Namespace) -> None:
    """A row for each checkpoint, printed and kept when it is there."""
    tasks = CELLS[cell](options.tasks)[1 if options.odd else 0 :: 2 if options.odd or options.even else 1]
    for checkpoint in options.checkpoints:
        name = add_options(checkpoint, TurnOptions(without=tuple(options.without)))
        outcomes = asyncio.run(run_cell(name, tasks, options))
        label = f"{name}, unbound" if options.unbound else name
        row = {"cell": cell, "checkpoint": label, **summarize_outcomes(outcomes)}
        if cell == "added":
            row["uses_added"] = share_that_uses_added(outcomes)
        print(json.dumps(row), flush=True)
        if options.out:
            keep_row(options.out, row)


def keep_row(file: Path, row: dict[str, Any]) -> None:
    """Put a row into the file of results, in place of what it held for that checkpoint and cell."""
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    others = [old for old in rows if (old["cell"], old["checkpoint"]) != (row["cell"], row["checkpoint"])]
    order = list(CELLS)
    kept = sorted([*others, row], key=lambda item: (item["checkpoint"], order.index(item["cell"])))
    report = {"machine": platform.processor() or platform.machine(), "rows": kept}
    file.write_text(json.dumps(report, indent=1) + "\n")


def summarize_outcomes(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Means and intervals of a cell's outcomes."""
    planned = [outcome for outcome in outcomes if outcome.task.oracle_turn is not None]
    right = bootstrap_mean([float(outcome.correct) for outcome in outcomes])
    again = [outcome.correct for outcome in outcomes if OWN_TURNS.intersection(outcome.repairs)]
    return {
        "tasks": len(outcomes),
        "correct": round(right.mean, 3),
        "interval": [round(right.low, 3), round(right.high, 3)],
        "readable": round(sum(outcome.readable for outcome in outcomes) / len(outcomes), 3),
        "workers": round(sum(outcome.same_workers for outcome in planned) / len(planned), 3) if planned else None,
        "seconds": round(sum(outcome.seconds for outcome in outcomes) / len(outcomes), 2),
        "tokens": round(sum(outcome.tokens for outcome in outcomes) / len(outcomes)),
        **({"planned_again": len(again), "right_then": sum(again)} if again else {}),
    }


def share_that_uses_added(outcomes: Sequence[Outcome]) -> float:
    """The share of tasks in which the one worker of the pool is called that the starter pool lacks."""
    known = {spec.name for spec in starter_pool().workers}
    added = [{spec.name for spec in find_pool(outcome.task).workers} - known for outcome in outcomes]
    uses = [bool(names & outcome.called) for names, outcome in zip(added, outcomes, strict=True)]
    return round(sum(uses) / len(uses), 3)


async def run_cell(name: str, tasks: Sequence[Task], options: argparse.Namespace) -> list[Outcome]:
    """Every task once, `options.concurrency` at a time."""
    slots = asyncio.Semaphore(options.concurrency)
    shown = iter(range(options.show))

    async def run_on(pool: Pool, group: Sequence[Task]) -> list[Outcome]:
        limits = pool.limits.model_copy(update={"deadline_s": DEADLINE_S})
        async with live_pool(pool.model_copy(update={"limits": limits})) as live:
            make = orchestrator_factory(name, live, binding=BindingSettings(enabled=not options.unbound))

            async def run_one(task: Task) -> Outcome:
                async with slots:
                    started = time.perf_counter()
                    episode = await run_task(task, make(task.oracle_turn, Draw()), live, NoSink())
                    outcome = judge(task, episode, time.perf_counter() - started)
                    is_saved = outcome.correct and options.saved in outcome.repairs
                    if is_saved or (not outcome.correct and next(shown, None) is not None):
                        print_episode(task, episode)
                    return outcome

            return list(await asyncio.gather(*map(run_one, group)))

    groups = [(pool, list(group)) for pool, group in groupby(tasks, key=find_pool)]
    return [outcome for part in await asyncio.gather(*(run_on(*item) for item in groups)) for outcome in part]


def find_pool(task: Task) -> Pool:
    return task.pool or starter_pool()


def judge(task: Task, episode: Episode, seconds: float) -> Outcome:
    """The outcome of an episode that has been graded."""
    assert episode.graded is not None, "run_task grades every episode"
    first = episode.rounds[0].turn
    steps = first.steps if first is not None else ()
    reference = task.oracle_turn.steps if task.oracle_turn else ()
    readable = all(done.turn is None or done.turn.error is None or done.turn.failed for done in episode.rounds)
    same = Counter(step.worker for step in steps) == Counter(step.worker for step in reference)
    called = frozenset(run.step.worker for run in episode.steps.values())
    tokens = episode.usage.tokens_in + episode.usage.tokens_out
    repairs = frozenset(name for done in episode.rounds if done.turn is not None for name in done.turn.repairs)
    return Outcome(task, episode.graded.correct, readable, same, called, seconds, tokens, repairs)


def print_episode(task: Task, episode: Episode) -> None:
    print(f"--- {task.query}\nexpected {task.expected!r}, answered {episode.answer!r}")
    for done in episode.rounds:
        if done.turn is not None:
            print(done.turn.text or done.turn.error)
            for run in done.steps:
                error = run.observation.error if run.observation else None
                print(f"  {run.step.id} {run.step.worker}: {error or (run.observation and run.observation.value)}")


def draw(source: str, count: int) -> list[Task]:
    return open_source(source).tasks("test", count)


def draw_families(count: int) -> list[Task]:
    return draw(",".join(TRAIN_FAMILIES), count)


def apply_to_families(condition: str) -> Callable[[int], list[Task]]:
    """Tasks of the families on pools in a condition, with several seeds."""

    def make(count: int) -> list[Task]:
        tasks = draw_families(count)
        made = []
        for seed in range(POOLS):
            pool, changed, _ = apply_condition_to_tasks(condition, starter_pool(), tasks[seed::POOLS], seed)
            made += [replace(task, pool=task.pool or pool) for task in changed]
        return made

    return make


def load_plain_questions(count: int) -> list[Task]:
    """Questions with their answers; at most as many as there are."""
    rows = yaml.safe_load((DATA / "plain_questions.yaml").read_text(encoding="utf-8"))
    return [
        Task(TaskRef("plain", 1, "test", index), query, make_verifier(answer, tolerance))
        for index, (query, answer, tolerance) in enumerate(rows[:count])
    ]


def make_verifier(answer: str | float, tolerance: float) -> AnyVerifier:
    if isinstance(answer, str):
        return StatesAll((answer,))
    return NumberWithin(answer, max(tolerance, 1e-6 * abs(answer)))


def load_pools(kind: str) -> Callable[[int], list[Task]]:
    """Questions on the pools of functions in `KIND_pools`. The functions only look things up; their pools say so."""

    def load(count: int) -> list[Task]:
        """As many of each pool; at most as many as there are."""
        rows = yaml.safe_load((DATA / f"{kind}_questions.yaml").read_text(encoding="utf-8"))
        tasks = []
        for name, questions in rows.items():
            workers = asyncio.run(list_functions(str(DATA / f"{kind}_pools" / f"{name}.py")))
            specs = (offer.spec.model_copy(update={"effects": "none"}) for offer in workers)
            pool = Pool(name=name, workers=tuple(specs))
            for index, (query, answer, tolerance) in enumerate(questions[: -(-count // len(rows))]):
                verifier = RefusalVerifier() if answer is None else make_verifier(answer, tolerance)
                tasks.append(Task(TaskRef(name, 1, "test", index), query, verifier, pool=pool))
        return tasks

    return load


def load_own_words(count: int) -> list[Task]:
    """Tasks of the families in a person's words; at most as many as there are."""
    rows = yaml.safe_load((DATA / "own_words.yaml").read_text(encoding="utf-8"))
    named = [(name.split("/"), query) for name, query in rows]
    return [replace(find_task(f, int(level), "test", int(k)), query=query) for (f, level, k), query in named][:count]


def is_refused(task: Task) -> bool:
    return is_refusal(task.expected)


def draw_refusals(count: int) -> list[Task]:
    """Questions that cannot be answered: half of held-out worlds, half of those written by hand where there are so
    many."""
    worlds = [task for task in draw("worlds:held_out", 12 * count) if is_refused(task)]
    by_hand = [task for task in draw("everyday:held_out", 10_000) if is_refused(task)]
    return [*by_hand[: count // 2], *worlds[: count - len(by_hand[: count // 2])]]


def leave_out_refusals(source: str) -> Callable[[int], list[Task]]:
    return lambda count: [task for task in draw(source, 2 * count) if not is_refused(task)][:count]


def list_cells() -> Iterator[tuple[str, Callable[[int], list[Task]]]]:
    """Every cell with the function that draws so many of its tasks."""
    yield "seen", draw_families
    for condition in CONDITIONS:
        yield condition, apply_to_families(condition)
    yield "held_out", lambda count: draw(",".join(HELD_OUT_FAMILIES), count)
    yield "worlds", leave_out_refusals("worlds:held_out")
    yield "projects", leave_out_refusals("projects:held_out")
    yield "catalog", leave_out_refusals("catalog")
    yield "tools", leave_out_refusals("catalog:worded")
    yield "composed", leave_out_refusals("composed")
    yield "everyday", leave_out_refusals("everyday:held_out")
    yield "problems", leave_out_refusals("everyday:problems")
    yield "plain", load_plain_questions
    yield "own", load_pools("own")
    yield "fresh", load_pools("fresh")
    yield "blind", load_pools("blind")
    yield "object", load_pools("object")
    yield "words", load_own_words
    yield "refusals", draw_refusals


CELLS = dict(list_cells())

if __name__ == "__main__":
    main()
