"""A conversation with calls of tools, whatever format it was written in, and how one is put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pool_registry.actions import JsonValue

Speaker = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a data set offers it; `parameters` is the JSON Schema of its arguments, and `mended` what was changed
    in it so that it can be used."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    mended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call with the `output` that was recorded, None where there is none. `alternatives` are other arguments that are
    as right; `id` is the data set's own."""

    tool: str
    arguments: Mapping[str, JsonValue]
    output: JsonValue = None
    id: str = ""
    alternatives: tuple[Mapping[str, JsonValue], ...] = ()


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """What one speaker says, with the calls of the assistant. `learn` is False where the data set says that this turn
    is not to be learnt. `refuses`: no tool that is offered serves the request, so that to say so is right; tools that
    the conversation has and that are not offered here are `lacks`. `problem`: why this turn makes no task."""

    speaker: Speaker
    text: str
    calls: tuple[ToolCall, ...] = ()
    learn: bool = True
    refuses: bool = False
    lacks: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns, and the tools that were offered."""

    tools: tuple[Tool, ...]
    turns: tuple[ChatTurn, ...]

    @property
    def calls(self) -> list[ToolCall]:
        return [call for turn in self.turns for call in turn.calls]


@dataclass(slots=True)
class ConversationWriter:
    """Puts turns together: what a speaker says in several messages is one turn, and outputs go to their calls."""

    turns: list[ChatTurn] = field(default_factory=list)

    def add(self, speaker: Speaker, text: str, calls: Sequence[ToolCall] = (), learn: bool = True) -> None:
        """Add a message. After outputs the assistant begins a new turn."""
        last = self.turns[-1] if self.turns else None
        if last is None or last.speaker != speaker or any(call.output is not None for call in last.calls):
            self.turns.append(ChatTurn(speaker, text, tuple(calls), learn))
            return
        joined = "\n".join(filter(None, (last.text, text)))
        self.turns[-1] = replace(last, text=joined, calls=(*last.calls, *calls), learn=last.learn and learn)

    def add_output(self, output: JsonValue, call_id: str = "", tool: str = "") -> None:
        """Give an output to its call: by id, else by the tool's name, else the first that has none. Raises ValueError
        where no call waits for one."""
        calls = self.turns[-1].calls if self.turns else ()
        waiting = [place for place, call in enumerate(calls) if call.output is None]
        if not waiting:
            raise ValueError("an output of a tool stands here, and no call before it waits for one")
        by_id = [place for place in waiting if call_id and calls[place].id == call_id]
        by_name = [place for place in waiting if tool and calls[place].tool == tool]
        place = (by_id or by_name or waiting)[0]
        changed = [replace(call, output=output) if k == place else call for k, call in enumerate(calls)]
        self.turns[-1] = replace(self.turns[-1], calls=tuple(changed))

    @property
    def waiting(self) -> int:
        """How many calls of the last turn have no output yet."""
        return sum(call.output is None for call in self.turns[-1].calls) if self.turns else 0
