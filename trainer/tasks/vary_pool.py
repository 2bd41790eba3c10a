"""Draws the pool that a task is run on, so that a model sees another one with every example.

What is drawn depends on the seed and the task alone (or on the tasks that share the pool, see shared_pools.py), and
each part of it on nothing that another part draws: a share that is changed in the recipe leaves everything else as it
was. The reference plan follows: it calls the workers and parameters by their new names, and its needs stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random

from orchestrator.plan import Step, Turn
from pool_registry.kinds import kind_of, load_config, open_worker
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.tasks.made_up_names import make_up_name
from trainer.tasks.pool_conditions import (
    PRICES,
    delay_worker,
    describe_anew,
    describe_work,
    draw_half,
    dump_inner,
    list_tools,
    load_condition_data,
    mend_fallbacks,
    rename_in_turn,
    set_price,
    unwrap_worker,
    with_workers,
    wrap_flaky,
)
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task

VARIED = "varied"  # ends the name of every pool that is drawn here: one name, however many there are
TRAIN_DISTRACTORS = 5  # of the bank; the others stand in the condition `distractors` alone
MAX_PRICE_FACTOR = 10
_PLAIN_PARAMETERS = ("text", "input", "request", "query", "q", "what", "line", "argument", "value", "x")


@dataclass(slots=True)
class _Draft:
    """A pool in the making: its workers, and what became of the names of those that it had at first."""

    base: Pool
    workers: list[WorkerSpec]
    needed: frozenset[str]  # by the tasks' reference plans
    complete: bool  # whether every task says what it needs
    renaming: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Mapping[str, str]] = field(default_factory=dict)  # by the worker's new name

    @property
    def names(self) -> set[str]:
        """The names that are taken."""
        return {spec.name for spec in (*self.workers, *self.base.workers)}

    def list_needed_tools(self) -> list[WorkerSpec]:
        """The tools that the task needs; every tool where no plan says what it needs."""
        tools = list_tools(self.base.model_copy(update={"workers": tuple(self.workers)}))
        return [spec for spec in tools if spec.name in self.needed] if self.needed else tools

    def rename(self, old: str, new: str) -> None:
        """Note that `new` does the work of `old` from now on."""
        for original, name in self.renaming.items():
            if name == old:
                self.renaming[original] = new
        self.renaming.setdefault(old, new)


def vary_pool(
    task: Task,
    pool: Pool,
    settings: PoolSettings,
    seed: int,
    others: Sequence[Pool] = (),
    group: Sequence[Task] = (),
) -> Task:
    """The task with a drawn pool, made from the one that it brings or from `pool`, and its plan to match.

    `others` are pools whose workers may serve as distractors. `group` holds the tasks that share the drawn pool, this
    one among them, all of which bring the same pool or none; empty for a pool of its own. Raises InvalidPool.
    """
    group = group or (task,)
    draft, key = _open_draft(group, pool), _make_key("vary", group[0], seed)
    _keep_subset(draft, settings, make_random(f"{key}/subset"))
    _redescribe(draft, settings, make_random(f"{key}/redescribe"))
    _substitute(draft, settings, make_random(f"{key}/substitute"))
    _make_flaky(draft, settings, make_random(f"{key}/flaky"))
    _add_distractors(draft, settings, others, make_random(f"{key}/distractors"))
    _set_prices(draft, settings, make_random(f"{key}/prices"))
    _set_latencies(draft, settings, make_random(f"{key}/latencies"))
    _rename(draft, settings, make_random(f"{key}/rename"))
    _rename_parameters(draft, settings, make_random(f"{key}/parameters"))
    if settings.shuffle:
        make_random(f"{key}/shuffle").shuffle(draft.workers)
    return _finish(task, draft, VARIED)


def shuffle_subset(task: Task, pool: Pool, seed: int) -> Task:
    """The task with a pool of the workers that it needs and up to eight others, in another order."""
    draft, random = _open_draft((task,), pool), make_random(_make_key("shuffled", task, seed))
    _keep_subset(draft, PoolSettings(), random)
    random.shuffle(draft.workers)
    return _finish(task, draft, "shuffled")


def add_late_worker(task: Task, pool: Pool, seed: int) -> Task:
    """The task with a pool in which a tool that it needs is gone, and a new one does its work: another name, a
    description and parameters that no training has shown."""
    draft, random = _open_draft((task,), pool), make_random(_make_key("added", task, seed))
    tools = draft.list_needed_tools()
    if tools:
        gone = random.choice(tools)
        late = describe_anew(gone, random, held_out=True)
        late = late.model_copy(update={"name": make_up_name(random, draft.names)})
        draft.workers = [spec for spec in draft.workers if spec is not gone] + [late]
        draft.rename(gone.name, late.name)
        _rename_parameters_of(draft, len(draft.workers) - 1, random)
    return _finish(task, draft, "added")


def _keep_subset(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    """Leave the workers that the plans call and some of the others. A task without a plan may need any of them: of
    its pool a random part is left only where the settings say how large it is at least."""
    others = [spec for spec in draft.workers if spec.name not in draft.needed]
    most = settings.subset
    if draft.complete and most is not None:
        kept = random.sample(others, min(len(others), random.randint(0, most)))
    elif not draft.complete and settings.least is not None:
        kept = random.sample(others, random.randint(min(settings.least, len(others)), len(others)))
    else:
        return
    dropped = {spec.name for spec in others} - {spec.name for spec in kept}
    draft.workers = [spec for spec in draft.workers if spec.name not in dropped]


def _redescribe(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    if random.random() < settings.redescribe:
        draft.workers = [describe_anew(spec, random) for spec in draft.workers]


def _substitute(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    """Replace one of the needed tools by an equal one under another name and description."""
    tools = draft.list_needed_tools()
    if not tools or random.random() >= settings.substitute:
        return
    gone = random.choice(tools)
    twin = _make_twin(gone, draft, random)
    draft.workers[draft.workers.index(gone)] = twin
    draft.rename(gone.name, twin.name)


def _make_flaky(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    """Let one of the needed tools fail now and then; the plan calls a twin that does not."""
    needed = {draft.renaming.get(name, name) for name in draft.needed}
    tools = [spec for spec in list_tools(_pool_of(draft)) if not needed or spec.name in needed]
    if not tools or random.random() >= settings.flaky:
        return
    weak = random.choice(tools)
    twin = _make_twin(weak, draft, random)
    # It fails at once: a call that hangs until its time-out teaches the same, seconds later.
    draft.workers[draft.workers.index(weak)] = wrap_flaky(weak, random.randrange(2**31), ("EXEC_ERR",))
    draft.workers.append(twin)
    draft.rename(weak.name, twin.name)


def _add_distractors(draft: _Draft, settings: PoolSettings, others: Sequence[Pool], random: Random) -> None:
    """Add workers of the bank and of other pools, none of which does the work of one that is there."""
    works = {describe_work(spec) for spec in draft.base.workers}
    strangers = [spec for pool in others for spec in pool.enabled if kind_of(spec).role == "tool"]
    fresh = [spec for spec in strangers if describe_work(spec) not in works]
    bank = load_condition_data().distractors[:TRAIN_DISTRACTORS]
    for _ in range(random.randint(0, settings.distractors)):
        choices = fresh if fresh and random.random() < len(fresh) / (len(fresh) + len(bank)) else bank
        spec = random.choice(choices)
        if spec.name not in draft.names:
            draft.workers.insert(random.randint(0, len(draft.workers)), spec)


def _set_prices(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    if random.random() >= settings.prices:
        return
    tools = list_tools(_pool_of(draft))
    for spec in draw_half(tools, random):
        price = random.choice(PRICES) / random.choice((1, MAX_PRICE_FACTOR))
        draft.workers[draft.workers.index(spec)] = set_price(spec, price)


def _set_latencies(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    if random.random() >= settings.latencies:
        return
    longest = settings.max_latency_ms
    for spec in draw_half(list_tools(_pool_of(draft)), random):
        latency_ms = random.randint(max(1, longest // 10), longest)
        draft.workers[draft.workers.index(spec)] = delay_worker(spec, latency_ms)


def _rename(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    """Give every worker a made-up name."""
    if random.random() >= settings.rename:
        return
    taken = draft.names
    names: dict[str, str] = {}
    for spec in draft.workers:
        names[spec.name] = make_up_name(random, taken)
        taken.add(names[spec.name])
    draft.workers = [spec.model_copy(update={"name": names[spec.name]}) for spec in draft.workers]
    for old, new in names.items():
        draft.rename(old, new)


def _rename_parameters(draft: _Draft, settings: PoolSettings, random: Random) -> None:
    """Give the parameters of the tools other names: a plain word where there is one alone, else made-up ones."""
    if random.random() >= settings.rename_parameters:
        return
    for place in range(len(draft.workers)):
        _rename_parameters_of(draft, place, random)


def _rename_parameters_of(draft: _Draft, place: int, random: Random) -> None:
    spec = draft.workers[place]
    parameters = _list_parameters(spec.kind, json.dumps(spec.config, sort_keys=True))
    if parameters:
        names = _draw_parameter_names(parameters, random)
        config = {"inner": dump_inner(spec), "names": names}
        draft.workers[place] = spec.model_copy(update={"kind": "renamed_parameters", "config": config})
        draft.parameters[spec.name] = names


def _draw_parameter_names(parameters: Sequence[str], random: Random) -> dict[str, str]:
    if len(parameters) == 1 and random.random() < 0.7:
        return {parameters[0]: random.choice(_PLAIN_PARAMETERS)}
    taken = set(parameters)
    names = {}
    for parameter in parameters:
        names[parameter] = make_up_name(random, taken)
        taken.add(names[parameter])
    return names


@lru_cache(maxsize=8192)
def _list_parameters(kind: str, config: str) -> tuple[str, ...]:
    """The parameters of a tool that runs in this process; none for agents, and for what is elsewhere or starts
    something: its schema is only known once it runs."""
    spec = unwrap_worker(WorkerSpec(name="x", kind=kind, description="x", config=json.loads(config)))
    loaded = kind_of(spec).load()
    if loaded.role != "tool" or loaded.remote or loaded.runs(load_config(spec)):
        return ()
    properties = open_worker(spec).parameters.get("properties")
    return tuple(properties) if isinstance(properties, dict) else ()


def _rewrite(plan: Turn | None, draft: _Draft) -> Turn | None:
    """The plan with the workers' and parameters' new names."""
    if plan is None:
        return None
    renamed = rename_in_turn(plan, draft.renaming)
    return replace(renamed, steps=tuple(_rewrite_step(step, draft.parameters) for step in renamed.steps))


def _rewrite_step(step: Step, parameters: Mapping[str, Mapping[str, str]]) -> Step:
    names = parameters.get(step.worker, {})
    return replace(step, arguments={names.get(name, name): value for name, value in step.arguments.items()})


def _open_draft(tasks: Sequence[Task], pool: Pool) -> _Draft:
    base = tasks[0].pool or pool
    needed = frozenset(name for task in tasks for name in task.workers)
    return _Draft(base, list(base.enabled), needed, all(task.workers for task in tasks))


def _make_key(what: str, task: Task, seed: int) -> str:
    """What the draws for a task depend on."""
    ref = task.ref
    return f"{what}/{seed}/{ref.family}/{ref.level}/{ref.split}/{ref.index}/{task.query}"


def _finish(task: Task, draft: _Draft, ending: str) -> Task:
    """The task with the pool of a draft, whose name gets this ending."""
    pool = mend_fallbacks(_pool_of(draft), draft.renaming)
    pool = with_workers(pool.model_copy(update={"name": f"{draft.base.name[:38]}-{ending}"}), pool.workers)
    return replace(task, oracle_turn=_rewrite(task.oracle_turn, draft), pool=pool)


def _pool_of(draft: _Draft) -> Pool:
    return draft.base.model_copy(update={"workers": tuple(draft.workers)})


def _make_twin(spec: WorkerSpec, draft: _Draft, random: Random) -> WorkerSpec:
    """A worker that does the same under another name and, where the bank has one, another description."""
    return describe_anew(spec, random).model_copy(update={"name": make_up_name(random, draft.names)})
