"""Answers that show what a verifier takes and what it does not."""

from __future__ import annotations

from collections.abc import Sequence

from pool_registry.actions import JsonValue, as_text
from trainer.tasks.verifier import AnyVerifier, JudgeCheck, ProgramVerifier, PythonCheck

KINDS = {
    "number": "the last number of the answer counts",
    "exact": "the text alone; case and white space do not matter",
    "one_of": "one of the texts alone",
    "set": "exactly these, in any order",
    "states_all": "a sentence that states all of these, in this order",
    "regex": "the pattern matches the whole answer",
    "python": "your function check(answer, query) returns True",
    "judge": "a worker of the pool compares the answers",
    "refusal": "the answer says that no worker can do this",
}


def list_example_answers(verifier: AnyVerifier) -> list[tuple[str, bool]]:
    """List some answers, each with whether it is right; none where the verifier has to be run."""
    if isinstance(verifier, PythonCheck | JudgeCheck | ProgramVerifier):
        return []
    answers = dict.fromkeys(_write_answers(verifier.kind, verifier.expected))
    return [(answer, verifier.accepts(answer)) for answer in answers]


def _write_answers(kind: str, expected: JsonValue) -> list[str]:
    items: Sequence[JsonValue] = expected if isinstance(expected, list | tuple) else [expected]
    texts = [as_text(item) for item in items]
    if kind == "number":
        return [_write_number(expected), f"It is {_write_number(expected)}.", _write_number(expected, 1)]
    if kind == "exact":
        return [texts[0], texts[0].upper(), f"It is {texts[0]}."]
    if kind == "one_of":
        return [*texts[:2], " or ".join(texts[:2]) if len(texts) > 1 else f"It is {texts[0]}."]
    if kind == "set":
        return [", ".join(texts), ", ".join(reversed(texts)), ", ".join(texts[1:]) or f"{texts[0]}, more"]
    if kind == "states_all":
        return [" and ".join(texts), f"It is {', then '.join(texts)}.", " and ".join(reversed(texts)), texts[0]]
    return [as_text(expected)] if kind == "refusal" else []


def _write_number(expected: JsonValue, more: int = 0) -> str:
    assert isinstance(expected, int | float), "a number is expected"
    return f"{expected + more:.12g}"
