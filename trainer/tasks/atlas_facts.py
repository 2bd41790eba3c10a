"""Makes assets/tasks/atlas.json: `python -m trainer.tasks.atlas_facts`.

A figure may be asked for when (1) the corpus states it plainly, (2) the search that a plan would do puts
that very passage first, and (3) the rule-based reader reads the same number. Validated by execution,
because ranking cannot be assumed: sub-fields often win.
"""

from __future__ import annotations

import json
import re
import sys

from assets import asset
from pool_registry.errors import WorkerFault
from pool_registry.starter.factbook import Passage, passages
from pool_registry.workers.extractor import country as read_country
from pool_registry.workers.extractor import number as read_number
from pool_registry.workers.search import Index, load_index
from trainer.tasks.atlas import FACTS_FILE, FIGURES, Figure

_PLAIN = {
    "square kilometer": re.compile(r"(?:total: )?([\d,]+(?:\.\d+)?) sq km\b.*"),
    "kilometer": re.compile(r"([\d,]+(?:\.\d+)?) km\b.*"),
    "meter": re.compile(r"([\d,]+) m\b.*"),
    "": re.compile(r"([\d,]{4,}) \(.*"),
}
_SIMPLE_CAPITAL = re.compile(r"[^\W\d_][\w'. -]{2,30}")


def main() -> None:
    """Write the file and say how many facts stood the test."""
    index = load_index("starter:factbook")
    by_title = {f"{passage.country} {' '.join(passage.path)}": passage for passage in passages()}
    values = {label: _values(figure, by_title, index) for label, figure in FIGURES.items()}
    capitals = _capitals(index)
    document = {"values": values, "capitals": capitals}
    path = asset(FACTS_FILE)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    counts = ", ".join(f"{label} {len(found)}" for label, found in values.items())
    sys.stdout.write(f"{counts}, capitals {len(capitals)}\n")


def _values(figure: Figure, by_title: dict[str, Passage], index: Index) -> dict[str, float]:
    found = {}
    for title, passage in by_title.items():
        if title != f"{passage.country} {figure.words}":
            continue
        stated = _PLAIN[figure.unit].fullmatch(passage.text)
        value = float(stated[1].replace(",", "")) if stated else 0.0
        if value > 0 and index.search(title, 1) == [passage.shown] and _reads(passage, value):
            found[passage.country] = value
    return found


def _reads(passage: Passage, value: float) -> bool:
    try:
        return read_number(passage.shown) == value
    except WorkerFault:
        return False


def _capitals(index: Index) -> dict[str, str]:
    """Capitals whose name alone leads to their country, and that no two countries share."""
    found: dict[str, str] = {}
    for passage in passages():
        capital = passage.text.split(";")[0].split(" (")[0].strip()
        if passage.path != ("Government", "Capital", "name") or not _SIMPLE_CAPITAL.fullmatch(capital):
            continue
        hits = index.search(f"Government Capital name {capital}", 1)
        if hits == [passage.shown] and read_country(hits[0]) == passage.country:
            found[passage.country] = capital
    names = list(found.values())
    return {country: capital for country, capital in found.items() if names.count(capital) == 1}


if __name__ == "__main__":
    main()
