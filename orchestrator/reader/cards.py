"""How a reader is shown workers: a line of the listing before it plans, a card with the parameters before it calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.prompt_styles import PROMPTS, PromptStyle
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LiveWorker
from pool_registry.language_models.completion import strip_special
from pool_registry.schemas.result_outline import format_fields
from pool_registry.text import one_line, shorten

LISTED_CHARS = 72  # of a description in the listing: about 15 tokens
LISTED_FIELDS_CHARS = 64  # of the names of fields there
CARD_CHARS = 400  # of a description on a card
COMPARED_CHARS = 160  # of a description, and of names, where a worker is compared with a need
HINT_CHARS = 40  # of a parameter's description,
FORM_CHARS = 480  # or of the only one of a worker, which may say how to write a request
MAX_CHOICES = 24
AGENT = "Agent"  # begins the line of a worker that takes instructions in words, where agents are marked
_TYPES = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false"}
_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(r"(?<!\w)'[^']{3,}'(?!\w)")
_ASIDE = re.compile(r",? (?:for example|e\.g\.) .*\(.*|\s*\([^()]*\)")
_UNREPEATABLE = str.maketrans("()$", "   ")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class ListingFormat:
    """How a reader is shown a pool: with so many likely workers repeated after the query, with agents marked, with the
    fields of outputs on the cards and in the listing, and with what came of its plan where a call failed."""

    hints: int = 0
    marks_agents: bool = False
    shows_outputs: bool = False
    lists_fields: bool = False
    shows_states: bool = False


PLAIN_LISTING = ListingFormat()


def make_listing_format(prompt: PromptStyle, hints: int = 0) -> ListingFormat:
    """How a reader with prompts of this style is shown a pool, with so many likely workers after the query."""
    facts = PROMPTS[prompt]
    return ListingFormat(
        hints, facts.marks_agents, facts.shows_outputs, facts.lists_fields, shows_states=facts.reads_states
    )


def format_listing(workers: Iterable[LiveWorker], listing_format: ListingFormat = PLAIN_LISTING) -> str:
    """What the workers of a pool do, one a line: the first sentence of each description, without names. Where agents
    are marked their lines say so, whatever their descriptions say; fields follow in braces where they are listed."""
    return "\n".join(f"- {_format_line(worker, listing_format)}" for worker in workers)


def _format_line(worker: LiveWorker, listing_format: ListingFormat) -> str:
    mark = f"{AGENT}: " if listing_format.marks_agents and worker.role == "agent" else ""
    fields = format_fields(worker.worker.output_schema, depth=1) if listing_format.lists_fields else ""
    return f"{mark}{format_listed(worker)}{f' {shorten(fields, LISTED_FIELDS_CHARS)}' if fields else ''}"


def format_listed(worker: LiveWorker) -> str:
    """The line that lists a worker: the first sentence of its description, without what a need cannot repeat: brackets
    stand for earlier steps there, and a dollar for an output."""
    sentence = _SENTENCE.split(_clean(worker.spec.description), maxsplit=1)[0].rstrip(".")
    return shorten(" ".join(_ASIDE.sub("", sentence).translate(_UNREPEATABLE).split()), LISTED_CHARS)


def describe_whole(worker: LiveWorker) -> str:
    """Join what a worker says of itself, for a need to be compared with: description, name, parameters and the fields
    of its outputs where they are known."""
    spec = worker.spec
    properties = worker.parameters.get("properties")
    rules = properties if isinstance(properties, Mapping) else {}
    choices = [str(choice) for rule in rules.values() if isinstance(rule, Mapping) for choice in rule.get("enum", ())]
    fields = format_fields(worker.worker.output_schema, depth=1)
    names = " ".join(_WORD.findall(" ".join((spec.name, *rules, fields, *choices))))
    return f"{shorten(_clean(spec.description), COMPARED_CHARS)} ({shorten(names, COMPARED_CHARS)})"


def format_cards(workers: Sequence[LiveWorker], shows_outputs: bool = False) -> str:
    """The cards of the workers chosen for a plan, numbered as its steps; one that was shown above is not repeated."""
    places: dict[str, int] = {}
    lines = []
    for place, worker in enumerate(workers, start=1):
        first = places.setdefault(worker.spec.name, place)
        lines.append(f"{place}. {format_card(worker, shows_outputs) if first == place else f'as {first}'}")
    return "\n".join(lines)


def format_card(worker: LiveWorker, shows_outputs: bool = False) -> str:
    """A worker in one line: description, name, parameters, the fields of its outputs where they are shown and known,
    and an example where its kind has one and the description quotes none."""
    example = {} if _QUOTED.search(worker.spec.description) else worker.worker.sample
    shown = f" e.g. {json.dumps(example, ensure_ascii=False)}" if example else ""
    signature = f"{worker.spec.name}({format_parameters(worker.parameters)})"
    fields = format_fields(worker.worker.output_schema) if shows_outputs else ""
    signature += f" -> {fields}" if fields else ""
    return f"{shorten(_clean(worker.spec.description), CARD_CHARS)} {signature}{shown}"


def quote_example(worker: LiveWorker) -> str:
    """The example on a worker's card: what its description quotes, or the sample call of its kind; "" for none."""
    quoted = _QUOTED.findall(worker.spec.description)
    sample = worker.worker.sample
    return " ".join(quoted) or (json.dumps(sample, ensure_ascii=False) if sample else "")


def format_parameters(schema: Mapping[str, JsonValue]) -> str:
    """The parameters of a JSON Schema with type or choices and a hint; optional ones with a question mark."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ""
    required = schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    room = FORM_CHARS if len(properties) == 1 else HINT_CHARS
    return ", ".join(_format_parameter(name, rule, name in needed, room) for name, rule in properties.items())


def _format_parameter(name: str, rule: JsonValue, needed: bool, room: int) -> str:
    rule = rule if isinstance(rule, Mapping) else {}
    choices = rule.get("enum")
    if isinstance(choices, list | tuple) and choices:
        kind = "|".join(str(choice) for choice in choices[:MAX_CHOICES])
    else:
        kind = _TYPES.get(str(rule.get("type")), str(rule.get("type", "any")))
    hint = _clean(str(rule.get("description", "")))
    about = f" {shorten(hint, room)}" if hint else ""
    return f"{name}{'' if needed else '?'}: {kind}{about}"


def _clean(text: str) -> str:
    return one_line(strip_special(text))
