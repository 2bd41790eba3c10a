"""Makes assets/tasks/atlas.json: `python -m scripts.build_atlas_facts`.

A figure may be asked for when (1) the corpus states it plainly, (2) the search that a plan would do puts
that very passage first, and (3) the rule-based reader reads the same number. Validated by execution,
because ranking cannot be assumed: sub-fields often win.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence

from assets import asset
from pool_registry.documents.bm25_index import Index
from pool_registry.errors import WorkerFault
from pool_registry.starter.factbook import SEPARATOR, FactbookPassage, passages
from pool_registry.starter.workers.extractor import country as read_country
from pool_registry.starter.workers.extractor import number as read_number
from pool_registry.workers.search import load_index
from trainer.tasks.families.atlas import FACTS_FILE, AtlasFigure, load_figures

_FIGURE = r"([\d,]+(?:\.\d+)?)(?: (thousand|million|billion|trillion))?"
_SCALES = {"": 1, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PLAIN = {
    "square kilometer": re.compile(rf"(?:total: )?{_FIGURE} sq km\b.*"),
    "kilometer": re.compile(rf"{_FIGURE} km\b.*"),
    "meter": re.compile(rf"{_FIGURE} m\b.*"),
    "kilowatt hour": re.compile(rf"{_FIGURE} kWh\b.*"),
    "year": re.compile(rf"{_FIGURE} years\b.*"),
    "US dollar": re.compile(rf"\${_FIGURE} \(.*"),
    "": re.compile(r"([\d,]{4,})() \(.*"),
}
_SIMPLE_CAPITAL = re.compile(r"[A-ZÀ-Ž][\w'. -]{2,30}")


def main() -> None:
    """Write the file and say how many facts stood the test."""
    index = load_index("starter:factbook")
    shared = _shared_names()
    values = {
        label: _values(figure, [passage for passage in passages() if passage.country not in shared], index)
        for label, figure in load_figures().items()
    }
    capitals = {country: capital for country, capital in _capitals(index).items() if country not in shared}
    document = {"values": values, "capitals": capitals}
    path = asset(FACTS_FILE)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    counts = ", ".join(f"{label} {len(found)}" for label, found in values.items())
    sys.stdout.write(f"{counts}, capitals {len(capitals)}\n")


def _shared_names() -> set[str]:
    """Names that two articles share ("Congo"): a question about one of them has two answers."""
    titles = Counter(passage.title for passage in passages() if passage.path == ("Geography", "Location"))
    return {title.partition(SEPARATOR)[0] for title, count in titles.items() if count > 1}


def _values(figure: AtlasFigure, among: Sequence[FactbookPassage], index: Index) -> dict[str, float]:
    found = {}
    for passage in among:
        if " ".join(passage.path) != figure.words:
            continue
        value = _stated(figure, passage.text)
        query = f"{passage.country} {figure.words}"
        if value > 0 and index.search(query, 1) == [passage.shown] and _reads(passage, value):
            found[passage.country] = value
    return found


def _stated(figure: AtlasFigure, text: str) -> float:
    """The figure that a passage states in the expected unit, or 0."""
    found = _PLAIN[figure.unit].fullmatch(text)
    return round(float(found[1].replace(",", "")) * _SCALES[found[2] or ""], 6) if found else 0.0


def _reads(passage: FactbookPassage, value: float) -> bool:
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
