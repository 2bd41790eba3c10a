"""What a skill is called, and how it is described: in the words of its workers alone."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence

from orchestrator.quotes import REFERENCE
from orchestrator.reader.cards import format_listed
from pool_registry.calls.live_pool import LiveWorker
from pool_registry.worker import MAX_DESCRIPTION
from pool_registry.workers.skill import SkillConfig

MAX_NAME = 48
_FIELD = re.compile(r"\.([A-Za-z_]\w*)$")


def name_skill(config: SkillConfig, taken: Collection[str]) -> str:
    """The names of its workers in their order, each once, and a number where that is taken."""
    base = "_".join(dict.fromkeys(step.worker for step in config.steps))
    name, number = base[:MAX_NAME].rstrip("_-"), 1
    while name in taken:
        number += 1
        name = f"{base[: MAX_NAME - 4].rstrip('_-')}_{number}"
    return name


def describe_skill(config: SkillConfig, workers: Sequence[LiveWorker]) -> str:
    """First what it returns and of what, in one short sentence, for listings are short; then what its `workers` say of
    themselves, in the order of its steps."""
    names = ", ".join(dict.fromkeys(map(_to_words, _list_parameters(config))))
    *calls, last = [_to_words(worker.spec.name) for worker in workers]
    chain = f"{', '.join(calls)}, then {last}"
    sentences = [f"{_name_result(config)} by {names}: {chain}", *dict.fromkeys(map(format_listed, workers))]
    return ". ".join(sentence.rstrip(".") for sentence in sentences)[: MAX_DESCRIPTION - 1] + "."


def _list_parameters(config: SkillConfig) -> Iterator[str]:
    properties = config.parameters.get("properties")
    yield from properties if isinstance(properties, dict) else ()


def _name_result(config: SkillConfig) -> str:
    """The field that the answer is, or else the step that it quotes, with the fields which that works on."""
    answer = config.answer if isinstance(config.answer, str) else ""
    if path := _FIELD.search(answer):
        return _to_words(path[1]).capitalize()
    quote = REFERENCE.search(answer)
    step = config.steps[int(quote[1]) - 1] if quote and quote[1].isdigit() else config.steps[-1]
    quoted = REFERENCE.findall(json.dumps(step.arguments))
    fields = dict.fromkeys(_to_words(path.rpartition(".")[2]) for _, path in quoted if _FIELD.search(path))
    return f"{_to_words(step.worker)} {' and '.join(fields)}".strip().capitalize()


def _to_words(name: str) -> str:
    """A name as words, without the number that tells a second parameter from the first."""
    return " ".join(part for part in re.split(r"[_\-\s]+", name) if not part.isdigit())
