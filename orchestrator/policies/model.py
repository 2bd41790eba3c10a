"""`model`: a language model writes the turns, in any dialect: an agent of the pool, or a trained checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.binding.bind_turn import bind_turn
from orchestrator.binding.bind_workers import BY_DESCRIPTION, NONE, Binding, BindingSettings, bind_workers
from orchestrator.checkpoints import Checkpoint, find_checkpoint, open_checkpoint, spell_checkpoint
from orchestrator.dialects import find_dialect
from orchestrator.dialects.base import Dialect
from orchestrator.dialects.native_tools import NativeToolsDialect
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import AGENT_WITH_TOOLS, Orchestrator
from orchestrator.grammars.plan_grammar import drop_nulls
from orchestrator.grammars.turn_grammar import turn_grammar
from orchestrator.out_of_depth.gauge import DepthGauge, find_gauge
from orchestrator.plan import Turn
from orchestrator.policies.options.wrapper import unwrap
from orchestrator.policies.plan_writer import ask_model
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.prompt import build_messages
from orchestrator.prompt_styles import PROMPTS, PromptStyle
from orchestrator.reader.bind_needs import measure_likeness
from orchestrator.retrieval.choose_workers import choose_shown, narrow_pool
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.kinds import open_worker
from pool_registry.language_models.completion import CompletionOptions, Draw, LanguageModel, Message, seed_round
from pool_registry.load_once import LoadOnce
from pool_registry.worker import WorkerSpec

if TYPE_CHECKING:
    from orchestrator.failure_memory.lessons import FailureMemory  # brings the database along

TURN_TOKENS = 512  # a worker's own limit is made for its answers, which may be much shorter than a plan


class ModelPolicy(Orchestrator):
    """Asks `model` for every turn, directly and not as a step.

    `max_rounds` is how many turns it was trained to take: the prompt of the last one says so.
    `draw` says how turns are sampled; without it as the model is configured (a checkpoint: greedily).
    `constrained`: a turn is held to the grammar of its dialect on this pool, so that it can always be read.
    `memory` gives lessons of earlier failures; a model trained on the query alone (style `query`) gets none.
    `binding` says which workers the names that it learnt stand for, `gauge` whether a query is like those it learnt.
    `gives_up`: it is not asked again after two turns that could not be used (a checkpoint).
    """

    def __init__(
        self,
        name: str,
        pool: LivePool,
        model: LiveWorker,
        dialect: Dialect,
        style: PromptStyle = "full",
        turn_tokens: int = TURN_TOKENS,
        max_rounds: int | None = None,
        draw: Draw | None = None,
        constrained: bool = False,
        binding: LoadOnce[Binding] | None = None,
        gauge: DepthGauge | None = None,
        gives_up: bool = False,
    ) -> None:
        self.name = name
        self._pool = pool
        self._model = model
        self._dialect = dialect
        self._style = style
        self._turn_tokens = turn_tokens
        self.draw = draw
        self.constrained = constrained
        self._binding = binding
        self.gauge = gauge
        self.gives_up = gives_up
        self.memory: FailureMemory | None = None
        self.rounds_added = 0  # to those that it was trained to take (policies/options/recursive.py)
        allowed = pool.pool.limits.max_rounds
        self._max_rounds = min(allowed, max_rounds or allowed)

    @property
    def reads_memory(self) -> bool:
        return PROMPTS[self._style].lists_workers

    async def turn(self, episode: Episode) -> Turn:
        """Raises WorkerFault when the model cannot be asked; the episode then ends as orchestrator_failed."""
        return await self.draw_turn(episode, self.draw)

    async def draw_turn(self, episode: Episode, draw: Draw | None) -> Turn:
        """A turn drawn in this way. Raises WorkerFault."""
        shown = await choose_shown(episode, self._pool) if PROMPTS[self._style].lists_workers else None
        pool = narrow_pool(self._pool, shown)
        recalled = episode.recalled
        if recalled is None and self.memory is not None and self.reads_memory:
            recalled = await self.memory.recall(episode.query)
        messages = build_messages(episode, pool, self._dialect, self._rounds(episode), self._style, recalled)
        binding = await self._load_binding()
        vocabulary = pool if binding is None else binding.vocabulary
        depth = await self.gauge.measure(episode, _share_missing(binding)) if self.gauge else None
        grammar = turn_grammar(self._dialect.name, episode, vocabulary) if self.constrained else None
        tools = self._dialect.tools(vocabulary) if PROMPTS[self._style].lists_workers else None
        completion = await self._model.complete(
            messages, tools, self._turn_tokens, _with_round_seed(draw, episode), grammar
        )
        turn = self._dialect.parse(completion.text, episode.next_step_id, list(vocabulary.workers))
        turn = drop_nulls(turn, vocabulary) if grammar is not None else turn
        return replace(
            turn if binding is None else bind_turn(turn, binding),
            prompt=completion.prompt,
            usage=completion.usage,
            note=completion.note,
            shown=None if episode.shown else shown,
            recalled=None if episode.recalled else recalled,
            out_of_depth=depth,
        )

    async def _load_binding(self) -> Binding | None:
        if self._binding is None:
            return None
        await self._binding.ready()
        return self._binding()

    def _rounds(self, episode: Episode) -> int:
        """The number of turns that the episode can have, by its limits and by the model's training."""
        limits = episode.started.limits if episode.started else {}
        trained = self._max_rounds + self.rounds_added
        return min(trained, int(str(limits.get("max_rounds", trained))))


def _share_missing(binding: Binding | None) -> float:
    """The share of the learnt workers that stand for none at hand."""
    if binding is None or not binding.workers:
        return 0.0
    return sum(bound.worker == NONE for bound in binding.workers.values()) / len(binding.workers)


def _with_round_seed(draw: Draw | None, episode: Episode) -> Draw | None:
    """The draw of an episode's next turn: each round has a seed of its own."""
    if draw is None or draw.seed is None:
        return draw
    return replace(draw, seed=seed_round(draw.seed, len(episode.rounds)))


def with_memory(orchestrator: Orchestrator, memory: FailureMemory | None) -> Orchestrator:
    """`orchestrator` with this failure memory, if it reads one: a language model whose prompt holds the pool."""
    innermost = unwrap(orchestrator)
    if isinstance(innermost, ModelPolicy) and innermost.reads_memory:
        innermost.memory = memory
    return orchestrator


def agent_policy(pool: LivePool, agent: str, dialect: Dialect, draw: Draw | None = None) -> ModelPolicy:
    """An agent of the pool as its orchestrator."""
    return ModelPolicy(f"model:{agent}:{dialect.name}", pool, pool.workers[agent], dialect, draw=draw)


def agent_with_tools(pool: LivePool, agent: str, draw: Draw | None = None) -> ModelPolicy:
    """An agent under its own role, which calls the other workers by its endpoint's tool calling."""
    worker = pool.workers[agent]
    others = pool.narrow([name for name in pool.workers if name != agent])
    dialect = NativeToolsDialect(str(getattr(worker.worker.config, "role", "")))
    return ModelPolicy(f"{AGENT_WITH_TOOLS}:{agent}", others, worker, dialect, draw=draw)


def checkpoint_policy(
    pool: LivePool, name: str, draw: Draw | None = None, binding: LoadOnce[Binding] | None = None
) -> ModelPolicy | ReaderPolicy:
    """A trained checkpoint as the orchestrator. Raises UnknownOrchestrator when no checkpoint has this name."""
    folder, checkpoint = open_checkpoint(name)
    model = LiveWorker(spec := checkpoint_worker(folder, checkpoint), open_worker(spec))
    if checkpoint.is_reader:
        write = ask_model(model, checkpoint.turn_tokens)
        gauge = find_gauge(folder, lambda query: measure_likeness(query, list(pool.workers.values())))
        if checkpoint.listing.marks_agents and any(worker.role == "agent" for worker in pool.workers.values()):
            gauge = None  # an agent may be asked anything: its card and what was learnt say nothing of a question
        return ReaderPolicy(name, pool, write, draw, gauge=gauge, listing=checkpoint.listing)
    dialect = find_dialect(checkpoint.dialect)
    learnt = (checkpoint.prompt, checkpoint.turn_tokens, checkpoint.max_rounds)
    return ModelPolicy(
        name, pool, model, dialect, *learnt, draw=draw, constrained=True, binding=binding, gauge=find_gauge(folder),
        gives_up=True,
    )  # fmt: skip


def plan_binding(pool: LivePool, name: str, settings: BindingSettings = BY_DESCRIPTION) -> LoadOnce[Binding] | None:
    """The binding of a checkpoint to a pool, made when its first turn needs it. None where no binding is used: the
    model reads the pool in its prompt, nothing is known of the pool that it learnt, or the settings say so.

    Raises UnknownOrchestrator when no checkpoint has this name.
    """
    _, checkpoint = find_checkpoint(name)
    if not settings.enabled or not checkpoint.knows_one_pool or checkpoint.pool is None:
        return None
    learnt = checkpoint.pool.learnt
    if not learnt:
        return None
    return LoadOnce(lambda: bind_workers(learnt, pool, settings.read_edits(spell_checkpoint(name), pool.hash)))


async def warm_up(name: str) -> None:
    """Load a checkpoint's model by asking for one token, so that its first turn does not wait for PyTorch.

    Raises UnknownOrchestrator or WorkerFault.
    """
    model = open_worker(checkpoint_worker(*open_checkpoint(name)))
    assert isinstance(model, LanguageModel), "a checkpoint is a local model"
    await model.complete([Message("user", "?")], CompletionOptions(max_tokens=1))


def checkpoint_worker(folder: Path, checkpoint: Checkpoint) -> WorkerSpec:
    """The local model behind a checkpoint. It shares weights and batches with others on the same folder."""
    weights = (
        {"model": str(folder)} if checkpoint.kind == "full" else {"model": checkpoint.base, "adapter": str(folder)}
    )
    return WorkerSpec(
        name="orchestrator",
        kind="local_model",
        description="A trained orchestrator.",
        config={**weights, "role": "", "max_tokens": checkpoint.turn_tokens},
        max_concurrency=1024,
        timeout_s=600,
    )
