"""Runs an orchestrator on tasks and grades it. Every episode is recorded as an ordinary trace.

What is reproducible: tasks, conditions and their pools depend on the recipe's seed alone, and each sample of a task
has a sampling seed of its own. Fixed policies and local models therefore repeat their results as long as the workers
they call do (a model up to rounding: the other rows of its batch can change a token). Remote endpoints and times
never repeat exactly.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from orchestrator.binding.bind_workers import BY_DESCRIPTION, BindingSettings
from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, Orchestrator, Sink, run_episode
from orchestrator.engine.events import EVALUATION, Graded, NotJudged, VerdictPlace
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.plan import Turn
from orchestrator.policies.finalizer import find_finalizer
from orchestrator.policies.model import with_memory
from orchestrator.policies.registry import POLICIES, make_orchestrator, orchestrator_factory
from orchestrator.traces.episode_totals import compute_totals
from pool_registry.actions import as_text, clean_text
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Draw
from pool_registry.pool import Limits
from pool_registry.secrets import redact
from trainer.errors import NotGraded
from trainer.evaluation.access_score import WorkKey, identify_work, score_access
from trainer.evaluation.grading import grade_answer
from trainer.evaluation.judging import make_judge_key
from trainer.results.rows import GENERATED, JudgeKey, ResultRow, Slot, TaskKey
from trainer.results.summary import Evaluation, summarize
from trainer.tasks import SUITES, recognize_task
from trainer.tasks.pool_conditions import MEMORY
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task
from trainer.tasks.task_pools import TaskPools

if TYPE_CHECKING:
    from orchestrator.failure_memory.lessons import FailureMemory
    from orchestrator.traces.agent_track_record import TrackRecord
    from trainer.evaluation.frozen_past import FrozenPast

SAMPLING_TEMPERATURE = 1.0  # of several samples (ParaManager, arXiv 2604.17009); one sample is greedy


@dataclass(frozen=True, slots=True)
class Trial:
    """One episode to run: its slot, its task, and how a model samples its turns."""

    slot: Slot
    task: Task
    draw: Draw


class MakeForTrial(Protocol):
    """Makes the orchestrator of a trial; `pool` is given where the trial's task brings a pool of its own."""

    def __call__(self, trial: Trial, pool: LivePool | None = None, /) -> Orchestrator: ...


async def evaluate_orchestrator(
    orchestrator: str,
    tasks: Sequence[Task],
    pool: LivePool,
    *,
    sink: Sink | None = None,
    concurrency: int = 8,
    make: MakeForTrial | None = None,
    limits: Limits | None = None,
    samples: int = 1,
    seed: int = 0,
    condition: str = "seen",
) -> Evaluation:
    """Run and grade every task `samples` times, at most `concurrency` episodes at a time.

    `limits` replaces the pool's. `make` makes the orchestrator of a trial; without it `orchestrator` is looked up by
    name. Raises UnknownOrchestrator, before anything runs, when the name does not resolve on this pool.
    """
    trials = plan_trials(orchestrator, tasks, condition=condition, samples=samples, seed=seed)
    make = make or make_by_name(pool)
    await check_orchestrators(trials, make, pool)
    rows: list[ResultRow] = []
    await run_trials(trials, LocalTrials(pool, make, sink, limits=limits), rows.append, concurrency=concurrency)
    order = {trial.slot: position for position, trial in enumerate(trials)}
    return summarize(orchestrator, sorted(rows, key=lambda row: order[row.slot]), condition)


def plan_trials(
    orchestrator: str,
    tasks: Sequence[Task],
    *,
    source: str = GENERATED,
    condition: str = "seen",
    samples: int = 1,
    temperature: float | None = None,
    seed: int = 0,
) -> list[Trial]:
    """List a trial for every sample of every task: the first sample of all tasks first, so that a run that is
    stopped early has covered many tasks.

    Without `temperature` one sample is greedy and several are sampled at 1.0. The seed of a sample depends on `seed`,
    the task and the number of the sample, and not on the orchestrator.
    """
    heat = temperature if temperature is not None else SAMPLING_TEMPERATURE if samples > 1 else 0.0
    keys = [make_task_key(task, source) for task in tasks]
    return [
        Trial(Slot(orchestrator, condition, key, sample), task, Draw(heat, _sample_seed(seed, key, sample)))
        for sample in range(samples)
        for key, task in zip(keys, tasks, strict=True)
    ]


def make_task_key(task: Task, source: str = GENERATED) -> TaskKey:
    """Make the key of a task in results: the same for a generated task whatever selection of families it was drawn
    with; tasks of a file carry the file's name without its folder."""
    ref = task.ref
    if ref.level > 0 and ref.family in SUITES:
        source = GENERATED
    elif source.startswith("file:"):
        source = "file:" + source.replace("\\", "/").rpartition("/")[2].removeprefix("file:")
    return TaskKey(source, ref.family, ref.level, ref.split, ref.index)


def make_by_name(
    pool: LivePool,
    rename: Callable[[str], str] = str,
    past: FrozenPast | None = None,
    binding: BindingSettings = BY_DESCRIPTION,
) -> MakeForTrial:
    """Return the function that makes the orchestrator named in a trial's slot, a new one for every trial (the oracle
    needs the task's plan).

    `rename` turns that name into the one on this pool, where workers may have other names. Traces that a policy reads
    and lessons that trials in the condition `memory` are shown are read once, so that the episodes of an evaluation
    do not influence it; both come from `past` where it is given. `binding` says how checkpoints that learnt one pool
    are bound to another.
    """
    record = _open_record(past) if past is not None else None
    make = cache(lambda name: orchestrator_factory(name, pool, record, binding))
    lessons = cache(lambda: _load_lessons(pool.pool.name, past))

    def make_for(trial: Trial, own: LivePool | None = None, /) -> Orchestrator:
        name = trial.slot.orchestrator
        factory = make(rename(name)) if own is None else orchestrator_factory(name, own, record, binding)
        orchestrator = factory(trial.task.oracle_turn, trial.draw)
        return with_memory(orchestrator, lessons()) if trial.slot.condition == MEMORY else orchestrator

    return make_for


def _open_record(past: FrozenPast) -> Callable[[], TrackRecord]:
    from orchestrator.traces.agent_track_record import TrackRecord  # imports the database

    return lambda: TrackRecord(past.record)


def _load_lessons(pool: str, past: FrozenPast | None) -> FailureMemory:
    from orchestrator.failure_memory.lessons import FrozenMemory, freeze_memory  # imports the database

    return freeze_memory(pool) if past is None else FrozenMemory(past.lessons)


async def check_orchestrators(trials: Sequence[Trial], make: MakeForTrial, pool: LivePool) -> None:
    """Raise UnknownOrchestrator when the orchestrator of these trials cannot be made.

    Tried on the first trial, on the first whose task has no reference plan, and on the first whose task brings a pool
    that lacks the worker in the orchestrator's name.
    """
    without_plan = (trial for trial in trials if trial.task.oracle_turn is None)
    incomplete = (trial for trial in trials if not _has_named_worker(trial))
    pools = TaskPools(pool)
    try:
        for trial in (*trials[:1], *islice(without_plan, 1), *islice(incomplete, 1)):
            await _make_on_its_pool(trial, make, pools)
    finally:
        await pools.close()


def _has_named_worker(trial: Trial) -> bool:
    """Whether the trial's own pool has the worker that the orchestrator's name gives, as direct:solver does."""
    name = OrchestratorName.parse(trial.slot.orchestrator)
    if trial.task.pool is None or name.policy not in POLICIES or not name.worker:
        return True
    return any(spec.name == name.worker for spec in trial.task.pool.enabled)


async def _make_on_its_pool(trial: Trial, make: MakeForTrial, pools: TaskPools) -> Orchestrator:
    async with pools.open(trial.task) as pool:
        return make(trial) if trial.task.pool is None else make(trial, pool)


class TrialRunner(Protocol):
    """Runs and grades trials, wherever their episodes run."""

    async def run(self, trial: Trial) -> ResultRow | None:
        """The row of a trial whose trace is on disk; None where its episode was not judged."""

    async def close(self) -> None:
        """Release what the trials needed."""


class LocalTrials:
    """Runs trials in this process, on an open pool. `limits` replaces the pool's; `settle` runs in a thread and waits
    until the trace is on disk."""

    def __init__(
        self,
        pool: LivePool,
        make: MakeForTrial,
        sink: Sink | None = None,
        settle: Callable[[], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._pool, self._make, self._settle, self._limits = pool, make, settle, limits
        self._sink = sink or NoSink()
        self._pools = TaskPools(pool, self._sink)
        self._same_work = identify_work(pool.pool)

    async def run(self, trial: Trial) -> ResultRow | None:
        if trial.task.pool is None:
            episode = await run_task(trial.task, self._make(trial), self._pool, self._sink, self._limits)
            return await self._settle_row(trial, episode, self._same_work)
        async with self._pools.open(trial.task) as own:
            # The limits are those of the experiment, whatever the pool that a task brings says.
            limits = self._limits or self._pool.pool.limits
            orchestrator = self._make(trial, own)
            episode = await run_task(trial.task, orchestrator, own, self._sink, limits, grader=self._pool)
        return await self._settle_row(trial, episode, identify_work(trial.task.pool))

    async def _settle_row(self, trial: Trial, episode: Episode, same_work: WorkKey) -> ResultRow | None:
        if episode.graded is None:  # not judged: no result, and a job that goes on runs it again
            return None
        if self._settle is not None:
            await asyncio.to_thread(self._settle)
        return build_result_row(trial, episode, same_work, self._find_judge(trial.task))

    def _find_judge(self, task: Task) -> JudgeKey | None:
        judge = self._pool.find_judge(task.judge) if task.judge else None
        return make_judge_key(judge.spec) if judge is not None else None

    async def close(self) -> None:
        await self._pools.close()


async def run_trials(
    trials: Iterable[Trial],
    runner: TrialRunner,
    keep: Callable[[ResultRow], None],
    *,
    concurrency: int = 8,
    proceed: Callable[[int], bool] = lambda _: True,
) -> bool:
    """Run and grade trials, at most `concurrency` at a time, and close the runner. Returns whether every one was run.

    `keep` is given a row when its episode has ended and been judged and its trace is on disk. `proceed` is called
    before each trial with the number of running ones: on False no new trial starts until a running one has ended and
    `proceed` is called again.
    """
    waiting = deque(trials)
    running = 0

    async def lane() -> None:
        nonlocal running
        while waiting and proceed(running):
            trial, running = waiting.popleft(), running + 1
            row = await runner.run(trial)
            running -= 1
            if row is not None:
                keep(row)

    lanes = [asyncio.create_task(lane()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*lanes)
        return not waiting
    finally:
        for task in lanes:
            task.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        await runner.close()


async def run_task(
    task: Task,
    orchestrator: Orchestrator,
    pool: LivePool,
    sink: Sink,
    limits: Limits | None = None,
    grader: LivePool | None = None,
    *,
    budget: Budget | None = None,
    retry_of: Episode | None = None,
) -> Episode:
    """Run one episode on a task and grade it; the verdict, or that there is none, is the last event of its trace.

    `grader` is the pool that holds the task's judge, where that is not `pool`. With a `budget` it spends what another
    run has left. `retry_of` is the failed episode whose lesson it is shown; who asked that, is who asked this.
    """
    spec = EpisodeSpec(task.query, task=task.ref, source=EVALUATION)
    if retry_of is not None and retry_of.started is not None:
        spec = replace(spec, user=retry_of.started.user, retry_of=retry_of.id)
    finalizer = find_finalizer(orchestrator.name, pool, default=False)
    episode = await run_episode(
        spec, orchestrator, pool, limits=limits, sink=sink, budget=budget, resolve=make_inner_orchestrator,
        finalizer=finalizer,
    )  # fmt: skip
    await grade_episode(episode, task, sink, grader or pool, final=True)
    return episode


async def grade_episode(
    episode: Episode, task: Task, sink: Sink, pool: LivePool, *, final: bool = False
) -> bool | None:
    """Append the verdict to the trace and return it; None where a cap refuses the judge, or the verifier fails.
    `pool` holds the judge where the task has one. The plan's own answer is graded, or the `final` one, which a
    finalizer may have written."""
    assert episode.ended is not None, "only finished episodes are graded"
    verdict: Graded | NotJudged
    try:
        grade = await grade_answer(task, episode.final_answer if final else episode.answer, pool)
        place: VerdictPlace = "judge" if task.judge else "verifier"
        verdict = Graded(grade.correct, as_text(task.expected), episode.ended.at, task.judge, place)
    except NotGraded as failure:
        verdict = NotJudged(clean_text(redact(str(failure))), episode.ended.at, failure.place)
    episode.apply(verdict)
    sink.append(episode.id, verdict)
    return episode.graded.correct if episode.graded else None


def make_inner_orchestrator(name: str, query: str, pool: LivePool) -> Orchestrator:
    """Make the orchestrator of a recursive worker's inner episode; the oracle gets the plan of the inner query."""
    return make_orchestrator(name, pool, find_reference_plan(query))


def find_reference_plan(query: str) -> Turn | None:
    """Return the reference plan of a query that a generated family wrote; None for any other query."""
    task = recognize_task(query)
    return task.oracle_turn if task else None


def build_result_row(trial: Trial, episode: Episode, same_work: WorkKey, judge: JudgeKey | None = None) -> ResultRow:
    """Measure a finished episode, which `judge` has graded where one did."""
    assert episode.ended is not None and episode.graded is not None, "run_task ends and grades episodes"
    measured = compute_totals(episode)
    access = score_access(episode, trial.task.oracle_turn, same_work)
    slot = trial.slot
    return ResultRow(
        orchestrator=slot.orchestrator,
        condition=slot.condition,
        **slot.task._asdict(),
        sample=slot.sample,
        query=trial.task.query,
        origin=trial.task.origin,
        episode=episode.id,
        correct=episode.graded.correct,
        outcome=episode.ended.outcome,
        turns=measured.rounds,
        turn_errors=sum(done.turn is not None and done.turn.error is not None for done in episode.rounds),
        steps=measured.steps,
        depth=measured.depth,
        width=measured.width,
        statuses=measured.statuses,
        failed_calls=measured.steps - measured.statuses.get("OK", 0),
        wall_s=measured.wall_s,
        serial_s=measured.serial_s,
        tokens_in=measured.tokens_in,
        tokens_out=measured.tokens_out,
        cost=measured.cost,
        workers=dict(Counter(run.step.worker for run in episode.steps.values())),
        at=time.time(),
        judge=judge,
        **(asdict(access) if access else {}),
    )


def _sample_seed(seed: int, key: TaskKey, sample: int) -> int:
    return make_random(f"draw/{seed}/{'/'.join(map(str, key))}/{sample}").getrandbits(63)
