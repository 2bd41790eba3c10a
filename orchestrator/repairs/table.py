"""Every repair of a reader's turns, by name.

A repair is code that changes what the model wrote, or has it write again. Each can be switched off: `+without=NAME`
behind the name of an orchestrator, `--without NAME` on the command line, `repairs:` in a recipe. A turn that one of
them has changed says so (`Turn.repairs`), and the inspector shows it. `python bench/repairs.py` measures what each
brings. A repair of kind `words` reads English or compares words; a `retry` asks the model or another worker again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from orchestrator.errors import UnknownOrchestrator

ALL = "all"


@dataclass(frozen=True, slots=True)
class Repair:
    """One row. `label` completes "mended by: ..."; `does` says when it acts and what it changes."""

    name: str
    kind: Literal["words", "retry"]
    label: str
    does: str


REPAIRS = {
    row.name: row
    for row in (
        Repair(
            "doubted_refusals",
            "retry",
            "a refusal was doubted",
            "A query that is refused and much like a worker is planned for all the same; then other plans are drawn.",
        ),
        Repair(
            "named_operations",
            "words",
            "the operation was asked for",
            "A need for a sum as such gets its operation where the nearest worker does one at a time.",
        ),
        Repair(
            "copied_examples",
            "words",
            "a copied example was dropped",
            "A call that repeats the example of a card and nothing of the query goes to the next likely worker.",
        ),
        Repair(
            "repeated_outputs",
            "words",
            "a figure replaced a repeated output",
            "A call that takes one output twice gets the figure of the query in its second place.",
        ),
        Repair(
            "left_out_workers",
            "words",
            "a left-out worker was put in",
            "A short plan gets a worker more that the query names, where the plan works with it.",
        ),
        Repair(
            "unused_figures",
            "words",
            "other plans were drawn: a figure was left out",
            "Other plans are drawn where no call holds a figure of the query.",
        ),
        Repair(
            "joined_names",
            "words",
            "other plans were drawn: a name was left out",
            "Other plans are drawn where a short plan has one of two names that the query joins.",
        ),
        Repair(
            "idle_steps",
            "words",
            "other plans were drawn: a step did nothing",
            "Other plans are drawn where a step repeats another one, or nothing reads its output.",
        ),
        Repair(
            "other_words",
            "words",
            "other words were tried",
            "A rejected call is tried with other words of the query and with what other workers return for them.",
        ),
        Repair(
            "next_workers",
            "retry",
            "the next likely worker was asked",
            "The need of a rejected call gets the next likely worker, and its arguments are written again.",
        ),
        Repair(
            "other_plans",
            "retry",
            "other plans were drawn: the first one failed",
            "Where a plan has failed for good others are drawn and tried, and the answer of most is taken.",
        ),
        Repair(
            "substitutes",
            "retry",
            "a substitute was asked",
            "A worker that is out of reach is replaced by the next likely one that takes the same arguments.",
        ),
    )
}

EVERY_REPAIR = frozenset(REPAIRS)


def leave_out(names: Iterable[str]) -> frozenset[str]:
    """The repairs that are on without these; `all` leaves none. Raises UnknownOrchestrator for a name that is none."""
    switched_off = frozenset(names)
    if unknown := sorted(switched_off - {*REPAIRS, ALL}):
        raise UnknownOrchestrator(f"there is no repair {unknown[0]!r}; there are: {', '.join((*REPAIRS, ALL))}")
    return frozenset() if ALL in switched_off else EVERY_REPAIR - switched_off


def in_table_order(names: Collection[str]) -> tuple[str, ...]:
    """Repairs in the order of the table."""
    return tuple(name for name in REPAIRS if name in names)
