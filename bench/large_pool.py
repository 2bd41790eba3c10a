"""A pool of more than a thousand real operations: whether the right one is among the eight found, and how soon.

    python bench/large_pool.py FOLDER [--reader smollm2-reader] [--questions 12] [--json] [--save PATH]

FOLDER holds OpenAPI documents, such as `spec/json` of github.com/twilio/twilio-oai, which is not part of this
repository. Seventy questions in people's words (bench/data/telephony_questions.tsv) were written before anything was
measured; each names the document and the operation that answers it, or several that do. Older twins of a document are
left out. Intervals are Wilson's, 95 %. Times are of the processor, for a query that was not seen, over cards that were.

With `--reader` an orchestrator is asked over the whole pool, whose workers return their call in place of making it. Of
evenly spread questions it counts those with a step of a right operation, and seconds on the clock of each.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.retrieval import format_recall, recall  # noqa: E402
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode  # noqa: E402
from orchestrator.policies.registry import orchestrator_factory  # noqa: E402
from orchestrator.retrieval import choose_workers, sentence_vectors  # noqa: E402
from orchestrator.retrieval.choose_workers import WorkerProfile  # noqa: E402
from pool_registry.calls.live_pool import live_pool  # noqa: E402
from pool_registry.imports import FreeNames  # noqa: E402
from pool_registry.language_models.completion import Draw  # noqa: E402
from pool_registry.pool import Pool  # noqa: E402
from pool_registry.worker import WorkerSpec  # noqa: E402

QUESTIONS = Path(__file__).with_name("data") / "telephony_questions.tsv"
TWINS = ("chat_v1", "ip_messaging_v1", "ip_messaging_v2", "preview", "studio_v1")  # of later versions in the folder
K = 8
NO_ARGUMENTS = {"type": "object", "properties": {}}


def read_operations(folder: Path) -> tuple[list[WorkerSpec], dict[str, int], float]:
    """All operations as they are imported, their places as DOCUMENT:operation, and the seconds."""
    from pool_registry.errors import InvalidPool
    from pool_registry.imports.openapi.operations import list_operations

    specs: list[WorkerSpec] = []
    places: dict[str, int] = {}
    start = time.process_time()
    for file in sorted(folder.glob("*.json")):
        name = file.stem.removeprefix("twilio_")
        if name in TWINS:
            continue
        try:
            offers = list_operations(file.read_bytes())
        except InvalidPool:  # a document without operations
            continue
        for offer in offers:
            places[f"{name}:{offer.spec.name}"] = len(specs)
            specs.append(offer.spec)
    return specs, places, time.process_time() - start


def make_card(spec: WorkerSpec) -> WorkerProfile:
    """What retrieval reads of a worker."""
    arguments = spec.config.get("parameters", {}).get("properties", {})
    return WorkerProfile(spec.name, spec.description, tuple(arguments))


def read_questions(places: dict[str, int]) -> list[tuple[str, list[int]]]:
    """Each question with the places of the operations that answer it. Raises KeyError for one that is not there."""
    names = {name.replace("_", "").casefold(): place for name, place in places.items()}
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        (row["question"], [names[answer.replace("_", "").casefold()] for answer in row["answers"].split("|")])
        for row in rows
    ]


def find_rank(scores: Sequence[float], right: Sequence[int]) -> int:
    """The best place of a right operation in the ranking, from 0; ties count against it."""
    best = max(scores[place] for place in right)
    return sum(score >= best for place, score in enumerate(scores) if place not in right)


def measure(folder: Path) -> dict[str, Any]:
    """Recall of every ranking, and the milliseconds of a query."""
    specs, places, import_s = read_operations(folder)
    cards = list(map(make_card, specs))
    questions = read_questions(places)
    ways: dict[str, Callable[[str], Sequence[float]]] = {"bm25": lambda text: choose_workers.score_words(text, cards)}
    start = time.process_time()
    if sentence_vectors.find_weights() is not None:
        sentence_vectors.embed([card.meaning for card in cards])
        ways["cosine"] = lambda text: choose_workers.score_meaning(text, cards)
    embed_s = time.process_time() - start
    ways["as shipped"] = lambda text: choose_workers.score_workers(text, cards)[0]
    rows = {}
    for name, score in ways.items():
        score("a first query loads what is loaded once")
        ranks = [find_rank(score(text), right) for text, right in questions]
        row: dict[str, Any] = {f"at_{k}": recall(ranks, k=k) for k in (1, K, 24)}
        row["milliseconds"] = round(statistics.median(_time(score, f"{text} ({name})") for text, _ in questions), 1)
        rows[name] = row
    return {"operations": len(cards), "import_s": round(import_s, 1), "embed_s": round(embed_s, 1), "ways": rows}


def _time(score: Callable[[str], Sequence[float]], text: str) -> float:
    start = time.process_time()
    score(text)
    return (time.process_time() - start) * 1000


def make_recorded_pool(specs: Sequence[WorkerSpec]) -> Pool:
    """The operations under names of their own; each returns its call, so that none leaves this machine."""
    names = FreeNames()
    workers = [
        WorkerSpec(
            name=names.choose(spec.name),
            kind="recorded",
            description=spec.description,
            config={
                "tool": spec.name,
                "parameters": spec.config.get("parameters", NO_ARGUMENTS),
                "replies": [],
                "echoes": True,
            },
        )
        for spec in specs
    ]
    return Pool(name="large", workers=tuple(workers))


async def ask_reader(folder: Path, reader: str, count: int) -> dict[str, Any]:
    """How often a step of the reader is a right operation, over `count` evenly spread questions."""
    specs, places, _ = read_operations(folder)
    questions = read_questions(places)
    chosen = questions[:: max(1, len(questions) // count)][:count]
    pool = make_recorded_pool(specs)
    rows = []
    async with live_pool(pool) as live:
        make = orchestrator_factory(reader, live)
        for text, right in chosen:
            started = time.perf_counter()
            episode = await run_episode(EpisodeSpec(text), make(None, Draw()), live)
            called = [run.step.worker for run in episode.steps.values()]
            names = {pool.workers[place].name for place in right}
            rows.append(
                {
                    "question": text,
                    "called": called,
                    "right": not names.isdisjoint(called),
                    "seconds": round(time.perf_counter() - started, 1),
                }
            )
    ranks = [0 if row["right"] else K for row in rows]
    seconds = round(statistics.median(float(str(row["seconds"])) for row in rows), 1)
    return {"orchestrator": reader, "right": recall(ranks, k=1), "median_s": seconds, "rows": rows}


def write_table(result: dict[str, Any]) -> str:
    reader = result.get("reader")
    lines = [
        f"{result['operations']:,} operations: imported in {result['import_s']} s, cards read once in "
        f"{result['embed_s']} s of processor time",
        f"{'':12}{'Recall@1':>22}{'Recall@8':>22}{'Recall@24':>22}{'ms a query':>12}",
    ]
    for name, row in result["ways"].items():
        cells = "".join(f"{format_recall(row[f'at_{k}']):>22}" for k in (1, K, 24))
        lines.append(f"{name:12}{cells}{row['milliseconds']:>12}")
    if reader:
        share = format_recall(reader["right"])
        lines.append(f"{reader['orchestrator']} called a right one: {share}, {reader['median_s']} s a question")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder with OpenAPI documents")
    parser.add_argument("--reader", default="", help="ask this orchestrator over the whole pool, too")
    parser.add_argument("--questions", type=int, default=12, help="how many questions the reader is asked")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--save", type=Path, help="also write the JSON here")
    options = parser.parse_args()
    result = measure(options.folder)
    if options.reader:
        result["reader"] = asyncio.run(ask_reader(options.folder, options.reader, options.questions))
    if options.save:
        options.save.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if options.json else write_table(result))


if __name__ == "__main__":
    main()
