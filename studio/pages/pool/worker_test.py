"""A worker's test from its card: it is called once with a sample input, or probed, and then the test says why not.

The input is what a person tried it with last, its own sample, what a recorded run called it with, or made up from its
schema and description. It is made up only for a tool whose calls change nothing outside.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pool_registry import secrets
from pool_registry.actions import JsonValue, Observation, as_text
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.errors import SecretNotFound, WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.worker import WorkerSpec
from studio.pages.pool.schema import WorkerTest
from studio.pages.pool.try_worker import alone, build_observation, find_sample
from studio.runtime import Runtime
from trainer.tasks.practice.guess_arguments import guess_arguments
from trainer.tasks.practice.recorded import list_recorded_arguments
from trainer.tasks.suite import make_random

MAX_SHOWN_CHARS = 2000
MAX_GUESSES = 3  # calls with inputs that were made up
RECENT_RUNS = 20  # in which an input is looked for
NO_HITS = "no_hits"
RUNS_AN_ORCHESTRATOR = "Not called: it runs an orchestrator, which calls workers of the pool. Run a query instead."
MAY_CHANGE_SOMETHING = (
    "Not called, because a call may change something outside. If it does not, set Effects to none under Edit; or call "
    "it yourself with Try it."
)
NO_KEY = "Not called: it has no key on this machine."
NO_INPUT = (
    "Not called: nothing says what its input looks like. Call it once with Try it, or name an example in its "
    "description."
)
OTHER_DOCUMENTS = "It was called, and its documents hold none of the words of the sample question."
OF_A_RUN = "Called with what a recorded run called it with."
MADE_UP = "Called with an input that was made up from its description."
NO_GUESS_FITS = (
    "The inputs were made up from its description, so it may only have refused those. Call it once with Try it, or "
    "name an example in its description."
)


@dataclass(frozen=True, slots=True)
class SampleInputs:
    """What to call a worker with, the best first; none where it is not called. `note` says whence, or why not;
    `failure_note` stands in its place where no call worked."""

    arguments: tuple[Mapping[str, JsonValue], ...] = ()
    note: str = ""
    failure_note: str = ""


def run_worker_test(
    runtime: Runtime, pool: str, spec: WorkerSpec, tried: Mapping[str, JsonValue] | None = None
) -> WorkerTest:
    """Test a worker of a pool; `tried` are the arguments of a person's last "Try it". Raises InvalidPool when it cannot
    be opened."""
    worker = LiveWorker(spec, open_worker(spec))
    if reason := find_missing_key(spec):
        return WorkerTest(how="probe", status="EXEC_ERR", latency_s=None, text=reason, input="", note=NO_KEY)
    inputs = choose_inputs(runtime, pool, worker, tried)
    probe = _probe(runtime, spec)  # for the light of its card, too
    if not inputs.arguments:
        return probe.model_copy(update={"note": inputs.note})
    for arguments in inputs.arguments:
        seen = runtime.try_worker(alone(spec), arguments, worker.worker.sample_seen)
        if seen.ok:
            return _build_test(seen, arguments, inputs.note)
    if seen.error is not None and seen.error.code == NO_HITS:
        return probe.model_copy(update={"note": OTHER_DOCUMENTS})
    return _build_test(seen, arguments, inputs.failure_note or inputs.note)


def find_missing_key(spec: WorkerSpec) -> str:
    """Why a key that a worker needs is not here; "" where all are."""
    for reference in secrets.list_references(spec.config):
        try:
            secrets.resolve(reference)
        except SecretNotFound as error:
            return str(error)
    return ""


def choose_inputs(
    runtime: Runtime, pool: str, worker: LiveWorker, tried: Mapping[str, JsonValue] | None = None
) -> SampleInputs:
    """Choose what a test calls a worker with."""
    sample = find_sample(runtime, worker.worker)
    if worker.role == "recursion":
        return SampleInputs(note=RUNS_AN_ORCHESTRATOR)
    if worker.spec.effects == "some" or (worker.has_effects and not sample):
        return SampleInputs(note=MAY_CHANGE_SOMETHING)
    if tried and worker.argument_problem(tried) is None:
        return SampleInputs((tried,))
    if sample:
        return SampleInputs(_add_known_calls(runtime, worker, sample))
    recorded = list_recorded_arguments(runtime.store.traces, pool, RECENT_RUNS).get(worker.spec.name, [])
    if recorded:
        return SampleInputs((recorded[0],), OF_A_RUN)
    guesses = guess_arguments(worker, (), MAX_GUESSES, make_random(f"test/{worker.spec.name}"))
    if not guesses and not worker.parameters.get("required"):
        guesses = [{}]
    return SampleInputs(tuple(guesses), MADE_UP, NO_GUESS_FITS) if guesses else SampleInputs(note=NO_INPUT)


def _add_known_calls(
    runtime: Runtime, worker: LiveWorker, sample: Mapping[str, JsonValue]
) -> tuple[Mapping[str, JsonValue], ...]:
    """The sample of a kind, and a call of what this worker reads: its documents need not hold the sample's words."""
    if worker.worker.remote or not worker.worker.cacheable:
        return (sample,)
    try:
        calls = runtime.run(worker.worker.list_sample_calls(1))
    except WorkerFault:  # the test itself says what cannot be read
        return (sample,)
    return (sample, *(call.arguments for call in calls if call.arguments != sample))


def _build_test(seen: Observation, arguments: Mapping[str, JsonValue], note: str) -> WorkerTest:
    document = build_observation(seen)
    return WorkerTest(
        how="call",
        status=document.status,
        latency_s=seen.latency_s,
        text=str(document.value if seen.ok else document.error)[:MAX_SHOWN_CHARS],
        input=describe_input(arguments),
        note=note,
    )


def describe_input(arguments: Mapping[str, JsonValue]) -> str:
    """An input in words: the value of a single argument, else "city: Oslo, kg: 4"."""
    if len(arguments) == 1:
        return as_text(next(iter(arguments.values())))
    return ", ".join(f"{name}: {as_text(value)}" for name, value in arguments.items())


def _probe(runtime: Runtime, spec: WorkerSpec) -> WorkerTest:
    started = time.perf_counter()
    health = runtime.check_workers([spec])[0]
    latency_s = time.perf_counter() - started
    status = "OK" if health.ok else "EXEC_ERR"
    return WorkerTest(how="probe", status=status, latency_s=latency_s, text=health.text, input="", note="")
