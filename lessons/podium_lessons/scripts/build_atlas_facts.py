"""Builds podium_lessons/data/tasks/atlas.json: `python -m podium_lessons.scripts.build_atlas_facts`.

Tasks may ask for a figure when (1) the corpus states it plainly, (2) the search of a reference plan ranks that very
passage first, and (3) the rule-based reader reads the same number from it. All three are checked by execution, because
rankings cannot be predicted: sub-fields often come first.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence

from podium_lessons.families.atlas import FACTS_FILE, AtlasFigure, load_figures
from pool_registry.documents.bm25_index import Index
from pool_registry.errors import WorkerFault
from pool_registry.starter.factbook import SEPARATOR, FactbookPassage, passages
from pool_registry.starter.workers.extractor import country as read_country
from pool_registry.starter.workers.extractor import number as read_number
from pool_registry.workers.search import load_index

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
    """Write the file and print the number of facts."""
    index = load_index("starter:factbook")
    shared = _find_shared_names()
    values = {
        label: _collect_values(figure, [passage for passage in passages() if passage.country not in shared], index)
        for label, figure in load_figures().items()
    }
    capitals = {country: capital for country, capital in _collect_capitals(index).items() if country not in shared}
    document = {"values": values, "capitals": capitals}
    path = FACTS_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    counts = ", ".join(f"{label} {len(facts)}" for label, facts in values.items())
    sys.stdout.write(f"{counts}, capitals {len(capitals)}\n")


def _find_shared_names() -> set[str]:
    """Find names that two articles share ("Congo"): a question about such a name has two answers."""
    titles = Counter(passage.title for passage in passages() if passage.path == ("Geography", "Location"))
    return {title.partition(SEPARATOR)[0] for title, count in titles.items() if count > 1}


def _collect_values(figure: AtlasFigure, among: Sequence[FactbookPassage], index: Index) -> dict[str, float]:
    values = {}
    for passage in among:
        if " ".join(passage.path) != figure.words:
            continue
        value = _parse_figure(figure, passage.text)
        query = f"{passage.country} {figure.words}"
        if value > 0 and index.search(query, 1) == [passage.shown] and _is_read_as(passage, value):
            values[passage.country] = value
    return values


def _parse_figure(figure: AtlasFigure, text: str) -> float:
    """Parse the figure that a passage states in the expected unit; 0 where it does not."""
    match = _PLAIN[figure.unit].fullmatch(text)
    return round(float(match[1].replace(",", "")) * _SCALES[match[2] or ""], 6) if match else 0.0


def _is_read_as(passage: FactbookPassage, value: float) -> bool:
    try:
        return read_number(passage.shown) == value
    except WorkerFault:
        return False


def _collect_capitals(index: Index) -> dict[str, str]:
    """Collect capitals that belong to one country and whose name alone leads the search to it."""
    capitals: dict[str, str] = {}
    for passage in passages():
        capital = passage.text.split(";")[0].split(" (")[0].strip()
        if passage.path != ("Government", "Capital", "name") or not _SIMPLE_CAPITAL.fullmatch(capital):
            continue
        hits = index.search(f"Government Capital name {capital}", 1)
        if hits == [passage.shown] and read_country(hits[0]) == passage.country:
            capitals[passage.country] = capital
    names = list(capitals.values())
    return {country: capital for country, capital in capitals.items() if names.count(capital) == 1}


if __name__ == "__main__":
    main()
