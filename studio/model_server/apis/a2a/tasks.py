"""The tasks of A2A clients: one for each message. Its id is that of its run.

Messages of one context are a conversation. A task goes on when its client disconnects, and is kept until a thousand
newer ones have begun or the server ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from orchestrator.errors import EpisodeNotFound
from orchestrator.traces.store import TraceStore
from studio.frame.sse import KEEP_ALIVE_S
from studio.model_server.apis.a2a.versions import Document, Version
from studio.model_server.errors import ApiError, ApprovalRequired
from studio.model_server.served_episode import ServedEpisode

TaskState = Literal["working", "input-required", "completed", "canceled", "failed", "rejected"]
MAX_TASKS = 1000
STATES: Mapping[str, TaskState] = {"stopped": "canceled", "rejected": "rejected"}  # of ends without an answer


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """What a task does, with a sentence about it."""

    state: TaskState
    sentence: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


class Task:
    """One message and what comes of it. Only the event loop of the served model touches it."""

    def __init__(self, episode: ServedEpisode, context: str) -> None:
        self.id, self.context, self.user = episode.id, context, episode.user
        self.question = episode.request.question
        self.answer: str | None = None
        self.report: Document = {}
        self._episode = episode
        self._statuses = [TaskStatus("working")]
        self._changed = asyncio.Event()

    @property
    def status(self) -> TaskStatus:
        return self._statuses[-1]

    @property
    def is_recorded(self) -> bool:
        return self._episode.record

    def is_forgotten(self, traces: TraceStore) -> bool:
        """Whether its run was deleted meanwhile. Blocks: call it from a thread."""
        if not self.is_recorded or self.status.state == "working":
            return False
        try:
            traces.row(self.id)
        except EpisodeNotFound:
            return True
        return False

    async def run(self) -> None:
        """Follow the run to its end, or to where its plan waits for a person."""
        try:
            async for event in self._episode.events(KEEP_ALIVE_S):
                line = self._episode.progress.describe(event) if event is not None else None
                if line is not None:
                    self._note("working", line.rstrip())
            answer = await self._episode.answer()
            self.report = answer.report(self._episode.trace)
            if answer.text:
                self.end_with(answer.text)
            else:
                self._note("failed", "There is no answer within the limits.")
        except ApprovalRequired as required:
            self._note("input-required", str(required))
        except ApiError as error:
            self._note(STATES.get(error.code, "failed"), str(error))
        finally:
            self._episode.release()
            if self.status.state == "working":
                self._note("failed", "The server failed on this task; its log says why.")

    def end_with(self, answer: str) -> None:
        """The answer is there."""
        self.answer = answer
        self._note("completed")

    def end_without(self, outcome: str, sentence: str) -> None:
        """The run is over, and there is no answer."""
        self._note(STATES.get(outcome, "failed"), sentence)

    def stop(self) -> None:
        """Stop the run."""
        self._episode.stop()

    async def follow(self) -> AsyncIterator[TaskStatus | None]:
        """Yield what the task did so far and does until it ends or waits for a person; None where nothing is new for
        a while."""
        count = 0
        while True:
            for status in self._statuses[count:]:
                count += 1
                yield status
            if self.status.state != "working":
                return
            if count == len(self._statuses):
                try:
                    await asyncio.wait_for(self._changed.wait(), KEEP_ALIVE_S)
                except TimeoutError:
                    yield None

    def _note(self, state: TaskState, sentence: str = "") -> None:
        self._statuses.append(TaskStatus(state, sentence))
        self._changed.set()
        self._changed = asyncio.Event()

    def write(self, version: Version) -> Document:
        """The whole task."""
        answer = {"artifacts": [self.write_answer(version)]} if self.answer is not None else {}
        status = self.write_status(version, self.status)
        return {"id": self.id, "contextId": self.context, "status": status, **answer}

    def write_answer(self, version: Version) -> Document:
        """The answer, with what we say beside it in every API."""
        assert self.answer is not None, "asked for once it is there"
        parts = version.write_parts(self.answer)
        return {"artifactId": "answer", "name": "answer", "parts": parts, "metadata": {"podium": self.report}}

    def write_status(self, version: Version, status: TaskStatus) -> Document:
        """One status of the task."""
        at = status.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        document: Document = {"state": version.write_state(status.state), "timestamp": at}
        if status.sentence:
            message: Document = {
                "messageId": f"{self.id}-{self._statuses.index(status)}",
                "role": version.write_role("agent"),
                "parts": version.write_parts(status.sentence),
                "taskId": self.id,
                "contextId": self.context,
            }
            document["message"] = version.write_object("message", message)
        return document


class Tasks:
    """The tasks of one served model, by their ids, the oldest first."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def add(self, task: Task) -> None:
        """Keep a task in place of the oldest one."""
        self._tasks[task.id] = task
        while len(self._tasks) > MAX_TASKS:
            self._tasks.pop(next(iter(self._tasks)))

    def find(self, task_id: str, user: str) -> Task | None:
        """A task of this user."""
        task = self._tasks.get(task_id)
        return task if task is not None and task.user == user else None

    def forget(self, task: Task) -> None:
        """Keep nothing of a task."""
        self._tasks.pop(task.id, None)

    def list_context(self, context: str, user: str) -> list[Task]:
        """The tasks of a user's context, the oldest first."""
        return [task for task in self._tasks.values() if (task.context, task.user) == (context, user)]


def write_conversation(tasks: Sequence[Task]) -> list[Document]:
    """Questions with their answers, as messages of a chat."""
    return [
        {"role": role, "content": text}
        for task in tasks
        if task.answer is not None
        for role, text in (("user", task.question), ("assistant", task.answer))
    ]
