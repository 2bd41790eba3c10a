"""What this package gives to Podium's table of task sources, a name for each entry point of pyproject.toml.

The modules of a source are imported when it is opened.
"""

from __future__ import annotations

from podium_lessons.families.atlas import Atlas
from podium_lessons.families.dossier import Dossier
from podium_lessons.families.forge import Forge
from podium_lessons.families.itinerary import Itinerary
from podium_lessons.families.joined import Joined
from podium_lessons.families.ledger import Ledger
from podium_lessons.families.workshop import Workshop
from trainer.tasks.registry import TaskProvider
from trainer.tasks.sources.source import TaskSource

LEDGER, ATLAS, FORGE, ITINERARY = Joined(Ledger()), Joined(Atlas()), Joined(Forge()), Joined(Itinerary())
WORKSHOP, DOSSIER = Workshop(), Dossier()
# In the order in which benchmarks draw from them, from the easiest on.
TRAIN_FAMILIES = ("ledger", "atlas", "forge", "itinerary")
HELD_OUT_FAMILIES = ("workshop", "dossier")


def _open_casual(argument: str) -> TaskSource:
    from podium_lessons.casual.families import open_casual

    return open_casual(argument)


def _open_worlds(argument: str) -> TaskSource:
    from podium_lessons.worlds.source import open_worlds

    return open_worlds(argument)


def _open_projects(argument: str) -> TaskSource:
    from podium_lessons.projects.source import open_projects

    return open_projects(argument)


def _open_everyday(argument: str) -> TaskSource:
    from podium_lessons.everyday.source import open_everyday

    return open_everyday(argument)


def _open_agents(argument: str) -> TaskSource:
    from podium_lessons.agents.source import open_agents

    return open_agents(argument)


def _open_catalog(argument: str) -> TaskSource:
    from podium_lessons.catalog.source import open_catalog

    return open_catalog(argument)


def _open_composed(argument: str) -> TaskSource:
    from podium_lessons.composed.source import open_composed

    return open_composed(argument)


CASUAL = TaskProvider(
    "casual",
    "The four families in the words of a person: terse, chatty, with other spellings of figures and dates.",
    _open_casual,
    "[:FAMILY,...]",
    "casual",
)
WORLDS = TaskProvider(
    "worlds",
    "Generated worlds: every few tasks have a database, tools and a pool of their own.",
    _open_worlds,
    "[:DOMAIN,...|:held_out]",
    "worlds",
)
PROJECTS = TaskProvider(
    "projects",
    "What people ask of a handful of functions of their own: a shop, a club, a job.",
    _open_projects,
    "[:PROJECT,...|:held_out]",
    "projects",
)
EVERYDAY = TaskProvider(
    "everyday",
    "Plain questions on ordinary tools, of all subjects or of one; held_out are those written by hand.",
    _open_everyday,
    "[:SUBJECT|:held_out]",
    "everyday",
)
AGENTS = TaskProvider(
    "agents",
    "Questions to simulated agents: whom to ask what, and who must see whose findings.",
    _open_agents,
)
CATALOG = TaskProvider(
    "catalog",
    "Calls of tools with the parameters and results of real ones: one, several at once, chains, sums.",
    _open_catalog,
    "[:single|:worded]",
)
COMPOSED = TaskProvider(
    "composed",
    "Questions composed of look-ups, hops, calculations, lists and sums, over functions that return objects.",
    _open_composed,
)
