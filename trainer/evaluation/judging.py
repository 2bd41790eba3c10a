"""Measures a judge: a person's verdicts on answers, and what the judge says of the same answers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from orchestrator.traces.store import TraceFilter, TraceStore
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.kinds import field_problems
from pool_registry.strict_model import FrozenModel
from pool_registry.worker import WorkerSpec
from trainer.errors import TrainingFailed, UnusableTasks
from trainer.evaluation.grading import Grade, JudgeRefused, ask_judge
from trainer.results.judge_agreement import Agreement, count_agreement
from trainer.results.rows import JudgeKey
from trainer.tasks.pool_conditions import describe_work
from trainer.tasks.verifier import JudgeCheck

EXAMPLE = '{"query": "What is 6 * 7?", "answer": "It is 42.", "expected": 42, "right": true}'
MAX_VERDICTS = 500
MAX_RUNS = 5000  # that are searched for verdicts, the newest first


class PersonVerdict(FrozenModel):
    """What a person says of an answer. `expected` is the right answer, None where it is not known."""

    query: str = Field(min_length=1)
    answer: JsonValue
    right: bool
    expected: JsonValue = None


def make_judge_key(spec: WorkerSpec) -> JudgeKey:
    """Name a judge by what it does: its kind and configuration."""
    return JudgeKey(name=spec.name, work=hashlib.sha256(describe_work(spec).encode()).hexdigest()[:16])


def read_verdicts(file: Path) -> list[PersonVerdict]:
    """Read verdicts from a file, a JSON object a line. Raises UnusableTasks naming the first line that is none."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableTasks(f"{file} cannot be read: {error}") from error
    verdicts = [_read_verdict(file, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not verdicts:
        raise UnusableTasks(f"{file} holds no verdict; a line looks like this: {EXAMPLE}")
    return verdicts[:MAX_VERDICTS]


def _read_verdict(file: Path, number: int, line: str) -> PersonVerdict:
    try:
        verdict = PersonVerdict.model_validate_json(line)
    except ValidationError as error:
        where, what = field_problems(error)[0]
        sentence = f"{where}: {what}" if where else what
        raise UnusableTasks(f"{file} line {number}: {sentence}; a line looks like this: {EXAMPLE}") from error
    if verdict.answer is None:
        raise UnusableTasks(f"{file} line {number}: answer: null is no answer to judge")
    return verdict


def list_recorded_verdicts(traces: TraceStore, pool: str) -> list[PersonVerdict]:
    """List what a person said of runs on a pool, the newest first, each answer once."""
    verdicts: dict[tuple[str, str], PersonVerdict] = {}
    for row in traces.search(TraceFilter(pool=pool, limit=MAX_RUNS)):
        if row.family is not None or row.correct is None:  # a task's verifier graded it, or nobody has
            continue
        episode = traces.episode(row.id)
        if episode.graded is None or episode.answer is None:
            continue
        right, expected = episode.graded.correct, episode.graded.expected
        # Where a person found the answer right, it was taken as the expected one: to show it would give it away.
        is_own = right and expected == as_text(episode.answer)
        verdict = PersonVerdict(
            query=episode.query, answer=episode.answer, right=right, expected=None if is_own else expected or None
        )
        verdicts.setdefault((episode.query, as_text(episode.answer)), verdict)
        if len(verdicts) == MAX_VERDICTS:
            break
    return list(verdicts.values())


async def measure_judge(judge: str, verdicts: Sequence[PersonVerdict], pool: LivePool) -> Agreement:
    """Have a judge grade the same answers. The pool's cap on cost holds for all of them.

    Raises WorkerFault where the judge cannot be asked, and TrainingFailed where a cap refuses it: half a measurement
    would say nothing.
    """
    worker = pool.find_judge(judge)
    if worker is None:
        raise UnusableTasks(f"{pool.unknown_worker(judge)}; a judge must be a language model that is switched on")
    try:
        with charge_calls_to(Spending(max_cost=pool.pool.limits.max_cost)):
            grades = await asyncio.gather(*(_grade(judge, verdict, pool) for verdict in verdicts))
    except JudgeRefused as refusal:
        raise TrainingFailed("max_cost", str(refusal)) from refusal
    pairs = [(verdict.right, grade.correct) for verdict, grade in zip(verdicts, grades, strict=True)]
    return count_agreement(make_judge_key(worker.spec), pairs, sum(grade.reason is not None for grade in grades))


async def _grade(judge: str, verdict: PersonVerdict, pool: LivePool) -> Grade:
    return await ask_judge(JudgeCheck(judge, verdict.expected), verdict.answer, verdict.query, pool)
