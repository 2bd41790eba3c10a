"""Demonstrations: episodes as conversations for SFT to imitate; from runs, from stars, from files, and to files.

A turn that made a mistake of its own is context and never a target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode import Episode, Round
from orchestrator.plan import Turn
from orchestrator.prompt import PromptStyle, observation_text, opening_messages
from orchestrator.retrieval.choose_workers import narrow_pool, select_workers
from orchestrator.traces.store import TraceStore
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Message
from trainer.errors import TrainingFailed
from trainer.grpo.token_transcript import ChatTokens, Transcript
from trainer.recipe import ModelSettings

# Failures that are not the orchestrator's doing: a turn that met one is still worth imitating.
NOT_ITS_FAULT = {"timeout", "unavailable", "dependency_failed", "connection", "rate_limited", "deadline"}
MAX_FILE_BYTES = 500_000_000


class DemonstrationMessage(BaseModel):
    """One message of a demonstration; `learn` marks the turns that are targets."""

    model_config = ConfigDict(extra="forbid")

    role: str
    content: str
    learn: bool = False


class Demonstration(BaseModel):
    """A trajectory as a conversation: one line of a JSONL file, one row of a data set."""

    model_config = ConfigDict(extra="ignore")

    messages: list[DemonstrationMessage]
    query: str = ""
    episode: str = ""
    source: str = ""

    def transcript(self, chat: ChatTokens) -> Transcript:
        """The tokens of this conversation. Raises TrainingFailed when the template cannot hold it."""
        turns = [index for index, message in enumerate(self.messages) if message.role == "assistant"]
        if not turns:
            raise TrainingFailed("demonstrations", "a demonstration without a turn of the assistant teaches nothing")
        before = [Message(message.role, message.content) for message in self.messages[: turns[0]]]
        if turns != list(range(turns[0], turns[-1] + 1, 2)):
            raise TrainingFailed(
                "demonstrations",
                "a demonstration is a turn of the assistant, one message for it, the next turn, and so on; "
                f"join what stands between two turns in the one that begins {self.messages[0].content[:60]!r}",
            )
        grown = Transcript(chat.encode_prompt(before))
        for message in self.messages[turns[0] : turns[-1] + 1]:
            if message.role == "assistant":
                grown.add(chat.encode_turn(message.content), message.learn)
            else:
                grown.add(chat.encode_between(message.content), False)
        return grown


def make_demonstration(
    episode: Episode, pool: LivePool, dialect: str, style: PromptStyle, max_rounds: int, source: str
) -> Demonstration:
    """An episode as the conversation that a model in this dialect would have had."""
    written_as = find_dialect(dialect)
    called = {run.step.worker for run in episode.steps.values()}
    seen = narrow_pool(pool, select_workers(episode.query, pool, called)) if style == "full" else pool
    names = list(seen.workers)
    messages = [
        DemonstrationMessage(role=m.role, content=m.content)
        for m in opening_messages(episode.query, seen, written_as, style)
    ]
    for done in episode.rounds:
        if done.turn is None:
            continue
        ill = done.turn.error is not None
        text = done.turn.text if ill else written_as.format(Turn(done.turn.steps, done.turn.answer), names)
        messages.append(
            DemonstrationMessage(role="assistant", content=text, learn=not ill and not _has_own_error(done))
        )
        messages.append(DemonstrationMessage(role="user", content=observation_text(done, max_rounds - done.number)))
    return Demonstration(messages=messages[:-1], query=episode.query, episode=episode.id, source=source)


def _has_own_error(done: Round) -> bool:
    """Whether a turn holds an error of its own, as far as its observations tell."""
    failures = [run.observation.error for run in done.steps if run.observation is not None and not run.observation.ok]
    return any(failure is not None and failure.code not in NOT_ITS_FAULT for failure in failures)


def load_starred_demonstrations(
    traces: TraceStore, pool: LivePool, model: ModelSettings, rounds: int
) -> Iterator[Demonstration]:
    """The traces on this pool that a person starred. Those without an answer are left out."""
    for key in traces.list_starred(pool.pool.name):
        episode = traces.episode(key)
        if episode.ended is not None and episode.ended.outcome == "answered":
            yield make_demonstration(episode, pool, model.dialect, model.prompt, rounds, "starred")


def save_demonstrations(path: Path, rows: Sequence[Demonstration]) -> None:
    """Write JSONL, or, when the path has no suffix, a folder that `datasets.load_from_disk` opens."""
    if path.suffix:
        lines = (json.dumps(row.model_dump(), ensure_ascii=False) for row in rows)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return
    from datasets import Dataset

    Dataset.from_list([row.model_dump() for row in rows]).save_to_disk(str(path))


def load_demonstrations(path: Path) -> list[Demonstration]:
    """Read what `save_demonstrations` wrote, or any JSONL of `messages`. Raises TrainingFailed naming the line.

    Where `learn` does not occur, as in data sets from elsewhere, every turn of the assistant is a target.
    """
    if path.is_dir():
        from datasets import load_from_disk

        rows = [Demonstration.model_validate(row) for row in load_from_disk(str(path))]
    else:
        rows = list(_read_lines(path))
    return [_with_targets(row) for row in rows]


def _read_lines(path: Path) -> Iterator[Demonstration]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise TrainingFailed("demonstrations", f"{path.name} is larger than {MAX_FILE_BYTES:,} bytes; split it")
        lines = path.read_text(encoding="utf-8").split("\n")  # splitlines would split at U+2028 inside a string
    except (OSError, UnicodeDecodeError) as error:
        raise TrainingFailed("demonstrations", f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield Demonstration.model_validate_json(line)
        except ValidationError as error:
            what = error.errors(include_url=False)[0]
            where = ".".join(map(str, what["loc"]))
            raise TrainingFailed("demonstrations", f"{path.name}, line {number}: {where}: {what['msg']}") from error


def _with_targets(row: Demonstration) -> Demonstration:
    if any("learn" in message.model_fields_set for message in row.messages):
        return row
    marked = [message.model_copy(update={"learn": message.role == "assistant"}) for message in row.messages]
    return row.model_copy(update={"messages": marked})
