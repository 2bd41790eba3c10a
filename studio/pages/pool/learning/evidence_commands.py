"""The Pool page's commands that measure one worker: what it brings to the pool, and a description from calls of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pydantic import Field, TypeAdapter, ValidationError

from orchestrator.checkpoints import find_last_resort
from orchestrator.policies.labels import label_orchestrator
from pool_registry.calls.effect_free_pool import list_refused_workers
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.kinds import field_problems
from pool_registry.pool import Pool
from pool_registry.wants import list_wants
from pool_registry.worker import WorkerSpec
from studio.frame.commands import Fields, PageCommands, PageReply, command, text
from studio.frame.document import PageDocument
from studio.orchestrators.default import choose_default
from studio.runtime import Runtime
from trainer.evaluation.judging import EXAMPLE, PersonVerdict, list_recorded_verdicts, measure_judge
from trainer.evaluation.replayable_tasks import ReplayableTasks, list_replayable_tasks
from trainer.evaluation.worker_facts import SAMPLES, SampleSources, collect_facts, describe_worker
from trainer.evaluation.worker_value import (
    REFERENCE_PLANS,
    Change,
    ValueOptions,
    WorkerValue,
    choose_replayer,
    measure_in_time,
    measure_worker_value,
    with_worker_on,
    without_worker,
)
from trainer.results.judge_agreement import Agreement, describe_agreement, save_agreement
from trainer.tasks.practice.recorded import list_recorded_arguments

MAX_SECONDS = 3600
MAX_SAMPLES = 100
RECORDED_CALLS = 200
HOW_TO_GIVE_VERDICTS = (
    "You have given no verdict on runs of this pool yet: say of some whether they are right (the thumbs beside an "
    f"answer, or Keep as a task), or give podium pool judge a file with --verdicts. Its lines look like this: {EXAMPLE}"
)
ORCHESTRATORS = ("", REFERENCE_PLANS)  # what the page offers; a command may name any


class FigureChange(PageDocument):
    """A figure with the worker and without it, and the difference with its 95 % interval."""

    name: str
    with_it: float
    without_it: float
    difference: float
    low: float
    high: float


class ValueTask(PageDocument):
    """One task that came out otherwise."""

    query: str
    with_it: bool
    without_it: bool


class ValueDocument(PageDocument):
    """What a worker brings to its pool."""

    worker: str
    orchestrator: str
    orchestrator_label: str
    verdict: str
    enough: bool
    pairs: int
    tasks: int
    needing: int = Field(description="Pairs whose reference plan calls the worker.")
    called: int = Field(description="Pairs in which the worker was called.")
    changes: list[FigureChange]
    differing: list[ValueTask]
    notes: list[str]


class EvidenceDocument(PageDocument):
    """What can be measured about a worker: the tasks there are, and which tools a person may allow to be called."""

    worker: str
    practice: int
    recorded: int
    refused: list[str]
    is_agent: bool = Field(description="Whether it can answer tasks alone.")
    agents: list[str]
    orchestrator: str
    orchestrator_label: str


class DescriptionProposal(PageDocument):
    """A description from evidence, for a person to accept or edit."""

    worker: str
    current: str
    proposed: str
    facts: str
    prose: str
    author: str
    note: str
    sampled: int
    recorded: int
    based_on: str = Field(description="The hash of the pool that was measured, for the edit that takes the proposal.")


class EvidenceCommands(PageCommands):
    """Commands by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("editor", "evidence")
    def _show(self, fields: Fields) -> PageReply:
        pool, worker = self._read(fields)
        tasks = list_replayable_tasks(self._runtime.store.traces, pool.name)
        document = EvidenceDocument(
            worker=worker,
            practice=tasks.practice,
            recorded=tasks.recorded,
            refused=self._runtime.run(_list_refused(with_worker_on(pool, worker))),
            is_agent=worker in {spec.name for spec in pool.agents()},
            agents=[spec.name for spec in pool.agents() if spec.name != worker],
            orchestrator=(name := self._choose_orchestrator(pool, worker, tasks)),
            orchestrator_label=label_orchestrator(name),
        )
        return PageReply(fields={"evidence": document.to_json()})

    @command("editor", "value_worker")
    def _value(self, fields: Fields) -> PageReply:
        pool, worker = self._read(fields)
        seconds = _read_number(fields, "seconds", 60, MAX_SECONDS)
        tasks = list_replayable_tasks(self._runtime.store.traces, pool.name)
        if not tasks.tasks:
            raise InvalidPool([("", _explain_no_tasks(pool.name))])
        named = str(fields.get("orchestrator") or "")
        name = named or self._choose_orchestrator(pool, worker, tasks)
        options = ValueOptions(name, float(seconds), allowed=_read_allowed(fields))
        if named:
            value, note = self._runtime.run(measure_worker_value(pool, worker, tasks.tasks, options)), ""
        else:
            value, note = self._runtime.run(measure_in_time(pool, worker, tasks.tasks, options))
        document = build_value_document(value, tasks, pool.name)
        if note:
            document = document.model_copy(update={"notes": [note, *document.notes]})
        return PageReply(fields={"value": document.to_json()})

    @command("editor", "describe_worker")
    def _describe(self, fields: Fields) -> PageReply:
        pool, worker = self._read(fields)
        count = _read_number(fields, "count", SAMPLES, MAX_SAMPLES)
        author = str(fields.get("agent") or "")
        if author and author not in {spec.name for spec in pool.agents()}:
            raise InvalidPool([("agent", f"this pool has no agent {author!r} that is switched on")])
        proposal = self._runtime.run(self._write_description(pool, worker, count, author, _read_allowed(fields)))
        return PageReply(fields={"proposal": proposal.to_json()})

    async def _write_description(
        self, pool: Pool, worker: str, count: int, author: str, allowed: frozenset[str]
    ) -> DescriptionProposal:
        traces = self._runtime.store.traces
        sources = SampleSources(
            arguments=list_recorded_arguments(traces, pool.name).get(worker, ()),
            tasks=list_replayable_tasks(traces, pool.name).tasks,
            recorded=traces.recent_calls(worker, pool.name, RECORDED_CALLS),
        )
        async with live_pool(with_worker_on(pool, worker)) as live:
            facts = await collect_facts(live, worker, sources, count, allowed)
            description = await describe_worker(live, facts, author)
        return DescriptionProposal(
            worker=worker,
            current=pool.worker(worker).description,
            proposed=description.text,
            facts=description.facts,
            prose=description.prose,
            author=description.author,
            note=description.note,
            sampled=len(facts.sampled),
            recorded=len(facts.recorded),
            based_on=pool.hash,
        )

    @command("editor", "measure_judge")
    def _measure_judge(self, fields: Fields) -> PageReply:
        """Measure a judge against a person's verdicts on runs of the pool, or against those that are sent."""
        pool = self._runtime.store.pools.latest(text(fields, "pool")).pool
        name = pool.worker(text(fields, "name")).name
        verdicts = _read_verdicts(fields) or list_recorded_verdicts(self._runtime.store.traces, pool.name)
        if not verdicts:
            raise InvalidPool([("", HOW_TO_GIVE_VERDICTS)])
        agreement = self._runtime.run(_measure(pool, name, verdicts))
        save_agreement(agreement)
        sentence = describe_agreement(agreement.judge, agreement)
        return PageReply(message=sentence, fields={"agreement": agreement.model_dump(mode="json")})

    def _read(self, fields: Fields) -> tuple[Pool, str]:
        pool = self._runtime.store.pools.latest(text(fields, "pool")).pool
        spec = pool.worker(text(fields, "name"))
        if spec.judge_only:
            sentence = f"{spec.name} only judges, and is measured against your verdicts (podium pool judge)"
            raise InvalidPool([("", sentence)])
        # Measuring switches it on, and calls it.
        if not spec.enabled and (wants := list_wants(spec)) and not self._was_on(pool.name, spec):
            raise InvalidPool([("", f"{spec.name} is off and {'; '.join(wants)}. Switch it on first, if you agree")])
        return pool, spec.name

    def _was_on(self, pool: str, spec: WorkerSpec) -> bool:
        """Whether a person has had this worker on before, with what it wants now."""
        earlier = (stored.pool.find_worker(spec.name) for stored in self._runtime.store.pools.versions(pool))
        return any(old is not None and old.enabled and list_wants(old) == list_wants(spec) for old in earlier)

    def _choose_orchestrator(self, pool: Pool, worker: str, tasks: ReplayableTasks) -> str:
        """The orchestrator that the Run page would pick, where it can plan without the worker, else the reference
        plans."""
        if len(with_worker_on(pool, worker).enabled) < 2:
            return REFERENCE_PLANS
        rest = without_worker(with_worker_on(pool, worker), worker)
        name = choose_default(rest)
        return self._runtime.run(_try_orchestrator([] if name == find_last_resort() else [name], rest, tasks))


def _read_verdicts(fields: Fields) -> list[PersonVerdict]:
    try:
        return TypeAdapter(list[PersonVerdict]).validate_python(fields.get("verdicts") or [])
    except ValidationError as error:
        raise InvalidPool([(f"verdicts.{where}", what) for where, what in field_problems(error)]) from error


async def _measure(pool: Pool, judge: str, verdicts: Sequence[PersonVerdict]) -> Agreement:
    async with live_pool(pool) as live:
        return await measure_judge(judge, verdicts, live)


async def _try_orchestrator(candidates: list[str], pool: Pool, tasks: ReplayableTasks) -> str:
    async with live_pool(pool) as live:
        return choose_replayer(candidates, live, tasks.tasks)


async def _list_refused(pool: Pool) -> list[str]:
    async with live_pool(pool) as live:
        return list_refused_workers(live)


def build_value_document(value: WorkerValue, tasks: ReplayableTasks, pool: str) -> ValueDocument:
    """What the page and the command show of a worker's value."""
    return ValueDocument(
        worker=value.worker,
        orchestrator=value.orchestrator,
        orchestrator_label=label_orchestrator(value.orchestrator),
        verdict=value.verdict,
        enough=value.enough,
        pairs=len(value.pairs),
        tasks=value.tasks,
        needing=value.needing,
        called=sum(bool(pair.with_it.calls) for pair in value.pairs),
        changes=[
            _describe_change("score", value.score),
            _describe_change("seconds", value.wall_s),
            _describe_change("dollars", value.cost),
            _describe_change("tokens", value.tokens),
        ],
        differing=[
            ValueTask(query=pair.query, with_it=pair.with_it.correct, without_it=pair.without_it.correct)
            for pair in value.pairs
            if pair.with_it.correct != pair.without_it.correct
        ],
        notes=_list_notes(value, tasks, pool),
    )


def _describe_change(name: str, change: Change) -> FigureChange:
    difference = change.difference
    return FigureChange(
        name=name,
        with_it=change.with_it,
        without_it=change.without_it,
        difference=difference.mean,
        low=difference.low,
        high=difference.high,
    )


def _list_notes(value: WorkerValue, tasks: ReplayableTasks, pool: str) -> list[str]:
    """What a person must know to read the figures."""
    notes = []
    if len(value.pairs) < value.tasks:
        notes.append(f"The time was up after {len(value.pairs)} of {value.tasks} tasks; give it more for more of them.")
        if not value.enough and value.orchestrator != REFERENCE_PLANS:
            notes.append("Reference plans take a fraction of the time: choose them (--orchestrator oracle).")
    elif not value.enough:
        notes.append(f"There are no more tasks; make some with: podium tasks make --pool {pool}")
    if value.pairs and not value.needing:
        notes.append(
            f"No task has a plan that calls {value.worker}: tasks made before it was added ask for nothing that it "
            f"does. Make them again with it switched on: podium tasks make --pool {pool}"
        )
    if value.orchestrator == REFERENCE_PLANS:
        notes.append(
            "Reference plans do not look for another way: a task whose plan calls the worker fails without it."
        )
    if value.refused:
        listed = ", ".join(value.refused)
        notes.append(f"Not called, because a call may have effects: {listed}. Allow them where it has none.")
    if tasks.ungraded:
        notes.append(f"Left out: {tasks.ungraded} recorded queries whose answer nothing grades.")
    return notes


def _explain_no_tasks(pool: str) -> str:
    return (
        "there is no task to replay: no practice tasks, and no recorded run whose answer was graded; make some with "
        f"Train on this pool, or with: podium tasks make --pool {pool}"
    )


def _read_number(fields: Fields, name: str, default: int, most: int) -> int:
    number = fields.get(name, default)
    if not isinstance(number, int | float) or isinstance(number, bool) or not 1 <= number <= most:
        raise InvalidPool([(name, f"give a number from 1 to {most:,}")])
    return int(number)


def _read_allowed(fields: Fields) -> frozenset[str]:
    allowed = fields.get("allowed")
    return (
        frozenset(map(str, allowed))
        if isinstance(allowed, Collection) and not isinstance(allowed, str)
        else frozenset()
    )
