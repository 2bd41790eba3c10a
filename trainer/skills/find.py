"""Finds the skills of a pool, and puts those that a person accepts into it.

Nothing of what is found is stored: it is computed again from runs and tasks, so that what is forgotten of these is
forgotten here, too. A skill in a pool holds the ids of what it was made of, and no word of a question.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.traces.store import Store
from pool_registry.actions import JsonValue
from pool_registry.calls.effect_free_pool import list_refused_workers, refuse_effects
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import InvalidPool, PoolNotFound
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from pool_registry.workers.skill import SkillConfig, SkillRecord
from trainer.skills.describe import describe_skill, name_skill
from trainer.skills.examples import Example, list_examples
from trainer.skills.generalize import differ, generalize
from trainer.skills.replay import ReplayOutcome, replay
from trainer.skills.template import Template, make_template

KIND = "skill"
LEAST_EXAMPLES = 2
MAX_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class SkillCandidate:
    """A skill that a pool may have, with the questions that it was made of. `problem` says why it is not kept, "" where
    it passed its test."""

    spec: WorkerSpec
    questions: tuple[str, ...]
    problem: str = ""

    @property
    def config(self) -> SkillConfig:
        return SkillConfig.model_validate(self.spec.config)


def find_skills(store: Store, pool: str, allowed: Collection[str] = ()) -> list[SkillCandidate]:
    """The skills that a pool's right runs and tasks make and that it does not have, those with most questions first.

    `allowed` are workers that may be called to test them though their calls may have effects. Blocks while workers are
    called. Raises PoolNotFound, InvalidPool, and UnusableTasks where what is remembered of the pool is damaged.
    """
    stored = store.pools.latest(pool).pool
    check_names(stored, allowed)
    return asyncio.run(find_in_examples(stored, list_examples(store, stored), allowed))


async def find_in_examples(
    pool: Pool, examples: Sequence[Example], allowed: Collection[str] = ()
) -> list[SkillCandidate]:
    """The skills that these solved questions of a pool make."""
    there = {_write_plan(spec.config) for spec in pool.workers if spec.kind == KIND}
    taken = {spec.name for spec in pool.workers}
    skills = []
    async with live_pool(pool) as live:
        trial = refuse_effects(live, allowed)
        for group in _group(examples, live):
            made = generalize([template for _, template in group])
            if _write_plan(made.config.model_dump(mode="json")) in there:
                continue
            skill = await _test(made.config, group, trial, list_refused_workers(live, allowed), taken)
            taken.add(skill.spec.name)
            skills.append(skill)
    return skills


def _group(examples: Sequence[Example], pool: LivePool) -> Iterator[list[tuple[Example, Template]]]:
    """The examples of each shape that has enough, and whose values differ, the largest first."""
    shapes: defaultdict[str, list[tuple[Example, Template]]] = defaultdict(list)
    for example in examples:
        turn = example.task.oracle_turn
        if turn is not None and all(step.worker in pool.workers for step in turn.steps):
            template = make_template(example.task.query, turn, lambda name: _list_properties(pool, name))
            if template is not None and template.slots:
                shapes[template.shape].append((example, template))
    groups = sorted(shapes.values(), key=len, reverse=True)
    yield from (
        group for group in groups if len(group) >= LEAST_EXAMPLES and differ([template for _, template in group])
    )


def _list_properties(pool: LivePool, worker: str) -> Mapping[str, JsonValue]:
    properties = pool.workers[worker].parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


async def _test(
    config: SkillConfig,
    group: Sequence[tuple[Example, Template]],
    pool: LivePool,
    refused: Collection[str],
    taken: Collection[str],
) -> SkillCandidate:
    workers = [pool.workers[step.worker] for step in config.steps]
    examples, templates = [example for example, _ in group], [template for _, template in group]
    spec = WorkerSpec(
        name=name_skill(config, taken),
        kind=KIND,
        description=describe_skill(config, workers),
        config=config.model_dump(mode="json"),
        timeout_s=min(MAX_TIMEOUT_S, sum(worker.spec.timeout_s for worker in workers)),
    )
    questions = tuple(example.task.query for example in examples)
    unsafe = next((step.worker for step in config.steps if step.worker in refused), None)
    if unsafe is not None:
        sentence = f"it was not tested, because a call of {unsafe} may have effects; allow it with --allow {unsafe}"
        return SkillCandidate(spec, questions, sentence)
    outcome = await replay(spec, examples, templates, pool)
    tested = config.model_copy(update={"record": _write_record(examples, outcome)})
    problem = f"it is right on {outcome.right} of {outcome.tried} only: {outcome.problem}" if outcome.problem else ""
    return SkillCandidate(spec.model_copy(update={"config": tested.model_dump(mode="json")}), questions, problem)


def _write_record(examples: Sequence[Example], outcome: ReplayOutcome) -> SkillRecord:
    return SkillRecord(
        right=outcome.right,
        tried=outcome.tried,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        runs=tuple(example.run for example in examples if example.run),
        tasks=tuple(example.digest for example in examples if not example.run),
    )


def _write_plan(config: Mapping[str, JsonValue]) -> str:
    """What tells two skills apart: their plans, whatever their records."""
    return SkillConfig.model_validate({**config, "record": None}).model_dump_json()


def choose_skill(candidates: Sequence[SkillCandidate], pool: str, name: str) -> SkillCandidate:
    """The one of this name that passed its test. Raises InvalidPool saying why there is none."""
    skill = next((row for row in candidates if row.spec.name == name), None)
    if skill is None:
        listed = ", ".join(row.spec.name for row in candidates if not row.problem) or "none"
        raise InvalidPool([("name", f"no skill {name!r} was found for {pool}; those that passed their test: {listed}")])
    if skill.problem:
        raise InvalidPool([("name", f"{name} is not added: {skill.problem}")])
    return skill


def add_skill(store: Store, pool: str, name: str, allowed: Collection[str] = ()) -> SkillCandidate:
    """Find the skills of a pool again, and put the one of this name into it. Raises InvalidPool where there is none, or
    it did not pass its test."""
    skill = choose_skill(find_skills(store, pool, allowed), pool, name)
    store.pools.edit(pool, lambda current: current.with_worker(skill.spec))
    return skill


def list_skills(pool: Pool) -> list[WorkerSpec]:
    """The skills that a pool has, in its order."""
    return [spec for spec in pool.workers if spec.kind == KIND]


def remove_skill(store: Store, pool: str, name: str) -> None:
    """Take a skill out of a pool. Raises PoolNotFound where it has none of this name, and InvalidPool where another
    worker needs it."""
    check_skill(store.pools.latest(pool).pool, name)
    store.pools.edit(pool, lambda current: current.without_worker(name))


def check_skill(pool: Pool, name: str) -> None:
    """Raise PoolNotFound where a pool has no skill of this name."""
    names = [spec.name for spec in list_skills(pool)]
    if name not in names:
        raise PoolNotFound(f"pool {pool.name!r} has no skill {name!r}; it has: {', '.join(names) or 'none'}")


def check_names(pool: Pool, workers: Collection[str]) -> None:
    """Raise InvalidPool where a worker that is allowed is not there."""
    names = {spec.name for spec in pool.workers}
    if missing := sorted(set(workers) - names):
        raise InvalidPool([("allow", f"pool {pool.name!r} has no worker {missing[0]!r}; correct the name")])
