"""Files of questions and answers as people have them: each holds the same two tasks, in its own format and encoding."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

QUERY, ANSWER = "What is 6 x 7?", 42
TOWN, NAME = "Größte Stadt Österreichs?", "Wien"
_ROWS = [(QUERY, str(ANSWER)), (TOWN, NAME)]


@dataclass(frozen=True, slots=True)
class GivenFile:
    """The bytes of a file, and a part of the sentence that says how it was read."""

    content: bytes
    form: str


def _write_lines(*objects: object) -> bytes:
    return "\n".join(json.dumps(value) for value in objects).encode()


def _write_table(delimiter: str, *names: str) -> str:
    return "".join(delimiter.join(row) + "\n" for row in [names, *_ROWS])


def _write_chat(query: str, answer: str, role: str, words: str, people: tuple[str, str]) -> list[dict[str, str]]:
    return [{role: "system", words: "Be brief."}] + [
        {role: person, words: text} for person, text in zip(people, (query, answer), strict=True)
    ]


_CHATS = [_write_chat(*row, "role", "content", ("user", "assistant")) for row in _ROWS]
_SHARED = [_write_chat(*row, "from", "value", ("human", "gpt")) for row in _ROWS]
_PARTS = [
    [{"role": "user", "content": [{"type": "text", "text": query}]}, {"role": "assistant", "content": answer}]
    for query, answer in _ROWS
]
_QUESTIONS = [{"question": query, "answer": answer} for query, answer in _ROWS]

TEXT_FILES: Mapping[str, GivenFile] = {
    "commas.csv": GivenFile(_write_table(",", "question", "answer").encode(), "CSV with commas: queries from question"),
    "semicolons.csv": GivenFile(
        _write_table(";", "Prompt", "Target").encode(), "CSV with semicolons: queries from Prompt"
    ),
    "tabs.tsv": GivenFile(_write_table("\t", "input", "expected output").encode(), "TSV"),
    "tabs_own.tsv": GivenFile(_write_table("\t", "query", "answer").encode(), "TSV: queries from query"),
    "bars.txt": GivenFile(_write_table("|", "problem", "solution").encode(), "answers from solution"),
    "pasted.txt": GivenFile("".join(f"{query}\t{answer}\n" for query, answer in _ROWS).encode(), "a tab and an answer"),
    "excel.csv": GivenFile(
        _write_table(";", "Frage", "Antwort").encode("cp1252"), "in Windows-1252: queries from Frage"
    ),
    "mark.csv": GivenFile(_write_table(",", "question", "answer").encode("utf-8-sig"), "queries from question"),
    "unicode.txt": GivenFile(_write_table("\t", "question", "answer").encode("utf-16"), "TSV in UTF-16: queries"),
    "mac.csv": GivenFile(_write_table(",", "question", "answer").replace("\n", "\r").encode(), "CSV with commas"),
    "list.json": GivenFile(json.dumps(_QUESTIONS, indent=1).encode(), "JSON: queries from question"),
    "nested.json": GivenFile(json.dumps({"version": "1", "data": _QUESTIONS}).encode(), "JSON: queries from question"),
    "lines.jsonl": GivenFile(_write_lines(*_QUESTIONS), "JSONL: queries from question; answers from answer"),
    "own.jsonl": GivenFile(
        _write_lines({"query": QUERY, "answer": ANSWER}, {"query": TOWN, "answer": NAME}), "as JSONL"
    ),
    "own.json": GivenFile(
        json.dumps([{"query": QUERY, "answer": ANSWER}, {"query": TOWN, "answer": NAME}]).encode(), "as JSON"
    ),
    "chat.jsonl": GivenFile(_write_lines(*({"messages": chat} for chat in _CHATS)), "queries from messages"),
    "parts.jsonl": GivenFile(_write_lines(*({"messages": chat} for chat in _PARTS)), "queries from messages"),
    "shared.json": GivenFile(
        json.dumps([{"conversations": chat, "tools": "[]"} for chat in _SHARED]).encode(), "not used: tools"
    ),
    "gsm8k.jsonl": GivenFile(
        _write_lines(*({"question": query, "answer": f"It is easy.\n#### {answer}"} for query, answer in _ROWS)),
        "JSONL",
    ),
    "boxed.jsonl": GivenFile(
        _write_lines(*({"problem": q, "solution": f"So $x = \\boxed{{{a}}}$.", "level": 1} for q, a in _ROWS)),
        "not used: level",
    ),
    "alpaca.json": GivenFile(
        json.dumps(
            [{"instruction": q.split()[0], "input": q.partition(" ")[2], "output": a} for q, a in _ROWS]
        ).encode(),
        "queries from instruction with input",
    ),
}


def write_parquet() -> GivenFile:
    """The two tasks as Parquet, in the columns of SQuAD."""
    from io import BytesIO

    import pyarrow as pa
    from pyarrow import parquet

    rows = [{"context": "", "question": q, "answers": {"text": [a, a], "answer_start": [0, 1]}} for q, a in _ROWS]
    file = BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), file)
    return GivenFile(file.getvalue(), "Parquet: queries from question with context; answers from answers")
