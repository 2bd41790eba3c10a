"""Plans with a slip such as a small model makes, tried on their pool: what a reader learns second turns from.

A step goes to another worker, hands over a name that is not the right one, is left out so that a later one gets what it
should have looked up, or quotes a part that no output has. What the pool answers is real. Nothing is called that may
have effects or costs money.

Or they are a reader's own first plans: from made slips alone it learns nothing of the mistakes that are its own
(lessons/docs/reader-diary.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import StepRun
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.executor import Recorder, RoundRun
from orchestrator.engine.release import Orchestrator
from orchestrator.orchestrator_name import TurnOptions, add_options
from orchestrator.plan import Step, Turn, check_turn, renumber_step
from orchestrator.policies.registry import make_orchestrator
from orchestrator.quotes import REFERENCE, WHOLE_QUOTE, references, renumber_quotes
from orchestrator.reader.cards import format_listed
from orchestrator.reader.refusal import is_refusal, read_refused_need
from orchestrator.reader.states import TriedPlan, join_last_plan
from orchestrator.repairs.mend_calls import may_be_tried
from orchestrator.repairs.repeat_steps import is_rejected
from orchestrator.repairs.table import ALL
from pool_registry.actions import JsonValue, Observation
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.deployment_mode import DeploymentMode
from trainer.recipe_sections import DemonstrationSettings
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task

TRIES = 6  # slips that are drawn for a task until the pool rejects one
PARTS = ("name", "value", "result", "length", "count", "id", "price", "amount")  # that small models invent
OWN_NEED_SHARE = 0.5  # of the steps that go to another worker keep their need: it was bound to the wrong one
_WORD = re.compile(r"[^\W_][\w.:/@'-]*")


async def draw_tried_plan(query: str, turn: Turn, pool: LivePool, random: Random) -> TriedPlan | None:
    """A plan for a query that went wrong, and what came of it, where `turn` is the right one; None where no slip that
    was drawn is rejected."""
    slips = REFUSED_SLIPS if is_refusal(turn.answer) else tuple(SLIPS)
    weights = [SLIPS.get(slip, 1) for slip in slips]
    for _ in range(TRIES):
        spoilt = random.choices(slips, weights)[0](query, turn, pool, random)
        tried = None if spoilt is None else await try_plan(spoilt, pool)
        if tried is not None and was_rejected(tried):
            return tried
    return None


def make_slipping_reader(settings: DemonstrationSettings, pool: LivePool) -> Orchestrator | None:
    """The reader whose own first plans go before second turns, its model alone; None where slips are made. Raises
    UnknownOrchestrator."""
    if not settings.slips:
        return None
    return make_orchestrator(add_options(settings.slips, TurnOptions(without=(ALL,))), pool)


async def draw_second_turn(
    task: Task, pool: LivePool, share: float, seed: int, reader: Orchestrator | None = None
) -> TriedPlan | None:
    """For a share of the tasks with a reference plan, a plan that went wrong: one with a slip, or the first one of a
    reader; None for the others."""
    random = make_random(f"second turn/{seed}/{task.query}")
    if task.oracle_turn is None or random.random() >= share:
        return None
    if reader is not None:
        return await try_first_plan(task.query, pool, reader)
    return await draw_tried_plan(task.query, task.oracle_turn, pool, random)


async def try_first_plan(query: str, pool: LivePool, reader: Orchestrator) -> TriedPlan | None:
    """The first plan of a reader, and what came of it; None where it was not rejected. Calls that may have effects are
    not made."""
    once = pool.pool.limits.model_copy(update={"max_rounds": 1})
    spec = EpisodeSpec(query, mode=DeploymentMode(name="review"))
    tried = join_last_plan(await run_episode(spec, reader, pool, limits=once))
    return tried if tried is not None and was_rejected(tried) else None


async def try_plan(turn: Turn, pool: LivePool) -> TriedPlan | None:
    """Run a plan whose steps count from 1; None where a call of it may have effects or costs money."""
    checked = check_turn(turn, pool, ())
    if checked.error is not None or not all(may_be_tried(pool.workers[step.worker]) for step in checked.steps):
        return None
    seen: dict[int, tuple[str, Observation]] = {}
    recorder = Recorder(started=lambda *_: None, ended=lambda *_: None)
    await RoundRun(checked.steps, seen, pool, Budget(pool.pool.limits), recorder).run()
    return TriedPlan(turn.steps, turn.answer, {k: observation for k, (_, observation) in seen.items()})


def was_rejected(tried: TriedPlan) -> bool:
    """Whether a plan holds a mistake that what came of it shows."""
    runs = (StepRun(step, 1, observation=tried.observations.get(step.id)) for step in tried.steps)
    return bool(tried.missing_part) or any(map(is_rejected, runs))


def _call_another(_query: str, turn: Turn, pool: LivePool, random: Random) -> Turn | None:
    """A step goes to another worker that takes what it hands over."""
    step = random.choice(turn.steps)
    fitting = [
        (worker, arguments)
        for name, worker in pool.workers.items()
        if name != step.worker and may_be_tried(worker) and (arguments := _hand_over(step.arguments, worker))
    ]
    if not fitting:
        return None
    worker, arguments = random.choice(fitting)
    need = step.need if random.random() < OWN_NEED_SHARE else format_listed(worker)
    return _put(turn, replace(step, worker=worker.spec.name, arguments=arguments, need=need))


def _hand_over(arguments: Mapping[str, JsonValue], worker: LiveWorker) -> dict[str, JsonValue] | None:
    """These arguments under the names of another worker's required parameters; None where they do not fit."""
    required = worker.parameters.get("required")
    names = [str(name) for name in required] if isinstance(required, list | tuple) else []
    if not names or len(names) != len(arguments):
        return None
    moved = dict(zip(names, arguments.values(), strict=True))
    return moved if references(moved) or worker.argument_problem(moved) is None else None


def _change_name(query: str, turn: Turn, _pool: LivePool, random: Random) -> Turn | None:
    """A step hands over another name: with a word too many, misspelt, or another word of the query."""
    places = [
        (step, name, value)
        for step in turn.steps
        for name, value in step.arguments.items()
        if isinstance(value, str) and value and "$" not in value
    ]
    if not places:
        return None
    step, name, value = random.choice(places)
    others = [text for text in _list_other_names(query, value, random) if text != value]
    return _put(turn, replace(step, arguments={**step.arguments, name: random.choice(others)})) if others else None


def _list_other_names(query: str, value: str, random: Random) -> list[str]:
    """What may stand in the place of a name."""
    words = [word for word in _WORD.findall(query) if "$" not in word]
    others = [word for word in words if word.casefold() not in value.casefold() and not word.islower()]
    start = query.casefold().find(value.casefold())
    before = _WORD.findall(query[:start])[-1:] if start > 0 else []
    after = _WORD.findall(query[start + len(value) :])[:1] if start >= 0 else []
    longer = [*(f"{word} {value}" for word in before), *(f"{value} {word}" for word in after)]
    cut = random.randrange(len(value))
    return [*longer, *random.sample(others, min(2, len(others))), value[:cut] + value[cut + 1 :] or f"the {value}"]


def _leave_out_step(_query: str, turn: Turn, _pool: LivePool, random: Random) -> Turn | None:
    """A step is missing, and what it was to look up stands where its output should."""
    quoted = {k for step in turn.steps for k in step.references} - references(turn.answer)
    handed = {step.id: next(iter(step.arguments.values()), None) for step in turn.steps if step.id in quoted}
    left_out = [k for k, value in handed.items() if isinstance(value, str) and value]
    if not left_out or len(turn.steps) < 2:
        return None
    place = random.choice(left_out)
    kept = [step for step in turn.steps if step.id != place]
    ids = {step.id: number for number, step in enumerate(kept, start=1)}
    steps = [replace(step, arguments=_replace_quotes(step.arguments, place, handed[place])) for step in kept]
    access = [tuple(k for k in step.access if k != place) for step in steps]
    moved = [
        renumber_step(replace(step, access=(*seen, *(step.references - {*seen, step.id}))), ids)
        for step, seen in zip(steps, access, strict=True)
    ]
    return replace(turn, steps=tuple(moved), answer=renumber_quotes(turn.answer, ids))


def _replace_quotes(arguments: Mapping[str, JsonValue], place: int, value: JsonValue) -> dict[str, JsonValue]:
    """Arguments with a value in place of those that quote a step."""
    return {name: value if place in references(old) else old for name, old in arguments.items()}


def _quote_other_part(_query: str, turn: Turn, _pool: LivePool, random: Random) -> Turn | None:
    """An argument or the answer quotes a part that is another one."""
    places = [(step, name) for step in turn.steps for name, value in step.arguments.items() if _is_quote(value)]
    answers = [None] if _is_quote(turn.answer) else []
    if not places and not answers:
        return None
    place = random.choice([*places, *answers])
    if place is None:
        return replace(turn, answer=_change_part(str(turn.answer), turn, random))
    step, name = place
    changed = _change_part(str(step.arguments[name]), turn, random)
    return _put(turn, replace(step, arguments={**step.arguments, name: changed}))


def _is_quote(value: JsonValue) -> bool:
    return isinstance(value, str) and WHOLE_QUOTE.fullmatch(value) is not None


def _change_part(quote: str, turn: Turn, random: Random) -> str:
    """A quote of the same step that names another part."""
    whole = REFERENCE.fullmatch(quote)
    assert whole is not None, "the caller has looked"
    if "[*]" in whole[2] and random.random() < 0.5:
        return quote.replace("[*]", "")
    words = [word for step in turn.steps for word in _WORD.findall(step.need) if word.isidentifier()]
    return f"${whole[1]}.{random.choice((*PARTS, *words))}"


def _call_for_refused(query: str, turn: Turn, pool: LivePool, random: Random) -> Turn | None:
    """A worker is called for what none does, with a word of the query."""
    workers = [worker for worker in pool.workers.values() if may_be_tried(worker) and worker.instruction_parameter]
    words = [word for word in _WORD.findall(query) if "$" not in word]
    if not workers or not words:
        return None
    worker = random.choice(workers)
    named = [word for word in words if not word.islower()] or words
    need = read_refused_need(turn.answer) or format_listed(worker)
    step = Step(1, worker.spec.name, {worker.instruction_parameter or "": random.choice(named)}, need=need)
    return Turn((step,), "$1")


def _put(turn: Turn, changed: Step) -> Turn:
    return replace(turn, steps=_replace_step(turn.steps, changed))


def _replace_step(steps: Iterable[Step], changed: Step) -> tuple[Step, ...]:
    return tuple(changed if step.id == changed.id else step for step in steps)


Slip: TypeAlias = Callable[[str, Turn, LivePool, Random], Turn | None]
# How often each is drawn: as often, in about, as a reader of 135M parameters makes it (lessons/docs/reader-diary.md).
SLIPS: Mapping[Slip, int] = {_call_another: 4, _change_name: 3, _leave_out_step: 3, _quote_other_part: 2}
REFUSED_SLIPS: Sequence[Slip] = (_call_for_refused,)
