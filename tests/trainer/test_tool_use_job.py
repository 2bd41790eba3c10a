"""A data set of tool use, from its file to a trained checkpoint with figures on the tasks that it became."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.checkpoints import Checkpoint, complete_steps, read_checkpoint
from orchestrator.traces.store import open_store
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from tests.trainer.support.tool_use_files import (
    ALPACA,
    BFCL_ANSWER,
    BFCL_QUESTION,
    GEMINI,
    GLAIVE,
    HERMES,
    OPENAI,
    OPENAI_DPO,
    SHAREGPT,
    TOOLBENCH,
    XLAM,
    write_lines,
)
from trainer.demonstrations.transcripts import Demonstration, load_demonstrations
from trainer.job_process import run_job
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe
from trainer.tasks.practice.stored import list_own_tasks
from trainer.tasks.sources.files.reader import ReadOptions
from trainer.tasks.tool_use.places import open_tool_data
from trainer.tasks.tool_use.recorded_pool import keep_recorded_pool, make_recorded_pool

pytestmark = pytest.mark.slow


def reword(record: dict, question: str) -> dict:
    """The record with a question of its own: an equal one would make no second task."""
    return json.loads(json.dumps(record).replace("How much tea?", question))


ABOUT_TEA = {"Is there tea?": GLAIVE, "Is any tea left?": TOOLBENCH, "How many packets of tea are left?": OPENAI_DPO}
# Of each other format a row.
OTHERS = (
    *(OPENAI, GEMINI, HERMES, XLAM, {**BFCL_QUESTION, **BFCL_ANSWER}),
    *(reword(record, question) for question, record in ABOUT_TEA.items()),
)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = open_store(find_home())
    yield opened
    opened.close()


def ask(item: str, stock: int) -> dict:
    chat = json.loads(json.dumps(SHAREGPT))
    chat["conversations"][1]["value"] = f"How much {item}?"
    chat["conversations"][2]["value"] = json.dumps({"name": "get_stock", "arguments": {"item": item}})
    chat["conversations"][3]["value"] = str(stock)
    return chat


def train(store, pool: str, model: dict, source: str, file: Path) -> tuple[Checkpoint, list[Demonstration]]:
    """Run a job of two steps on the lessons of `file`; its checkpoint, and what was learnt."""
    recipe = Recipe.model_validate(
        {
            "pool": pool,
            "model": model,
            "tasks": {"source": source},
            "sft": {
                "steps": 2,
                "batch": 2,
                "max_length": 2048,
                "demonstrations": {"file": str(file), "faults": 0, "starred": False, "variants": 0},
                "saving": {"every": 2, "check_tasks": 2},
            },
            "threads": 1,
        }
    )
    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(recipe, here=True).id
    run_job(key, store, jobs)
    folder = jobs.folder(key)
    assert (jobs.get(key).state, jobs.get(key).message) == ("done", ""), folder.log.read_text()[-3000:]
    (_, checkpoint), *_ = complete_steps(folder.checkpoints)
    return read_checkpoint(checkpoint, verify=True), load_demonstrations(folder.demonstrations)


def test_a_file_with_rows_of_each_format_ends_as_a_checkpoint(store, tiny_base, tmp_path):
    file = tmp_path / "calls.jsonl"
    file.write_bytes(write_lines(*(ask(f"tea {k}", k + 20) for k in range(12)), *OTHERS))
    data = open_tool_data(str(file), ReadOptions())
    keep_recorded_pool(store, make_recorded_pool(data, "shop"))
    learnt = sum(task.ref.split == "train" for task in list_own_tasks("shop"))
    model = {"base": str(tiny_base), "prompt": "reader"}
    about, rows = train(store, "shop", model, "practice:shop", file)
    assert about.pool.name == "shop" and "check/correct" in about.metrics
    lessons = 12 + len(OTHERS)
    assert [row.source for row in rows].count("file") == lessons and len(rows) == lessons + learnt


def test_questions_with_answers_and_no_tools_end_as_a_checkpoint(store, tiny_base, tmp_path):
    file = tmp_path / "alpaca.jsonl"
    sums = [{"instruction": f"What is {k} + 1?", "input": "", "output": str(k + 1)} for k in range(40)]
    file.write_bytes(write_lines(ALPACA, *sums))
    store.pools.save(starter_pool())
    about, rows = train(store, "starter", {"base": str(tiny_base)}, f"file:{file}", file)
    assert about.pool.name == "starter" and "check/correct" in about.metrics
    texts = {row.messages[-1].content for row in rows if row.source == "file"}
    assert texts == {"42", *(str(k + 1) for k in range(40))}
