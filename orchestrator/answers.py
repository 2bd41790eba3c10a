"""When two answers say the same."""

from __future__ import annotations

from pool_registry.actions import JsonValue, as_text

DIGITS = 9  # of numbers that count as equal


def write_answer_key(value: JsonValue) -> str:
    """A text that is equal for answers that agree: numbers by value, texts without case, spacing and a final stop."""
    text = " ".join(as_text(value).casefold().split())
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return text.rstrip(". ") or text
    return f"{number:.{DIGITS}g}"
