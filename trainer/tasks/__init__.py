"""Tasks with exact answers. The table of suites: the one place to register a family."""

from __future__ import annotations

from typing import Any

from trainer.errors import UnknownTask
from trainer.tasks.families.atlas import Atlas
from trainer.tasks.families.dossier import Dossier
from trainer.tasks.families.forge import Forge
from trainer.tasks.families.itinerary import Itinerary
from trainer.tasks.families.joined import Joined
from trainer.tasks.families.ledger import Ledger
from trainer.tasks.families.workshop import Workshop
from trainer.tasks.suite import Suite
from trainer.tasks.task import Task

SUITES: dict[str, Suite[Any]] = {
    suite.name: suite
    for suite in (Joined(Ledger()), Joined(Atlas()), Joined(Forge()), Joined(Itinerary()), Workshop(), Dossier())
}
TRAIN_FAMILIES = tuple(name for name, suite in SUITES.items() if not suite.held_out)
HELD_OUT_FAMILIES = tuple(name for name, suite in SUITES.items() if suite.held_out)
MAX_RECOGNIZED_CHARS = 2000  # no suite writes longer queries


def suite_named(name: str) -> Suite[Any]:
    """The suite called `name`; UnknownTask lists those there are."""
    try:
        return SUITES[name]
    except KeyError:
        raise UnknownTask(f"there is no family {name!r}; use one of: {', '.join(SUITES)}") from None


def find_task(family: str, level: int, split: str, index: int) -> Task:
    """One generated task. Raises UnknownTask."""
    return suite_named(family).task(level, split, index)


def recognize(query: str) -> Task | None:
    """The task behind a query in any suite's words, or None."""
    if len(query) > MAX_RECOGNIZED_CHARS:
        return None
    return next((task for suite in SUITES.values() if (task := suite.recognize(query))), None)
