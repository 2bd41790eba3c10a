"""One episode for a trainer of another package: the model behind an address orchestrates, the pool's workers stay as
they are, and the answer is graded."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import NoSink
from orchestrator.errors import OrchestratorError
from orchestrator.policies.model import ModelPolicy
from pool_registry.actions import JsonValue, Usage
from pool_registry.calls.live_pool import LiveWorker, live_pool
from pool_registry.errors import WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    INSTRUCTION,
    Completion,
    CompletionOptions,
    Message,
    prompt_text,
)
from pool_registry.pool import Pool, import_pool
from pool_registry.wants import disarm_pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec
from trainer.evaluation.trials import run_task
from trainer.tasks.sources.jsonl import parse_line
from trainer.tasks.task import Task

POLICY_KEY = "PODIUM_POLICY_KEY"  # the environment variable that holds the key of the address
POLICY_TIMEOUT_S = 3600.0  # a trainer may hold a request while it updates the weights; it has a limit of its own


class RolloutFailed(OrchestratorError):
    """Raised when there is no result: a file cannot be read, the model that orchestrates cannot be asked, or nothing
    graded the answer. The message says what to do."""


class Rollout(BaseModel):
    """How an episode ended. Cost (US dollars) and tokens are those of the workers, not of the model that orchestrates.
    `calls` counts the steps by their state."""

    model_config = ConfigDict(frozen=True)

    answer: JsonValue
    correct: bool
    outcome: str
    reason: str | None
    rounds: int
    unreadable_turns: int
    calls: dict[str, int]
    worker_cost_usd: float
    worker_tokens: int


def load_pool(file: Path, *, trust: bool) -> tuple[Pool, dict[str, list[str]]]:
    """The pool of a file, and what those of its workers want that are off because nobody trusts it. Raises
    RolloutFailed and PoolError."""
    pool = import_pool(_read_text(file))
    if trust:
        return pool, {}
    disarmed, wants, _ = disarm_pool(pool)
    if wants and not disarmed.enabled:
        raise RolloutFailed(f"all workers of {file} want something ({', '.join(wants)}); look at it, then use --trust")
    return disarmed, wants


async def play_rollout(pool: Pool, task_file: Path, model: LiveWorker, dialect: str, turn_tokens: int) -> Rollout:
    """Play the task of a file on a pool. Raises RolloutFailed, PoolError and UnknownOrchestrator, which say what to
    do."""
    task = _read_task(task_file)
    async with live_pool(pool) as live:
        policy = ModelPolicy("model:policy", live, model, find_dialect(dialect), turn_tokens=turn_tokens)
        episode = await run_task(task, policy, live, NoSink())
    return _summarize(episode)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RolloutFailed(f"{path} cannot be read ({error}); export the environment again") from error


def _read_task(path: Path) -> Task:
    line = parse_line(_read_text(path), path.stem, 1)
    if line.task is None:
        raise RolloutFailed(f"{path} holds no task ({'; '.join(line.problems)}); export the environment again")
    return line.task


def open_address(base_url: str, model: str, turn_tokens: int) -> LiveWorker:
    """The model behind an OpenAI-compatible address; its key is in the variable `POLICY_KEY`."""
    config: dict[str, JsonValue] = {"base_url": base_url, "model": model, "api_key": f"env:{POLICY_KEY}"}
    spec = _describe_policy({**config, "max_tokens": turn_tokens})
    return LiveWorker(spec, open_worker(spec))


def open_exchange(requests: TextIO, replies: TextIO) -> LiveWorker:
    """A model that is asked by a line of JSON in `requests`, {"messages": [...]}, and answers by one in `replies`,
    {"text": "..."}."""
    spec = _describe_policy({})
    return LiveWorker(spec, _Exchange(spec, requests, replies))


class _Exchange(Worker[NoConfig]):
    """Asks whoever reads `requests`."""

    parameters = INSTRUCTION

    def __init__(self, spec: WorkerSpec, requests: TextIO, replies: TextIO) -> None:
        super().__init__(spec, NoConfig())
        self._requests, self._replies = requests, replies

    async def call(self, call: Call) -> Reply:  # noqa: ARG002
        raise WorkerFault("not_a_worker", "the model that orchestrates is called by no plan")

    async def complete(
        self,
        messages: Sequence[Message],
        options: CompletionOptions = DEFAULT_OPTIONS,  # noqa: ARG002
    ) -> Completion:
        document = {"messages": [message.write_structured() for message in messages]}
        self._requests.write(json.dumps(document, ensure_ascii=False) + "\n")
        self._requests.flush()
        line = await asyncio.to_thread(self._replies.readline)
        try:
            return Completion(_Turn.model_validate_json(line).text, prompt=prompt_text(messages))
        except ValidationError as error:
            raise WorkerFault("no_turn", 'a turn is a line such as {"text": "..."}') from error


class _Turn(BaseModel):
    text: str


def _describe_policy(config: dict[str, JsonValue]) -> WorkerSpec:
    about = "The model that is trained."
    return WorkerSpec(
        name="policy", kind="chat", description=about, config=config, timeout_s=POLICY_TIMEOUT_S, retries=0
    )


def _summarize(episode: Episode) -> Rollout:
    ended, graded = episode.ended, episode.graded
    assert ended is not None, "run_task plays to the end"
    if ended.outcome == "orchestrator_failed":
        raise RolloutFailed(f"the model that orchestrates cannot be asked: {ended.reason}")
    if graded is None:
        why = episode.not_judged.reason if episode.not_judged else "nothing graded it"
        raise RolloutFailed(f"the answer was not graded: {why}; raise the cap in the pool, or mend the grader")
    turns = [done.turn for done in episode.rounds if done.turn is not None]
    usages = [run.observation.usage for run in episode.steps.values() if run.observation is not None]
    usage = sum(usages, Usage())
    return Rollout(
        answer=episode.final_answer,
        correct=graded.correct,
        outcome=ended.outcome,
        reason=ended.reason,
        rounds=len(turns),
        unreadable_turns=sum(turn.error is not None for turn in turns),
        calls=dict(Counter(str(run.state) for run in episode.steps.values())),
        worker_cost_usd=usage.cost,
        worker_tokens=usage.tokens,
    )
