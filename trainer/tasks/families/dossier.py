"""Family `dossier`: figures in memos, each readable in one room only. Held out: no orchestrator learns from it.

L1: room -> reader -> calculator (3 steps). L2: room | room -> reader | reader -> calculator (5 steps, 2 wide).
L3: room | room | room -> reader, reader of both assessments -> calculator (6 steps, 3 wide). A blind review:
the claim and the assessments must be read apart, because the reader reads every passage that it may see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from orchestrator.plan import Step, Turn
from pool_registry.starter.workers.memos import MAX_MEMO, SECTIONS, SUBJECTS, total_of
from trainer.tasks.suite import Suite, split_of
from trainer.tasks.verifier import NumberWithin, Verifier, near_tie, to_digits
from trainer.tasks.wordings import matched, templates

ROOMS = "ABC"
PLACES = ("a", "b", "c")  # one for each passage: gaps room_a, memo_a, section_a ...
GAPS = {
    **{f"room_{place}": f"[{ROOMS}]" for place in PLACES},
    **{f"memo_{place}": r"[1-9]\d{0,3}" for place in PLACES},
    **{f"section_{place}": "[1-9]" for place in PLACES},
    "subject": "|".join(SUBJECTS),
    "percent": r"\d{1,2}",
}
TEMPLATES = {
    level: templates(texts, GAPS)
    for level, texts in {
        1: (
            "In room {room_a} lies memo {memo_a}. Of its {subject} total in section {section_a}, {percent}% is to be "
            "paid back. How many dollars is that, to two decimals?",
            "What is {percent}% of the {subject} total that memo {memo_a} in room {room_a} states in section "
            "{section_a}, in dollars to two decimals?",
            "Look into section {section_a} of memo {memo_a}, room {room_a}. Take {percent}% of the {subject} total "
            "there and give it in dollars to two decimals.",
        ),
        2: (
            "Room {room_a} holds memo {memo_a}, room {room_b} memo {memo_b}. By how many dollars does the {subject} "
            "total in section {section_a} of the first differ from that in section {section_b} of the second?",
            "Compare the {subject} total of memo {memo_a} in room {room_a}, section {section_a}, with that of memo "
            "{memo_b} in room {room_b}, section {section_b}. How many dollars lie between them?",
            "Two suppliers disagree on the {subject} total: see section {section_a} of memo {memo_a} in room {room_a} "
            "and section {section_b} of memo {memo_b} in room {room_b}. What is the gap in dollars?",
        ),
        3: (
            "Memo {memo_a} in room {room_a} claims a {subject} total in section {section_a}. Two independent "
            "assessments of it are in memo {memo_b} in room {room_b}, section {section_b}, and in memo {memo_c} in "
            "room {room_c}, section {section_c}. By how many percent is the claim above the mean of both assessments, "
            "to two decimals (below is negative)?",
            "Review a claim: the {subject} total of memo {memo_a}, section {section_a}, in room {room_a}. It was "
            "assessed twice: in memo {memo_b}, section {section_b}, in room {room_b}, and in memo {memo_c}, section "
            "{section_c}, in room {room_c}. How many percent above the mean of the two assessments is it, to two "
            "decimals (below is negative)?",
            "Section {section_b} of memo {memo_b} in room {room_b} and section {section_c} of memo {memo_c} in room "
            "{room_c} each estimate a {subject} total. The supplier claims what section {section_a} of memo {memo_a} "
            "in room {room_a} says. By what percentage does the claim exceed the mean estimate, to two decimals "
            "(negative where it falls short)?",
        ),
    }.items()
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a figure stands."""

    room: str
    memo: int
    section: int


@dataclass(frozen=True, slots=True)
class DossierQuery:
    """Everything a dossier query says. At level 3 the first place holds the claim."""

    level: int
    template: int
    subject: str
    places: tuple[Place, ...]
    percent: int = 0


class Dossier(Suite[DossierQuery]):
    name = "dossier"
    description = "Figures in generated memos behind separate doors; what a reader may see decides."
    workers = ("room_a", "room_b", "room_c", "reader", "calculator")
    held_out = True

    def draw(self, level: int, split: str, random: Random) -> DossierQuery:
        rooms = random.sample(ROOMS, level)
        return DossierQuery(
            level=level,
            template=TEMPLATES[level].draw(split, random),
            subject=random.choice(SUBJECTS),
            places=tuple(Place(room, _memo(split, random), random.choice(SECTIONS)) for room in rooms),
            percent=random.randint(2, 60) if level == 1 else 0,
        )

    def write(self, parameters: DossierQuery) -> str:
        p = parameters
        said: dict[str, object] = {"subject": p.subject, "percent": p.percent}
        for letter, place in zip(PLACES, p.places, strict=False):
            said |= {f"room_{letter}": place.room, f"memo_{letter}": place.memo, f"section_{letter}": place.section}
        return TEMPLATES[p.level][p.template].fill(**said)

    def read(self, query: str) -> DossierQuery | None:
        found = matched(TEMPLATES, query)
        if found is None:
            return None
        level, number, said = found
        places = tuple(
            Place(said[f"room_{x}"].upper(), int(said[f"memo_{x}"]), int(said[f"section_{x}"])) for x in PLACES[:level]
        )
        percent = int(said.get("percent", 0))
        return DossierQuery(level, number, said["subject"].lower(), places, percent)

    def level_of(self, parameters: DossierQuery) -> int:
        return parameters.level

    def new_words(self, parameters: DossierQuery) -> bool:
        return TEMPLATES[parameters.level].held_out(parameters.template)

    def solve(self, parameters: DossierQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        totals = [total_of(place.room.lower(), place.memo, p.subject, place.section) for place in p.places]
        if p.level == 2:
            return NumberWithin(abs(totals[0] - totals[1]), 0.0), _plan(p)
        value = totals[0] * p.percent / 100 if p.level == 1 else 200 * totals[0] / (totals[1] + totals[2]) - 100
        return None if near_tie(value, 2) else (to_digits(value, 2), _plan(p))


def _plan(p: DossierQuery) -> Turn:
    rooms = [_ask(k, p.subject, place) for k, place in enumerate(p.places, start=1)]
    if p.level == 1:
        steps = [_read(2, "the number in the passage", [1]), _calculate(3, f"round($2 * {p.percent} / 100, 2)", [2])]
    elif p.level == 2:
        readers = [_read(k + 2, "the number in the passage", [k]) for k in (1, 2)]
        steps = [*readers, _calculate(5, "abs($3 - $4)", [3, 4])]
    else:
        claim, both = _read(4, "the number in the passage", [1]), _read(5, "the number in each passage", [2, 3])
        steps = [claim, both, _calculate(6, "round(100 * $4 / mean($5) - 100, 2)", [4, 5])]
    return Turn((*rooms, *steps), f"${len(rooms) + len(steps)}")


def _ask(step: int, subject: str, place: Place) -> Step:
    request = f"memo {place.memo}: {subject} total, section {place.section}"
    return Step(step, f"room_{place.room.lower()}", {"request": request})


def _read(step: int, instruction: str, access: Sequence[int]) -> Step:
    return Step(step, "reader", {"instruction": instruction}, tuple(access))


def _calculate(step: int, expression: str, access: Sequence[int]) -> Step:
    return Step(step, "calculator", {"expression": expression}, tuple(access))


def _memo(split: str, random: Random) -> int:
    """A memo's number from this split's part of all numbers."""
    while True:
        number = random.randint(1, MAX_MEMO)
        if split_of(f"memo {number}") == split:
            return number
