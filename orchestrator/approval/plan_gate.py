"""The gate between planning and running: judges each plan by the deployment mode of its run.

It says why a plan may not run by itself, with an estimate of what the plan takes. Who decides then, and how long that
takes, is not its business: the episode loop records the question and ends where nobody answers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.agreement import describe_agreement
from orchestrator.approval.records import AskReason, PlanEstimate, StepEstimate
from orchestrator.plan import OutOfDepth, Step, Turn
from pool_registry.calls.live_pool import LivePool
from pool_registry.deployment_mode import AUTONOMOUS, DeploymentMode

NEEDS_APPROVAL = "needs_approval"  # the error code of a call that nobody could be asked about


@dataclass(frozen=True, slots=True)
class CallAverages:
    """What a worker's recorded calls took: their number, the mean cost and the median latency."""

    calls: int
    cost: float
    seconds: float


FindAverages = Callable[[Collection[str]], Mapping[str, CallAverages]]


@dataclass(frozen=True, slots=True)
class PlanReview:
    """A plan that may not run by itself."""

    turn: Turn
    reasons: tuple[AskReason, ...]
    estimate: PlanEstimate


@dataclass(frozen=True, slots=True)
class PlanGate:
    """Judges the plans of one run. `find_averages` gives those of the workers that it is asked about, where there are
    recorded calls."""

    mode: DeploymentMode = AUTONOMOUS
    find_averages: FindAverages = lambda _: {}

    def review(
        self, turn: Turn, depth: OutOfDepth | None, pool: LivePool, *, doubted: bool = True
    ) -> PlanReview | None:
        """Why this turn's plan may not run by itself; None when it may. Without `doubted` its doubt does not count."""
        steps = [step for step in turn.steps if step.problem is None]
        if not steps or self.mode.name == "autonomous":
            return None
        estimate = estimate_plan(steps, pool, self.find_averages({step.worker for step in steps}))
        reasons = [*_find_effects(estimate)]
        if self.mode.name == "review":
            reasons.append(AskReason("review", "This run is reviewed: every plan waits for a person."))
        else:
            reasons += [*(_find_doubt(turn, depth, self.mode) if doubted else []), *_find_excess(estimate, self.mode)]
        return PlanReview(turn, tuple(reasons), estimate) if reasons else None


def list_effectful_workers(pool: LivePool) -> frozenset[str]:
    """The workers whose calls may have effects, and those that hand calls on to such a worker."""
    effectful = {name for name, live in pool.workers.items() if live.has_effects}
    helpers = {
        name: {live.spec.fallback, live.spec.summarizer, *live.worker.called_workers}
        for name, live in pool.workers.items()
    }
    while more := {name for name in helpers.keys() - effectful if helpers[name] & effectful}:
        effectful |= more
    return frozenset(effectful)


def find_unapproved(steps: Sequence[Step], pool: LivePool) -> frozenset[int]:
    """The steps that nobody may run where no person can be asked: their calls may have effects."""
    effectful = list_effectful_workers(pool)
    return frozenset(step.id for step in steps if step.worker in effectful)


def estimate_plan(steps: Sequence[Step], pool: LivePool, averages: Mapping[str, CallAverages]) -> PlanEstimate:
    """What these steps will take by the recorded calls of their workers."""
    effectful = list_effectful_workers(pool)
    estimates = [_estimate_step(step, pool, averages, effectful) for step in steps]
    ends: dict[int, float] = {}
    for step, estimate in zip(steps, estimates, strict=True):  # by ascending id: a topological order
        ends[step.id] = max((ends[k] for k in step.access if k in ends), default=0.0) + (estimate.seconds or 0.0)
    unknown = tuple(estimate.step for estimate in estimates if not estimate.calls)
    cost = sum(estimate.cost for estimate in estimates)
    return PlanEstimate(cost, max(ends.values(), default=0.0), tuple(estimates), unknown)


def _estimate_step(
    step: Step, pool: LivePool, averages: Mapping[str, CallAverages], effectful: Collection[str]
) -> StepEstimate:
    live, average = pool.workers.get(step.worker), averages.get(step.worker)
    price = live.spec.price_call if live is not None else 0.0
    return StepEstimate(
        step.id,
        step.worker,
        cost=max(price, average.cost) if average else price,
        seconds=average.seconds if average else None,
        calls=average.calls if average else 0,
        effects=step.worker in effectful,
    )


def _find_effects(estimate: PlanEstimate) -> list[AskReason]:
    steps = [f"{item.step} ({item.worker})" for item in estimate.steps if item.effects]
    if not steps:
        return []
    noun = "Step" if len(steps) == 1 else "Steps"
    return [AskReason("effects", f"{noun} {', '.join(steps)} may change something outside.")]


def _find_doubt(turn: Turn, depth: OutOfDepth | None, mode: DeploymentMode) -> list[AskReason]:
    if mode.max_doubt >= 1:
        return []
    doubts = measure_doubts(turn, depth)
    if not doubts:
        return [AskReason("doubt", "This orchestrator gives no figure of how sure it is of its plan.")]
    allowed = f"(doubt {{:.2f}}; this mode allows {mode.max_doubt:.2f})"
    return [
        AskReason("doubt", f"{sentence} {allowed.format(doubt)}.")
        for sentence, doubt in doubts.items()
        if doubt > mode.max_doubt
    ]


def measure_doubts(turn: Turn, depth: OutOfDepth | None) -> dict[str, float]:
    """The signs that a plan may be wrong, from 0 to 1: how foreign the words of its query are to the checkpoint, the
    share of drawn plans that do not agree with it, and the chance of its least likely worker to be wrong. None answers
    for another: plans may disagree on familiar words."""
    doubts: dict[str, float] = {}
    if depth is not None:
        doubts["The question's words, or this pool, are unlike what the orchestrator learnt"] = depth.probability
    if turn.vote is not None and turn.vote.sampled:
        doubts[describe_agreement(turn.vote).rstrip(".")] = 1 - turn.vote.votes / turn.vote.sampled
    chosen = [(step.choice.success, step) for step in turn.steps if step.choice is not None]
    if chosen:
        chance, step = min(chosen, key=lambda pair: pair[0])
        doubts[f"By its record {step.worker} (step {step.id}) is {chance:.2f} likely to be right"] = 1 - chance
    return doubts


def _find_excess(estimate: PlanEstimate, mode: DeploymentMode) -> list[AskReason]:
    reasons = []
    if mode.max_plan_cost is not None and estimate.cost > mode.max_plan_cost:
        sentence = f"The plan costs about ${estimate.cost:.4f}; ${mode.max_plan_cost:g} is allowed."
        reasons.append(AskReason("cost", sentence))
    if mode.max_plan_s is not None and estimate.seconds > mode.max_plan_s:
        sentence = f"The plan takes about {estimate.seconds:.1f} s; {mode.max_plan_s:g} s are allowed."
        reasons.append(AskReason("time", sentence))
    return reasons
