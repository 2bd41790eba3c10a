"""What a check before the start of a job finds, for people: the key of the recipe, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchGap:
    """Something that prevents a start (`blocks`), or that a person should know before one."""

    key: str
    sentence: str
    link: str = ""  # a page of the studio that mends it
    blocks: bool = True


def as_sentence(error: BaseException | str) -> str:
    """An error's message as a sentence for people."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
