"""Lessons in bulk are what a training would have collected, whoever makes them, and are learnt from as they lie."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.episode_loop import NoSink
from orchestrator.plan import Step, Turn
from orchestrator.reader.conversation import STATES
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from tests.orchestrator.support.engine import Scripted
from tests.trainer.support.waiting import until
from trainer.cli.lessons import find_method
from trainer.demonstrations.collect import DemonstrationCollector
from trainer.demonstrations.token_lessons import (
    MANIFEST,
    LessonsManifest,
    LessonsRequest,
    ShardRecord,
    add_shard,
    find_spans,
    load_lessons,
    make_labels,
    name_shard,
    read_manifest,
)
from trainer.errors import InvalidRecipe, TrainingFailed
from trainer.jobs.job_folder import JobFolder
from trainer.learner.token_transcript import ChatTokens
from trainer.methods.checks import load_tasks
from trainer.methods.sft.section import SftSettings
from trainer.methods.table import METHODS
from trainer.recipe import Recipe
from trainer.recipe_sections import DemonstrationSettings
from trainer.run_recipe import run_recipe
from trainer.tasks.shared_pools import list_brought_pools, make_vary

pytestmark = pytest.mark.medium

TASKS = 12


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.methods.sft.bulk_lessons.TASKS_PER_SHARD", 5)
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)


def a_recipe(base: Path, prompt: str = "reader-outputs", **demonstrations: object) -> Recipe:
    return Recipe.model_validate(
        {
            "model": {"base": str(base), "prompt": prompt},
            "tasks": {"source": "catalog*2 + ledger", "count": 5, "seed": 3},
            "pools": {"rename": 0.5},
            "sft": {
                "steps": 2,
                "batch": 2,
                "max_length": 4000,
                "saving": {"every": 1, "check_tasks": 0},
                "demonstrations": {"faults": 0, "needs_alone": 0.3, "starred": False, **demonstrations},
            },
        }
    )


def make(
    recipe: Recipe, folder: Path, count: int = TASKS, processes: int = 1, pool: Pool | None = None
) -> LessonsManifest:
    request = LessonsRequest(recipe, pool or starter_pool(), (), count, folder, processes)
    return METHODS["sft"].make_lessons(request, lambda _: None)


def find_settings(recipe: Recipe) -> SftSettings:
    return METHODS["sft"].require(recipe)


def load(recipe: Recipe, folder: Path) -> list[tuple[list[int], list[int]]]:
    rows = load_lessons(folder, recipe.model.prompt, load_chat(recipe).tokenizer, 4000)
    return [(row["input_ids"], row["labels"]) for row in rows]


def load_chat(recipe: Recipe) -> ChatTokens:
    from transformers import AutoTokenizer

    return ChatTokens(AutoTokenizer.from_pretrained(recipe.model.base, local_files_only=True))


def test_they_are_the_lessons_that_episodes_of_the_same_tasks_give(tiny_base: Path, tmp_path: Path):
    from trainer.methods.sft.stage import make_dataset

    recipe = a_recipe(tiny_base)
    make(recipe, tmp_path / "lessons", count=5)
    tasks = load_tasks(recipe.tasks, "train", 5)

    async def collect() -> list[tuple[list[int], list[int]]]:
        settings = find_settings(recipe)
        async with live_pool(starter_pool()) as live:
            vary = make_vary(live.pool, recipe.pools, settings.optimizer.seed, list_brought_pools(tasks), tasks)
            options, seed = settings.demonstrations, settings.optimizer.seed
            collector = DemonstrationCollector(options, recipe.model, live, NoSink(), seed, 4, vary)
            rows = make_dataset(await collector.collect(tasks), load_chat(recipe), 4000)
        return [(row["input_ids"], row["labels"]) for row in rows]

    assert load(recipe, tmp_path / "lessons") == asyncio.run(collect())


def test_what_is_there_is_kept_and_the_rest_made_as_if_at_once(tiny_base: Path, tmp_path: Path):
    recipe = a_recipe(tiny_base)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert make(recipe, whole).shards.keys() == {name_shard(0), name_shard(1), name_shard(2)}
    make(recipe, parts, count=5)
    first = (parts / name_shard(0)).stat().st_mtime_ns
    (parts / name_shard(1)).write_bytes(b"half a shard that nobody entered")
    make(recipe, parts, processes=2)
    assert (parts / name_shard(0)).stat().st_mtime_ns == first
    assert load(recipe, parts) == load(recipe, whole)
    (parts / name_shard(2)).unlink()
    with pytest.raises(TrainingFailed, match=r"shard-00002.parquet is gone or damaged"):
        load(recipe, parts)
    (parts / name_shard(0)).write_bytes((parts / name_shard(0)).read_bytes()[:100])
    with pytest.raises(TrainingFailed, match=r"shard-00000.parquet is gone or damaged"):
        load(recipe, parts)
    make(recipe, parts)
    assert load(recipe, parts) == load(recipe, whole)


def test_a_shard_that_was_the_last_and_shorter_is_made_again_when_more_are_wanted(tiny_base: Path, tmp_path: Path):
    recipe = a_recipe(tiny_base)
    assert make(recipe, tmp_path / "grown", count=7).tasks == 7
    assert make(recipe, tmp_path / "grown", count=12).tasks == 12
    assert make(recipe, tmp_path / "grown", count=7).tasks == 12, "fewer are wanted: what is there stays"
    make(recipe, tmp_path / "at_once", count=12)
    assert load(recipe, tmp_path / "grown") == load(recipe, tmp_path / "at_once")


def test_two_that_make_at_once_lose_none_of_each_others_entries(tiny_base: Path, tmp_path: Path):
    make(a_recipe(tiny_base), tmp_path, count=5)

    def enter(number: int) -> LessonsManifest:
        return add_shard(tmp_path, number, ShardRecord(tasks=5, lessons=5))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(enter, range(40)))
    assert len(read_manifest(tmp_path).shards) == 40


def test_a_source_that_runs_out_is_told_and_nothing_is_begun(tiny_base: Path, tmp_path: Path):
    rows = [{"query": f"How many are {place} pears?", "answer": place, "split": "train"} for place in range(4)]
    (tmp_path / "own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    recipe = a_recipe(tiny_base)
    source = f"file:{tmp_path / 'own.jsonl'}"
    few = recipe.model_copy(update={"tasks": recipe.tasks.model_copy(update={"source": source})})
    with pytest.raises(TrainingFailed, match="has 4 tasks to learn on"):
        make(few, tmp_path / "lessons", count=100)
    assert not (tmp_path / "lessons").exists()


def test_tasks_that_need_a_worker_which_the_pool_lacks_say_so(tiny_base: Path, tmp_path: Path):
    recipe = a_recipe(tiny_base)
    ledger = recipe.model_copy(update={"tasks": recipe.tasks.model_copy(update={"source": "ledger"})})
    for processes in (1, 2):
        with pytest.raises(TrainingFailed, match=r"lacks .*, which these tasks' reference plans call"):
            make(ledger, tmp_path / "lessons", processes=processes, pool=Pool(name="empty", workers=()))


@pytest.mark.slow
def test_its_processes_end_with_the_one_that_began_them(tiny_base: Path, tmp_path: Path):
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(a_recipe(tiny_base).model_dump(mode="json", exclude_defaults=True)))
    out = tmp_path / "lessons"
    command = [sys.executable, "-m", "trainer", "lessons", "make", str(file), "--out", str(out)]
    command += ["--count", "9000", "--processes", "2", "--home", str(tmp_path / "home")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = until(lambda: [child for child in psutil.Process(process.pid).children() if is_maker(child)] or None)
    process.kill()
    process.wait()
    until(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))
    assert read_manifest(out).shards == {} or read_manifest(out).lessons


def is_maker(child: psutil.Process) -> bool:
    return "spawn_main" in " ".join(child.cmdline())


def test_a_folder_of_other_lessons_is_left_alone(tiny_base: Path, tmp_path: Path):
    make(a_recipe(tiny_base), tmp_path / "lessons", count=5)
    before = (tmp_path / "lessons" / MANIFEST).read_bytes()
    with pytest.raises(TrainingFailed, match="other settings; name an empty folder"):
        make(a_recipe(tiny_base, needs_alone=0.7), tmp_path / "lessons", count=5)
    assert (tmp_path / "lessons" / MANIFEST).read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(TrainingFailed, match="holds no lessons"):
        make(a_recipe(tiny_base), tmp_path / "mine", count=5)


def test_a_readers_own_first_plans_that_its_pool_rejects_go_before_second_turns(
    tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def make_reader(_settings: DemonstrationSettings, pool: LivePool) -> Scripted:
        return Scripted(Turn((Step(1, min(pool.workers), {"nonsense": 1}, need="nonsense"),), "$1"))

    monkeypatch.setattr("trainer.methods.sft.bulk_lessons.make_slipping_reader", make_reader)
    monkeypatch.setattr("trainer.methods.sft.bulk_lessons.SLIPS_PER_SHARD", 5)
    recipe = a_recipe(tiny_base, "reader-turns", second_turns=1.0, slips="somebody")
    manifest = make(recipe, tmp_path / "lessons")
    assert manifest.shards.keys() == {name_shard(0), name_shard(1), name_shard(2)} and manifest.recipe["slips"]
    tokenizer = load_chat(recipe).tokenizer
    rows = load_lessons(tmp_path / "lessons", "reader-turns", tokenizer, 4000)
    texts = [tokenizer.decode(row["input_ids"]) for row in rows]
    assert len(texts) == TASKS and all(STATES in text and "nonsense" in text for text in texts)
    with pytest.raises(TrainingFailed, match="other settings; name an empty folder"):
        make(a_recipe(tiny_base, "reader-turns", second_turns=1.0), tmp_path / "lessons")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": {"prompt": "full"}, "sft": {}}, "model.prompt"),
        ({"sft": {"demonstrations": {"teacher": "smollm2-reader"}}}, "sft.demonstrations.teacher"),
        ({"sft": {"demonstrations": {"rounds": 2}}}, "sft.demonstrations.rounds"),
    ],
)
def test_what_needs_more_than_plans_is_refused(tmp_path: Path, change: dict, field: str):
    recipe = Recipe.model_validate({"model": {"prompt": "reader"}, **change})
    with pytest.raises(InvalidRecipe) as caught:
        make(recipe, tmp_path / "lessons")
    assert [place for place, _ in caught.value.problems] == [field] and not (tmp_path / "lessons").exists()


def test_a_recipe_whose_methods_learn_from_none_is_refused():
    with pytest.raises(TrainingFailed, match="no stage of this recipe learns from lessons; add one of: SFT"):
        find_method(Recipe.model_validate({"grpo": {"steps": 1}}))


def test_a_training_learns_from_them_without_a_teacher_and_refuses_those_of_another_prompt(
    tiny_base: Path, tmp_path: Path, store: Store
):
    folder = tmp_path / "lessons"
    make(a_recipe(tiny_base), folder)
    recipe = a_recipe(tiny_base, lessons=str(folder), teacher="model:nobody")
    other = recipe.model_copy(update={"model": recipe.model.model_copy(update={"prompt": "reader"})})
    method, settings = METHODS["sft"], find_settings(recipe)
    assert not list(method.find_gaps(settings, recipe, starter_pool(), store))
    (gap,) = method.find_gaps(settings, other, starter_pool(), store)
    assert "style reader-outputs" in str(gap) and "model.prompt: reader-outputs" in str(gap)

    job = JobFolder(tmp_path / "job").create()
    assert run_recipe(recipe, store, starter_pool(), job, lambda *_: None)
    newest = job.find_newest_checkpoint()
    assert newest is not None and newest[0] == 2
    assert not job.find_demonstrations(1).exists()


def test_a_malformed_manifest_is_told(tmp_path: Path):
    (tmp_path / MANIFEST).write_text('{"podium_lessons": 7}')
    with pytest.raises(TrainingFailed, match="malformed; make the lessons again"):
        read_manifest(tmp_path)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans())))
def test_spans_say_which_tokens_are_learnt(tokens: list[tuple[int, bool]]):
    ids = [token for token, _ in tokens]
    labels = [token if learnt else -100 for token, learnt in tokens]
    assert make_labels(ids, find_spans(labels)) == labels
