"""What a person reads for 30 questions, beside the value that the plan answers: before and after presentation/.

    python bench/answers.py [--orchestrator smollm2-reader] [--out bench/results/answers.json]

Ten questions on the starter pool and on each of two pools in bench/data, whose workers nothing is trained on. They were
written for this script, and no template was changed after they were asked. Whether an answer is right is another
question (bench/generalization.py): wrong ones and refusals stay in the table, to be seen as a person sees them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.finalizer import find_finalizer
from orchestrator.policies.registry import make_orchestrator
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import live_pool
from pool_registry.imports.functions import list_functions
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool

DATA, RESULTS = Path(__file__).parent / "data", Path(__file__).parent / "results"
RAW = re.compile(r'[{}"\[\]]|\d\.\d{7}')  # JSON, or more than six decimals
QUESTIONS = {
    "starter": [
        "How far is Lisbon from Oslo?",
        "convert 12 pounds to kilograms",
        "What is the capital of Portugal?",
        "How many days are there from 1 May 2026 to 24 December 2026?",
        "Is 1 May 2026 a public holiday in Germany?",
        "What is 1 / 7?",
        "How many people live in Norway?",
        "Which weekday is 14 July 2027?",
        "What is the molar mass of H2O?",
        "How many more people live in Spain than in Portugal?",
    ],
    "fresh_pools/library": [
        "Who wrote Ulysses?",
        "How many pages does Dune have?",
        "What does Petra owe?",
        "Who has Momo at home?",
        "On which shelf are the books of Jane Austen?",
        "How long does it take to read 730 pages?",
        "How many pages longer is Ulysses than Momo?",
        "What is the fine of Samir?",
        "On which shelf is Emma?",
        "Who wrote Dune and how many pages does it have?",
    ],
    "object_pools/boat_hire": [
        "Which boat has Lindqvist reserved?",
        "What kind of boat is the Swift?",
        "What does the Otter cost a student for 3 hours?",
        "How long is a relaxed tour from Millpond to Alder Bay?",
        "How is the wind at Stonepier on 2025-07-26?",
        "What does a paddle cost for 4 hours?",
        "Quote me the Mallard for 2 hours as a member",
        "How many seats does the Heron have?",
        "At which dock does Okafor start?",
        "Tell me about the Pike",
    ],
}  # fmt: skip


async def ask(pool: Pool, orchestrator: str, questions: list[str]) -> list[dict[str, str]]:
    """The value and the words for each question; the words are the value where nothing changes."""
    rows = []
    async with live_pool(pool) as live:
        for question in questions:
            episode = await run_episode(
                EpisodeSpec(question),
                make_orchestrator(orchestrator, live),
                live,
                finalizer=find_finalizer(orchestrator, live, for_person=True),
            )
            value, words = (as_text(answer) for answer in (episode.answer, episode.shown_answer))
            rows.append({"pool": pool.name, "question": question, "value": value, "words": words})
            print(f"{question}\n    {value}\n    {words}".replace("\n- ", "\n    - "), flush=True)
    return rows


async def open_pool(name: str) -> Pool:
    """The starter pool, or the functions of a file, which only look things up."""
    if name == "starter":
        return starter_pool()
    offers = await list_functions(str(DATA / f"{name}.py"))
    specs = (offer.spec.model_copy(update={"effects": "none"}) for offer in offers)
    return Pool(name=Path(name).name, workers=tuple(specs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orchestrator", default="smollm2-reader")
    parser.add_argument("--out", type=Path, default=RESULTS / "answers.json")
    options = parser.parse_args()
    rows = []
    for name, questions in QUESTIONS.items():
        rows += asyncio.run(ask(asyncio.run(open_pool(name)), options.orchestrator, questions))
    for column in ("value", "words"):
        raw = sum(bool(RAW.search(row[column])) for row in rows)
        print(f"{column}: JSON or more than six decimals in {raw} of {len(rows)}")
    options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
