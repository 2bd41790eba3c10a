"""Reads the calls in TypeScript whose results have names (`const agent = new Agent({...})`), as data. Nothing is run.

Literals, objects, lists and calls are read; every other expression is passed over. Names come out as Python has them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pool_registry.pasted.python_calls import NamedCall, Reference, Source

MAX_DEPTH = 40
MAX_FUNCTIONS = 100  # each is read to its own end
_DECLARATION = re.compile(r"^[ \t]*(?:export\s+)?(?:const|let|var)\s+(\w+)[^=\n]*=\s*(?![=>])", re.MULTILINE)
_FUNCTION = re.compile(r"^[ \t]*(?:export\s+)?const\s+(\w+)\s*=\s*\([^{;]{0,500}?=>\s*\{", re.MULTILINE)
_RETURN = re.compile(r"\breturn\s+(?=[`\"'])")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.{0,1000}?\*/)+", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\s*\.\s*[A-Za-z_$][\w$]*)*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TYPES = re.compile(r"<[\w\s,.|<>\[\]]{0,200}>(?=\s*\()")
_END = re.compile(r"[ \t]*(?:;|\n|as\b|satisfies\b|//|\}|\Z)")
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "", "\n": ""}


def read_typescript(text: str) -> Source:
    """The named calls and texts of a source; what cannot be read is left out."""
    calls, texts = dict[str, NamedCall](), dict[str, str]()
    place = 0
    while match := _DECLARATION.search(text, place):
        reader = _Reader(text, match.end())
        value, place = reader.read_statement(), reader.place  # what is read is not looked through again
        if isinstance(value, NamedCall):
            calls.setdefault(match[1], value)
        elif isinstance(value, str):
            texts.setdefault(match[1], value)
    for match in islice(_FUNCTION.finditer(text), MAX_FUNCTIONS):
        end = text.find("\n}", match.end())
        returned = _RETURN.search(text, match.end(), end if end > 0 else len(text))
        if returned and isinstance(value := _Reader(text, returned.end()).read_statement(), str):
            texts[match[1]] = value
    return Source(calls, texts, tuple(to_snake(name) for name in _CALLED.findall(text)))


def to_snake(name: str) -> str:
    """
    >>> to_snake("modelSettings")
    'model_settings'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() if name[:1].islower() else name


@dataclass(slots=True)
class _Reader:
    """Reads one value from a place in the text. At the end of the text everything reads as nothing."""

    text: str
    place: int
    depth: int = 0

    def read_statement(self) -> Any:
        """The value that a line's statement ends with; None where more of the expression follows on that line."""
        value = self._read_start(self._peek())
        return value if _END.match(self.text, self.place) else None

    def read_value(self) -> Any:
        """A literal, with {name} in place of what a template fills in; a Reference; a NamedCall; None for all else."""
        start = self._peek()
        self.depth += 1
        value = self._read_start(start) if self.depth <= MAX_DEPTH else None
        self.depth -= 1
        if self._peek() not in ("", ",", "}", "]", ")", ";") and not self._skip_rest():
            value = None
        return value

    def _read_start(self, start: str) -> Any:
        if start in "\"'`" and start:
            return self._read_text(start)
        if start == "{":
            return self._read_object()
        if start == "[":
            return self._read_items()
        if number := _NUMBER.match(self.text, self.place):
            self.place = number.end()
            return json.loads(number[0]) if not re.match(r"-?0\d", number[0]) else None
        return self._read_name()

    def _peek(self) -> str:
        if space := _SPACE.match(self.text, self.place):
            self.place = space.end()
        return self.text[self.place : self.place + 1]

    def _read_text(self, quote: str) -> str:
        parts, text = list[str](), self.text
        self.place += 1
        while self.place < len(text) and text[self.place] != quote:
            sign = text[self.place]
            if sign == "\\":
                escaped = text[self.place + 1 : self.place + 2]
                parts.append(_ESCAPES.get(escaped, escaped))
                self.place += 2
            elif quote == "`" and text.startswith("${", self.place) and self.depth < MAX_DEPTH:
                self.place += 1
                begin, self.depth = self.place, self.depth + 1
                self._skip_brackets()  # templates hold templates
                self.depth -= 1
                parts.append(text[begin : self.place])
            else:
                parts.append(sign)
                self.place += 1
        self.place += 1
        return "".join(parts)

    def _read_object(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        self.place += 1
        while (sign := self._peek()) not in ("}", ""):
            begin = self.place
            if name := _NAME.match(self.text, self.place):
                self.place, key = name.end(), name[0]
            else:
                key = self._read_text(sign) if sign in "\"'" else ""
            if self._peek() == ":":
                self.place += 1
                values[to_snake(key)] = self.read_value()
            elif key and self._peek() in (",", "}"):
                values[to_snake(key)] = Reference(key)
            self._pass_comma(begin)
        self.place += 1
        return values

    def _read_items(self) -> list[Any]:
        items: list[Any] = []
        self.place += 1
        while self._peek() not in ("]", ")", ""):
            begin = self.place
            items.append(self.read_value())
            self._pass_comma(begin)
        self.place += 1
        return items

    def _pass_comma(self, begin: int) -> None:
        """Go behind the comma after an item; by one sign at least, so that what cannot be read ends, too."""
        if self._peek() == ",":
            self.place += 1
        elif self.place == begin or self._peek() not in ("}", "]", ")", ""):
            self.place = max(self.place, begin + 1)

    def _read_name(self) -> Any:
        while (name := _NAME.match(self.text, self.place)) and name[0] in ("new", "await"):
            self.place = name.end()
            self._peek()
        if name is None:
            return None
        self.place = name.end()
        if types := _TYPES.match(self.text, self.place):
            self.place = types.end()
        path = re.sub(r"\s", "", name[0]).removesuffix(".create")
        if self._peek() == "(":
            arguments = next((item for item in self._read_items() if isinstance(item, dict)), {})
            return NamedCall(path.rpartition(".")[2], arguments)
        return _CONSTANTS[path] if path in _CONSTANTS else Reference(path)

    def _skip_rest(self) -> bool:
        """Go to the end of an expression. Whether only its type was left (`as const`)."""
        begin = self.place
        while (sign := self._peek()) not in ("", ",", "}", "]", ")", ";"):
            if sign in _CLOSING:
                self._skip_brackets()
            elif sign in "\"'`":
                self._read_text(sign)
            else:
                self.place += 1
        return bool(re.match(r"as\b|satisfies\b", self.text[begin : begin + 12]))

    def _skip_brackets(self) -> None:
        """Go behind the bracket that closes the one here."""
        closing = [_CLOSING[self.text[self.place]]]
        self.place += 1
        while closing and (sign := self._peek()):
            if sign in "\"'`":
                self._read_text(sign)
                continue
            if sign in _CLOSING and len(closing) <= MAX_DEPTH:
                closing.append(_CLOSING[sign])
            elif sign == closing[-1]:
                closing.pop()
            self.place += 1
