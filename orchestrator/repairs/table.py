"""Every repair of a reader's turns, by name.

A repair is code that changes what the model wrote, or has it write again. Each can be switched off: `+without=NAME`
behind the name of an orchestrator, `--without NAME` on the command line, `repairs:` in a recipe. A turn that one of
them has changed says so (`Turn.repairs`), and the inspector shows it. `python bench/repairs.py` measures what each
brings. A repair of kind `words` reads English or compares words; a `retry` asks the model or another worker again. One
row is no repair, and is left when all of them are off: the `turn` that a model which learnt to writes itself, after it
has read what came of its plan.
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
    kind: Literal["words", "retry", "turn"]
    label: str
    does: str


REPAIRS = {
    row.name: row
    for row in (
        Repair(
            "named_operations",
            "words",
            "the operation was asked for",
            "A need for a sum as such gets its operation where the nearest worker does one at a time.",
        ),
        Repair(
            "left_out_workers",
            "words",
            "a left-out worker was put in",
            "A short plan gets a worker more that the query names, where the plan works with it.",
        ),
        Repair(
            "second_turns",
            "turn",
            "another plan of its own, after it read what came of the last one",
            "After a call that failed a model that learnt it reads what came of its plan, and writes another one.",
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
OWN_TURNS = frozenset(row.name for row in REPAIRS.values() if row.kind == "turn")

# They earned less than 0.02 on 220 tasks of pools that no training had. Recipes, orchestrators' names and traces that
# people keep still name them: as switched off.
REMOVED = (
    "doubted_refusals",
    "copied_examples",
    "repeated_outputs",
    "unused_figures",
    "joined_names",
    "idle_steps",
)


def leave_out(names: Iterable[str]) -> frozenset[str]:
    """The repairs that are on without these; `all` leaves none but the model's own turns. Raises UnknownOrchestrator
    for a name that is none, and was none."""
    switched_off = frozenset(names).difference(REMOVED)
    if unknown := sorted(switched_off - {*REPAIRS, ALL}):
        raise UnknownOrchestrator(f"there is no repair {unknown[0]!r}; there are: {', '.join((*REPAIRS, ALL))}")
    return (OWN_TURNS if ALL in switched_off else EVERY_REPAIR) - switched_off


def label_repair(name: str) -> str:
    """What completes "mended by: ..."; of a repair that is no more its name, in words."""
    return REPAIRS[name].label if name in REPAIRS else name.replace("_", " ")


def in_table_order(names: Collection[str]) -> tuple[str, ...]:
    """Repairs in the order of the table."""
    return tuple(name for name in REPAIRS if name in names)
