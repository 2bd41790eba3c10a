"""How people ask for calls of tools: one, the same tool several times, and several tools at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date
from random import Random

from podium_lessons.catalog.catalog_data import (
    CatalogTool,
    ParameterData,
    ToolAsks,
    draw_text,
    find_slots,
    load_texts,
)
from podium_lessons.catalog.paraphrase import word_parameter, word_tool
from podium_lessons.catalog.values import TEXT_RULES
from podium_lessons.everyday.questions.dates import write_day
from podium_lessons.worlds.rules.answer import join_texts
from pool_registry.actions import JsonValue

ASKS_SHARE = 0.7  # of the calls, where a text was written for their tool
LISTED_SHARE = 0.6  # of the several calls that differ in one argument, likewise: "the weather in Rome, Oslo and Bern"
OPTIONAL_SHARE = 0.35  # of the optional parameters that a request speaks of
NOUN_SHARE = 0.4  # of the requests name the thing, not the work
COMPARED_SHARE = 0.3  # of those for several calls
STORY_SHARE = 0.3  # of the requests for several calls that list them
ORDINALS = ("first", "second", "third", "fourth", "fifth")
NUMBERS = ("two", "three", "four", "five")
LARGEST_LIST = 3


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call: its arguments as JSON, and how the request writes each of them."""

    tool: CatalogTool
    arguments: Mapping[str, JsonValue]
    written: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RequestWriter:
    """Draws calls and writes requests for a split."""

    split: str
    random: Random
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)  # parameters that take a list, by tool
    asks: Mapping[str, ToolAsks] = field(default_factory=dict)  # by tool
    asks_share: float = ASKS_SHARE

    def draw_call(self, tool: CatalogTool, without: Sequence[str] = ()) -> ToolCall:
        """A call with all that is required, and some of the rest; `without` is drawn nothing for."""
        row = self.asks.get(tool.name)
        if row and not without and self.random.random() < self.asks_share:
            slots = find_slots(self.random.choice(row.asks))
            names = [name for name in tool.parameters if name in slots]
        else:
            names = [
                name
                for name, parameter in tool.parameters.items()
                if name not in without and (parameter.required or self.random.random() < OPTIONAL_SHARE)
            ]
        drawn = {name: self._draw_value(tool, name) for name in names}
        return _make_call(tool, drawn)

    def draw_others(self, call: ToolCall, amount: int) -> tuple[list[ToolCall], list[str]]:
        """More calls of the same tool that differ in one to all of the arguments, and which these are."""
        names = list(call.arguments)
        varied = self.random.sample(names, 1 if self.random.random() < 0.4 else self.random.randint(1, len(names)))
        varied = [name for name in names if name in varied]
        calls: list[ToolCall] = []
        seen = {name: {_fold(call.arguments[name])} for name in varied}
        for _ in range(amount):
            drawn = {name: self._draw_new(call.tool, name, seen[name]) for name in varied}
            new = _make_call(call.tool, drawn)
            other = ToolCall(call.tool, {**call.arguments, **new.arguments}, {**call.written, **new.written})
            if all(_fold(dict(other.arguments)) != _fold(dict(old.arguments)) for old in (call, *calls)):
                calls.append(other)
        return calls, varied

    def write(self, call: ToolCall) -> str:
        """A request for one call."""
        ask = self._draw_ask(call.tool, set(call.written))
        return ask.format(**call.written) if ask else self._ask(call.tool, self.write_conditions(call))

    def _draw_ask(self, tool: CatalogTool, names: Set[str]) -> str:
        """A text written for this tool that names just these parameters; "" where there is none."""
        row = self.asks.get(tool.name)
        asks = [ask for ask in row.asks if find_slots(ask) == names] if row else []
        return self.random.choice(asks) if asks and self.random.random() < self.asks_share else ""

    def write_several(self, calls: Sequence[ToolCall], varied: Sequence[str]) -> str:
        """A request for several calls of one tool, that differ in the `varied` arguments."""
        first, shared = calls[0], [name for name in calls[0].written if name not in varied]
        if len(varied) == 1 and varied[0] not in self.lists.get(first.tool.name, ()):
            ask = self._draw_ask(first.tool, set(first.written))
            if ask and self.random.random() < LISTED_SHARE:
                values = join_texts([call.written[varied[0]] for call in calls])
                return ask.format(**{**first.written, varied[0]: values})
        if len(varied) <= 2 and self.random.random() < 0.55:
            lists = [join_texts([call.written[name] for call in calls]) for name in varied]
            values = self._list_values(first.tool, varied, lists, len(calls), pick_arguments(first, shared))
            return self._ask(first.tool, values, several=True)
        if self.random.random() < STORY_SHARE:
            return self._tell_story(calls)
        if self.random.random() < 0.5:  # the first in full, of the others what differs
            rest = join_texts([self.write_conditions(pick_arguments(call, varied)) for call in calls[1:]])
            text = draw_text(load_texts().again, self.split, self.random)
            return text.format(first=self.write(first).rstrip("?. "), rest=rest)
        parts = [self.write_conditions(call) for call in calls]
        if self.random.random() < 0.4:
            rows = "\n".join(f"{place}. {part}" for place, part in enumerate(parts, start=1))
            return f"{self._ask(first.tool, '').rstrip('?. ')}:\n{rows}"
        return self._ask(first.tool, join_texts(parts), several=True)

    def join(self, requests: Sequence[str]) -> str:
        """Several requests as one."""
        joined = requests[0]
        for other in requests[1:]:
            text = draw_text(load_texts().also, self.split, self.random)
            small = lower_first(other)
            joined = text.format(one=end_sentence(joined), bare=joined.rstrip("?. "), other=other, small=small)
        return joined

    def write_conditions(self, call: ToolCall) -> str:
        """What a call is told: "with speed 80 and the road condition wet"."""
        if not call.written:
            return ""
        text = draw_text(load_texts().conditions, self.split, self.random)
        if "{values}" in text and not tells_places(call):
            text = "with {pairs}"
        style = draw_text(load_texts().pairs, self.split, self.random)
        labels = {name: self._label(call.tool, name) for name in call.written}
        pairs = [style.format(label=labels[name], value=value) for name, value in call.written.items()]
        clauses = [f"the {labels[name]} is {value}" for name, value in call.written.items()]
        return text.format(pairs=join_texts(pairs), clauses=join_texts(clauses), values=write_values(call))

    def _label(self, tool: CatalogTool, name: str) -> str:
        return word_parameter(name, tool.parameters[name], self.random)

    def _tell_story(self, calls: Sequence[ToolCall]) -> str:
        """Several calls as sentences: "The first has a speed of 80 and the road condition wet. The second ..." """
        style = draw_text(load_texts().pairs, self.split, self.random)
        ask = self._ask(calls[0].tool, f"for {NUMBERS[len(calls) - 2]} cases", several=True)
        sentences = []
        for ordinal, call in zip(ORDINALS, calls, strict=False):
            pairs = [style.format(label=self._label(call.tool, name), value=v) for name, v in call.written.items()]
            sentences.append(f"The {ordinal} has {join_texts(pairs)}.")
        return f"{end_sentence(ask)} {' '.join(sentences)}"

    def _list_values(
        self, tool: CatalogTool, varied: Sequence[str], lists: Sequence[str], amount: int, shared: ToolCall
    ) -> str:
        texts = [
            text
            for text in load_texts().several
            if ("{lists}" in text) == (len(varied) == 2) and (amount == 2 or "both" not in text)
        ]
        labelled = [f"{self._label(tool, name)} {values}" for name, values in zip(varied, lists, strict=True)]
        text = draw_text(texts, self.split, self.random)
        written = text.format(label=self._label(tool, varied[0]), list=lists[0], lists=" and ".join(labelled))
        rest = self.write_conditions(shared)
        if rest.startswith("("):
            return f"{written} {rest}"
        return f"{written}, all {rest}" if rest and self.random.random() < 0.5 else f"{written} {rest}".strip()

    def _ask(self, tool: CatalogTool, conditions: str, several: bool = False) -> str:
        wording = word_tool(tool, self.random)
        texts = load_texts().requests
        if wording.thing and self.random.random() < NOUN_SHARE:
            compares = several and self.random.random() < COMPARED_SHARE
            texts = load_texts().comparisons if compares else load_texts().noun_requests
        text = draw_text(texts, self.split, self.random)
        text = text.format(do=wording.do, object=wording.thing, **{"with": conditions})
        text = re.sub(r" +([.?,])", r"\1", text).strip()
        return text[:1].upper() + text[1:] if self.random.random() < 0.75 else text

    def _draw_new(self, tool: CatalogTool, name: str, seen: set[str]) -> tuple[JsonValue, str]:
        """A value that no other call has, where there is one."""
        for _ in range(20):
            drawn = self._draw_value(tool, name)
            if _fold(drawn[0]) not in seen:
                break
        seen.add(_fold(drawn[0]))
        return drawn

    def _draw_value(self, tool: CatalogTool, name: str) -> tuple[JsonValue, str]:
        """A value for a parameter, and how it is written."""
        parameter = tool.parameters[name]
        if name in self.lists.get(tool.name, ()):
            amount = self.random.randint(1, min(LARGEST_LIST, len(parameter.values)))
            values = self.random.sample(parameter.values, amount)
            return list(values), join_texts(values)
        value = draw_value(parameter, name, self.random)
        if parameter.rule == "date":
            return value, write_day(date.fromisoformat(str(value)), self.random)
        return value, str(value)


def _make_call(tool: CatalogTool, drawn: Mapping[str, tuple[JsonValue, str]]) -> ToolCall:
    """A call of values, each with how it is written."""
    values = {name: value for name, (value, _) in drawn.items()}
    return ToolCall(tool, values, {name: text for name, (_, text) in drawn.items()})


def pick_arguments(call: ToolCall, names: Sequence[str]) -> ToolCall:
    """A call with these arguments alone."""
    arguments = {name: value for name, value in call.arguments.items() if name in names}
    return ToolCall(call.tool, arguments, {name: text for name, text in call.written.items() if name in names})


def draw_value(parameter: ParameterData, name: str, random: Random) -> JsonValue:
    """Something that a parameter may hold."""
    if parameter.type == "string":
        return TEXT_RULES[parameter.rule](random) if parameter.rule else random.choice(parameter.values)
    if name.rsplit("_", 1)[-1] == "year":
        return random.randint(1960, 2026)
    low, high = parameter.range or (1.0, 300.0)
    number = random.uniform(low, max(high, low + 20))
    return round(number) if parameter.type == "integer" or random.random() < 0.6 else round(number, 1)


def tells_places(call: ToolCall) -> bool:
    """Whether values alone tell which parameter each of them is for: at most one of each kind."""
    kinds = [call.tool.parameters[name].rule or call.tool.parameters[name].type for name in call.written]
    texts = [name for name in call.written if call.tool.parameters[name].values]
    return len(call.written) <= 3 and (len(set(kinds)) == len(kinds) or len(texts) == len(kinds))


def write_values(call: ToolCall) -> str:
    """The values of a call, without their names."""
    parts = [
        f"in {text}" if place and call.tool.parameters[name].rule in ("place", "country") else text
        for place, (name, text) in enumerate(call.written.items())
    ]
    joined = parts[0]
    for part in parts[1:]:
        joined += f" {part}" if part.startswith("in ") else f", {part}"
    return joined


def lower_first(text: str) -> str:
    """A text that goes on a sentence; what begins with capitals keeps them."""
    return text if text[1:2].isupper() or re.match(r"I\b", text) else text[:1].lower() + text[1:]


def _fold(value: JsonValue) -> str:
    return str(value).casefold()


def end_sentence(text: str) -> str:
    """A text with an end."""
    return text if text[-1:] in ".?!" else f"{text}."
