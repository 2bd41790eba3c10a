"""Family `dossier`: figures in memos, each readable in one room only. Held out: no orchestrator learns from it.

L1: room -> reader -> calculator (3 steps). L2: room | room -> reader | reader -> calculator (5 steps, 2 wide).
L3: room | room | room -> reader, reader of both assessments -> calculator (6 steps, 3 wide). A blind review:
the claim and the assessments must be read apart, because the reader reads every passage that it may see.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from orchestrator.plan import Step, Turn
from podium_lessons.families.steps import calculate, read_passages
from podium_lessons.template_suite import TemplateSuite
from pool_registry.starter.workers.memos import MAX_MEMO, SECTIONS, SUBJECTS, total_of
from trainer.tasks.suite import assign_split
from trainer.tasks.verifier import NumberWithin, Verifier, is_near_tie, make_rounded_verifier

ROOMS = "ABC"
PLACES = ("a", "b", "c")  # one for each passage: gaps room_a, memo_a, section_a ...
GAPS = {
    **{f"room_{place}": f"[{ROOMS}]" for place in PLACES},
    **{f"memo_{place}": r"[1-9]\d{0,3}" for place in PLACES},
    **{f"section_{place}": "[1-9]" for place in PLACES},
    "subject": "|".join(SUBJECTS),
    "percent": r"\d{1,2}",
}


@dataclass(frozen=True, slots=True)
class MemoPlace:
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
    places: tuple[MemoPlace, ...]
    percent: int = 0


class Dossier(TemplateSuite[DossierQuery]):
    name = "dossier"
    description = "Figures in generated memos behind separate doors; what a reader may see decides."
    workers = ("room_a", "room_b", "room_c", "reader", "calculator")
    held_out = True
    gap_patterns = GAPS

    def draw(self, level: int, split: str, random: Random) -> DossierQuery:
        rooms = random.sample(ROOMS, level)
        return DossierQuery(
            level=level,
            template=self.wordings[level, ""].draw(split, random),
            subject=random.choice(SUBJECTS),
            places=tuple(MemoPlace(room, _draw_memo(split, random), random.choice(SECTIONS)) for room in rooms),
            percent=random.randint(2, 60) if level == 1 else 0,
        )

    def write(self, parameters: DossierQuery) -> str:
        p = parameters
        values: dict[str, object] = {"subject": p.subject, "percent": p.percent}
        for letter, place in zip(PLACES, p.places, strict=False):
            values |= {f"room_{letter}": place.room, f"memo_{letter}": place.memo, f"section_{letter}": place.section}
        return self.template_of(p).fill(**values)

    def read(self, query: str) -> DossierQuery | None:
        match = self.match(query)
        if match is None:
            return None
        (level, _), number, gaps = match
        places = tuple(
            MemoPlace(gaps[f"room_{x}"].upper(), int(gaps[f"memo_{x}"]), int(gaps[f"section_{x}"]))
            for x in PLACES[:level]
        )
        percent = int(gaps.get("percent", 0))
        return DossierQuery(level, number, gaps["subject"].lower(), places, percent)

    def solve(self, parameters: DossierQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        totals = [total_of(place.room.lower(), place.memo, p.subject, place.section) for place in p.places]
        if p.level == 2:
            return NumberWithin(abs(totals[0] - totals[1]), 0.0), _make_plan(p)
        value = totals[0] * p.percent / 100 if p.level == 1 else 200 * totals[0] / (totals[1] + totals[2]) - 100
        return None if is_near_tie(value, 2) else (make_rounded_verifier(value, 2), _make_plan(p))


def _make_plan(p: DossierQuery) -> Turn:
    rooms = [_ask(k, p.subject, place) for k, place in enumerate(p.places, start=1)]
    if p.level == 1:
        figure = read_passages(2, "the number in the passage", [1])
        steps = [figure, calculate(3, f"round($2 * {p.percent} / 100, 2)", [2])]
    elif p.level == 2:
        readers = [read_passages(k + 2, "the number in the passage", [k]) for k in (1, 2)]
        steps = [*readers, calculate(5, "abs($3 - $4)", [3, 4])]
    else:
        claim = read_passages(4, "the number in the passage", [1])
        both = read_passages(5, "the number in each passage", [2, 3])
        steps = [claim, both, calculate(6, "round(100 * $4 / mean($5) - 100, 2)", [4, 5])]
    return Turn((*rooms, *steps), f"${len(rooms) + len(steps)}")


def _ask(step: int, subject: str, place: MemoPlace) -> Step:
    request = f"memo {place.memo}: {subject} total, section {place.section}"
    room = place.room
    return Step(step, f"room_{room.lower()}", {"request": request}, need=f"memo of room {room.upper()}")


def _draw_memo(split: str, random: Random) -> int:
    """A memo's number from this split's part of all numbers."""
    while True:
        number = random.randint(1, MAX_MEMO)
        if assign_split(f"memo {number}") == split:
            return number
