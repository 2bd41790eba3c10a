"""What is known about a worker from calls of it: how often they succeed, how long they take, what they cost, how they
fail; and a description that says so.

Sampled are calls that the worker knows, calls of practice plans and recorded ones; a language model is asked tasks
whose answer can be graded. The facts are always measured. Words about strengths and weaknesses come from a language
model of the pool, and only where they name no figure that was not measured.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.traces.store import RecordedCall
from pool_registry.actions import Action, JsonValue, Observation, as_text
from pool_registry.calls.effect_free_pool import list_refused_workers
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.errors import PoolError, WorkerFault
from pool_registry.text import one_line, shorten
from trainer.evaluation.grading import grade_answer
from trainer.results.statistics import mean, quantile, wilson_interval
from trainer.tasks.practice.guess_arguments import guess_arguments
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task

MARK = "Measured by Podium:"
SAMPLES = 12
AT_A_TIME = 4
MAX_DESCRIPTION = 2000
MAX_PROSE = 400
MAX_SHOWN = 160
SHOWN_CALLS = 6  # to the agent that writes about the worker
SHOWN_FAILURES = 3  # kinds of them
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
PROMPT = """\
You describe a worker to an orchestrator that must decide when to call it.
Its description: {description}
What was measured: {facts}
Calls of it:
{calls}
Write two short sentences in English: what it is good for, and what it is bad at or cannot do. Say only what the calls
show. Name no figures. Write nothing else."""


@dataclass(frozen=True, slots=True)
class SampledCall:
    """A call that was made. `correct` is None where nothing grades the answer; `steps` is how many calls the reference
    plan of the task makes, 0 where there is none."""

    arguments: Mapping[str, JsonValue]
    observation: Observation
    correct: bool | None = None
    steps: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """Calls made now, and earlier ones from traces. `reason`: why none was made now."""

    worker: str
    sampled: tuple[SampledCall, ...]
    recorded: tuple[RecordedCall, ...]
    reason: str = ""

    @property
    def calls(self) -> int:
        return len(self.sampled) + len(self.recorded)

    @property
    def latencies(self) -> list[float]:
        return [call.observation.latency_s for call in self.sampled] + [call.latency_s for call in self.recorded]

    @property
    def successes(self) -> int:
        return sum(call.observation.ok for call in self.sampled) + sum(call.status == "OK" for call in self.recorded)

    @property
    def failures(self) -> Counter[str]:
        """The calls that failed, by the code of their error."""
        now = (call.observation.error.code for call in self.sampled if call.observation.error is not None)
        earlier = (call.code or call.status for call in self.recorded if call.status != "OK")
        return Counter([*now, *earlier])

    @property
    def cost(self) -> float:
        """US dollars a call, of those made now."""
        return mean([call.observation.usage.cost for call in self.sampled])


@dataclass(frozen=True, slots=True)
class WorkerDescription:
    """A description to be accepted or edited by a person. `prose` is what an agent wrote of it, "" where none did;
    `note` says why."""

    text: str
    facts: str
    prose: str = ""
    author: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class SampleSources:
    """What calls are drawn from: arguments of recorded calls, tasks, and calls in traces with their outcome."""

    arguments: Sequence[Mapping[str, JsonValue]] = ()
    tasks: Sequence[Task] = ()
    recorded: Sequence[RecordedCall] = field(default=())


async def collect_facts(
    pool: LivePool, name: str, sources: SampleSources, count: int = SAMPLES, allowed: frozenset[str] = frozenset()
) -> WorkerFacts:
    """Call a worker at most `count` times. One whose calls may have effects is not called unless it is allowed."""
    worker = pool.workers[name]
    recorded = tuple(sources.recorded)
    if worker.role == "recursion":
        return WorkerFacts(name, (), recorded, "it runs episodes of its own; evaluate its orchestrator instead")
    if name in list_refused_workers(pool, allowed):
        return WorkerFacts(name, (), recorded, "a call of it may have effects; allow it to have it called")
    if worker.role == "agent":
        sampled = await _ask_tasks(pool, worker, sources.tasks[:count])
        reason = "" if sampled else "the pool has no tasks to ask it; make practice tasks first"
    else:
        arguments = await _list_arguments(worker, sources, count)
        sampled = await _call_all(pool, worker, arguments)
        reason = (
            "" if sampled else "no arguments for a call are known; call it once (Try it), or give its schema examples"
        )
    return WorkerFacts(name, tuple(sampled), recorded, reason)


async def _ask_tasks(pool: LivePool, worker: LiveWorker, tasks: Iterable[Task]) -> list[SampledCall]:
    """Ask a language model queries whose answers can be graded."""
    parameter = worker.instruction_parameter or "instruction"
    slots = asyncio.Semaphore(min(AT_A_TIME, worker.spec.max_concurrency))

    async def ask(task: Task) -> SampledCall:
        arguments = {parameter: task.query}
        async with slots:
            observation = await pool.call(Action(worker.spec.name, arguments))
        grade = await grade_answer(task, observation.value, pool)
        return SampledCall(
            arguments, observation, grade.correct, len(task.oracle_turn.steps) if task.oracle_turn else 0
        )

    return list(await asyncio.gather(*map(ask, tasks)))


async def _list_arguments(worker: LiveWorker, sources: SampleSources, count: int) -> list[Mapping[str, JsonValue]]:
    """List arguments of recorded calls, of plans and of the worker itself, and those that its schema names."""
    name = worker.spec.name
    plans = [task.oracle_turn.steps for task in sources.tasks if task.oracle_turn is not None]
    planned = [step.arguments for steps in plans for step in steps if step.worker == name and not step.references]
    try:
        own = [sample.arguments for sample in await worker.worker.list_sample_calls(count)]
    except (WorkerFault, PoolError, OSError):
        own = []  # what it cannot read shows when it is called
    samples = [*sources.arguments, *planned, *own]
    if not samples:
        samples = [*guess_arguments(worker, (), count, make_random(f"describe/{name}"))]
    distinct = {json.dumps(dict(arguments), sort_keys=True, default=str): arguments for arguments in samples}
    return [arguments for arguments in distinct.values() if worker.argument_problem(arguments) is None][:count]


async def _call_all(
    pool: LivePool, worker: LiveWorker, arguments: Iterable[Mapping[str, JsonValue]]
) -> list[SampledCall]:
    slots = asyncio.Semaphore(min(AT_A_TIME, worker.spec.max_concurrency))

    async def call(chosen: Mapping[str, JsonValue]) -> SampledCall:
        async with slots:
            return SampledCall(chosen, await pool.call(Action(worker.spec.name, chosen)))

    return list(await asyncio.gather(*map(call, arguments)))


async def describe_worker(pool: LivePool, facts: WorkerFacts, author: str = "") -> WorkerDescription:
    """Write the worker's description with what was measured. `author` is the agent that words strengths and
    weaknesses; "" for none."""
    own = strip_facts(pool.workers[facts.worker].spec.description)
    sentence = write_facts(facts, pool.workers[facts.worker])
    prose, note = "", ""
    if author and sentence and facts.sampled:
        prose, note = await _write_prose(pool, author, own, sentence, facts)
    text = " ".join(part for part in (own, f"{MARK} {sentence}" if sentence else "", prose) if part)
    return WorkerDescription(text[:MAX_DESCRIPTION], sentence, prose, author if prose else "", note or facts.reason)


def strip_facts(description: str) -> str:
    """A description without what an earlier measurement added."""
    return description.partition(MARK)[0].rstrip()


def write_facts(facts: WorkerFacts, worker: LiveWorker) -> str:
    """The measured facts in a few clauses; "" where nothing was measured."""
    if not facts.calls:
        return ""
    clauses = [_write_success(facts), _write_latency(facts.latencies), _write_price(facts, worker)]
    clauses += [_write_right_answers(facts.sampled), _write_failures(facts.failures)]
    return "; ".join(clause for clause in clauses if clause) + "."


def _write_success(facts: WorkerFacts) -> str:
    low, high = wilson_interval(facts.successes / facts.calls, facts.calls)
    share = facts.successes / facts.calls
    return f"{share:.0%} of {facts.calls} calls succeed (95 %: {low:.0%} to {high:.0%})"


def _write_latency(latencies: Sequence[float]) -> str:
    median, most = (_format_seconds(quantile(latencies, share)) for share in (0.5, 0.9))
    return f"{median} a call, nine of ten within {most}"


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{max(1, round(seconds * 1000))} ms"


def _write_price(facts: WorkerFacts, worker: LiveWorker) -> str:
    spec = worker.spec
    if facts.cost:
        return f"{facts.cost:.2g} US dollars a call"
    return "" if spec.price_in or spec.price_out or spec.price_call else "free"


def _write_right_answers(sampled: Sequence[SampledCall]) -> str:
    """How many tasks it answers alone, by the steps of their reference plans where these differ."""
    graded = [call for call in sampled if call.correct is not None]
    if not graded:
        return ""
    by_steps: dict[str, list[SampledCall]] = {}
    for call in graded:
        by_steps.setdefault("one step" if call.steps == 1 else "several steps" if call.steps else "", []).append(call)
    parts = [
        f"{sum(bool(call.correct) for call in calls)} of {len(calls)}{f' of {kind}' if kind else ''}"
        for kind, calls in sorted(by_steps.items())
    ]
    return f"alone it answers right {' and '.join(parts)} of this pool's tasks"


def _write_failures(failures: Counter[str]) -> str:
    listed = ", ".join(f"{code} ({count})" for code, count in failures.most_common(SHOWN_FAILURES))
    return f"fails with {listed}" if listed else ""


async def _write_prose(
    pool: LivePool, author: str, description: str, sentence: str, facts: WorkerFacts
) -> tuple[str, str]:
    """Write strengths and weaknesses in an agent's words; return "" and the reason where they are not used."""
    shown = sorted(facts.sampled, key=lambda call: call.observation.ok)[:SHOWN_CALLS]
    calls = "\n".join(map(_write_call, shown))
    instruction = PROMPT.format(description=description, facts=sentence, calls=calls)
    observation = await pool.call(Action(author, {"instruction": instruction}))
    if not observation.ok:
        return "", f"{author} did not write about it: {observation.error.message if observation.error else ''}"
    prose = " ".join(as_text(observation.value).split())
    problem = find_prose_problem(prose, f"{description} {sentence}")
    return ("", f"what {author} wrote is left out: {problem}") if problem else (prose, "")


def find_prose_problem(prose: str, facts: str) -> str:
    """Why words about a worker cannot be used; "" when they can."""
    if not prose:
        return "it is empty"
    if len(prose) > MAX_PROSE:
        return f"it has more than {MAX_PROSE} characters"
    if not prose.endswith((".", "!")):
        return "it ends in the middle of a sentence"
    invented = [number for number in _NUMBER.findall(prose) if number not in _NUMBER.findall(facts)]
    return f"it names {invented[0]}, which was not measured" if invented else ""


def _write_call(call: SampledCall) -> str:
    observation = call.observation
    result = as_text(observation.value) if observation.ok else observation.error.message if observation.error else ""
    verdict = {True: ", right", False: ", wrong", None: ""}[call.correct]
    arguments = shorten(json.dumps(dict(call.arguments), ensure_ascii=False, default=str), MAX_SHOWN)
    return f"- {arguments} -> {observation.status}{verdict}: {shorten(one_line(result), MAX_SHOWN)}"
