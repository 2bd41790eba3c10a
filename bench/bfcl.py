"""A public benchmark: four categories of the Berkeley Function Calling Leaderboard, judged by its own checker.

    pip download bfcl-eval --no-deps
    python bench/bfcl.py --package bfcl_eval-*.whl [--tasks 50] [--categories parallel ...]
                         [--orchestrators smollm2-reader oracle ...] [--show 10] [--out bench/results/bfcl.json]

`parallel` asks for several calls of one function, `parallel_multiple` for several calls of two to four, `multiple` for
one call of the right one, and for `irrelevance` no function fits, so that nothing may be called. Each entry is run on a
pool of its functions alone, which answer "done". What is judged are the calls that the first turn plans; `react` makes
one call in a turn, so that those of all its turns count. The oracle replays the package's possible answers.

`--package` takes the wheel, or a folder that it was unpacked into; without it the package that is installed is taken
(`pip install --no-deps bfcl-eval`). Of the many packages that it requires none is needed here. `tasks` are drawn from
each category by `--seed`; more tasks contain the fewer. Intervals are 95 %, bootstrapped over tasks. `unreadable`: the
tasks in which a turn held no plan; as in the leaderboard, that is right where nothing may be called, unless the
orchestrator itself failed.

No lesson is made from these questions, and nothing of the package is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

from pydantic import Field

from orchestrator.engine.episode import Episode, StepRun
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.plan import Step, Turn
from orchestrator.policies.registry import make_orchestrator
from orchestrator.quotes import escape_value, references, substitute
from orchestrator.reader.refusal import REFUSAL
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports import FreeNames
from pool_registry.kinds import add_kind
from pool_registry.language_models.completion import Draw
from pool_registry.pool import Limits, Pool
from pool_registry.schemas.argument_schema import ArgumentsSchema
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, WorkerSpec
from trainer.results.statistics import bootstrap_mean

IRRELEVANCE = "irrelevance"
CATEGORIES = ("parallel", "parallel_multiple", "multiple", IRRELEVANCE)
AGENT = "assistant"  # the small model that ships, where an orchestrator needs an agent
ORCHESTRATORS = ("oracle", "random_plan", "smollm2-reader", "smollm2-reader+without=all", f"react:{AGENT}")
ONE_CALL_A_TURN = ("react",)
KIND = "bfcl_function"
WRONG_COUNT = "wrong_count"  # what the checker calls too few or too many calls
TYPES = {"dict": "object", "float": "number", "tuple": "array"}  # the package's words for those of JSON Schema
FIRST_TURN = Limits(deadline_s=7200, max_rounds=1)  # a task may wait for the batches of others
EVERY_TURN = Limits(deadline_s=7200)

# One call as the checker reads it: {function: {parameter: value}}
FunctionCall: TypeAlias = dict[str, dict[str, Any]]
# (functions, calls, possible answers, category) -> "" where the calls are right, else the kind of error
Checker: TypeAlias = Callable[[Sequence[Mapping[str, Any]], Sequence[FunctionCall], Sequence[FunctionCall], str], str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A question with its functions as the package writes them. `answers` are the calls that are right, each as
    {function: {parameter: [every value that passes]}}, with "" among the values of a parameter that may be left out."""

    id: str
    category: str
    query: str
    functions: tuple[dict[str, Any], ...]
    answers: tuple[FunctionCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry: `problem` is "" where it is right."""

    entry: Entry
    calls: list[FunctionCall]
    problem: str
    readable: bool


class FunctionConfig(StrictModel):
    parameters: ArgumentsSchema = Field(description="JSON Schema of the arguments.")


class BenchmarkFunction(Worker[FunctionConfig]):
    """A function of an entry: it changes nothing and has nothing to say."""

    Config = FunctionConfig
    template = None
    cacheable = True

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters

    async def call(self, call: Call) -> Reply:  # noqa: ARG002
        return Reply("done")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, help="the wheel of bfcl-eval, or its folder; default: as installed")
    parser.add_argument("--tasks", type=int, default=50, help="of each category")
    parser.add_argument("--seed", type=int, default=0, help="draws the tasks")
    parser.add_argument("--categories", nargs="+", choices=CATEGORIES, default=CATEGORIES)
    parser.add_argument("--orchestrators", nargs="+", default=ORCHESTRATORS)
    parser.add_argument("--concurrency", type=int, default=1, help="tasks at a time; a batch is rounded otherwise")
    parser.add_argument("--show", type=int, default=0, help="print so many wrong tasks of each row")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    release = open_package(options.package)
    checker = load_checker()
    add_kind(KIND, BenchmarkFunction)
    for category in options.categories:
        entries = draw_entries(read_entries(category), options.tasks, options.seed)
        for name in options.orchestrators:
            row = measure(name, entries, checker, options) | {"seed": options.seed, "package": release}
            print(json.dumps(row), flush=True)
            if options.out:
                keep_row(options.out, row)


def open_package(place: Path | None) -> str:
    """Make the package importable and return its name and version. A wheel is imported as it is."""
    if place is not None:
        sys.path.insert(0, str(place.resolve(strict=True)))
    try:
        return f"bfcl-eval {version('bfcl-eval')}"
    except PackageNotFoundError:
        raise SystemExit("bfcl-eval is not there; pip download bfcl-eval --no-deps, then name its --package") from None


def load_checker() -> Checker:
    """The package's checker of calls. It asks its table of models one thing, whether dots in a function's name became
    underscores, and that table imports the clients of every provider: a table of one model stands in for it."""
    table = ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = {"podium": SimpleNamespace(underscore_to_dot=False)}  # type: ignore[attr-defined]
    sys.modules[table.__name__] = table
    check = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    python = import_module("bfcl_eval.constants.enums").Language.PYTHON

    def judge(
        functions: Sequence[Mapping[str, Any]],
        calls: Sequence[FunctionCall],
        answers: Sequence[FunctionCall],
        category: str,
    ) -> str:
        verdict = check(list(functions), list(calls), list(answers), python, category, "podium")
        return "" if verdict["valid"] else name_error(verdict)

    return judge


def name_error(verdict: Mapping[str, Any]) -> str:
    """The kind of error, without the name of the checker's function. Of a possible answer that no call is like it is
    that of the one call that is left, where only one is: which of several was meant is not known."""
    kind = str(verdict["error_type"])
    compared = [error for error in verdict["error"] if isinstance(error, dict)]
    if len(compared) == 1:
        kind = str(next(iter(compared[0].values()))["sub_error_type"])
    function, _, name = kind.partition(":")
    return name if "function_checker" in function else kind


def read_entries(category: str) -> list[Entry]:
    """Every entry of a category, with its possible answers where it has some."""
    data, name = files("bfcl_eval") / "data", f"BFCL_v4_{category}.json"
    answers = {row["id"]: row["ground_truth"] for row in read_rows(data / "possible_answer" / name)}
    return [make_entry(category, row, answers.get(row["id"], ())) for row in read_rows(data / name)]


def read_rows(file: Traversable) -> list[dict[str, Any]]:
    """The JSON lines of a file; none where it is not there."""
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line.strip()]


def make_entry(category: str, row: Mapping[str, Any], answers: Iterable[FunctionCall] = ()) -> Entry:
    query = "\n\n".join(message["content"] for turn in row["question"] for message in turn)
    return Entry(row["id"], category, query, tuple(row["function"]), tuple(answers))


def draw_entries(entries: Sequence[Entry], count: int, seed: int) -> list[Entry]:
    """So many entries at random; the first of them are those that a smaller count draws."""
    return Random(f"{seed}/{entries[0].category}").sample(entries, len(entries))[:count]


def measure(name: str, entries: Sequence[Entry], checker: Checker, options: argparse.Namespace) -> dict[str, Any]:
    """The row of an orchestrator on the entries of one category."""
    started = time.perf_counter()
    outcomes = asyncio.run(run_entries(name, entries, checker, options.concurrency))
    seconds = time.perf_counter() - started
    for outcome in [outcome for outcome in outcomes if outcome.problem][: options.show]:
        print_outcome(outcome)
    return {"category": entries[0].category, "orchestrator": name, **summarize(outcomes, seconds)}


def summarize(outcomes: Sequence[Outcome], seconds: float) -> dict[str, Any]:
    right = bootstrap_mean([float(not outcome.problem) for outcome in outcomes])
    return {
        "tasks": len(outcomes),
        "right": round(right.mean, 3),
        "interval": [round(right.low, 3), round(right.high, 3)],
        "unreadable": sum(not outcome.readable for outcome in outcomes),
        "problems": dict(Counter(outcome.problem for outcome in outcomes if outcome.problem).most_common()),
        "seconds": round(seconds / len(outcomes), 2),
    }


async def run_entries(name: str, entries: Sequence[Entry], checker: Checker, concurrency: int) -> list[Outcome]:
    """Every entry once, `concurrency` at a time."""
    slots = asyncio.Semaphore(concurrency)

    async def run_one(entry: Entry) -> Outcome:
        async with slots:
            return await run_entry(name, entry, checker)

    return list(await asyncio.gather(*map(run_one, entries)))


async def run_entry(name: str, entry: Entry, checker: Checker) -> Outcome:
    """Run an orchestrator on an entry's query and judge its calls."""
    parsed = OrchestratorName.parse(name)
    limits = EVERY_TURN if parsed.policy in ONE_CALL_A_TURN else FIRST_TURN
    async with live_pool(make_pool(entry, limits, parsed.worker == AGENT)) as live:
        orchestrator = make_orchestrator(name, live, make_reference(entry), Draw())
        episode = await run_episode(EpisodeSpec(entry.query, source="evaluation"), orchestrator, live)
    calls = write_calls(episode, entry)
    turns = [done.turn for done in episode.rounds if done.turn is not None]
    failed = any(turn.failed for turn in turns)
    problem = "failed" if failed else judge(entry, calls, checker)
    return Outcome(entry, calls, problem, readable=all(turn.error is None for turn in turns))


def judge(entry: Entry, calls: Sequence[FunctionCall], checker: Checker) -> str:
    """Name what is wrong with the calls; "" where they are right."""
    if entry.category == IRRELEVANCE:
        return "called something" if calls else ""
    problem = checker(entry.functions, calls, entry.answers, entry.category)
    if problem != WRONG_COUNT:
        return problem
    return "called nothing" if not calls else "too few calls" if len(calls) < len(entry.answers) else "too many calls"


def make_pool(entry: Entry, limits: Limits = FIRST_TURN, with_agent: bool = False) -> Pool:
    """A worker for each of the entry's functions, and the small model where an orchestrator needs one."""
    specs = [
        WorkerSpec(
            name=name,
            kind=KIND,
            description=function["description"],
            config={"parameters": translate_schema(function["parameters"])},
        )
        for name, function in zip(name_workers(entry), entry.functions, strict=True)
    ]
    if with_agent:
        words = "A small language model on this machine."
        specs.append(WorkerSpec(name=AGENT, kind="local_model", description=words, timeout_s=3600))
    return Pool(name="bfcl", workers=tuple(specs), limits=limits)


def name_workers(entry: Entry) -> dict[str, str]:
    """The function of each worker, by the worker's name: `math.factorial` is no name of a worker."""
    names = FreeNames((AGENT,))
    return {names.choose(function["name"]): function["name"] for function in entry.functions}


def translate_schema(rule: Any) -> Any:
    """A JSON Schema of the package's, whose types are those of Python; `any` is left out, which allows any value."""
    if not isinstance(rule, Mapping):
        return rule
    schema = {key: translate_schema(value) if key == "items" else value for key, value in rule.items()}
    if isinstance(rule.get("properties"), Mapping):
        schema["properties"] = {name: translate_schema(value) for name, value in rule["properties"].items()}
    if rule.get("type") == "any":
        del schema["type"]
    elif rule.get("type") in TYPES:
        schema["type"] = TYPES[rule["type"]]
    return schema


def write_calls(episode: Episode, entry: Entry) -> list[FunctionCall]:
    """The calls that an episode planned, those that its worker would not take among them. Calls of the agent are no
    function's."""
    names = name_workers(entry)
    runs = [run for done in episode.rounds for run in done.steps if run.step.worker != AGENT]
    return [{names.get(run.step.worker, run.step.worker): read_arguments(run)} for run in runs]


def read_arguments(run: StepRun) -> dict[str, Any]:
    """The arguments that a call was made with, or as they were written where it was not made."""
    if run.arguments is not None:
        return dict(run.arguments)
    return {name: value if references(value) else substitute(value, {}) for name, value in run.step.arguments.items()}


def make_reference(entry: Entry) -> Turn:
    """The plan with the first of each call's possible answers."""
    if not entry.answers:
        return Turn(answer=REFUSAL)
    workers = {function: worker for worker, function in name_workers(entry).items()}
    calls = [call for answer in entry.answers for call in answer.items()]
    steps = [
        Step(k, workers[function], choose_arguments(choices, list_parameters(entry, function)))
        for k, (function, choices) in enumerate(calls, 1)
    ]
    return Turn(tuple(steps), f"${len(steps)}")


def list_parameters(entry: Entry, function: str) -> list[str]:
    """The parameters of a function. Two possible answers of the package name others, which no call may have."""
    return next(list(row["parameters"]["properties"]) for row in entry.functions if row["name"] == function)


def choose_arguments(choices: Mapping[str, Sequence[Any]], parameters: Collection[str]) -> dict[str, Any]:
    """The first value of each of these parameters that has one, as a plan writes it."""
    values = choose_fields(choices)
    return {name: escape_value(value) for name, value in values.items() if name in parameters}


def choose_fields(choices: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    values = {name: [value for value in passing if value != ""] for name, passing in choices.items()}
    return {name: choose_value(passing[0]) for name, passing in values.items() if passing}


def choose_value(value: Any) -> Any:
    """A value that passes. In an object, and in the objects of a list, each field has a list of them."""
    if isinstance(value, Mapping):
        return choose_fields(value)
    if isinstance(value, list):
        return [choose_value(item) for item in value]
    return value


def print_outcome(outcome: Outcome) -> None:
    print(f"--- {outcome.entry.id}: {outcome.problem}\n{outcome.entry.query}")
    print(f"possible: {json.dumps(outcome.entry.answers)}\ncalls:    {json.dumps(outcome.calls)}")


def keep_row(file: Path, row: Mapping[str, Any]) -> None:
    """Put a row into the file of results, in place of what it held for that orchestrator and category."""
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    others = [old for old in rows if (old["orchestrator"], old["category"]) != (row["orchestrator"], row["category"])]
    kept = sorted([*others, row], key=lambda item: (item["orchestrator"], CATEGORIES.index(item["category"])))
    file.write_text(json.dumps({"machine": platform.processor() or platform.machine(), "rows": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
