"""A data set of tool use as a pool of recorded tools, and tasks on it whose plans are the calls of the data set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from orchestrator.plan import fit_arguments
from orchestrator.traces.store import Store
from pool_registry.actions import JsonValue, as_text
from pool_registry.imports import FreeNames
from pool_registry.literal_keys import find_literal_keys
from pool_registry.pool import Pool, rename_pool
from pool_registry.schemas.argument_schema import without_wording
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.text import count_of
from pool_registry.worker import WorkerSpec
from pool_registry.workers.recorded import make_call_key, write_echo
from trainer.errors import UnusableTasks
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.sources.files.reader import ReadTasks, require_tasks
from trainer.tasks.sources.jsonl import FileLine, parse_line, refuse_repeated
from trainer.tasks.tool_use.conversation import Conversation, Tool, ToolCall
from trainer.tasks.tool_use.plans import PlannedCall, Request, check_request, list_requests, plan_task
from trainer.tasks.tool_use.reader import ToolData
from trainer.tasks.tool_use.tools import infer_tools

MAX_TOOLS = 1_000  # of a pool
MAX_REPLY_BYTES = 2_000_000  # of recorded answers in a pool: it is stored whole with every version
KIND = "recorded"


@dataclass(frozen=True, slots=True)
class RecordedPool:
    """What became of a data set: the pool, the lines that are its tasks or say why a record is none, and `notes`,
    sentences about the whole."""

    pool: Pool
    read: ReadTasks
    notes: tuple[str, ...]


@dataclass(slots=True)
class _RecordedTool:
    """A tool on its way to a worker, with the `outputs` of its calls by what equal calls have in common, and those
    calls that the worker replays. `worker` is "" until the tool is kept."""

    tool: Tool
    check: SchemaCheck
    worker: str = ""
    outputs: dict[str, JsonValue] = field(default_factory=dict)
    replies: list[tuple[Mapping[str, JsonValue], JsonValue]] = field(default_factory=list)
    echoes: bool = False

    def make_worker(self) -> WorkerSpec:
        rows: list[JsonValue] = [{"arguments": dict(call), "output": output} for call, output in self.replies]
        config: dict[str, JsonValue] = {
            "tool": self.tool.name,
            "parameters": dict(self.tool.parameters),
            "replies": rows,
            "echoes": self.echoes,
            **({"mended": list(self.tool.mended)} if self.tool.mended else {}),
        }
        return WorkerSpec(name=self.worker, kind=KIND, description=self.tool.description, config=config)


class _Recorder:
    """Turns conversations into tasks, one after another, and gathers the tools that they need."""

    def __init__(self, undeclared: Mapping[str, Tool], offers_own: bool) -> None:
        """With `offers_own` each task is run with the tools of its own conversation."""
        self._undeclared = undeclared
        self._offers_own = offers_own
        self._tools: dict[str, _RecordedTool] = {}
        self._names = FreeNames()
        self._bytes = 0
        self.contradictions = 0
        self.unrecorded = 0

    def make_workers(self) -> tuple[WorkerSpec, ...]:
        return tuple(tool.make_worker() for tool in self._tools.values())

    def record(self, conversation: Conversation, request: Request) -> str:
        """A request of a conversation as the line of a task file. Raises ValueError where it makes no task."""
        check_request(request)
        tools = {tool.name: self._open_tool(tool) for tool in conversation.tools}
        calls = conversation.calls if self._offers_own else list(chain(*request.rounds))
        for call in calls:
            if call.tool not in tools:
                tools[call.tool] = self._open_tool(self._undeclared[call.tool])
        fitted = [[_fit_call(call, tools[call.tool]) for call in calls] for calls in request.rounds]
        self._make_room(request, tools.values())
        for tool in tools.values():
            self._keep_tool(tool)
        rounds = [[self._keep_reply(call, tools[call.tool]) for call in calls] for calls in fitted]
        offered = tuple(tool.worker for name, tool in tools.items() if name not in request.lacks)
        line = plan_task(request, rounds)
        line = line.model_copy(update={"workers": offered}) if self._offers_own else line
        return line.model_dump_json(exclude_none=True)

    def _open_tool(self, tool: Tool) -> _RecordedTool:
        """The tool as it is kept already, else anew."""
        return self._tools.get(_get_key(tool)) or _RecordedTool(tool, _compile(json.dumps(tool.parameters)))

    def _keep_tool(self, tool: _RecordedTool) -> None:
        if not tool.worker:
            tool.worker = self._names.choose(tool.tool.name)
            self._tools[_get_key(tool.tool)] = tool

    def _make_room(self, request: Request, tools: Iterable[_RecordedTool]) -> None:
        """Raise ValueError where a pool cannot hold more."""
        if len(self._tools) + sum(not tool.worker for tool in tools) > MAX_TOOLS:
            raise ValueError(f"the pool has {MAX_TOOLS:,} tools already, as many as one can have; split the file")
        size = _count_bytes(request)
        if self._bytes + size > MAX_REPLY_BYTES:
            raise ValueError(f"the pool holds {MAX_REPLY_BYTES:,} bytes of recorded answers already; split the file")
        self._bytes += size

    def _keep_reply(self, call: ToolCall, tool: _RecordedTool) -> PlannedCall:
        """Remember what a call returns. Of two answers to equal calls the first one stays."""
        schema = tool.tool.parameters
        key = make_call_key(call.arguments, schema)
        output, is_recorded = call.output, call.output is not None and bool(as_text(call.output).strip())
        if not is_recorded:
            self.unrecorded += 1
            tool.echoes = True
            output = write_echo(tool.tool.name, call.arguments, schema)
        if is_recorded and key not in tool.outputs:
            tool.replies.append((call.arguments, output))
        kept = tool.outputs.setdefault(key, output)
        self.contradictions += is_recorded and kept != output
        for way in call.alternatives:
            if make_call_key(way, schema) not in tool.outputs:
                tool.outputs[make_call_key(way, schema)] = kept
                tool.replies.append((way, kept))
        return PlannedCall(tool.worker, call.arguments, kept, is_recorded)


def make_recorded_pool(data: ToolData, name: str) -> RecordedPool:
    """The pool and the tasks of a data set. Raises InvalidPool where `name` is no name for a pool."""
    pool = rename_pool(Pool(name="recorded"), name)
    conversations = [conversation for _, conversation in data.conversations]
    # Another conversation's tool may well serve what none of its own does.
    offers_own = any(turn.refuses for conversation in conversations for turn in conversation.turns)
    recorder = _Recorder(infer_tools(conversations), offers_own)
    lines = [FileLine(number, "", None, None, (problem,)) for number, problem in data.problems]
    for number, conversation in data.conversations:
        lines += _record_all(recorder, conversation, name, number)
    lines = list(refuse_repeated(sorted(lines, key=lambda line: line.number), data.unit))
    workers = recorder.make_workers()
    form = f"{data.form}: {count_of(len(data.conversations), 'conversation')} with {count_of(len(workers), 'tool')}"
    about = f"The tools of {data.name} ({data.format}); they replay the answers that were recorded there."
    made = pool.model_copy(update={"description": about, "workers": workers})
    return RecordedPool(made, ReadTasks(form, data.unit, lines), tuple(_write_notes(recorder)))


def _record_all(recorder: _Recorder, conversation: Conversation, name: str, number: int) -> Iterator[FileLine]:
    """A line for each request of a conversation: its task, or what is wrong with it."""
    requests = list_requests(conversation)
    if not requests:
        yield FileLine(number, "", None, None, ("no tool is called in it, so it makes no task",))
    for request in requests:
        try:
            yield parse_line(recorder.record(conversation, request), name, number)
        except ValueError as error:
            yield FileLine(number, "", None, None, (str(error),))


def keep_recorded_pool(store: Store, recorded: RecordedPool) -> int:
    """Store the pool under its name, which must be free, and its tasks as the pool's own; how many those are. Raises
    InvalidPool, and UnusableTasks where nothing is a task."""
    lines = require_tasks(recorded.read, "it")
    book = open_task_book(recorded.pool.name)
    if book.read() and recorded.pool.name not in store.pools.names():
        raise UnusableTasks(f"{book.file} holds tasks of an earlier pool of this name: choose another name")
    store.pools.create(recorded.pool)
    book.add(lines)
    return len(lines)


def _write_notes(recorder: _Recorder) -> Iterable[str]:
    if recorder.unrecorded:
        calls = count_of(recorder.unrecorded, "call")
        yield f'{calls} without a recorded answer: the tool returns the call itself, labelled "recorded call"'
    if recorder.contradictions:
        calls = count_of(recorder.contradictions, "call")
        yield f"{calls} with another answer than before: the first answer is replayed"


@lru_cache(maxsize=10_000)  # tools for which a pool has no room left are offered again and again
def _compile(schema: str) -> SchemaCheck:
    return SchemaCheck(json.loads(schema))


def _get_key(tool: Tool) -> str:
    """What two tools of one name that take the same arguments have in common."""
    return json.dumps([tool.name, without_wording(dict(tool.parameters))], sort_keys=True)


def _fit_call(call: ToolCall, tool: _RecordedTool) -> ToolCall:
    """A call whose arguments fit the tool's schema. Raises ValueError where they do not, or hold a key."""
    schema = tool.tool.parameters
    ways = [_fit_arguments(way, schema) for way in (call.arguments, *call.alternatives)]
    if not tool.check.accepts(ways[0]):
        raise ValueError(f"the call of {call.tool} does not fit its tool: {tool.check.explain(ways[0], 'arguments')}")
    held = {"config": {"replies": [{"arguments": way, "output": call.output} for way in ways]}}
    if keys := list(find_literal_keys(held)):
        raise ValueError(f"the call of {call.tool} holds what looks like a key ({keys[0][1]}); take it out")
    return ToolCall(call.tool, ways[0], call.output, call.id, tuple(way for way in ways[1:] if tool.check.accepts(way)))


def _fit_arguments(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Arguments in the types of the schema, without nulls, which stand for arguments that are left out."""
    return fit_arguments({name: value for name, value in arguments.items() if value is not None}, schema)


def _count_bytes(request: Request) -> int:
    calls = [call for calls in request.rounds for call in calls]
    return sum(len(as_text(call.output)) + len(as_text(dict(call.arguments))) for call in calls)
