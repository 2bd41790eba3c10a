"""How long the page's default orchestrator takes for each plain question: one at a time, with its model loaded.

    python bench/plain_questions.py [--checkpoint smollm2-reader] [--undrafted]

`--undrafted` writes one token in each pass of the model, as transformers does (drafted_decoding.py says what else is).
Prints one line of JSON; seconds are wall time from the question to the graded answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.generalization import load_plain_questions
from orchestrator.engine.episode_loop import NoSink
from orchestrator.policies.registry import orchestrator_factory
from pool_registry.calls.live_pool import live_pool
from pool_registry.language_models.batched_model import LoadedModel
from pool_registry.language_models.completion import Draw
from pool_registry.starter import starter_pool
from trainer.evaluation.trials import run_task

QUESTIONS = 30


async def time_questions(checkpoint: str) -> dict[str, float]:
    """Ask every question once, after a first one that loads the model."""
    tasks = load_plain_questions(QUESTIONS)
    seconds, right = [], []
    async with live_pool(starter_pool()) as pool:
        make = orchestrator_factory(checkpoint, pool)
        for task in (tasks[0], *tasks):
            started = time.perf_counter()
            episode = await run_task(task, make(None, Draw()), pool, NoSink())
            seconds.append(time.perf_counter() - started)
            right.append(episode.graded is not None and episode.graded.correct)
    return {
        "questions": len(tasks),
        "right": sum(right[1:]),
        "median_s": round(statistics.median(seconds[1:]), 2),
        "slowest_s": round(max(seconds[1:]), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="smollm2-reader")
    parser.add_argument("--undrafted", action="store_true")
    options = parser.parse_args()
    if options.undrafted:
        LoadedModel.draft_arguments = lambda *_: {}  # type: ignore[method-assign]
    print(json.dumps(asyncio.run(time_questions(options.checkpoint))))


if __name__ == "__main__":
    main()
