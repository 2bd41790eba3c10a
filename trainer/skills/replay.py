"""Tests a skill on questions that it was not made of: each in turn is held out, and solved by the skill of the others.

Calls are real ones of the pool's workers, and nothing is recorded. What may have effects is called only where a person
allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.quotes import escape_value
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.kinds import open_worker
from pool_registry.text import shorten
from pool_registry.worker import WorkerSpec
from trainer.evaluation.grading import JudgeRefused, grade_answer
from trainer.evaluation.trials import make_inner_orchestrator
from trainer.skills.examples import Example
from trainer.skills.generalize import generalize
from trainer.skills.template import Template

MAX_REPLAYS = 8  # of one skill
SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """How many of the tried questions were right, and what the first wrong one came to; "" where none was."""

    right: int
    tried: int
    problem: str = ""


async def replay(
    spec: WorkerSpec, examples: Sequence[Example], templates: Sequence[Template], pool: LivePool
) -> ReplayOutcome:
    """Hold out each example in turn, at most MAX_REPLAYS, and solve it with the skill that the others make. `spec` is
    the skill without its plan. Never raises for what workers do."""
    right, problem = 0, ""
    for place, (example, template) in enumerate(zip(examples[:MAX_REPLAYS], templates, strict=False)):
        others = [other for number, other in enumerate(templates) if number != place]
        made = generalize(others)
        skill = spec.model_copy(update={"config": made.config.model_dump(mode="json")})
        arguments = {name: escape_value(value) for name, value in made.read_arguments(template).items()}
        wrong = await _solve(skill, Turn((Step(1, skill.name, arguments),), "$1"), example, pool)
        right += not wrong
        problem = problem or wrong
    return ReplayOutcome(right, min(len(examples), MAX_REPLAYS), problem)


async def _solve(skill: WorkerSpec, turn: Turn, example: Example, pool: LivePool) -> str:
    """Why the skill does not solve an example; "" where it does."""
    extended = LivePool(pool.pool, {**pool.workers, skill.name: LiveWorker(skill, open_worker(skill))}, pool.cache)
    extended.stand_for(pool)
    spec = EpisodeSpec(example.task.query)
    episode = await run_episode(spec, OraclePolicy(turn), extended, resolve=make_inner_orchestrator)
    question = shorten(example.task.query, SHOWN_CHARS)
    seen = episode.observations().get(1)
    if seen is not None and seen.error is not None:
        return f'on "{question}": {seen.error.message}'
    try:
        if (await grade_answer(example.task, episode.answer, extended)).correct:
            return ""
    except JudgeRefused as error:
        return f'on "{question}": {error}'
    return f'on "{question}" it answers {shorten(as_text(episode.answer), SHOWN_CHARS)}'
