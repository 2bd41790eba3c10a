"""Rollouts: whole episodes of the learning model on the real pool, in groups, none waiting for another.

Each episode is a coroutine of its own: it asks the generator for a turn, its workers run while others
generate, and it goes on the moment its own round has ended. There is no barrier over the batch. A group
whose answers are all right or all wrong is drawn anew, within a limit, on another task.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from orchestrator.binding.bind_turn import bind_turn
from orchestrator.binding.bind_workers import Binding, bind_workers
from orchestrator.binding.learnt_worker import describe_learnt_pool
from orchestrator.dialects.base import Dialect
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, Sink, run_episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.options.recursive import RecursivePolicy
from orchestrator.prompt import opening_messages, reply_messages
from orchestrator.prompt_styles import PROMPTS, PromptStyle
from orchestrator.reader.cards import PLAIN_LISTING, ListingFormat
from orchestrator.reader.conversation import open_conversation
from orchestrator.retrieval.choose_workers import choose_shown, narrow_pool
from pool_registry.actions import JsonValue, Usage
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.patience import RATE_LIMITED, Patience
from pool_registry.calls.spending import Spending, charge_calls_to
from pool_registry.language_models.completion import Message, strip_special
from pool_registry.load_once import LoadOnce
from pool_registry.pool import Limits
from trainer.errors import NotGraded, SpendCapReached, TrainingFailed
from trainer.evaluation.credit import measure_credit
from trainer.evaluation.grading import JudgeRefused, grade_answer
from trainer.evaluation.trials import grade_episode, make_inner_orchestrator
from trainer.learner.generator import Generator
from trainer.learner.token_transcript import ChatTokens, Transcript
from trainer.methods.grpo.advantages import compute_advantages
from trainer.methods.grpo.curriculum import Curriculum
from trainer.methods.grpo.learning_reader import LearningReader, WorkerScore
from trainer.methods.grpo.recursion import cut_at_draft, is_recursive, resolve_draft
from trainer.methods.grpo.rewards import (
    CREDIT,
    Sample,
    WeightedReward,
    compute_outcome_weight,
    make_sample,
    score_group,
    sum_weighted,
)
from trainer.methods.grpo.section import AdvantageScale, RecursionSettings
from trainer.methods.grpo.token_writer import TokenWriter
from trainer.results.statistics import mean
from trainer.tasks.task import Task
from trainer.tasks.task_pools import TaskPools, VaryTask, keep_task


@dataclass(slots=True)
class Rollout:
    """A finished episode with its tokens, its reward terms and what GRPO makes of them: the advantage is the one that
    it trains with, 0 when it does not."""

    sample: Sample
    transcript: Transcript
    logprobs: list[float] | None
    first: Sample | None = None  # as it would have ended without its recursive call
    first_reward: float = 0.0
    terms: dict[str, float] = field(default_factory=dict)
    reward: float = 0.0
    advantage: float = 0.0


@dataclass(slots=True)
class RolloutGroup:
    """Episodes on one task; in a recursive group each of them has a forced recursive call."""

    task: Task
    rollouts: list[Rollout]
    recursive: bool = False

    @property
    def equal(self) -> bool:
        """Whether all outcomes are the same: every answer right, or every answer wrong."""
        return len({rollout.sample.correct for rollout in self.rollouts}) == 1

    @property
    def success(self) -> float:
        return sum(rollout.sample.correct for rollout in self.rollouts) / len(self.rollouts)

    @property
    def rewards(self) -> list[float]:
        return [rollout.reward for rollout in self.rollouts]

    @property
    def trained_rewards(self) -> list[float]:
        """Rewards from which TRL, when it subtracts their mean and divides by nothing, gets back our advantages."""
        centre = mean(self.rewards)
        return [centre + rollout.advantage for rollout in self.rollouts]

    def row(self, step: int, kept: bool) -> dict[str, JsonValue]:
        """One line of rollouts.jsonl."""
        ref = self.task.ref
        return {
            "step": step,
            "query": self.task.query,
            "family": ref.family,
            "level": ref.level,
            "index": ref.index,
            "equal": self.equal,
            "kept": kept,
            "recursive": self.recursive,
            "episodes": [
                {
                    "id": rollout.sample.episode.id,
                    "correct": rollout.sample.correct,
                    "terms": {name: round(value, 4) for name, value in rollout.terms.items()},
                    "reward": round(rollout.reward, 4),
                    "advantage": round(rollout.advantage, 4),
                    "tokens": sum(rollout.transcript.mask),
                    **({"first_reward": round(rollout.first_reward, 4)} if rollout.first else {}),
                }
                for rollout in self.rollouts
            ],
        }


@dataclass(frozen=True, slots=True)
class EpisodeFormat:
    """How the model is put to work: dialect, prompt, the limits of tokens and rounds, and a reader's listing."""

    dialect: Dialect
    style: PromptStyle
    turn_tokens: int
    max_length: int
    max_rounds: int
    listing: ListingFormat = PLAIN_LISTING


async def select_fitting_tasks(
    tasks: Sequence[Task], pools: TaskPools, chat: ChatTokens, episode_format: EpisodeFormat
) -> list[Task]:
    """The tasks whose prompt leaves room for a whole turn: a reader's is two texts with cards between them, which the
    room for two texts holds. Raises TrainingFailed when none does."""
    room = episode_format.turn_tokens * PROMPTS[episode_format.style].texts

    async def measure(task: Task) -> int:
        async with pools.open(pools.vary(task)) as pool:
            opening = await asyncio.to_thread(_open_prompt, task.query, pool, episode_format)
            return len(chat.encode_prompt(opening, _list_tools(pool, episode_format))) + room

    sizes = [await measure(task) for task in tasks]
    kept = [task for task, tokens in zip(tasks, sizes, strict=True) if tokens <= episode_format.max_length]
    if not kept:
        raise TrainingFailed(
            "max_length",
            f"the shortest prompt and a turn need {min(sizes):,} tokens and an episode may have "
            f"{episode_format.max_length:,}: raise grpo.rollouts.max_length, or choose model.prompt: query",
        )
    return kept


def _open_prompt(query: str, pool: LivePool, episode_format: EpisodeFormat) -> list[Message]:
    """What the model sees before it writes anything."""
    if PROMPTS[episode_format.style].binds_needs:
        return open_conversation(query, pool.workers.values(), episode_format.listing)
    return opening_messages(query, pool, episode_format.dialect, episode_format.style)


def _list_tools(pool: LivePool, episode_format: EpisodeFormat) -> list[Mapping[str, JsonValue]] | None:
    """The functions that the chat template offers; None where the prompt does not show the pool."""
    return episode_format.dialect.tools(pool) if PROMPTS[episode_format.style].lists_workers else None


class LearningPolicy(Orchestrator):
    """The learning model as the orchestrator of one episode, in the styles `full` and `query`."""

    def __init__(
        self,
        name: str,
        pool: LivePool,
        writer: TokenWriter,
        chat: ChatTokens,
        episode_format: EpisodeFormat,
        binding: LoadOnce[Binding] | None = None,
    ) -> None:
        self.name, self.writer = name, writer
        self._binding = binding
        self._pool, self._chat, self._format = pool, chat, episode_format

    async def turn(self, episode: Episode) -> Turn:
        """Raises TrainingFailed when the backend does; the episode then ends as orchestrator_failed."""
        shown = await choose_shown(episode, self._pool) if PROMPTS[self._format.style].lists_workers else None
        pool = narrow_pool(self._pool, shown)
        self._read(episode, pool)
        context = len(self.writer.transcript.ids)
        if self.writer.room < 1:
            return Turn(error=f"the episode has {context:,} tokens; its limit is reached", failed=True)
        ids = await self.writer.write()
        text = self._chat.decode(ids)
        turn = await self._parse(text, episode.next_step_id, pool)
        return replace(turn, usage=Usage(context, len(ids)), shown=None if episode.shown else shown)

    async def _parse(self, text: str, first_id: int, pool: LivePool) -> Turn:
        if self._binding is None:
            return self._format.dialect.parse(text, first_id, list(pool.workers))
        await self._binding.ready()
        binding = self._binding()
        return bind_turn(self._format.dialect.parse(text, first_id, list(binding.vocabulary.workers)), binding)

    def _read(self, episode: Episode, pool: LivePool) -> None:
        """Put in front of the next turn what it answers to."""
        if not self.writer.transcript.prompt:
            opening = _open_prompt(episode.query, pool, self._format)
            self.writer.transcript.prompt = self._chat.encode_prompt(opening, _list_tools(pool, self._format))
            return
        last = episode.rounds[-2]  # the present round has been opened and is empty
        dialect = self._format.dialect
        replies = reply_messages(last, self._format.max_rounds - last.number, dialect, dialect.name_workers(pool))
        self.writer.read([replace(reply, content=strip_special(reply.content)) for reply in replies])


class RolloutEngine:
    """Runs groups of episodes for one training step after another."""

    def __init__(
        self,
        name: str,
        pool: LivePool,
        chat: ChatTokens,
        episode_format: EpisodeFormat,
        terms: dict[str, WeightedReward],
        sink: Sink,
        *,
        scale: AdvantageScale = "group",
        concurrency: int = 256,
        max_cost: float | None = None,
        vary: VaryTask = keep_task,
        seed: int = 0,
        score: WorkerScore | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._score = score
        self._seed, self._group_numbers = seed, count()
        self.name, self.pool, self.chat, self.episode_format = name, pool, chat, episode_format
        self.pools = TaskPools(pool, sink, vary)
        self.terms, self.sink, self.scale = terms, sink, scale
        self.recursion: RecursionSettings | None = None
        self._groups_before = 0
        self._patience = patience or Patience()
        self.spending = Spending(max_cost=max_cost, exact=True, patience=self._patience)
        self.limits = pool.pool.limits.model_copy(update={"max_rounds": episode_format.max_rounds})
        self._slots = asyncio.Semaphore(concurrency)

    def begin_step(
        self, groups_before: int, terms: dict[str, WeightedReward], vary: VaryTask, recursion: RecursionSettings | None
    ) -> None:
        """Set what holds for the next step: the terms with their present weights, how pools are drawn, and recursive
        calls. `groups_before` is how many groups the stage's earlier steps had."""
        self.terms, self.pools.vary, self.recursion = terms, vary, recursion
        self._groups_before, self._group_numbers = groups_before, count()

    async def run_step(
        self, curriculum: Curriculum, generator: Generator, groups: int, size: int, redraws: int, mixed_only: bool
    ) -> tuple[list[RolloutGroup], list[RolloutGroup]]:
        """Run enough groups for one step, with advantages; return also those left out because all outcomes were equal.

        All start at once. For every equal group another one starts, at most `redraws` in all; when even
        then too few are mixed, equal ones fill up the batch (DAPO, arXiv 2503.14476, draws until none is equal).
        """
        # Groups are looked at as they end, so that a slow one holds up nothing but the step's end; they are kept in the
        # order in which they were drawn, so that a step is the same whichever of them ends first.
        kinds = [self._is_recursive(number) for number in range(groups)]
        drawn = [self._start(curriculum.draw(), generator, size, kind) for kind in kinds]
        pending = set(drawn)
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for group in [running.result() for running in drawn if running in done]:
                    curriculum.learn(group.task, group.success)
                    if mixed_only and group.equal and redraws > 0:
                        redraws -= 1
                        drawn.append(self._start(curriculum.draw(), generator, size, group.recursive))
                        pending.add(drawn[-1])
        finally:
            for running in pending:
                running.cancel()
        # A redraw replaces one equal group by one of its kind, so at most `groups` are mixed, and of each kind as many
        # as were planned; equal ones fill what is missing.
        ordered = sorted((running.result() for running in drawn), key=lambda group: mixed_only and group.equal)
        recursive, plain = ([group for group in ordered if group.recursive is kind] for kind in (True, False))
        kept = recursive[: sum(kinds)] + plain[: groups - sum(kinds)]
        set_advantages(kept, self.scale, compute_outcome_weight(self.terms), mixed_only)
        return kept, [group for group in ordered if group not in kept]

    def _is_recursive(self, number: int) -> bool:
        return self.recursion is not None and is_recursive(self._groups_before + number, self.recursion.share)

    def _start(self, task: Task, generator: Generator, size: int, recursive: bool) -> asyncio.Task[RolloutGroup]:
        return asyncio.create_task(self.run_group(task, generator, size, recursive))

    async def run_group(self, task: Task, generator: Generator, size: int, recursive: bool = False) -> RolloutGroup:
        """Run `size` episodes on one task and one pool, with rewards; advantages come when the groups are chosen."""
        task, number = self.pools.vary(task), next(self._group_numbers)
        seeds = [make_seed(self._seed, self._groups_before, number, place) for place in range(size)]
        # A TaskGroup: the first failure of a backend cancels the other episodes of the group.
        async with self.pools.open(task) as pool, asyncio.TaskGroup() as running:
            binding = self._plan_binding(pool)
            started = [
                running.create_task(self.run_episode(task, generator, pool, binding, recursive, seed)) for seed in seeds
            ]
        group = RolloutGroup(task, [episode.result() for episode in started], recursive)
        scored = score_group([rollout.sample for rollout in group.rollouts], self.terms)
        for rollout, terms in zip(group.rollouts, scored, strict=True):
            rollout.terms, rollout.reward = terms, sum_weighted(terms, self.terms)
        self._weigh_first_answers(group)
        return group

    def _weigh_first_answers(self, group: RolloutGroup) -> None:
        """Make the rewards of a recursive group the weighted mean of those of both answers."""
        firsts = [rollout.first for rollout in group.rollouts if rollout.first is not None]
        if self.recursion is None or not firsts:
            return
        weight = self.recursion.first_weight
        for rollout, terms in zip(group.rollouts, score_group(firsts, self.terms), strict=True):
            rollout.first_reward = sum_weighted(terms, self.terms)
            rollout.reward = (weight * rollout.first_reward + rollout.reward) / (weight + 1)

    def _plan_binding(self, pool: LivePool) -> LoadOnce[Binding] | None:
        """The binding of a model that knows the job's pool by heart to the pool of a task; None where none is used."""
        if not PROMPTS[self.episode_format.style].knows_one_pool or pool.hash == self.pool.hash:
            return None
        return LoadOnce(lambda: bind_workers(describe_learnt_pool(self.pool), pool))

    async def run_episode(
        self,
        task: Task,
        generator: Generator,
        pool: LivePool | None = None,
        binding: LoadOnce[Binding] | None = None,
        recursive: bool = False,
        seed: int | None = None,
    ) -> Rollout:
        """One episode on `pool` (default: the job's), graded. A recursive one may have a round more, in which the model
        looks at its first answer. Without a `seed` it is any draw.

        Raises TrainingFailed when the backend fails or a worker takes no calls for too long, SpendCapReached when the
        spend cap is reached.
        """
        async with self._slots:
            self._check_cost()  # here, not before the queue: what ran meanwhile has cost something
            pool = pool or self.pool
            rounds = self.episode_format.max_rounds + recursive
            policy = self._make_policy(task.query, pool, generator, binding, rounds, seed)
            spec = EpisodeSpec(task.query, task=task.ref, source="training")
            guarded = _FailureGuard(policy)
            limits = self.limits.model_copy(update={"max_rounds": rounds})
            with charge_calls_to(self.spending):
                episode = await run_episode(
                    spec,
                    RecursivePolicy(guarded) if recursive else guarded,
                    pool,
                    limits=limits,
                    sink=self.sink,
                    resolve=make_inner_orchestrator,
                )
                if guarded.failure is not None:
                    raise guarded.failure
                first, sample = await self._judge(episode, task, limits, pool, recursive)
            if self.spending.lost:
                raise TrainingFailed(RATE_LIMITED, self._patience.explain_loss())
            if self.spending.refused:  # perhaps one of its own calls: nothing is learnt from half an episode
                self._check_cost()
        return Rollout(sample, policy.writer.transcript, policy.writer.logprobs, first)

    async def _judge(
        self, episode: Episode, task: Task, limits: Limits, pool: LivePool, recursive: bool
    ) -> tuple[Sample | None, Sample]:
        """The graded episode, behind the one that would have been without its recursive call. Raises SpendCapReached
        where the spend cap refuses a judge, and TrainingFailed where the task's verifier fails: nothing is learnt from
        an answer that nobody judged."""
        try:
            await grade_episode(episode, task, self.sink, self.pool)
            if episode.not_judged is not None:
                failure = JudgeRefused if episode.not_judged.place == "judge" else NotGraded
                raise failure(episode.not_judged.reason)
            first = await self._grade_first_answer(episode, task) if recursive else None
            sample = make_sample(task, episode, limits, self.episode_format.style)
            return first, await self._measure_credit(sample, pool)
        except JudgeRefused as refusal:
            raise SpendCapReached(self._describe_spending(f"an answer could not be judged: {refusal}; ")) from refusal
        except NotGraded as failure:
            raise TrainingFailed(
                "not_graded", f"{failure}. Mend that, then: python -m trainer jobs resume JOB"
            ) from failure

    async def _measure_credit(self, sample: Sample, pool: LivePool) -> Sample:
        """The sample with what the reward `credit` pays, where the recipe has that term and the answer is right."""
        if CREDIT not in self.terms or not sample.correct:
            return sample
        report = await measure_credit(sample.episode, sample.task, pool)
        return replace(sample, needed_share=report.needed_share)

    async def _grade_first_answer(self, episode: Episode, task: Task) -> Sample:
        """The episode as it would have ended without its recursive call."""
        answer = resolve_draft(episode)
        grade = await grade_answer(task, answer, self.pool)
        first = cut_at_draft(episode, answer, grade.correct, self.limits.max_rounds)
        return make_sample(task, first, self.limits, self.episode_format.style)

    def _make_policy(
        self,
        query: str,
        pool: LivePool,
        generator: Generator,
        binding: LoadOnce[Binding] | None,
        max_rounds: int,
        seed: int | None,
    ) -> LearningPolicy | LearningReader:
        """The learning model as the orchestrator of one episode."""
        learner = replace(self.episode_format, max_rounds=max_rounds)
        writer = TokenWriter(generator, self.chat, learner.turn_tokens, learner.max_length, seed)
        if PROMPTS[learner.style].binds_needs:
            return LearningReader(self.name, pool, writer, self.chat, learner.listing, query, self._score)
        return LearningPolicy(self.name, pool, writer, self.chat, learner, binding)

    async def close(self) -> None:
        """Close the pools that tasks brought with them."""
        await self.pools.close()

    @property
    def cost(self) -> float:
        """What the job has spent, in US dollars."""
        return self.spending.used.cost

    def _check_cost(self) -> None:
        if self.spending.refused or self.spending.find_reached() is not None:
            raise SpendCapReached(self._describe_spending())

    def _describe_spending(self, why: str = "") -> str:
        return (
            f"{why}its cap of ${self.spending.max_cost:g} is reached: ${self.cost:.4f} spent. What it had learnt at "
            "its last checkpoint is kept. To go on, raise grpo.rollouts.max_cost: jobs resume JOB --max-cost DOLLARS"
        )


def set_advantages(
    groups: Sequence[RolloutGroup], scale: AdvantageScale, outcome_weight: float, mixed_only: bool
) -> None:
    """Give every episode of a batch the advantage that it trains with.

    With `mixed_only` an all-wrong group, which then only fills up the batch, trains nothing: all its advantages are 0.
    An all-right one keeps the advantages of its tie-breakers, which compute_advantages bounds.
    """
    advantages = compute_advantages([group.rewards for group in groups], scale, outcome_weight)
    for group, values in zip(groups, advantages, strict=True):
        silent = mixed_only and group.success == 0
        for rollout, value in zip(group.rollouts, values, strict=True):
            rollout.advantage = 0.0 if silent else value


def make_seed(*numbers: int) -> int:
    """A seed by the job's seed, how many groups came before the step, and the places of the group and the episode: an
    episode is the same draw in whatever batches it is written."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()[:6])


class _FailureGuard(Orchestrator):
    """Lets a backend's failure end the job instead of being one episode's bad turn."""

    def __init__(self, policy: LearningPolicy | LearningReader) -> None:
        self.name = policy.name
        self._policy = policy
        self.failure: TrainingFailed | None = None

    async def turn(self, episode: Episode) -> Turn:
        try:
            return await self._policy.turn(episode)
        except TrainingFailed as error:
            self.failure = error
            raise
