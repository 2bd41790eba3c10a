"""Train and evaluate on your own tasks: a file with one JSON object a line, read and graded by the oracle.

`python -m trainer tasks check FILE` tells every problem in such a file; a recipe names it as `source: file:FILE`.
A package can offer a source with an entry point; see docs/extend.md.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from orchestrator.engine.episode_loop import NoSink
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from trainer.evaluation.trials import run_task
from trainer.tasks.registry import open_source

ROWS = [
    {
        "query": f"A box holds {count} eggs. How many eggs are in {boxes} boxes?",
        "answer": count * boxes,
        "split": "test",
        "plan": {
            "steps": [{"worker": "calculator", "arguments": {"expression": f"{count} * {boxes}"}, "access": []}],
            "answer": "$1",
        },
    }
    for count, boxes in ((6, 7), (10, 12), (12, 30))
]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "eggs.jsonl"
        file.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
        tasks = open_source(f"file:{file}").tasks("test", 10)
    async with live_pool(starter_pool()) as pool:
        for task in sorted(tasks, key=lambda task: task.expected):
            oracle = make_orchestrator("oracle", pool, task.oracle_turn)
            episode = await run_task(task, oracle, pool, NoSink())
            print(task.query, episode.answer, "correct" if episode.graded.correct else "wrong")


if __name__ == "__main__":
    asyncio.run(main())
