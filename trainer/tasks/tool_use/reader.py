"""Reads data sets of tool use from files, from bytes and from the Hub: every record is a conversation or a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice
from typing import Any

from pool_registry.text import one_line, shorten
from trainer.tasks.sources.files.rows import Row, Rows
from trainer.tasks.tool_use.call_suites import join_answers
from trainer.tasks.tool_use.conversation import Conversation
from trainer.tasks.tool_use.formats import FORMATS, find_format

SAMPLE = 200  # records that show whether a file is of tool use
NO_FORMAT = f"this is of none of the formats {', '.join(row.name for row in FORMATS)}"


@dataclass(frozen=True, slots=True)
class ToolData:
    """What a data set holds: conversations and problems, each with the number of its record; `unit` is what the numbers
    count."""

    name: str
    format: str
    form: str
    unit: str
    conversations: tuple[tuple[int, Conversation], ...]
    problems: tuple[tuple[int, str], ...]


def read_tool_data(rows: Sequence[Rows], name: str) -> ToolData | None:
    """The conversations in the rows of one or several files; None where none of the first ones calls or offers tools.
    `name` is what sentences call the data set."""
    first = iter(rows[0].rows)
    sample = list(islice(first, SAMPLE))
    if not any(map(_calls_tools, sample)):
        return None
    listed = chain(sample, first, *(part.rows for part in rows[1:]))
    return read_conversations(list(listed), name, rows[0])


def read_conversations(listed: Sequence[Row], name: str, source: Rows) -> ToolData:
    """The conversations in rows of `source`, with tools or without."""
    problems = [(row.number, row.problem or NO_FORMAT) for row in listed if row.record is None]
    records = [(row.number, row.record) for row in listed if row.record is not None]
    conversations: list[tuple[int, Conversation]] = []
    names: Counter[str] = Counter()
    for number, record in join_answers(records):
        try:
            format_name, conversation = read_record(record)
        except ValueError as error:
            problems.append((number, str(error)))
            names.update(row.name for row in [find_format(record)] if row)
        else:
            names[format_name] += 1
            conversations.append((number, conversation))
    best = names.most_common(1)[0][0] if names else "none of the formats"
    form = f"Read as {best} in {source.form}"
    wholes = find_wholes(conversations)
    problems += [
        (number, f"it is the beginning of {source.unit} {whole}, which is read") for number, whole in wholes.items()
    ]
    read = tuple((number, conversation) for number, conversation in conversations if number not in wholes)
    return ToolData(name, best, form, source.unit, read, tuple(sorted(problems)))


def find_wholes(conversations: Sequence[tuple[int, Conversation]]) -> dict[int, int]:
    """Of each conversation that is the beginning of another one, by their numbers, that other one: ToolBench has a
    record for every step of a conversation, with all that came before."""
    digests = {number: _digest_turns(conversation) for number, conversation in conversations}
    wholes: dict[bytes, int] = {}
    for number in sorted(digests, key=lambda number: len(digests[number])):
        wholes |= dict.fromkeys(digests[number][:-1], number)
    return {number: wholes[turns[-1]] for number, turns in digests.items() if turns and turns[-1] in wholes}


def _digest_turns(conversation: Conversation) -> list[bytes]:
    """A digest of the conversation up to each of its turns: what is said, called and to be learnt, whatever the calls
    returned."""
    digest = sha256(repr([tool.name for tool in conversation.tools]).encode("utf-8", "replace"))
    digests = []
    for turn in conversation.turns:
        calls = [(call.tool, call.arguments) for call in turn.calls]
        digest.update(repr((turn.speaker, turn.text, turn.learn, calls)).encode("utf-8", "replace"))
        digests.append(digest.digest())
    return digests


def read_record(record: Mapping[str, Any]) -> tuple[str, Conversation]:
    """The name of a record's format, and its conversation. Raises ValueError with a sentence."""
    row = find_format(record)
    if row is None:
        keys = shorten(one_line(", ".join(map(str, record))), 80)
        raise ValueError(f"{NO_FORMAT}: its fields are {keys or 'none'}")
    try:
        return row.name, row.read(record)
    except RecursionError as error:
        raise ValueError("this is nested too deep") from error


def _calls_tools(row: Row) -> bool:
    record_format = find_format(row.record) if row.record is not None else None
    return record_format is not None and row.record is not None and record_format.calls_tools(row.record)
