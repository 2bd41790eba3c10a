"""What a reader does about steps that failed: which of them are taken again, and with which workers.

A worker that was out of reach is replaced by another one that takes the same arguments. For a call that a worker
rejected other words are tried first (mend_calls.py), in a turn without an answer. Where the worker accepts none the
call was not meant for it: its need gets the next likely worker, and arguments that are written with that worker's card
in sight (policies/reader.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.engine.episode import Episode, StepRun
from orchestrator.plan import Step, Turn, renumber_step
from orchestrator.quotes import renumber_quotes
from orchestrator.reader.bind_needs import list_candidates
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need
from orchestrator.reader.refusal import refuse
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.repairs.mend_calls import choose_mended, plan_trials
from orchestrator.repairs.table import OWN_TURNS
from pool_registry.actions import Status
from pool_registry.calls.live_pool import LivePool, LiveWorker

# Codes of failures that say: not a call for me. A look-up that does not know a name raises, answers with an error of
# the tool or of the request, or finds no rows.
REJECTIONS = {
    "bad_arguments",
    "nothing_to_read",
    "not_found",
    "function_raised",
    "tool_error",
    "bad_request",
    "no_rows",
}


@dataclass(frozen=True, slots=True)
class RevisedNeed:
    """A need of a plan, the runs of its step so far, and the workers that it may still be tried with: the one that it
    has where its last call was not rejected. `likeness` is that of the likeliest worker of the pool."""

    need: Need
    runs: tuple[StepRun, ...]
    ranked: tuple[BoundNeed, ...]
    likeness: float


@dataclass(frozen=True, slots=True)
class Revision:
    """How the plan of an episode may go on: its needs in order, and the places, from 1 on, of the steps that are to be
    taken again."""

    needs: tuple[RevisedNeed, ...]
    repeated: tuple[int, ...]
    last: Turn
    mended: Mapping[int, int]  # of the steps of the last plan that were mended: their ids, and those of the new calls

    @property
    def is_mended(self) -> bool:
        """Whether every call that was rejected has one that was accepted in its place."""
        return bool(self.mended) and not any(is_rejected(item.runs[-1]) for item in self.needs)

    def go_on(self, first_id: int) -> Turn:
        """The last plan's turn again, without what has worked: the steps that were waiting for a mended one."""
        waiting = [item.runs[-1].step for place, item in enumerate(self.needs, start=1) if place in self.repeated]
        ids = {**self.mended, **{step.id: first_id + k for k, step in enumerate(waiting)}}
        steps = tuple(renumber_step(step, ids) for step in waiting)
        return Turn(steps, renumber_quotes(self.last.answer, ids), repairs=("other_words",))

    def end(self) -> Turn | None:
        """The turn that ends the episode where a need has no worker left; None where every one has."""
        unserved = next((item for item in self.needs if not item.ranked), None)
        if unserved is None:
            return None
        if self._is_unlike_all(unserved):
            return Turn(answer=refuse(unserved.need.text))
        return explain_failure(unserved.runs[0])

    def _is_unlike_all(self, unserved: RevisedNeed) -> bool:
        """Whether no worker can do what is needed: none is much like the need, no step with the same need has worked,
        and what was rejected is not the output of another step. Otherwise the likeliest worker was probably the right
        one, and the call was wrong."""
        served = any(item.need.text == unserved.need.text and _has_worked(item) for item in self.needs)
        return unserved.likeness < THRESHOLDS.is_sure and not served and not unserved.runs[0].step.references

    def renumber(self, turn: Turn, first_id: int) -> Turn:
        """Of a turn for all needs, whose steps count from 1, the steps that are taken again, with ids from `first_id`
        on. They and the answer quote the other steps by the ids that these have."""
        ids = {place: item.runs[-1].step.id for place, item in enumerate(self.needs, start=1)}
        ids |= {place: first_id + k for k, place in enumerate(self.repeated)}
        steps = tuple(renumber_step(step, ids) for step in turn.steps if step.id in self.repeated)
        return replace(turn, steps=steps, answer=renumber_quotes(turn.answer, ids))


def _has_worked(item: RevisedNeed) -> bool:
    return any(not _is_failed(run) for run in item.runs)


def plan_revision(episode: Episode, pool: LivePool, candidates: int) -> Revision | None:
    """How the plan of a reader's episode may go on after workers rejected calls, with at most `candidates` workers a
    need; None where no call was rejected, or a turn could not be read. Blocks: call it from a thread."""
    if any(done.turn.error for done in episode.rounds if done.turn is not None):
        return None
    plans = _list_plans(episode)
    if not plans or not any(is_rejected(run) for run in plans[-1].steps):
        return None
    places = list(range(1, len(plans[0].steps) + 1))
    runs: dict[int, list[StepRun]] = {place: [] for place in places}
    mended: dict[int, int] = {}
    for plan in plans:
        for place, run in zip(places, plan.steps, strict=False):  # a limit may have cut the last round
            runs[place].append(run)
        mended = _find_mended(plan.steps, plan.trials)
        for place, run in zip(places, plan.steps, strict=False):
            if run.step.id in mended:
                runs[place].append(episode.steps[mended[run.step.id]])
        places = [places[k] for k in _list_repeated(plan.steps) if plan.steps[k].step.id not in mended]
    place_of = {run.step.id: place for place, run in enumerate(plans[0].steps, start=1)}
    needs = tuple(_revise_need(tuple(items), place_of, pool, candidates) for items in runs.values())
    return Revision(needs, tuple(places), plans[-1].turn, mended)


def try_other_words(episode: Episode, pool: LivePool) -> Turn | None:
    """The turn that tries other words in place of the calls of the last turn that were rejected, side by side; None
    where none was, or nothing else can be tried before the rounds end. Blocks: call it from a thread."""
    plans = _list_plans(episode)
    if not plans or plans[-1].trials or len(episode.rounds) + 2 > pool.pool.limits.max_rounds:
        return None
    rejected = [run for run in plans[-1].steps if is_rejected(run)]
    room = (pool.pool.limits.max_steps - len(episode.steps)) // 2  # the rest is for what goes on afterwards
    steps = plan_trials(episode.query, rejected, episode.steps.values(), pool)[: max(room, 0)]
    if not steps:
        return None
    places = ", ".join(str(run.step.id) for run in rejected)
    ids = {step.id: episode.next_step_id + k for k, step in enumerate(steps)}
    text = f"Other words are tried for step {places}."
    renumbered = tuple(renumber_step(step, ids) for step in steps)
    return Turn(renumbered, text=text, trial=True, repairs=("other_words",))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A turn that plans for the answer, its steps, and those that tried other words for them."""

    turn: Turn
    steps: Sequence[StepRun]
    trials: Sequence[StepRun]


def _list_plans(episode: Episode) -> list[_Plan]:
    """The plans of an episode that may be mended: not those that the model has made of one by itself."""
    plans: list[_Plan] = []
    for done in episode.rounds:
        if done.turn is None or OWN_TURNS.intersection(done.turn.repairs):
            continue
        if plans and done.turn.trial:
            plans[-1] = replace(plans[-1], trials=done.steps)
        else:
            plans.append(_Plan(done.turn, done.steps, ()))
    return plans


def _find_mended(steps: Sequence[StepRun], trials: Sequence[StepRun]) -> dict[int, int]:
    """The ids of the rejected steps that have an accepted call, with the ids of those."""
    mended: dict[int, int] = {}
    for run in filter(is_rejected, steps):
        accepted = choose_mended(run, (trial for trial in trials if trial.step.id not in mended.values()))
        if accepted is not None:
            mended[run.step.id] = accepted.step.id
    return mended


def _revise_need(
    runs: tuple[StepRun, ...], place_of: Mapping[int, int], pool: LivePool, candidates: int
) -> RevisedNeed:
    first = runs[0].step
    need = Need(first.need, tuple(place_of[k] for k in first.access if k in place_of))
    if not is_rejected(runs[-1]):
        return RevisedNeed(need, runs, (BoundNeed(need, runs[-1].step.worker, 1.0),), 1.0)
    likely = list_candidates(need, list(pool.workers.values()))[:candidates]
    best = likely[0].likeness if likely else 0.0
    tried = {run.step.worker for run in runs}
    least = THRESHOLDS.share_of_likeliest * best
    ranked = tuple(item for item in likely if item.worker not in tried and item.likeness >= least)
    return RevisedNeed(need, runs, ranked, best)


def is_rejected(run: StepRun) -> bool:
    """Whether the worker said that the call is none for it."""
    seen = run.observation
    if seen is None or seen.ok or _is_unreached(run):
        return False
    return seen.status is Status.PARSE_ERR or (seen.error is not None and seen.error.code in REJECTIONS)


def _list_repeated(runs: Sequence[StepRun]) -> list[int]:
    """The places, from 0 on, of the steps that failed and of those that depend on one."""
    repeated: dict[int, int] = {}
    for place, run in enumerate(runs):
        if _is_failed(run) or any(k in repeated for k in run.step.access):
            repeated[run.step.id] = place
    return list(repeated.values())


def _is_failed(run: StepRun) -> bool:
    return run.observation is None or not run.observation.ok


def substitute_workers(episode: Episode, pool: LivePool, may_substitute: bool = True) -> Turn:
    """The failed steps of an episode's last plan again, each with the next best worker that takes its arguments, and
    every step that depends on one. An error turn where no other worker is left, or none may be asked. Blocks: call it
    from a thread."""
    last = next((done for done in reversed(episode.rounds) if done.turn is not None), None)
    if last is None or last.turn is None or not last.steps:
        return Turn(error="the reader has no second plan for a turn that could not be read", failed=True)
    repeated: dict[int, Step] = {}
    for run in (last.steps[place] for place in _list_repeated(last.steps)):
        step = run.step
        if _is_failed(run) and not _is_unreached(run):
            other = _choose_substitute(step, pool, _list_tried(episode, step)) if may_substitute else None
            if other is None:
                return explain_failure(run)
            step = replace(step, worker=other, problem=None)
        repeated[step.id] = step
    if not repeated:
        return Turn(error="nothing is left to try", failed=True)
    ids = {old: episode.next_step_id + place for place, old in enumerate(repeated)}
    steps = tuple(renumber_step(step, ids) for step in repeated.values())
    return Turn(steps, renumber_quotes(last.turn.answer, ids), repairs=("substitutes",))


def explain_failure(run: StepRun) -> Turn:
    """The turn that ends an episode: a step failed, and there is no other worker for it."""
    error = run.observation.error if run.observation is not None else None
    reason = f": {error.message}" if error is not None else ""
    return Turn(error=f"step {run.step.id} failed and no other worker can take it{reason}", failed=True)


def _is_unreached(run: StepRun) -> bool:
    """Whether a step failed only because one that it quotes did."""
    error = run.observation.error if run.observation is not None else None
    return error is not None and error.code == "dependency_failed"


def _list_tried(episode: Episode, step: Step) -> set[str]:
    """The workers that have had a step's need."""
    return {run.step.worker for run in episode.steps.values() if run.step.need == step.need}


def _choose_substitute(step: Step, pool: LivePool, tried: set[str]) -> str | None:
    """The most likely worker that has not been tried and accepts the arguments as they are."""
    workers = [worker for name, worker in pool.workers.items() if name not in tried]
    if not workers:
        return None
    described = step.need or pool.workers[step.worker].spec.description if step.worker in pool.workers else step.need
    for item in list_candidates(Need(described), workers):
        worker = pool.workers[item.worker]
        same = set(step.arguments) <= set(_names(worker))
        if same and (step.references or worker.argument_problem(step.arguments) is None):
            return item.worker
    return None


def _names(worker: LiveWorker) -> list[str]:
    properties = worker.parameters.get("properties")
    return list(properties) if isinstance(properties, dict) else []
