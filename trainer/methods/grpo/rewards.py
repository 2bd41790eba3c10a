"""Rewards: what an episode earns, term by term, each in [0, 1]; the recipe gives the weights.

REWARDS is the one place to register a reward: its name and a function(sample, group) that returns a number in [0, 1],
or None where it does not apply. Another package adds one by an entry point whose value is such a function:

    [project.entry-points."podium.rewards"]
    brevity = "podium_brevity:brevity"

A function in a person's own file needs no entry: a recipe names it as `FILE.py:FUNCTION`. Whether such a term pays
wrong answers is up to its function; the built-in ones that do not are marked as gated.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TypeAlias

from orchestrator.engine.episode import Episode, Round, StepRun
from orchestrator.layers import layer_sizes
from orchestrator.plan import Step
from orchestrator.prompt_styles import PROMPTS, PromptStyle
from orchestrator.quotes import references
from orchestrator.repairs.table import OWN_TURNS
from orchestrator.traces.episode_totals import EpisodeTotals, compute_totals, critical_path, latency
from pool_registry.actions import Status
from pool_registry.extensions.extension_table import ExtensionTable
from pool_registry.pool import Limits
from trainer.errors import InvalidRecipe, TrainingFailed
from trainer.methods.grpo.section import RewardSettings
from trainer.results.statistics import mean
from trainer.tasks.pool_conditions import compute_delay_s
from trainer.tasks.task import Task

CREDIT = "credit"  # the one term that needs reruns (grpo/rollouts.py)


@dataclass(frozen=True, slots=True)
class Sample:
    """One episode of a group, finished and graded. `style` is that of the model's prompt. `needed_share` is what
    `credit` pays, where it was measured."""

    task: Task
    episode: Episode
    limits: Limits
    totals: EpisodeTotals
    style: PromptStyle = "full"
    needed_share: float | None = None

    @property
    def correct(self) -> bool:
        return self.episode.graded is not None and self.episode.graded.correct

    @property
    def written_rounds(self) -> list[Round]:
        """The rounds whose turn the model wrote: of a reader's the first and its own second ones, none of code."""
        rounds = [done for done in self.episode.rounds if done.turn is not None]
        if not PROMPTS[self.style].binds_needs:
            return rounds
        return rounds[:1] + [done for done in rounds[1:] if done.turn and OWN_TURNS.intersection(done.turn.repairs)]


RewardFunction: TypeAlias = Callable[[Sample, Sequence[Sample]], float | None]


def make_sample(task: Task, episode: Episode, limits: Limits, style: PromptStyle = "full") -> Sample:
    return Sample(task, episode, limits, compute_totals(episode), style)


def accuracy_reward(sample: Sample, _group: Sequence[Sample]) -> float:
    """1 when the verifier accepts the answer, else 0 (both papers)."""
    return float(sample.correct)


def format_reward(sample: Sample, _group: Sequence[Sample]) -> float:
    """Share of turns that are turns, times share of steps that are well-formed calls; 0 without either.

    Conductor: nothing when the workflow does not parse. Of a reader: whether needs and arguments could be read.
    """
    turns = [done.turn for done in sample.written_rounds if done.turn is not None]
    valid = [turn for turn in turns if turn.error is None]
    if not valid:
        return 0.0  # an episode without a turn earns nothing, whatever its (absent) steps
    # Only calls that the model got wrong count (PARSE_ERR); a worker's failure or time-out is not its doing.
    runs = [run for done in sample.written_rounds for run in done.steps]
    statuses = [run.observation.status for run in runs if run.observation is not None]
    formed = sum(status is not Status.PARSE_ERR for status in statuses) / len(statuses) if statuses else 1.0
    return len(valid) / len(turns) * formed


def readable_reward(sample: Sample, _group: Sequence[Sample]) -> float:
    """1 when the last turn could be read, whatever became of its steps, else 0.

    Conductor (arXiv 2512.04388): with the weight 0.5 beside 0.5 for `accuracy`, a workflow that does not parse earns 0,
    one with a wrong answer 0.5, and one with the right answer 1.
    """
    turns = [done.turn for done in sample.written_rounds if done.turn is not None]
    return float(bool(turns) and turns[-1].error is None)


def binding_reward(sample: Sample, _group: Sequence[Sample]) -> float | None:
    """1 when a right answer's first plan calls the workers of the reference plan, each as often.

    Whether a reader's needs led to the workers that they were meant for. Does not apply to tasks without a reference
    plan.
    """
    plan = sample.task.oracle_turn
    if plan is None:
        return None
    first = next((done.turn for done in sample.written_rounds if done.turn is not None), None)
    if first is None or not sample.correct:  # also where no recipe gates it
        return 0.0
    return float(Counter(step.worker for step in first.steps) == Counter(step.worker for step in plan.steps))


def diversity_reward(sample: Sample, group: Sequence[Sample]) -> float:
    """How differently the episodes of a group use the workers.

    The mean distance of this episode's worker shares to those of the others (total variation). ParaManager rewards
    diversity.
    """
    own = compute_worker_shares([sample])
    # By identity, because two episodes of a group may be equal: each counts.
    others = [compute_worker_shares([other]) for other in group if other is not sample]
    if not others:
        return 0.0
    return sum(_total_variation(own, other) for other in others) / len(others)


def efficiency_reward(sample: Sample, group: Sequence[Sample]) -> float:
    """How near it comes to the best of its group and to the reference plan: few calls, a short critical path.

    The mean of best / own over the figures of _measure_effort. The best is the least of the group's right episodes,
    and for counts of calls also that of the reference plan. An episode without an answer gets 0. ParaManager rewards
    efficiency; the formula is this project's own.
    """
    if sample.episode.ended is None or sample.episode.ended.outcome != "answered":
        return 0.0
    cached = {run.step.worker for other in group for run in other.episode.steps.values() if _is_cached(run)}
    rivals = [other for other in group if other.correct] or [sample]
    best = [min(figures) for figures in zip(*(_measure_effort(rival, cached) for rival in rivals), strict=True)]
    plan = sample.task.oracle_turn
    if plan is not None:
        best[:2] = [min(best[0], 1 + len(layer_sizes(plan.steps))), min(best[1], 1 + len(plan.steps))]
    quotients: list[float] = [
        min(1.0, least / own) for least, own in zip(best, _measure_effort(sample, cached), strict=True)
    ]
    return mean(quotients)


def credit_reward(sample: Sample, _group: Sequence[Sample]) -> float | None:
    """Share of the steps and access-list entries without which a right answer is lost (trainer/evaluation/credit.py).

    Pays plans in which nothing is superfluous. Measured by running again, without it, what may see a step or an entry;
    does not apply where that cannot be measured.
    """
    return sample.needed_share if sample.correct else 0.0


def parallelism_reward(sample: Sample, _group: Sequence[Sample]) -> float:
    """Share of the steps that wait for no other: 1 - critical steps / steps; 0 without steps.

    Critical steps are the longest chain of each round, summed. Of the last round only the steps count that the answer
    quotes, and those that they may see: a needless step pays nothing.
    PARL (Kimi K2.5, arXiv 2602.02276) rewards starting subagents, with a weight that falls to 0 over training, and
    counts latency in critical steps. It publishes no formula for the term and does not gate it by the answer; this
    formula is this project's own.
    """
    rounds = [_list_read_steps(done) for done in sample.episode.rounds]
    count = sum(map(len, rounds))
    return 1 - sum(len(layer_sizes(steps)) for steps in rounds) / count if count else 0.0


def _list_read_steps(done: Round) -> list[Step]:
    """The steps whose values were read: all of a round that another turn followed, else those behind the answer."""
    steps = [run.step for run in done.steps]
    if done.turn is None or not done.turn.has_answer:
        return steps
    read = references(done.turn.answer)
    for step in reversed(steps):  # access lists name earlier steps only
        if step.id in read:
            read.update(step.access)
    return [step for step in steps if step.id in read]


def finish_reward(sample: Sample, _group: Sequence[Sample]) -> float:
    """Share of the steps that end without a failure; 0 without steps.

    PARL (Kimi K2.5, arXiv 2602.02276) pays the share of subagents that finish beside `parallelism`, against calls
    that are started for their number's sake. It anneals this weight too, and does not gate the term by the answer.
    """
    states = [run.state for run in sample.episode.steps.values()]
    return states.count(Status.OK) / len(states) if states else 0.0


def _measure_effort(sample: Sample, cached: Collection[str]) -> list[float]:
    """What an answered episode took; every figure is at least 1.

    Calls that waited for each other (turns, and the longest chain of steps below each), calls in all, 1 plus the time
    on the critical path in tenths of the deadline, and, where the pool caps costs, 1 plus the cost in tenths of that
    cap.
    """
    totals, limits = sample.totals, sample.limits
    effort = [totals.rounds + totals.depth, totals.rounds + totals.steps, 1 + 10 * _measure_time(sample, cached)]
    if limits.max_cost is not None:  # a pool without a cap has no scale to measure costs by
        effort.append(1 + 10 * totals.cost / limits.max_cost)
    return effort


def _measure_time(sample: Sample, cached: Collection[str]) -> float:
    """The workers' time on the critical path, as a share of the deadline.

    It counts in hundredths: two runs of one plan never take the same. Latencies that the recipe drew for workers are
    the same in every run and count exactly. A turn's time is left out: the generator writes many episodes at once. So
    is the time of workers in `cached`: some of their replies were recorded ones, which take none.
    """

    def measure(run: StepRun) -> float:
        return 0.0 if run.step.worker in cached else latency(run)

    deadline_s, drawn_s = sample.limits.deadline_s, compute_drawn_wait(sample)
    path_s = sum(measure(sample.episode.steps[k]) for k in critical_path(sample.episode, measure))
    return round(max(0.0, path_s - drawn_s) / deadline_s, 2) + drawn_s / deadline_s


def _is_cached(run: StepRun) -> bool:
    return run.observation is not None and run.observation.cached


def compute_drawn_wait(sample: Sample) -> float:
    """The seconds of latency that were drawn for the workers of the task's pool, on the longest chain of calls."""
    pool = sample.task.pool
    if pool is None:
        return 0.0
    delays = {spec.name: compute_delay_s(spec) for spec in pool.workers}

    def measure(run: StepRun) -> float:
        delay_s = delays.get(run.step.worker, 0.0)
        return delay_s if latency(run) > delay_s / 2 else 0.0  # a call that was refused at once did not wait

    return sum(measure(sample.episode.steps[step]) for step in critical_path(sample.episode, measure))


@dataclass(frozen=True, slots=True)
class RewardTerm:
    """A row of the table: the name that recipes use, and the function. A `gated` term counts for right answers only:
    a wrong one gets 0."""

    name: str
    function: RewardFunction
    gated: bool = False

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


@dataclass(frozen=True, slots=True)
class WeightedReward:
    """A term with its weight in a recipe, which may fall to 0 over the share `anneal` of the steps."""

    term: RewardTerm
    weight: float
    anneal: float | None = None


def _make_term(entry: EntryPoint, value: object) -> RewardTerm:
    if not callable(value):
        raise TypeError(f"{entry.value} is a {type(value).__name__}, not a function(sample, group)")
    return RewardTerm(entry.name, value)


REWARDS = ExtensionTable(
    "podium.rewards",
    RewardTerm,
    (
        RewardTerm("accuracy", accuracy_reward),
        RewardTerm("format", format_reward),
        RewardTerm("diversity", diversity_reward, gated=True),
        RewardTerm("efficiency", efficiency_reward, gated=True),
        RewardTerm("binding", binding_reward, gated=True),
        RewardTerm("parallelism", parallelism_reward, gated=True),
        RewardTerm("finish", finish_reward, gated=True),
        RewardTerm("readable", readable_reward),
        RewardTerm(CREDIT, credit_reward, gated=True),
    ),
    _make_term,
)


def explain_missing_reward(term: str) -> str:
    """Why a recipe cannot use this term, as far as that shows without running a file of its own; "" when it can."""
    file, _, function = term.rpartition(":")
    if term in REWARDS:
        return ""
    if term in REWARDS.problems:
        return f"the reward {term!r} cannot be used: {REWARDS.problems[term]}"
    if not file or not function:
        return f"there is no reward {term!r}; use one of {', '.join(REWARDS)}, or FILE.py:FUNCTION"
    return "" if Path(file).expanduser().is_file() else f"there is no Python file {file}"


def load_rewards(rewards: Sequence[RewardSettings]) -> dict[str, WeightedReward]:
    """Terms by name, with their weights. Raises InvalidRecipe for a term that does not exist or cannot be loaded."""
    terms: dict[str, WeightedReward] = {}
    for index, reward in enumerate(rewards):
        where = f"grpo.rewards.{index}.term"
        problem = explain_missing_reward(reward.term)
        if problem:
            raise InvalidRecipe([(where, problem)])
        term = REWARDS.get(reward.term) or _load_own(reward.term, where)
        if term.name in terms:
            raise InvalidRecipe([(where, f"{term.name} is there twice; add up the weights")])
        terms[term.name] = WeightedReward(term, reward.weight, reward.anneal)
    return terms


def anneal_rewards(terms: Mapping[str, WeightedReward], progress: float) -> dict[str, WeightedReward]:
    """The terms with their weights after this share of the steps: those that are annealed fall linearly to 0."""
    return {
        name: reward
        if reward.anneal is None
        else replace(reward, weight=reward.weight * max(0.0, 1 - progress / reward.anneal))
        for name, reward in terms.items()
    }


def score_group(group: Sequence[Sample], terms: Mapping[str, WeightedReward]) -> list[dict[str, float]]:
    """Each sample's terms, clipped to [0, 1]; gated terms are 0 for a wrong answer. A term that does not apply to a
    sample (None) is left out.

    Raises TrainingFailed when a reward function does, or returns something else than a number.
    """
    return [
        {
            name: min(1.0, max(0.0, value))  # so that a weight means the same for every term
            for name, reward in terms.items()
            if (value := _call_reward(reward.term, sample, group)) is not None
        }
        for sample in group
    ]


def sum_weighted(values: Mapping[str, float], terms: Mapping[str, WeightedReward]) -> float:
    """The weighted sum."""
    return sum(value * terms[name].weight for name, value in values.items())


def compute_outcome_weight(terms: Mapping[str, WeightedReward]) -> float:
    """What a right answer earns more than a wrong one: the weight of `accuracy`; without it, the largest reward."""
    accuracy = terms.get("accuracy")
    if accuracy is not None and accuracy.weight > 0:
        return accuracy.weight
    return sum(reward.weight for reward in terms.values())


def compute_worker_shares(
    samples: Sequence[Sample], name: Callable[[Sample, str], str] = lambda _, worker: worker
) -> dict[str, float]:
    """How the steps of these episodes are spread over the workers; sums to 1, or is empty without steps.

    Workers that get the same `name` count as one.
    """
    used = Counter(name(sample, run.step.worker) for sample in samples for run in sample.episode.steps.values())
    count = sum(used.values())
    return {worker: times / count for worker, times in used.items()}


def _total_variation(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Total variation of two distributions."""
    # Half of the L1 distance: 0 for equal shares, 1 where no worker is used by both.
    return sum(abs(one.get(name, 0.0) - other.get(name, 0.0)) for name in {*one, *other}) / 2


def _call_reward(term: RewardTerm, sample: Sample, group: Sequence[Sample]) -> float | None:
    try:
        value = term.function(sample, group)
        if value is None:
            return None
        return 0.0 if term.gated and not sample.correct else float(value)
    except Exception as error:
        name = term.name
        package = REWARDS.package_of(name) if name in REWARDS else ""
        source = f" of {package}" if package else ""
        raise TrainingFailed("reward", f"the reward {name}{source} failed: {type(error).__name__}: {error}") from error


def _load_own(reference: str, where: str) -> RewardTerm:
    """The function of a person's own file. `where` is the recipe's key, for errors."""
    file, _, name = reference.rpartition(":")
    path = Path(file).expanduser()
    spec = importlib.util.spec_from_file_location(f"podium_reward_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidRecipe([(where, f"{path} is no Python file")])
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidRecipe([(where, f"{path} cannot be loaded: {type(error).__name__}: {error}")]) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InvalidRecipe([(where, f"{path} has no function {name!r}")])
    return RewardTerm(name, function)
