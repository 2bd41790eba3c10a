"""Which workers of a pool of 200 are found for a query: Recall@8 by words, by meaning, and as the studio does it.

    python bench/retrieval.py [--json] [--save PATH]

200 tools of 20 domains (bench/data/tools.tsv), written for this: ten neighbours in each, so that the wrong weather
tool is always near. Each has one query that avoids the words of its description ("paraphrased"); half have another
in plain words (bench/data/plain_queries.tsv). One tool is right for each query, though a neighbour may do as well.
By how many of a paraphrased query's words occur on the right tool's card, these are split into an easier and a
harder half. Intervals are Wilson's, 95 %.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator.retrieval import choose_workers, sentence_vectors  # noqa: E402
from orchestrator.retrieval.choose_workers import WorkerProfile  # noqa: E402

DATA = Path(__file__).with_name("data")
K = 8
Z = 1.96


@dataclass(frozen=True, slots=True)
class Query:
    """`right` is the place of the tool that answers it, `shared` the part of its words on that tool's card."""

    text: str
    right: int
    group: str
    shared: float


def read(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def tools() -> list[WorkerProfile]:
    return [
        WorkerProfile(
            row["name"], row["description"], tuple(argument.split(":")[0] for argument in row["arguments"].split(", "))
        )
        for row in read("tools.tsv")
    ]


def queries(cards: Sequence[WorkerProfile]) -> list[Query]:
    places = {card.name: place for place, card in enumerate(cards)}
    rows = [("paraphrased", row["name"], row["query"]) for row in read("tools.tsv")]
    rows += [("plain", row["name"], row["query"]) for row in read("plain_queries.tsv")]
    return [
        Query(text, places[name], group, share_of_common_words(text, cards[places[name]])) for group, name, text in rows
    ]


def share_of_common_words(text: str, card: WorkerProfile) -> float:
    words, card_words = (
        set(choose_workers.content_words(text)),
        set(choose_workers.content_words(card.words.replace("_", " "))),
    )
    return len(words & card_words) / max(1, len(words))


def place_of(query: Query, scores: Sequence[float]) -> int:
    """The place of the right tool in the ranking, from 0; ties count against it."""
    mine = scores[query.right]
    return sum(score >= mine for place, score in enumerate(scores) if place != query.right)


def interval(hits: int, count: int) -> tuple[float, float]:
    """Wilson's interval for a share."""
    share, square = hits / count, Z * Z / count
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / count + square / count / 4) / (1 + square)
    return round(middle - half, 3), round(middle + half, 3)


def recall(places: Sequence[int], k: int = K) -> dict[str, Any]:
    hits = sum(place < k for place in places)
    low, high = interval(hits, len(places))
    return {"recall": round(hits / len(places), 3), "low": low, "high": high, "queries": len(places)}


def rank_fusion(meaning: Sequence[float], words: Sequence[float]) -> list[float]:
    """Reciprocal rank fusion with the usual constant: the alternative that was not taken."""
    total = [0.0] * len(meaning)
    for scores in (meaning, words):
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        for position, place in enumerate(order, start=1):
            total[place] += (scores[place] > 0) / (60 + position)
    return total


def measure() -> dict[str, Any]:
    """Recall@8 of every ranking on every group of queries."""
    cards = tools()
    all_queries = queries(cards)
    started = time.perf_counter()
    ways: dict[str, Callable[[Query], Sequence[float]]] = {
        "words": lambda query: choose_workers.score_words(query.text, cards)
    }
    if sentence_vectors.find_weights() is not None:
        sentence_vectors.embed([*(card.meaning for card in cards), *(query.text for query in all_queries)])
        ways["meaning"] = lambda query: choose_workers.score_meaning(query.text, cards)
        ways["rank_fusion"] = lambda query: rank_fusion(ways["meaning"](query), ways["words"](query))
    ways["studio"] = lambda query: choose_workers.score_workers(query.text, cards)[0]
    seconds = time.perf_counter() - started
    paraphrased = sorted(
        (query for query in all_queries if query.group == "paraphrased"), key=lambda query: query.shared
    )
    half = len(paraphrased) // 2
    groups = {
        "paraphrased": paraphrased,
        "paraphrased_harder": paraphrased[:half],
        "paraphrased_easier": paraphrased[half:],
        "plain": [query for query in all_queries if query.group == "plain"],
        "all": all_queries,
    }
    result: dict[str, Any] = {}
    for name, scores in ways.items():
        places = {query: place_of(query, scores(query)) for query in all_queries}
        result[name] = {group: recall([places[query] for query in members]) for group, members in groups.items()}
        result[name]["all_at_24"] = recall([places[query] for query in all_queries], k=24)
    result["words_shared_with_the_card"] = {
        group: round(sum(query.shared for query in members) / len(members), 3) for group, members in groups.items()
    }
    result["set"] = {"tools": len(cards), "k": K, "embedding_s": round(seconds, 1)}
    return result


def table(result: dict[str, Any]) -> str:
    groups = list(result["words"])
    lines = [f"{'Recall@8':13}" + "".join(f"{group:>22}" for group in groups)]
    for way in ("words", "meaning", "rank_fusion", "studio"):
        if way in result:
            cells = (result[way][group] for group in groups)
            lines.append(f"{way:13}" + "".join(f"{format_recall(cell):>22}" for cell in cells))
    return "\n".join(lines)


def format_recall(cell: dict[str, Any]) -> str:
    return f"{cell['recall']:.3f} ({cell['low']:.2f}-{cell['high']:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    options = parser.parse_args()
    result = measure()
    if options.save:
        options.save.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()
