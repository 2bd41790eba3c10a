"""A person's file of conversations as demonstrations: what Podium wrote itself, or data sets in the formats of
trainer/tasks/tool_use/formats.py.

A conversation that calls tools becomes what a model in the dialect `tool_calls` would have written on a pool of these
tools. A reader learns the plan that its calls form. One without tools is learnt as it stands.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from orchestrator.dialects import find_dialect
from orchestrator.dialects.base import Dialect
from orchestrator.engine.episode import Round, StepRun
from orchestrator.plan import Step, Turn
from orchestrator.prompt import opening_messages, reply_messages
from orchestrator.prompt_styles import PROMPTS
from orchestrator.quotes import escape, escape_value
from pool_registry.actions import JsonValue, Observation, Status
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.imports import FreeNames
from pool_registry.language_models.completion import Message
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.demonstrations.transcripts import (
    Demonstration,
    DemonstrationMessage,
    ReaderLesson,
    load_demonstrations,
    write_reader_lesson,
)
from trainer.errors import TrainingFailed, UnusableTasks
from trainer.recipe_sections import ModelSettings
from trainer.tasks.sources.files.rows import Row, Rows
from trainer.tasks.task import offer_workers
from trainer.tasks.tool_use.conversation import ChatTurn, Conversation, Tool
from trainer.tasks.tool_use.places import open_rows
from trainer.tasks.tool_use.reader import ToolData, read_conversations
from trainer.tasks.tool_use.recorded_pool import make_recorded_pool
from trainer.tasks.tool_use.tools import infer_tools

log = logging.getLogger(__name__)
SOURCE = "file"
LAST_TURNS = 99  # so many are left: no message says that a turn is the last


def load_lesson_file(path: Path, model: ModelSettings, lesson: ReaderLesson) -> list[Demonstration]:
    """The demonstrations of a file. Records of a data set that teach nothing are left out with a warning. Raises
    TrainingFailed where nothing is left, or saying what to set."""
    rows = None if path.is_dir() else _open_foreign(path)
    if rows is None:
        return load_demonstrations(path)
    data = read_conversations(list(rows.rows), path.name, rows)
    uses_tools = any(conversation.tools or conversation.calls for _, conversation in data.conversations)
    is_reader = PROMPTS[model.prompt].binds_needs
    if uses_tools and not is_reader and not find_dialect(model.dialect).calls_tools:
        raise TrainingFailed(
            "demonstrations",
            f"{path.name} holds calls of tools, and the dialect {model.dialect} does not write such: set model.dialect "
            "to tool_calls, or make the file a pool with tasks (podium tasks add --pool NEW --file FILE)",
        )
    return _take_lessons(data, _plan_lessons(data, lesson) if is_reader else _write_lessons(data, model))


def _take_lessons(data: ToolData, written: Iterable[tuple[int, Demonstration | str]]) -> list[Demonstration]:
    """The lessons among what was written of records by their numbers; what else there is are problems."""
    rows = list(written)
    lessons = [row for _, row in rows if isinstance(row, Demonstration)]
    problems = sorted([*data.problems, *((number, row) for number, row in rows if isinstance(row, str))])
    if problems:
        number, problem = problems[0]
        sentence = f"{data.name}, {data.unit} {number}: {problem}"
        if not lessons:
            raise TrainingFailed("demonstrations", f"nothing in the file is a lesson ({sentence})")
        log.warning("%s: left out, with %d more; %d remain", sentence, len(problems) - 1, len(lessons))
    return lessons


def _open_foreign(path: Path) -> Rows | None:
    """The rows of a file that is not Podium's own; None where `load_demonstrations` reads it, or says what is wrong."""
    try:
        rows = open_rows(str(path))
    except UnusableTasks:
        return None
    listed = [row for row in rows.rows if row.raw or row.record is not None or row.problem]
    records = [row for row in listed if row.record is not None]
    is_own = rows.form == "JSONL" and (len(records) < len(listed) or all(map(_is_own, records)))
    return None if is_own or not records else Rows(rows.form, listed, rows.columns, rows.unit)


def _is_own(row: Row) -> bool:
    try:
        Demonstration.model_validate(row.record)
    except ValidationError:
        return False
    return True


def _plan_lessons(data: ToolData, lesson: ReaderLesson) -> Iterator[tuple[int, Demonstration | str]]:
    """What a reader learns of each record, or why that is nothing."""
    recorded = make_recorded_pool(replace(data, problems=()), "lessons")
    whole = open_live_pool(recorded.pool)
    for line in recorded.read.lines:
        if line.task is None or line.task.oracle_turn is None:
            yield line.number, "; ".join(line.problems)
            continue
        own = offer_workers(line.task, recorded.pool).pool
        pool = whole if own is None else open_live_pool(own)
        row = write_reader_lesson(line.task.query, line.task.oracle_turn, pool, lesson, needs_alone=0.0, seed=0)
        yield line.number, row.model_copy(update={"source": SOURCE})


def _write_lessons(data: ToolData, model: ModelSettings) -> Iterator[tuple[int, Demonstration | str]]:
    """What a model in the dialect `tool_calls` learns of each record, or why that is nothing."""
    undeclared = infer_tools(conversation for _, conversation in data.conversations)
    for number, conversation in data.conversations:
        offered = {tool.name: tool for tool in conversation.tools}
        called = {call.tool: undeclared[call.tool] for call in conversation.calls if call.tool not in offered}
        try:
            yield number, write_lesson(conversation, [*offered.values(), *called.values()], model)
        except ValueError as error:
            yield number, str(error)


def write_lesson(conversation: Conversation, tools: Sequence[Tool], model: ModelSettings) -> Demonstration:
    """A conversation as a model in the dialect `tool_calls` would have had it. Raises ValueError where it teaches
    nothing."""
    if not tools:
        return _finish([_say(turn.speaker, turn.text, turn) for turn in conversation.turns], "")
    names = FreeNames()
    workers = {tool.name: _make_worker(tool, names.choose(tool.name)) for tool in tools}
    pool = open_live_pool(Pool(name="lesson", workers=tuple(workers.values())))
    writer = _LessonWriter(pool, find_dialect(model.dialect), {name: spec.name for name, spec in workers.items()})
    return writer.write(conversation, model)


class _LessonWriter:
    """Writes the turns of one conversation, whose calls are numbered from its first to its last."""

    def __init__(self, pool: LivePool, dialect: Dialect, workers: dict[str, str]) -> None:
        self._pool = pool
        self._dialect = dialect
        self._workers = workers
        self._steps = 0

    def write(self, conversation: Conversation, model: ModelSettings) -> Demonstration:
        lists_workers = PROMPTS[model.prompt].lists_workers
        (*rules, _) = opening_messages("", self._pool, self._dialect, model.prompt)
        messages = [DemonstrationMessage(role=rule.role, content=rule.content) for rule in rules]
        for number, turn in enumerate(conversation.turns, start=1):
            if turn.speaker == "system" and messages and messages[-1].role == "system":
                joined = "\n\n".join(filter(None, (messages[-1].content, turn.text)))
                messages[-1] = DemonstrationMessage(role="system", content=joined)
            elif turn.speaker != "assistant":
                if messages and messages[-1].role == "tool":
                    break  # the assistant was interrupted: a template cannot hold what follows
                messages.append(_say(turn.speaker, turn.text, turn))
            else:
                messages += self._write_turn(turn, number)
                if _lacks_outputs(turn):
                    break  # nor one whose calls returned nothing
        offered = self._dialect.tools(self._pool) if lists_workers else None
        return _finish(messages, json.dumps(offered, ensure_ascii=False) if offered else "")

    def _write_turn(self, turn: ChatTurn, number: int) -> list[DemonstrationMessage]:
        """A turn of the assistant, with the outputs of its calls."""
        if not turn.calls:
            return [_say("assistant", self._dialect.format(Turn(answer=escape(turn.text)), ()), turn)]
        first = self._steps + 1
        self._steps += len(turn.calls)
        steps = [
            Step(place, self._workers[call.tool], {k: escape_value(v) for k, v in call.arguments.items()})
            for place, call in enumerate(turn.calls, start=first)
        ]
        written = _say("assistant", self._dialect.format(Turn(tuple(steps)), ()), turn)
        if _lacks_outputs(turn):
            return [written]
        runs = [
            StepRun(step, number, observation=Observation(Status.OK, call.output))
            for step, call in zip(steps, turn.calls, strict=True)
        ]
        replies = reply_messages(Round(number, 0.0, Turn(tuple(steps)), steps=runs), LAST_TURNS, self._dialect)
        return [written, *map(_write_reply, replies)]


def _lacks_outputs(turn: ChatTurn) -> bool:
    """Whether a turn ends with what is to be called."""
    return bool(turn.calls) and all(call.output is None for call in turn.calls)


def _write_reply(message: Message) -> DemonstrationMessage:
    return DemonstrationMessage(role=message.role, content=message.content, tool_call_id=message.tool_call_id)


def _say(role: str, text: str, turn: ChatTurn) -> DemonstrationMessage:
    return DemonstrationMessage(role=role, content=text, learn=role == "assistant" and turn.learn)


def _finish(messages: list[DemonstrationMessage], tools: str) -> Demonstration:
    """The demonstration up to the assistant's last turn. Raises ValueError where it has none to learn."""
    while messages and messages[-1].role != "assistant":
        messages.pop()
    if not any(message.learn for message in messages):
        raise ValueError("no turn of the assistant in it is to be learnt")
    query = next((message.content for message in messages if message.role == "user"), "")
    return Demonstration(messages=messages, query=query, source=SOURCE, tools=tools)


def _make_worker(tool: Tool, name: str) -> WorkerSpec:
    config: dict[str, JsonValue] = {"tool": tool.name, "parameters": dict(tool.parameters)}
    return WorkerSpec(name=name, kind="recorded", description=tool.description, config=config)
