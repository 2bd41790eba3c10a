"""Pools like the one an orchestrator learnt on, but not quite: does it still find its way?

A condition changes a pool and says under which new names its workers are to be called. The words come
from a bank that no training pool uses. All but `flaky` can be solved by the reference plan under the new
names; in `flaky` calls fail until another worker is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import TypeAlias

from pydantic import Field

from orchestrator.plan import Turn
from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.kinds import kind_of, open_worker, wording_of
from pool_registry.pool import Pool, check_pool, mend_finalizer
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnknownTask
from trainer.tasks.other_words import reword_unknown
from trainer.tasks.suite import make_random
from trainer.tasks.task_data import TaskData, load_task_data

Renaming: TypeAlias = Mapping[str, str]  # old name -> new name; who is not in it keeps its name
Condition: TypeAlias = Callable[[Pool, int], tuple[Pool, Renaming]]

# Kinds that call another worker, which their configuration holds as `inner`.
LATER_SETTINGS = ("free", "effects", "context_tokens", "summarizer", "judge_only")
WRAPPERS = ("flaky", "delayed", "renamed_parameters")
FLAKY_RATE = 0.5
FLAKY_STATUSES = ("EXEC_ERR", "EXEC_ERR", "EXEC_ERR", "TIMEOUT")
MAX_TIMEOUT_S = 3600.0  # of any worker: pool_registry/worker.py
FLAKY_TIMEOUT_S = 5.0  # a call that hangs is given up after this
PRICES = (0.002, 0.005, 0.01, 0.02)  # US dollars a call; a twin costs a tenth
MAX_DISTRACTORS = 5
# The pool as it is; orchestrating models are shown the lessons of its recorded failures (evaluation/trials.py). In
# every other condition they are not, whatever the pool's limits say: tables must not depend on what was run before.
MEMORY = "memory"
DISTRACTORS = "distractors"


class OtherWords(TaskData):
    """A worker under another name and description."""

    name: str
    description: str


class DescriptionTexts(TaskData):
    """Other descriptions of a worker: those that training draws from, and those that are held out."""

    train: tuple[str, ...] = Field(min_length=6)
    test: tuple[str, ...] = Field(min_length=2)


class ConditionData(TaskData):
    """Other words for the workers of the starter pool, and workers that look useful and are not."""

    words: dict[str, tuple[OtherWords, ...]]
    distractors: tuple[WorkerSpec, ...]
    descriptions: dict[str, DescriptionTexts]


@cache
def load_condition_data() -> ConditionData:
    """The content of assets/tasks/pool_conditions.yaml."""
    return load_task_data("pool_conditions", ConditionData)


def keep_pool(pool: Pool, _seed: int) -> tuple[Pool, Renaming]:
    """The pool as it is."""
    return pool, {}


def rename_workers(pool: Pool, seed: int) -> tuple[Pool, Renaming]:
    """Every worker under another name and description, in another order."""
    random = _make_random("renamed", pool, seed)
    taken = {spec.name for spec in pool.workers}
    others = []
    for spec in pool.enabled:
        others.append(_reword(spec, random, taken))
        taken.add(others[-1].name)
    renaming = {old.name: new.name for old, new in zip(pool.enabled, others, strict=True)}
    return with_workers(pool, random.sample(others, len(others))), renaming


def add_distractors(pool: Pool, seed: int, others: Sequence[Pool] = ()) -> tuple[Pool, Renaming]:
    """Two to five more workers that look useful, among the others: of a bank for a pool of the starter's workers, and
    for any other pool of `others`, and of the bank where these have too few."""
    random = _make_random("distractors", pool, seed)
    names = {spec.name for spec in pool.workers}
    bank = [spec for spec in load_condition_data().distractors if spec.name not in names]
    count = min(MAX_DISTRACTORS, random.randint(2, MAX_DISTRACTORS))
    drawn: list[WorkerSpec] = []
    if not is_starter_like(pool):
        strangers = list_strangers(pool, others)
        drawn = random.sample(strangers, min(len(strangers), count))
        bank = [spec for spec in bank if spec.name not in {stranger.name for stranger in drawn}]
    drawn += random.sample(bank, min(len(bank), count - len(drawn)))
    workers = list(pool.workers)
    for spec in drawn:
        workers.insert(random.randint(0, len(workers)), spec)
    return with_workers(pool, workers), {}


def is_starter_like(pool: Pool) -> bool:
    """Whether every worker does the work of one of the starter pool's."""
    return all(describe_work(spec) in _starter_works() for spec in pool.workers)


def list_strangers(pool: Pool, others: Sequence[Pool]) -> list[WorkerSpec]:
    """The tools of other pools that can stand beside a pool's workers: none does the work of one of them, none has the
    name of one, and no call of theirs has effects, because an orchestrator may call them."""
    names, works = {spec.name for spec in pool.workers}, {describe_work(spec) for spec in pool.workers}
    strangers: dict[str, WorkerSpec] = {}
    for spec in (spec for other in others for spec in list_tools(other)):
        if spec.name not in names and describe_work(spec) not in works and _is_harmless(spec):
            strangers.setdefault(spec.name, spec.model_copy(update={"fallback": ""}))
    return list(strangers.values())


def _is_harmless(spec: WorkerSpec) -> bool:
    """Whether no call of a worker has effects, and it can be opened here."""
    try:
        return open_worker(spec).only_reads
    except (InvalidPool, WorkerFault, OSError):
        return False


def replace_tool(pool: Pool, seed: int) -> tuple[Pool, Renaming]:
    """One tool is gone; another of the same kind does its work under another name and description. A pool without
    tools stays as it is."""
    random, tools = _make_random("missing", pool, seed), list_tools(pool)
    if not tools:
        return pool, {}
    gone = random.choice(tools)
    substitute = _reword(gone, random, {spec.name for spec in pool.workers})
    workers = [spec for spec in pool.workers if spec.name != gone.name]
    workers.insert(random.randint(0, len(workers)), substitute)
    return with_workers(pool, workers), {gone.name: substitute.name}


def make_flaky(pool: Pool, seed: int) -> tuple[Pool, Renaming]:
    """Let about half of the tools fail on some calls, always the same; each has a twin that does not."""
    random = _make_random("flaky", pool, seed)
    workers: list[WorkerSpec] = list(pool.workers)
    for spec in draw_half(list_tools(pool), random):
        workers[workers.index(spec)] = wrap_flaky(spec, random.randrange(2**31))
        workers.append(_reword(spec, random, {other.name for other in workers}))
    return with_workers(pool, workers), {}


def set_prices(pool: Pool, seed: int) -> tuple[Pool, Renaming]:
    """Let about half of the tools cost something; each of these has a twin for a tenth of the price."""
    random = _make_random("priced", pool, seed)
    workers: list[WorkerSpec] = list(pool.workers)
    renaming = {}
    for spec in draw_half(list_tools(pool), random):
        price, twin = random.choice(PRICES), _reword(spec, random, {other.name for other in workers})
        workers[workers.index(spec)] = set_price(spec, price)
        workers.append(set_price(twin, price / 10))
        renaming[spec.name] = twin.name
    return with_workers(pool, workers), renaming


def redescribe_workers(pool: Pool, seed: int) -> tuple[Pool, Renaming]:
    """Every worker of the starter pool under a description that no training uses; names and order stay."""
    random = _make_random("redescribed", pool, seed)
    return with_workers(pool, [describe_anew(spec, random, held_out=True) for spec in pool.workers]), {}


def remove_workers(pool: Pool, names: Sequence[str]) -> Pool:
    """The pool with these workers switched off: what do they carry? Raises UnknownTask for one that is not there."""
    there = [spec.name for spec in pool.enabled]
    unknown = [name for name in names if name not in there]
    if unknown:
        raise UnknownTask(f"the pool {pool.name} has no worker {unknown[0]!r}; it has: {', '.join(there)}")
    if set(there) <= set(names):
        raise UnknownTask(f"nothing would be left of the pool {pool.name}; leave a worker in it")
    return pool.model_copy(update={"workers": tuple(spec for spec in pool.workers if spec.name not in names)})


CONDITIONS: dict[str, Condition] = {
    "seen": keep_pool,
    MEMORY: keep_pool,
    "renamed": rename_workers,
    DISTRACTORS: add_distractors,
    "missing": replace_tool,
    "flaky": make_flaky,
    "priced": set_prices,
    "redescribed": redescribe_workers,
}


def apply_condition(condition: str, pool: Pool, seed: int = 0, others: Sequence[Pool] = ()) -> tuple[Pool, Renaming]:
    """A pool in this condition, under a name of its own, and what its workers are called there.

    `condition` is one of CONDITIONS or `without:WORKER[,WORKER]`; `others` are pools that distractors may come from.
    Raises UnknownTask for any other.
    """
    if condition == DISTRACTORS:
        changed, renaming = add_distractors(pool, seed, others)
    else:
        changed, renaming = _apply(condition, pool, seed)
    changed = mend_fallbacks(changed, renaming)
    if changed != pool:
        changed = changed.model_copy(update={"name": re.sub("[^a-z0-9_-]", "-", f"{pool.name}-{condition}")[:48]})
    return changed, renaming


def rename_in_turn(turn: Turn, renaming: Renaming) -> Turn:
    """The turn with every worker called by its new name."""
    return replace(
        turn, steps=tuple(replace(step, worker=renaming.get(step.worker, step.worker)) for step in turn.steps)
    )


def unwrap_worker(spec: WorkerSpec) -> WorkerSpec:
    """The worker inside one that was made flaky or slow, or has other parameters; any other worker as it is."""
    return unwrap_worker(WorkerSpec.model_validate(spec.config["inner"])) if spec.kind in WRAPPERS else spec


def _apply(condition: str, pool: Pool, seed: int) -> tuple[Pool, Renaming]:
    kind, _, names = condition.partition(":")
    if kind == "without" and names:
        return remove_workers(pool, names.split(",")), {}
    if condition in CONDITIONS:
        return CONDITIONS[condition](pool, seed)
    choices = ", ".join(CONDITIONS)
    raise UnknownTask(f"there is no condition {condition!r}; use one of: {choices}, without:WORKER[,WORKER]")


def mend_fallbacks(pool: Pool, renaming: Renaming) -> Pool:
    """The pool with its fallbacks and its finalizer under their new names, and without those that are not there any
    more."""
    there = {spec.name for spec in pool.enabled}

    def rename_fallback(spec: WorkerSpec) -> WorkerSpec:
        name = renaming.get(spec.fallback, spec.fallback)
        return spec.model_copy(update={"fallback": name if name in there else ""}) if spec.fallback else spec

    return mend_finalizer(pool.model_copy(update={"workers": tuple(map(rename_fallback, pool.workers))}), renaming)


def _reword(spec: WorkerSpec, random: Random, taken: Collection[str]) -> WorkerSpec:
    """The same worker in other words: the bank's for one that does a starter worker's work, else made-up ones."""
    name = _starter_works().get(describe_work(spec))
    words = [words for words in load_condition_data().words.get(name or "", ()) if words.name not in taken]
    if not words:
        return reword_unknown(spec, random, set(taken))
    chosen = random.choice(words)
    return spec.model_copy(update={"name": chosen.name, "description": chosen.description})


def describe_anew(spec: WorkerSpec, random: Random, held_out: bool = False) -> WorkerSpec:
    """The worker with a description of the bank, if it does the work of one of the starter pool's.

    `held_out` draws from those that training does not use; else its own description may be drawn, too.
    """
    name = _starter_works().get(describe_work(spec))
    if name is None:
        return spec
    bank = load_condition_data().descriptions[name]
    texts = bank.test if held_out else (spec.description, *bank.train)
    return spec.model_copy(update={"description": random.choice(texts)})


def describe_work(spec: WorkerSpec) -> str:
    """A key that is equal for workers that do the same work, whatever they are called."""
    wording = wording_of(spec.kind)
    config = {key: value for key, value in spec.config.items() if key not in wording}
    return json.dumps([spec.kind, config], sort_keys=True)


@cache
def _starter_works() -> Mapping[str, str]:
    """The work of every worker of the starter pool -> its name."""
    return {describe_work(spec): spec.name for spec in starter_pool().workers}


def dump_inner(spec: WorkerSpec) -> dict[str, JsonValue]:
    """A worker inside a wrapper. Settings that came later are left out at their defaults, so that a draw's pool keeps
    its hash."""
    unset = {name for name in LATER_SETTINGS if getattr(spec, name) == WorkerSpec.model_fields[name].default}
    return spec.model_dump(mode="json", exclude=unset)


def wrap_flaky(spec: WorkerSpec, seed: int, statuses: Sequence[str] = FLAKY_STATUSES) -> WorkerSpec:
    """The worker, failing on about half of its calls, always on the same."""
    config = {
        "inner": dump_inner(spec),
        "rate": FLAKY_RATE,
        "statuses": list(statuses),
        "seed": seed,
    }
    timeout_s = min(spec.timeout_s, FLAKY_TIMEOUT_S)
    return spec.model_copy(update={"kind": "flaky", "config": config, "timeout_s": timeout_s})


def set_price(spec: WorkerSpec, price: float) -> WorkerSpec:
    """The worker at a price in US dollars a call, which its description names."""
    description = f"{spec.description} Costs {price:g} US dollars a call."
    return spec.model_copy(update={"price_call": price, "description": description})


def delay_worker(spec: WorkerSpec, latency_ms: int) -> WorkerSpec:
    """The worker, answering so many milliseconds later, which its description names. Its time-out grows by as much."""
    config = {"inner": dump_inner(spec), "latency_ms": latency_ms}
    changes = {
        "kind": "delayed",
        "config": config,
        "description": f"{spec.description} Takes about {latency_ms} milliseconds a call.",
        "timeout_s": min(MAX_TIMEOUT_S, spec.timeout_s + latency_ms / 1000),
    }
    return spec.model_copy(update=changes)


def compute_delay_s(spec: WorkerSpec) -> float:
    """The seconds that a call of this worker waits because of its wrappers; 0 for a worker that was not made slow."""
    if spec.kind not in WRAPPERS:
        return 0.0
    own_s = float(str(spec.config["latency_ms"])) / 1000 if spec.kind == "delayed" else 0.0
    return own_s + compute_delay_s(WorkerSpec.model_validate(spec.config["inner"]))


def list_tools(pool: Pool) -> list[WorkerSpec]:
    """The enabled workers that are no agents."""
    return [spec for spec in pool.enabled if kind_of(spec).role == "tool"]


def draw_half(specs: Sequence[WorkerSpec], random: Random) -> list[WorkerSpec]:
    """Draw half of them, rounded up."""
    return random.sample(specs, (len(specs) + 1) // 2)


def with_workers(pool: Pool, workers: Sequence[WorkerSpec]) -> Pool:
    """The pool with these workers. Raises InvalidPool."""
    changed = pool.model_copy(update={"workers": tuple(workers)})
    check_pool(mend_finalizer(changed), pool)  # a finalizer may have another name already: `mend_fallbacks` follows
    return changed


def _make_random(condition: str, pool: Pool, seed: int) -> Random:
    return make_random(f"condition/{condition}/{pool.name}/{seed}")
