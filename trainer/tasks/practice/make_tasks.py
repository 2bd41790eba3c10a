"""Makes practice tasks for a pool: a task file with queries, answers and reference plans, in splits that share no call.

Calls are made of workers without effects, and of those that a person allows. Every plan is run whole before its task
is kept, and what it answers is the answer that graders expect.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool
from trainer.errors import UnusableTasks
from trainer.tasks.practice.agents.make_agent_tasks import AgentTasks, make_agent_tasks
from trainer.tasks.practice.agents.panel import PanelOptions
from trainer.tasks.practice.calls import NOT_EXACT, CallBook, KnownCall, collect_calls, explain_exclusion
from trainer.tasks.practice.compose import Composer, Draft
from trainer.tasks.practice.naturalness import find_problem
from trainer.tasks.practice.progress import COMPOSING, SOLVING, Watch
from trainer.tasks.practice.rewrite import rewrite_queries
from trainer.tasks.practice.solve_check import list_solved
from trainer.tasks.practice.task_book import Merge, TaskBook
from trainer.tasks.sources.jsonl import TaskLine, make_task
from trainer.tasks.suite import make_random
from trainer.tasks.task import normalize_query
from trainer.tasks.verifier import JudgeCheck, PythonCheck

SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}
MOST_OF_ONE = 0.3  # of the tasks may end with the same worker, where the pool has enough others
DRAWS_PER_TASK = 12  # before a pool counts as used up
# How many steps the tasks have, drawn from these: most questions of people need one call.
STEPS = (1, 1, 1, 1, 1, 2, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class PracticeOptions:
    """`allowed`: workers that may be called although a call may have effects. `agent`: the worker of the pool that
    words the queries; "" for the words of the workers' descriptions. `recorded`: arguments of earlier calls by worker.
    `tries`: in how many an agent (`checker`, else the one that words the queries, else the first of the pool) must
    reach the answer from the query; 0 asks no agent: the plan was run, and the query does not state the answer.
    `panel`: who writes and answers the questions that are made for agents.
    """

    count: int = 100
    max_steps: int = 4
    seed: int = 0
    allowed: frozenset[str] = frozenset()
    agent: str = ""
    tries: int = 0
    checker: str = ""
    recorded: Mapping[str, Sequence[Mapping[str, JsonValue]]] = field(default_factory=dict)
    panel: PanelOptions = field(default_factory=PanelOptions)


@dataclass(frozen=True, slots=True)
class PracticeTasks:
    """Lines of a task file; how many calls of each worker they are made of; why a worker is in none of them; and what
    an agent's check said of them, "" where none was asked. `agents`: what became of the questions for agents."""

    lines: tuple[TaskLine, ...]
    calls: Mapping[str, int]
    reasons: Mapping[str, str]
    checked: str = ""
    agents: str = ""

    def count_splits(self) -> dict[str, int]:
        """The number of tasks in each split."""
        counts: Counter[str | None] = Counter(line.split for line in self.lines)
        return {split: counts[split] for split in SHARES}


async def make_practice_tasks(
    pool: LivePool, options: PracticeOptions, journal: Path | None = None, watch: Watch | None = None
) -> PracticeTasks:
    """Make at most `options.count` tasks: of calls, of questions for agents, or half of each. `journal` is the file
    that keeps what agents write and answer. Raises UnusableTasks when there are none, saying what to do, and where
    `watch` stops it before there are any."""
    watch = watch or Watch()
    for agent in filter(None, (options.agent, options.checker)):
        if agent not in pool.workers:
            raise UnusableTasks(pool.unknown_worker(agent))
    checker = _choose_checker(pool, options)
    book = await collect_calls(pool, options.recorded, options.allowed, seed=options.seed)
    for_agents = needs_questions(pool, options)
    _begin_stage(watch, COMPOSING)
    lines = await _make_lines(pool, book, options, options.count // 2 if for_agents else 0)
    checked = ""
    if checker and lines:
        _begin_stage(watch, SOLVING)
        lines, checked = await _keep_solved(lines, checker, options.tries, pool)
    questions = await _make_questions(pool, book, options, journal, len(lines), watch) if for_agents else None
    lines = _drop_repeated([*lines, *(questions.lines if questions else ())])
    if not lines:
        raise UnusableTasks(_explain_none(book, questions))
    counts = {name: len({call.key for call in calls}) for name, calls in book.calls.items()}
    reasons = {name: reason for name, reason in book.reasons.items() if not for_agents or reason != NOT_EXACT}
    return PracticeTasks(tuple(lines), counts, reasons, checked, questions.describe() if questions else "")


def _begin_stage(watch: Watch, stage: str) -> None:
    """Say what comes next. Raises UnusableTasks where a person has stopped it: nothing that could be kept is there."""
    if watch.is_stopped:
        raise UnusableTasks("stopped before there were tasks to keep: those from before stay as they are")
    watch.update(stage=stage)


def needs_questions(pool: LivePool, options: PracticeOptions) -> bool:
    """Whether questions are written for the agents of a pool: where somebody is named to write them, and where no other
    worker can be called."""
    if not pool.pool.agents():
        return False
    return options.panel.author != "" or all(explain_exclusion(row, options.allowed) for row in pool.workers.values())


async def _make_lines(pool: LivePool, book: CallBook, options: PracticeOptions, reserved: int) -> list[TaskLine]:
    """Tasks of calls, all but `reserved`."""
    parted = part_calls(book.calls, options.seed)
    lines: list[TaskLine] = []
    for split, share in SHARES.items():
        composer = Composer(pool, parted[split], make_random(f"practice/{options.seed}/{split}"))
        count = round((options.count - reserved) * share)
        drafts = await _draw_drafts(composer, count, options) if parted[split] else []
        queries = [draft.query for draft in drafts]
        if options.agent:
            queries = await rewrite_queries(drafts, options.agent, pool)
        lines += [_make_line(query, draft, split) for query, draft in zip(queries, drafts, strict=True)]
    return _drop_repeated(lines)


async def _make_questions(
    pool: LivePool, book: CallBook, options: PracticeOptions, journal: Path | None, others: int, watch: Watch
) -> AgentTasks:
    """Questions for the agents. Raises UnusableTasks where nobody can write or check them."""
    count = options.count - others
    try:
        return await make_agent_tasks(
            pool, options.panel, book, count, journal, seed=options.seed, others=others, watch=watch
        )
    except UnusableTasks as error:
        tools = {name: reason for name, reason in book.reasons.items() if reason != NOT_EXACT}
        if book.calls or not tools:
            raise
        raise UnusableTasks(f"{error}; of the other workers there is no task: {_list_reasons(tools)}") from error


def _drop_repeated(lines: Sequence[TaskLine]) -> list[TaskLine]:
    """The lines without queries that come again."""
    return list({normalize_query(line.query): line for line in reversed(lines)}.values())[::-1]


def _choose_checker(pool: LivePool, options: PracticeOptions) -> str:
    """The agent that must solve the tasks; "" for none. Raises UnusableTasks where the pool has no agent."""
    if not options.tries:
        return ""
    agents = [spec.name for spec in pool.pool.agents()]
    if not agents:
        raise UnusableTasks("no agent of this pool can try the tasks: add one, or ask for 0 tries (--tries 0)")
    return options.checker or options.agent or agents[0]


async def _keep_solved(
    lines: Sequence[TaskLine], checker: str, tries: int, pool: LivePool
) -> tuple[list[TaskLine], str]:
    """The tasks that the agent solves, and how many those are. Raises UnusableTasks when it solves none."""
    tasks = [make_task(line, "practice", place) for place, line in enumerate(lines)]
    solved = await list_solved(tasks, checker, tries, pool)
    kept = [line for line, right in zip(lines, solved, strict=True) if right]
    sentence = f"{checker} solved {len(kept):,} of {len(lines):,} in {tries} {'try' if tries == 1 else 'tries'}"
    if not kept:
        raise UnusableTasks(f"{sentence}, so none is left: let a stronger agent try, or none (--tries 0)")
    return kept, f"{sentence}; the others are left out"


def part_calls(calls: Mapping[str, Sequence[KnownCall]], seed: int) -> dict[str, dict[str, list[KnownCall]]]:
    """The calls of every split by worker. A worker with three calls or more is in every split, each with other ones."""
    parted: dict[str, dict[str, list[KnownCall]]] = {split: {} for split in SHARES}
    for name, worker_calls in calls.items():
        order = list({call.key: call for call in worker_calls})
        make_random(f"practice/split/{seed}/{name}").shuffle(order)
        tested = max(1, round(len(order) * SHARES["test"])) if len(order) > 1 else 0
        checked = max(1, round(len(order) * SHARES["validation"])) if len(order) > 2 else 0
        ends = {"test": (0, tested), "validation": (tested, tested + checked), "train": (tested + checked, len(order))}
        for split, (start, end) in ends.items():
            if keys := set(order[start:end]):
                parted[split][name] = [call for call in worker_calls if call.key in keys]
    return parted


async def _draw_drafts(composer: Composer, count: int, options: PracticeOptions) -> list[Draft]:
    """Draw drafts with different queries, fewer than asked for where the calls give no more."""
    drafts: dict[str, Draft] = {}
    ends: Counter[str] = Counter()  # the workers that end the plans
    most = max(MOST_OF_ONE * count, 1.5 * count / max(1, len(composer.calls)), 2)
    choices = [steps for steps in STEPS if steps <= options.max_steps]
    for _ in range(count * DRAWS_PER_TASK):
        if len(drafts) >= count:
            break
        draft = await composer.draw(composer.random.choice(choices))
        if draft is None or (key := _write_plan(draft)) in drafts or gives_away(draft):
            continue  # the same plan in other words is no other task
        if ends[draft.steps[-1].worker] >= most:
            continue
        if find_problem(draft.query, composer.pool.workers, list_literals(draft)):
            continue
        if await runs_right(draft, composer.pool):
            drafts[key] = draft
            ends[draft.steps[-1].worker] += 1
    return list(drafts.values())


def list_literals(draft: Draft) -> list[str]:
    """The texts of the arguments of a draft's steps."""
    return [as_text(value) for step in draft.steps for value in step.arguments.values()]


def gives_away(draft: Draft) -> bool:
    """Whether the query states the answer."""
    query = f" {draft.query.casefold()} "
    return all(as_text(value).casefold() in query for value in draft.values)


async def runs_right(draft: Draft, pool: LivePool) -> bool:
    """Whether the whole plan, run as an orchestrator's, ends with the answer that the task expects."""
    turn = Turn(draft.steps, draft.answer)
    episode = await run_episode(EpisodeSpec(draft.query), OraclePolicy(turn), pool)
    verifier = make_task(_make_line(draft.query, draft, "train"), "practice", 0).verifier
    assert not isinstance(verifier, PythonCheck | JudgeCheck), "made tasks are graded by their text alone"
    return verifier.accepts(episode.answer)


def _make_line(query: str, draft: Draft, split: str) -> TaskLine:
    plan = json.loads(_write_plan(draft))
    answer: JsonValue = [_trim(value) for value in draft.values]
    kind = "states_all"
    if len(draft.values) == 1:
        answer = _trim(draft.values[0])
        number = isinstance(answer, int | float) and not isinstance(answer, bool)
        kind = "number" if number else "set" if isinstance(answer, list) else "exact"
    fields = {"query": query, "answer": answer, "verifier": kind, "split": split, "plan": plan}
    return TaskLine.model_validate(fields)


def _write_plan(draft: Draft) -> str:
    return PlanDialect().format(Turn(draft.steps, draft.answer), ())


def _trim(value: JsonValue) -> JsonValue:
    """A number without what binary arithmetic leaves at its end: 2.1 for 2.1000000000000005."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _explain_none(book: CallBook, questions: AgentTasks | None) -> str:
    if questions is not None:
        return f"no practice task could be made: {questions.describe()}"
    return f"no practice task could be made: {_list_reasons(book.reasons) or 'the pool has no worker'}"


def _list_reasons(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())


def save_practice_tasks(tasks: PracticeTasks, file: Path) -> Merge:
    """Write the tasks in place of those that were made before. What a person added or edited stays, what he struck
    stays out."""
    return TaskBook(file).replace_made(tasks.lines)
