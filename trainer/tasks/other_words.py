"""Other words for a worker that no bank describes: a made-up name, and its description with other verbs and nouns.

What the description says stays, and so do the names of parameters, because plans are written with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from random import Random

from pydantic import Field

from pool_registry.worker import WorkerSpec
from trainer.tasks.made_up_names import make_up_name
from trainer.tasks.task_data import TaskData, load_task_data

MAX_DESCRIPTION = 2000
RETURNING = frozenset(
    "fetches finds gets gives lists looks provides queries reports retrieves returns shows tells".split()  # noqa: SIM905
)


class WordBank(TaskData):
    """assets/tasks/other_words.yaml: words and others that mean the same in a description."""

    returning: tuple[str, ...] = Field(min_length=2)
    verbs: Mapping[str, tuple[str, ...]]
    nouns: Mapping[str, str]


@cache
def load_word_bank() -> WordBank:
    """The content of the file. Raises UnusableTasks."""
    return load_task_data("other_words", WordBank)


def reword_unknown(spec: WorkerSpec, random: Random, taken: set[str]) -> WorkerSpec:
    """The worker under a name that says nothing and is not in `taken`, and in other words."""
    changes = {"name": make_up_name(random, taken), "description": reword_description(spec.description, random)}
    return spec.model_copy(update=changes)


def reword_description(description: str, random: Random) -> str:
    """The description with another beginning and other nouns; one in which the bank finds nothing begins anew."""
    bank = load_word_bank()
    first, _, rest = description.partition(" ")
    verb = first.casefold().rstrip(".,")
    if verb in bank.verbs and rest:
        opening = random.choice(bank.verbs[verb])
        return _replace_nouns(f"{opening[:1].upper()}{opening[1:]} {rest}")[:MAX_DESCRIPTION]
    if verb in RETURNING and rest:
        rest = rest.removeprefix("up ")  # looks up
        return _replace_nouns(f"{random.choice(bank.returning)} {rest}")[:MAX_DESCRIPTION]
    small = description[:1].lower() + description[1:] if not first.isupper() else description
    return _replace_nouns(f"Serves this: {small}")[:MAX_DESCRIPTION]


def _replace_nouns(text: str) -> str:
    """The text with every noun of the bank replaced; text in quotation marks stays, because values may stand there."""
    nouns = load_word_bank().nouns
    pattern = re.compile(
        rf"""(?P<quoted>["'`][^"'`]*["'`])|\b(?P<noun>{"|".join(nouns)})(?P<plural>s?)\b""", re.IGNORECASE
    )

    def replace(match: re.Match[str]) -> str:
        if match["quoted"]:
            return match["quoted"]
        other = nouns[match["noun"].casefold()]
        if match["plural"]:
            head, of, tail = other.partition(" of ")
            other = f"{head}s{of}{tail}"
        return f"{other[:1].upper()}{other[1:]}" if match["noun"][0].isupper() else other

    return pattern.sub(replace, text)
