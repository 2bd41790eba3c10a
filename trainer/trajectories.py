"""Demonstrations: what SFT imitates. Sampled from a teacher on the real pool, filtered as in ParaManager.

Several trajectories per task; those with the right answer stay, one that recovered from an error is
preferred, then one whose workers were used least so far, then the shortest; one per task is kept. Every
trajectory is an ordinary trace. Faults are injected on purpose, so that there is recovery to learn from:
a call that fails or times out, and, for the oracle, a slip of its own (bad arguments, a wrong worker).
A turn that made a mistake is context and never a target.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.dialects import dialect_named
from orchestrator.episode import Episode, Round
from orchestrator.plan import Step, Turn, references, substitute
from orchestrator.policies import make_orchestrator
from orchestrator.policies.base import written
from orchestrator.prompt import PromptStyle, observation_text, opening
from orchestrator.retrieval import choose, narrowed
from orchestrator.run import Orchestrator, Sink
from orchestrator.trace import TraceStore
from pool_registry.actions import Action, JsonValue, Observation, Status, as_text
from pool_registry.agents import Message
from pool_registry.live import LivePool, OnStart
from pool_registry.worker import Scope, Visible
from trainer.errors import TrainingFailed
from trainer.evaluate import attempt
from trainer.recipe import Demonstrations, Model
from trainer.tasks.task import Task
from trainer.transcript import ChatTokens, Transcript

# Failures that are not the orchestrator's doing: a turn that met one is still worth imitating.
NOT_ITS_FAULT = {"timeout", "unavailable", "dependency_failed", "connection", "rate_limited", "deadline"}
MAX_FILE_BYTES = 500_000_000
Progress = Callable[[int, int], None]


class Said(BaseModel):
    """One message of a demonstration; `learn` marks the turns that are targets."""

    model_config = ConfigDict(extra="forbid")

    role: str
    content: str
    learn: bool = False


class Demonstration(BaseModel):
    """A trajectory as a conversation: one line of a JSONL file, one row of a data set."""

    model_config = ConfigDict(extra="ignore")

    messages: list[Said]
    query: str = ""
    episode: str = ""
    source: str = ""

    def transcript(self, chat: ChatTokens) -> Transcript:
        """The tokens of this conversation. Raises TrainingFailed when the template cannot hold it."""
        turns = [index for index, said in enumerate(self.messages) if said.role == "assistant"]
        if not turns:
            raise TrainingFailed("demonstrations", "a demonstration without a turn of the assistant teaches nothing")
        before = [Message(said.role, said.content) for said in self.messages[: turns[0]]]
        if turns != list(range(turns[0], turns[-1] + 1, 2)):
            raise TrainingFailed(
                "demonstrations",
                "a demonstration is a turn of the assistant, one message for it, the next turn, and so on; "
                f"join what stands between two turns in the one that begins {self.messages[0].content[:60]!r}",
            )
        grown = Transcript(chat.prompt(before))
        for said in self.messages[turns[0] : turns[-1] + 1]:
            if said.role == "assistant":
                grown.add(chat.turn(said.content), said.learn)
            else:
                grown.add(chat.between(said.content), False)
        return grown


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure to inject. `status` is what the worker's first call ends with; for the teacher's own slips
    it is None and `slip` says which."""

    worker: str
    status: Status | None = None
    slip: str = ""


class FaultyPool(LivePool):
    """A pool in which the first call of one worker fails."""

    def __init__(self, pool: LivePool, fault: Fault) -> None:
        super().__init__(pool.pool, pool.workers)
        self.hash = pool.hash
        self._fault: Fault | None = fault if fault.status is not None else None

    async def call(
        self,
        action: Action,
        visible: tuple[Visible, ...] = (),
        scope: Scope | None = None,
        on_start: OnStart | None = None,
    ) -> Observation:
        fault = self._fault
        if fault is None or fault.status is None or action.worker != fault.worker:
            return await super().call(action, visible, scope, on_start)
        self._fault = None
        if on_start is not None:
            on_start()
        if fault.status is Status.TIMEOUT:
            return Observation.failed(fault.status, "timeout", f"{action.worker} did not answer in time")
        return Observation.failed(
            fault.status, "unavailable", f"{action.worker} is unavailable at the moment; try again"
        )


class RecoveringTeacher:
    """The oracle's plan, perhaps with a slip in its first turn, and repairs until every step is right."""

    name = "oracle"

    def __init__(self, reference: Turn, fault: Fault | None, workers: Sequence[str]) -> None:
        self._reference = reference
        self._slipped = _slip(reference, fault, workers) if fault is not None and fault.slip else None
        self._done: dict[int, int] = {}  # the reference's step -> the step that did it

    async def turn(self, episode: Episode) -> Turn:
        if len(episode.rounds) <= 1:
            first = self._slipped[0] if self._slipped else self._reference.steps
            self._done = {step.id: step.id for step in self._reference.steps}
            return written(first, as_text(self._reference.answer))
        return self._repair(episode)

    def _repair(self, episode: Episode) -> Turn:
        """The steps that failed and all that depends on them, once more."""
        seen = episode.observations()
        wrong = {self._slipped[1]} if self._slipped and len(episode.rounds) == 2 else set()
        again: set[int] = set()
        for step in self._reference.steps:
            failed = not seen[self._done[step.id]].ok
            if failed or step.id in wrong or again.intersection(step.access):
                again.add(step.id)
        fresh = episode.next_step_id
        ids = dict(self._done)
        for offset, k in enumerate(sorted(again)):
            ids[k] = fresh + offset
        steps = [_renumbered(step, ids) for step in self._reference.steps if step.id in again]
        self._done = ids
        return written(steps, as_text(_requoted(self._reference.answer, ids)))


def _slip(reference: Turn, fault: Fault, workers: Sequence[str]) -> tuple[tuple[Step, ...], int] | None:
    """The plan with one step spoilt, and which; None when it has no step of that worker."""
    at = next((step for step in reference.steps if step.worker == fault.worker), None)
    if at is None:
        return None
    others = [name for name in workers if name != at.worker]
    if fault.slip == "wrong_worker" and others:
        spoilt = replace(at, worker=others[at.id % len(others)])
    elif at.references:
        spoilt = replace(at, access=())
    else:
        spoilt = replace(at, arguments={})
    return tuple(spoilt if step is at else step for step in reference.steps), at.id


def _renumbered(step: Step, ids: Mapping[int, int]) -> Step:
    arguments = _requoted(step.arguments, ids)
    assert isinstance(arguments, dict)
    return Step(ids[step.id], step.worker, arguments, tuple(sorted(ids[k] for k in step.access)))


def _requoted(value: JsonValue, ids: Mapping[int, int]) -> JsonValue:
    """`value` with every `$k` pointing at the new ids; `$$` stays as it is."""
    if not references(value):
        return dict(value) if isinstance(value, Mapping) else value
    return _kept_dollars(value, {k: f"${new}" for k, new in ids.items()})


def _kept_dollars(value: JsonValue, quotes: Mapping[int, JsonValue]) -> JsonValue:
    if isinstance(value, str):
        return substitute(value.replace("$$", "$$$$"), quotes)
    if isinstance(value, Mapping):
        return {key: _kept_dollars(item, quotes) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_kept_dollars(item, quotes) for item in value]
    return value


class Collector:
    """Samples trajectories of a teacher and keeps one per task."""

    def __init__(
        self, settings: Demonstrations, model: Model, pool: LivePool, sink: Sink, seed: int, rounds: int | None = None
    ) -> None:
        self._settings = settings
        self._model = model
        self._pool = pool
        self._sink = sink
        self._random = Random(seed)  # noqa: S311
        self._rounds = rounds or pool.pool.limits.max_rounds
        self._used: Counter[str] = Counter()
        self.tried = 0
        self.correct = 0
        self.recovered = 0

    async def collect(
        self, tasks: Sequence[Task], progress: Progress = lambda done, total: None
    ) -> list[Demonstration]:
        """One demonstration for every task that the teacher solved at least once, in the tasks' order."""
        slots = asyncio.Semaphore(self._settings.concurrency)
        plans = [[self._draw_fault(task) for _ in range(self._settings.samples)] for task in tasks]
        kept: list[Demonstration | None] = [None] * len(tasks)
        done = 0

        async def one(index: int) -> None:
            nonlocal done
            async with slots:
                episodes = [await self._sample(tasks[index], fault) for fault in plans[index]]
            kept[index] = self._keep(episodes)
            done += 1
            progress(done, len(tasks))

        async with asyncio.TaskGroup() as group:
            for index in range(len(tasks)):
                group.create_task(one(index))
        return [each for each in kept if each is not None]

    def _draw_fault(self, task: Task) -> Fault | None:
        if self._random.random() >= self._settings.faults:
            return None
        named = task.workers if task.oracle_turn is not None else tuple(self._pool.workers)
        worker = self._random.choice(named)
        kinds = [Fault(worker, Status.TIMEOUT), Fault(worker, Status.EXEC_ERR)]
        if self._settings.teacher == "oracle":
            kinds += [Fault(worker, slip="bad_arguments"), Fault(worker, slip="wrong_worker")]
        return self._random.choice(kinds)

    async def _sample(self, task: Task, fault: Fault | None) -> Episode:
        pool = FaultyPool(self._pool, fault) if fault is not None else self._pool
        self.tried += 1
        return await attempt(task, self._teacher(task, fault), pool, self._sink)

    def _teacher(self, task: Task, fault: Fault | None) -> Orchestrator:
        if self._settings.teacher == "oracle" and task.oracle_turn is not None:
            return RecoveringTeacher(task.oracle_turn, fault, list(task.workers))
        return make_orchestrator(self._settings.teacher, self._pool, task.oracle_turn)

    def _keep(self, episodes: Sequence[Episode]) -> Demonstration | None:
        """ParaManager's filter: correct, then recovered, then seldom-used workers, then short."""
        correct = [episode for episode in episodes if episode.graded is not None and episode.graded.correct]
        if not correct:
            return None
        self.correct += 1
        best = min(correct, key=lambda each: (not has_recovered(each), self._familiarity(each), len(each.steps)))
        self.recovered += has_recovered(best)
        self._used.update(run.step.worker for run in best.steps.values())
        return demonstration(best, self._pool, self._model.dialect, self._model.prompt, self._rounds, "teacher")

    def _familiarity(self, episode: Episode) -> float:
        """How often its workers were used so far, on average."""
        workers = {run.step.worker for run in episode.steps.values()}
        return sum(self._used[name] for name in workers) / max(1, len(workers))


def has_recovered(episode: Episode) -> bool:
    """Whether a call failed and the episode still reached an answer."""
    failed = any(not observation.ok for observation in episode.observations().values())
    return failed and episode.ended is not None and episode.ended.outcome == "answered"


def demonstration(
    episode: Episode, pool: LivePool, dialect: str, style: PromptStyle, max_rounds: int, source: str
) -> Demonstration:
    """An episode as the conversation that a model in this dialect would have had."""
    written_as = dialect_named(dialect)
    called = {run.step.worker for run in episode.steps.values()}
    seen = narrowed(pool, choose(episode.query, pool, called)) if style == "full" else pool
    names = list(seen.workers)
    messages = [Said(role=m.role, content=m.content) for m in opening(episode.query, seen, written_as, style)]
    for done in episode.rounds:
        if done.turn is None:
            continue
        ill = done.turn.error is not None
        text = done.turn.text if ill else written_as.format(Turn(done.turn.steps, done.turn.answer), names)
        messages.append(Said(role="assistant", content=text, learn=not ill and not _mistaken(done)))
        messages.append(Said(role="user", content=observation_text(done, max_rounds - done.number)))
    return Demonstration(messages=messages[:-1], query=episode.query, episode=episode.id, source=source)


def _mistaken(done: Round) -> bool:
    """Whether a turn holds an error of its own, as far as its observations tell."""
    failures = [run.observation.error for run in done.steps if run.observation is not None and not run.observation.ok]
    return any(failure is not None and failure.code not in NOT_ITS_FAULT for failure in failures)


def starred_demonstrations(traces: TraceStore, pool: LivePool, model: Model, rounds: int) -> Iterator[Demonstration]:
    """The traces on this pool that a person starred. Those without an answer are left out."""
    for key in traces.starred(pool.pool.name):
        episode = traces.episode(key)
        if episode.ended is not None and episode.ended.outcome == "answered":
            yield demonstration(episode, pool, model.dialect, model.prompt, rounds, "starred")


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
    if any("learn" in said.model_fields_set for said in row.messages):
        return row
    marked = [said.model_copy(update={"learn": said.role == "assistant"}) for said in row.messages]
    return row.model_copy(update={"messages": marked})
