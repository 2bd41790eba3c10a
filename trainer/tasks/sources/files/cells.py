"""Writes the row of a table or data set as the fields of a task: its query, its answer and how that is graded."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from pool_registry.actions import JsonValue, as_text, clean_text
from trainer.tasks.sources.files.columns import Columns, normalize_name
from trainer.tasks.suite import SPLITS
from trainer.tasks.verifier import parse_whole_number

SPLIT_VALUES = {name: name for name in SPLITS} | {
    "training": "train",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "testing": "test",
    "eval": "test",
}
ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "chatbot": "assistant"}
NO_CHAT = "this is no chat, a list of messages with roles; choose columns of queries and answers"
SPEECH = ("content", "value", "parts")
_CHAT = re.compile(r'\s*\[\s*\{\s*"(?:role|from|content|value|parts)"')
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


def write_fields(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """The fields of a task's line. What a row lacks is left out, and what cannot be read stays as it is. Raises
    ValueError where a column of chats holds none."""
    if lacking := [name for name in columns.chats if not list_messages(row.get(name))]:
        raise ValueError(f"{lacking[0]}: {NO_CHAT}")
    fields: dict[str, Any] = {"query": read_query(row.get(columns.query))}
    context = read_query(row.get(columns.context))
    if isinstance(context, str) and context:
        fields["query"] = f"{fields['query']}\n\n{context}"
    answer, verifier = read_expected(row.get(columns.answer))
    if (choices := read_choices(row.get(columns.choices))) and isinstance(fields["query"], str):
        fields["query"] = "\n".join([fields["query"], "", *(f"{label}. {text}" for label, text in choices.items())])
        answer, verifier = read_choice(answer, choices)
    fields |= {"answer": answer, "verifier": verifier, "split": read_split(row.get(columns.split), columns.split)}
    return {name: value for name, value in fields.items() if value is not None}


def read_query(cell: object) -> object:
    """The query in a cell: its text, or the last thing that a user wrote in a chat."""
    content = _find_last(cell, "user")
    if isinstance(content, bool | int | float):
        return as_text(content)
    return clean_text(content).strip() if isinstance(content, str) else content


def read_expected(cell: object) -> tuple[JsonValue, str | None]:
    """The answer in a cell, None without one, and the verifier where its own form does not say how it is graded.

    Of a text, what follows `####` or is boxed, as a number where it is one; of a list, any item is right."""
    content = _find_last(_unwrap(cell), "assistant")
    if content is None or content == "" or (isinstance(content, float) and not math.isfinite(content)):
        return None, None
    if isinstance(content, list) and all(isinstance(item, str | int | float) for item in content):
        items = dict.fromkeys(item for item in content if not isinstance(item, str) or item.strip())
        return (list(items), "one_of") if items else (None, None)
    if not isinstance(content, str):
        answer: Any = content
        return answer, None
    text = clean_text(content)
    boxed = _BOXED.findall(text)
    end = read_answer(text.rpartition("####")[2] if "####" in text else boxed[-1] if boxed else text)
    return None if end == "" else end, None


def read_choices(cell: object) -> dict[str, str]:
    """The choices of a question by their labels, which are letters where none are written; none of anything else."""
    if isinstance(cell, Mapping) and isinstance(cell.get("text"), list):  # as ARC has them
        texts, labels = cell["text"], cell.get("label")
    else:
        texts, labels = cell, None
    if not isinstance(texts, list) or not 1 < len(texts) <= len(ascii_uppercase):
        return {}
    if not all(isinstance(text, str | int | float) for text in texts):
        return {}
    names = labels if isinstance(labels, list) and len(labels) == len(texts) else ascii_uppercase[: len(texts)]
    return {str(name): clean_text(str(text)) for name, text in zip(names, texts, strict=True)}


def read_choice(answer: JsonValue, choices: Mapping[str, str]) -> tuple[JsonValue, str | None]:
    """The choice that an answer names by its number from 0, its label or its text: the label or the text is right."""
    labels = list(choices)
    is_number = isinstance(answer, int) and "A" in choices and 0 <= answer < len(labels)
    named = [label for label, text in choices.items() if str(answer) in (label, text)]
    named = [labels[int(str(answer))]] if is_number else named
    return ([named[0], choices[named[0]]], "one_of") if named else (answer, None)


def read_answer(text: str) -> JsonValue:
    """What a person typed as an answer: a number where it is one, else the text."""
    stripped = text.strip()
    number = parse_whole_number(stripped)
    if number is None:
        return stripped
    return int(number) if number.is_integer() and "." not in stripped and abs(number) < 1e15 else number


def read_split(cell: object, column: str) -> object:
    """The split that a cell names. In another column than `split`, other words than those of splits say nothing."""
    if cell is None or not str(cell).strip():
        return None
    split = SPLIT_VALUES.get(str(cell).strip().casefold())
    return split or (cell if normalize_name(column) == "split" else None)


def _unwrap(cell: object) -> object:
    """The texts of SQuAD's {"text": [...]}, or of TriviaQA's {"value": ..., "aliases": [...]}."""
    if not isinstance(cell, Mapping):
        return cell
    if "text" in cell:
        return cell["text"]
    aliases = cell.get("aliases")
    return [cell["value"], *aliases] if "value" in cell and isinstance(aliases, list) else cell.get("value", cell)


def list_messages(cell: object) -> list[Mapping[str, Any]]:
    """The messages of a chat, in a list, in a list of one list or in the text of one; none of any other cell."""
    if isinstance(cell, str) and _CHAT.match(cell):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return []
    if isinstance(cell, list) and len(cell) == 1 and isinstance(cell[0], list):
        cell = cell[0]
    return cell if isinstance(cell, list) and all(isinstance(item, Mapping) for item in cell) else []


def _find_last(cell: object, role: str) -> object:
    """The last thing that a role wrote in a chat. Any other cell as it is."""
    messages = list_messages(cell)
    if not messages:
        return cell
    spoken = (item for item in reversed(messages) if _read_role(item) == role)
    return next((_join_parts(_find_speech(item)) for item in spoken), None)


def _find_speech(message: Mapping[str, Any]) -> object:
    return next((message[name] for name in SPEECH if message.get(name) is not None), None)


def _read_role(message: Mapping[str, Any]) -> str:
    role = str(message.get("role", message.get("from", ""))).casefold()
    return ROLES.get(role, role)


def _join_parts(content: object) -> object:
    """The text of a message, which may be in parts."""
    if not isinstance(content, list):
        return content
    return "\n".join(
        str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text") is not None
    )
