"""What-ifs: a recorded round is edited, and only what the edits can change runs again.

A variation of an episode has its rounds up to the edited one. Earlier rounds are kept whole. In the edited round a
step is called again when it was edited, or when it may see a step that is called again; every other step keeps its
observation, at no cost. Later rounds are dropped: the orchestrator wrote them from observations that may differ now.
So the variation ends with the edited round, whose answer is computed again from its `$k`.

Steps are renumbered in a topological order; edits name them by their numbers in the recorded episode.
The result is an ordinary trace that says what it varies, checked like any other plan: access lists are enforced, on
the version of the pool that the recorded episode ran on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.budget import Budget
from orchestrator.engine.edits import AddStep, AnyEdit, ChangeStep, RemoveStep, RunAgain, SetAnswer, WhatIf
from orchestrator.engine.episode import Episode, Round
from orchestrator.engine.episode_loop import EpisodeSpec, Resolve, Sink, run_episode
from orchestrator.engine.events import TaskRef
from orchestrator.engine.final_answer import Finalizer, Presenter
from orchestrator.engine.release import Orchestrator
from orchestrator.errors import InvalidEdits
from orchestrator.plan import (
    Step,
    Turn,
    check_readers,
    check_step,
    renumber_step,
    with_shorthand,
)
from orchestrator.quotes import references, renumber_quotes
from pool_registry.actions import NO_USAGE, JsonValue, Observation, storable
from pool_registry.calls.live_pool import LivePool

NAME = "what-if"  # the orchestrator of a variation, in its trace: a person
Problems = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Variation:
    """An episode with one round edited, ready to run.

    `turns` are its rounds under their new numbers, `kept` the steps whose observation is kept (new number to old),
    `rerun` those that are called, `ids` the new numbers by those that the edits use. `dropped` is how many rounds of
    the recorded episode come after the edited one.
    """

    origin: Episode
    round: int
    edits: tuple[AnyEdit, ...]
    turns: tuple[Turn, ...]
    kept: Mapping[int, int]
    rerun: tuple[int, ...]
    ids: Mapping[int, int]
    dropped: int

    def limit(self, pool: LivePool) -> LivePool:
        """The pool as this run may use it: what its caller limited the recorded run to holds here, too."""
        return pool.limit(self.origin.run_limits.renumber(self.ids))

    def observations(self) -> dict[int, Observation]:
        """The kept observations by new number, with no latency and no usage: nothing was called for them."""
        recorded = self.origin.observations()
        return {new: replace(recorded[old], latency_s=0.0, usage=NO_USAGE) for new, old in self.kept.items()}


@dataclass(frozen=True, slots=True)
class EditedRound:
    """The round under its old numbers, with the edits made. `touched` are the steps that an edit changed or that
    never ended, `earlier` the numbers of steps in earlier rounds."""

    steps: Mapping[int, Step]
    touched: frozenset[int]
    answer: JsonValue
    earlier: frozenset[int]


def vary(episode: Episode, number: int, edits: Sequence[AnyEdit], pool: LivePool) -> Variation:
    """Edit round `number` of an episode. Without edits it is the same plan, and nothing is called.

    Raises InvalidEdits with every problem at its step, before anything runs.
    """
    pool = pool.limit(episode.run_limits)
    done = next((done for done in episode.rounds if done.number == number), None)
    if done is None:
        raise InvalidEdits([("", f"this episode has no round {number}")])
    draft = _build_draft(episode, done, edits, pool)
    order, called = _sort_steps(draft), _find_called_steps(draft)
    ids = {k: k for k in (*draft.earlier, *draft.steps)}
    if edits:
        ids |= {k: new for new, k in enumerate(order, max(draft.earlier, default=0) + 1)}
    ended = episode.observations()
    before = [earlier for earlier in episode.rounds if earlier.number < number]
    edited = _build_turn(done, draft, order, ids) if edits else _keep_turn(done)
    return Variation(
        origin=episode,
        round=number,
        edits=tuple(edits),
        turns=(*map(_keep_turn, before), edited),
        kept={new: k for k, new in ids.items() if k not in called and k in ended},
        rerun=tuple(ids[k] for k in order if k in called),
        ids=ids,
        dropped=len(episode.rounds) - len(before) - 1,
    )


async def run_variation(
    variation: Variation,
    pool: LivePool,
    *,
    episode_id: str = "",
    task: TaskRef | None = None,
    sink: Sink | None = None,
    budget: Budget | None = None,
    resolve: Resolve | None = None,
    user: str = "",
    finalizer: Finalizer | Presenter | None = None,
    on_copies: Sequence[str] = (),
) -> Episode:
    """Run a variation to its end as an episode of its own, within what limited the recorded one. Never raises for what
    workers do. `on_copies`: what the pool has copies of (pool_registry/forks)."""
    pool = variation.limit(pool)
    limits = pool.pool.limits
    limits = limits.model_copy(update={"max_rounds": max(limits.max_rounds, len(variation.turns) + 1)})
    spec = EpisodeSpec(
        variation.origin.query,
        task=task,
        id=episode_id,
        what_if=WhatIf(variation.origin.id, variation.round, variation.edits, variation.kept, tuple(on_copies)),
        kept=variation.observations(),
        user=user,
        source=variation.origin.started.source if variation.origin.started else "",
        approved=True,
    )
    resolve = _resolve_as_origin(resolve, variation.origin) if resolve is not None else None
    orchestrator = EditedTurns(variation.turns)
    return await run_episode(
        spec, orchestrator, pool, limits=limits, sink=sink, budget=budget, resolve=resolve, finalizer=finalizer
    )


class EditedTurns(Orchestrator):
    """The orchestrator of a variation: it replays fixed turns."""

    name = NAME

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns

    async def turn(self, episode: Episode) -> Turn:
        number = len(episode.rounds)
        if number <= len(self._turns):
            return self._turns[number - 1]
        quotes = "its answer quotes a step that failed" if self._turns[-1].has_answer else "it has no answer"
        return Turn(error=f"{quotes}, and a what-if ends with the edited round; edit that", failed=True)


def _resolve_as_origin(resolve: Resolve, origin: Episode) -> Resolve:
    """Inner episodes that run "the same" orchestrator get the recorded episode's, not a person."""
    name = origin.started.orchestrator if origin.started else NAME
    return lambda requested, query, pool: resolve(name if requested == NAME else requested, query, pool)


# Planning


def _build_draft(episode: Episode, done: Round, edits: Sequence[AnyEdit], pool: LivePool) -> EditedRound:
    """The round with the edits made. Raises InvalidEdits with all that is wrong with them."""
    turn = done.turn or Turn()
    steps = {run.step.id: run.step for run in done.steps}
    unended = {run.step.id for run in done.steps if run.observation is None}
    answer = turn.answer if turn.error is None else None
    places = {k: run.round for k, run in episode.steps.items()}
    earlier = frozenset(k for k, place in places.items() if place < done.number)
    touched, gone, problems = set(unended), set[int](), Problems()
    seen: set[object] = set()
    for edit in edits:
        key = "answer" if isinstance(edit, SetAnswer) else edit.step
        problem = (
            f"there are two edits of {_name_target(key)}" if key in seen else _check_place(edit, places, done.number)
        )
        seen.add(key)
        if problem is not None:
            problems.append((str(key), problem))
            continue
        match edit:
            case SetAnswer():
                answer = edit.answer
            case RemoveStep():
                del steps[edit.step]
                gone.add(edit.step)
            case RunAgain():
                touched.add(edit.step)
            case ChangeStep() | AddStep():
                step = _build_step(edit, pool)
                if not _is_same(steps.get(edit.step), step):
                    steps[edit.step] = step
                    touched.add(edit.step)
    draft = EditedRound(steps, frozenset(touched - gone), answer, earlier)
    problems += _find_problems(draft, gone, pool) or _find_hidden(draft, episode, pool)
    if problems:
        raise InvalidEdits(problems)
    return draft


def _check_place(edit: AnyEdit, places: Mapping[int, int], number: int) -> str | None:
    """Why this edit names a step that it cannot be made on, or None."""
    if isinstance(edit, SetAnswer):
        return None
    place = places.get(edit.step)
    if isinstance(edit, AddStep):
        if edit.step < 1:
            return "a step's number is 1 or more"
        return None if place is None else f"there is a step {edit.step} already; give the new one another number"
    if place is None:
        return f"this episode has no step {edit.step}"
    return None if place == number else f"step {edit.step} belongs to round {place}; edit one round at a time"


def _name_target(key: object) -> str:
    return "the answer" if key == "answer" else f"step {key}"


def _build_step(edit: ChangeStep | AddStep, pool: LivePool) -> Step:
    """The step that an edit writes, as a parsed turn would hold it; the reason in it when it cannot be kept."""
    access = tuple(dict.fromkeys(edit.access))
    try:
        arguments = storable(dict(edit.arguments))
    except (ValueError, RecursionError) as error:
        return Step(edit.step, edit.worker, access=access).with_problem(f"arguments: {error}")
    assert isinstance(arguments, dict), "made from a dict"
    step = Step(edit.step, edit.worker, arguments, access)
    worker = pool.workers.get(edit.worker)
    return step if worker is None else with_shorthand(step, worker)


def _is_same(old: Step | None, new: Step) -> bool:
    return old is not None and (old.worker, old.arguments, old.access) == (new.worker, new.arguments, new.access)


def _find_problems(draft: EditedRound, gone: Collection[int], pool: LivePool) -> Problems:
    """What is wrong with the edited round, at its steps and its answer."""
    problems = Problems()
    ids = draft.earlier | draft.steps.keys()
    for k, step in draft.steps.items():
        missed = [other for other in step.access if other in gone]
        if missed and not (step.problem and k not in draft.touched):
            listed = ", ".join(map(str, missed))
            problems.append((str(k), f"it may see step {listed}, which is removed; take that out of its access"))
        elif k in draft.touched:
            problem = check_step(step, pool, ids - {k}).problem
            problems += [(str(k), problem)] if problem else []
    problems += _find_cycles(draft)
    try:
        unknown = references(storable(draft.answer)) - ids
    except (ValueError, RecursionError) as error:
        return [*problems, ("answer", f"the answer cannot be kept: {error}")]
    if unknown:
        listed = ", ".join(f"${k}" for k in sorted(unknown))
        problems.append(("answer", f"the answer quotes {listed}, but there is no such step; quote another"))
    return problems


def _find_hidden(draft: EditedRound, episode: Episode, pool: LivePool) -> Problems:
    """A problem at every step that would see what its worker may not see in this run."""
    workers = {k: episode.steps[k].step.worker for k in draft.earlier}
    steps = [step for step in draft.steps.values() if step.problem is None]
    checked = check_readers(steps, pool, workers)
    return [(str(step.id), step.problem) for step in checked if step.problem]


def _build_graph(draft: EditedRound) -> nx.DiGraph:
    """The round's steps, with an edge from each to those that wait for it. A step that was malformed when it was
    recorded waits for none: nothing can change how it ended."""
    graph = nx.DiGraph()
    graph.add_nodes_from(draft.steps)
    for k, step in draft.steps.items():
        if step.problem is None or k in draft.touched:
            graph.add_edges_from((other, k) for other in step.access if other in draft.steps and other != k)
    return graph


def _find_cycles(draft: EditedRound) -> Problems:
    """A problem at every step that would wait for itself."""
    problems = Problems()
    for circle in nx.strongly_connected_components(_build_graph(draft)):
        if len(circle) > 1:
            listed = ", ".join(map(str, sorted(circle)))
            problems += [(str(k), f"steps {listed} wait for each other; one must not see another") for k in circle]
    return problems


def _sort_steps(draft: EditedRound) -> list[int]:
    """The steps in a topological order, the old order among steps that do not depend on each other."""
    places = {k: place for place, k in enumerate(draft.steps)}
    return list(nx.lexicographical_topological_sort(_build_graph(draft), key=places.__getitem__))


def _find_called_steps(draft: EditedRound) -> set[int]:
    """The steps to call: the touched ones and all that depend on them, directly or not."""
    graph = _build_graph(draft)
    return set(draft.touched).union(*(nx.descendants(graph, k) for k in draft.touched))


# Turns


def _keep_turn(done: Round) -> Turn:
    """The turn of an unedited round, without its usage: no model is asked again."""
    return replace(done.turn or Turn(), usage=NO_USAGE)


def _build_turn(done: Round, draft: EditedRound, order: Sequence[int], ids: Mapping[int, int]) -> Turn:
    """The edited turn under the new numbers, with its text in dialect `plan`."""
    steps = tuple(renumber_step(draft.steps[k], ids) for k in order)
    old = done.turn or Turn()
    turn = Turn(steps, renumber_quotes(draft.answer, ids), shown=old.shown, recalled=old.recalled)
    return replace(turn, text=PlanDialect().format(turn, ()))
