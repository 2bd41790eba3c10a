"""Every source gives the same tasks for the same seed, and never one task to two splits."""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import EntryPoint

import pytest

from orchestrator.engine.events import TaskRef
from trainer.errors import UnknownTask, UnusableTasks
from trainer.tasks.registry import PROVIDERS, TaskProvider, _make_provider, open_source
from trainer.tasks.sources import hub
from trainer.tasks.sources.files.columns import UnclearColumns
from trainer.tasks.sources.files.reader import ReadOptions
from trainer.tasks.sources.places import read_place
from trainer.tasks.sources.source import HasLevels, TaskList, choose_own_levels, guard_source
from trainer.tasks.suite import SPLITS
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText


@pytest.fixture
def local_file(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps({"query": f"question {n}", "answer": n}) for n in range(200)))
    return f"file:{path}"


@pytest.fixture
def local_hub(tmp_path, monkeypatch):
    """A data set in the form of the Hub's, in a folder, with columns and answers like GSM8K's and no validation."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    for split, count in (("train", 200), ("test", 20)):
        rows = {"question": [f"{split} {n}?" for n in range(count)], "answer": [f"So\n#### {n}" for n in range(count)]}
        (tmp_path / "set").mkdir(exist_ok=True)
        datasets.Dataset.from_dict(rows).to_parquet(tmp_path / "set" / f"{split}.parquet")
    return f"hub:{tmp_path / 'set'}"


@pytest.fixture(params=["forge", "suite:ledger,atlas", "local_file", "local_hub", "reasoning_gym:gcd"])
def source(request):
    name = request.param
    if name.startswith("reasoning_gym"):
        pytest.importorskip("reasoning_gym")
    return open_source(request.getfixturevalue(name) if name.startswith("local") else name)


def test_a_source_is_a_function_of_split_count_and_seed(source):
    first, again, other = (source.tasks("train", 12, seed) for seed in (0, 0, 1))
    assert [task.query for task in first] == [task.query for task in again]
    assert [task.query for task in first] != [task.query for task in other]
    assert [task.query for task in source.tasks("train", 5)] == [task.query for task in first[:5]]
    assert len({task.query for task in first}) == len(first) == 12
    assert all(task.ref.split == "train" and task.verifier.accepts(task.expected) for task in first)


def test_splits_share_no_query(source):
    queries = [{task.query for task in source.tasks(split, 20)} for split in SPLITS]
    assert len(set().union(*queries)) == sum(map(len, queries)) and all(queries)


def test_an_unknown_split_says_which_there_are(source):
    with pytest.raises(UnknownTask, match="train, validation, test"):
        source.tasks("holdout", 1)


def test_families_and_levels_get_the_same_share():
    tasks = open_source("ledger, atlas,forge").tasks("train", 90, levels=(1, 3))
    assert set(Counter((task.ref.family, task.ref.level) for task in tasks).values()) == {15}
    with pytest.raises(UnknownTask, match="levels"):
        open_source("ledger").tasks("train", 1, levels=(9,))


@pytest.mark.parametrize("name", ["", "nope", "ledger,nope", "suite:", "web:x", "ledger:"])
def test_an_unknown_source_lists_what_there_is(name):
    with pytest.raises(UnknownTask, match=r"ledger.*file:PATH.*hub:OWNER.*reasoning_gym:FAMILY"):
        open_source(name)


def test_a_file_without_a_task_says_how_to_look_into_it(tmp_path):
    (tmp_path / "bad.jsonl").write_text("nonsense")
    with pytest.raises(UnusableTasks, match="tasks check"):
        open_source(f"file:{tmp_path / 'bad.jsonl'}")


def test_lines_that_are_left_out_of_a_file_are_told(tmp_path, caplog):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"query": "one", "answer": 1, "split": "train"}\n{"query": "two"}\n')
    assert len(open_source(f"file:{path}").tasks("train", 9)) == 1
    assert "line 2" in caplog.text and "1 tasks remain" in caplog.text


def test_a_data_set_keeps_its_splits_and_gets_the_one_it_lacks(local_hub):
    source = open_source(local_hub)
    assert len(source.tasks("test", 1000)) == 20
    train, validation = (source.tasks(split, 1000) for split in ("train", "validation"))
    assert len(train) > 2 * len(validation) > 20
    assert {task.query for task in validation} <= {f"train {n}?" for n in range(200)}
    assert train[0].verifier.kind == "number" and str(train[0].verifier.expected).split(".")[0] in train[0].query


def test_the_rows_of_a_data_set_become_lines_with_its_splits(local_hub, monkeypatch):
    read = read_place(local_hub, ReadOptions())
    assert read.form.endswith("queries from question; answers from answer; splits from split")
    assert Counter(line.line.split for line in read.lines) == {"train": 200, "test": 20}
    assert {line.task.verifier.kind for line in read.lines} == {"number"}
    monkeypatch.setattr(hub, "MAX_LINES", 110)
    read = read_place(local_hub, ReadOptions())
    assert Counter(line.line.split for line in read.lines) == {"train": 100, "test": 10}, "of every part its share"
    assert "110 of its 220 rows" in read.form
    with pytest.raises(UnclearColumns, match="none is called 'title'"):
        read_place(local_hub, ReadOptions(query_column="title"))


def test_a_data_set_without_the_columns_says_which_are_needed(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "set").mkdir()
    datasets.Dataset.from_dict({"text": ["a"]}).to_parquet(tmp_path / "set" / "train.parquet")
    with pytest.raises(UnusableTasks, match="question"):
        open_source(f"hub:{tmp_path / 'set'}")


@pytest.mark.parametrize("address", ["", "nobody/nothing-like-this", "nobody/nothing:config"])
def test_a_data_set_that_is_not_there_says_what_to_check(address):
    pytest.importorskip("datasets")
    with pytest.raises(UnusableTasks, match="hub:"):
        open_source(f"hub:{address}")


@pytest.mark.parametrize(("family", "reason"), [("coin_flip", "constant"), ("n_queens", "Python"), ("nope", "gcd")])
def test_families_that_cannot_be_trusted_are_refused(family, reason):
    pytest.importorskip("reasoning_gym")
    with pytest.raises(UnknownTask, match=reason):
        open_source(f"reasoning_gym:{family}")


@pytest.mark.parametrize("family", ["prime_factorization", "boxnet", "chain_sum", "letter_counting"])
def test_the_graders_of_the_gym_are_total(family):
    pytest.importorskip("reasoning_gym")
    (task,) = open_source(f"reasoning_gym:{family}").tasks("train", 1)
    for answer in (None, "", "xyzzy", "{", "<answer></answer>", [1], 1e400, "9" * 60_000, True):
        assert task.verifier.accepts(answer) is False
    if task.expected is not None:
        assert task.verifier.accepts(f"I say <answer>{task.expected}</answer>")


def test_a_mixed_source_takes_blocks_in_shares_and_a_smaller_draw_is_its_beginning():
    source = open_source("ledger*2 + atlas + forge,itinerary")
    tasks = source.tasks("train", 32)
    families = Counter(task.ref.family for task in tasks)
    assert families == {"ledger": 16, "atlas": 8, "forge": 4, "itinerary": 4}
    assert all(
        len({task.ref.family in ("forge", "itinerary") for task in tasks[k : k + 4]}) == 1 for k in range(0, 32, 4)
    )
    assert [task.query for task in source.tasks("train", 9)] == [task.query for task in tasks[:9]]


def test_a_mixed_source_names_the_part_that_there_is_not():
    with pytest.raises(UnknownTask, match="riddles"):
        open_source("ledger + riddles")


def test_each_of_mixed_sources_gives_tasks_of_the_levels_that_it_has():
    mixed = open_source("worlds*2 + forge")
    levels = {(task.ref.family, task.ref.level) for task in mixed.tasks("train", 80, levels=(1, 4))}
    assert levels == {("worlds", 1), ("forge", 1), ("forge", 4)}
    assert {task.ref.family for task in mixed.tasks("train", 12, levels=(4,))} == {"forge"}
    assert len(mixed.tasks("train", 12, levels=(4,))) == 12
    with pytest.raises(UnknownTask, match="not 7"):
        mixed.tasks("train", 12, levels=(1, 7))


def test_a_source_is_asked_for_those_levels_that_it_has():
    assert choose_own_levels(open_source("worlds:held_out"), (1, 3, 4)) == (1, 3)
    assert choose_own_levels(open_source("worlds"), (4,)) == (4,)  # which it refuses, with the levels that it has


class LevelledSource:
    """A source of another package whose tasks have levels."""

    name = "steps"
    levels = (2, 3)

    def tasks(self, split, count, seed=0, levels=None):
        return [Task(TaskRef("steps", level, split, 0), f"{level}?", ExactText("a")) for level in levels or self.levels]


def test_a_source_of_another_package_keeps_its_levels(monkeypatch):
    row = TaskProvider("steps", "Steps.", lambda _: LevelledSource())
    monkeypatch.setitem(PROVIDERS._extensions.rows, "steps", row)
    monkeypatch.setitem(PROVIDERS._extensions.entries, "steps", EntryPoint("steps", "steps:ROW", "podium.tasks"))
    source = open_source("steps")
    assert choose_own_levels(source, (1, 2)) == (2,)
    mixed = open_source("steps + examples").tasks("train", 8, levels=(3,))
    assert {task.ref.level for task in mixed if task.ref.family == "steps"} == {3}
    plain = guard_source("plain", "toy 1.0", TaskList("plain", []))
    assert not isinstance(plain, HasLevels) and choose_own_levels(plain, (1, 2)) == (1, 2)


def test_an_entry_point_may_be_a_row_of_the_table():
    row = TaskProvider("steps", "Steps.", lambda _: LevelledSource(), "[:N]", "steps")
    assert _make_provider(EntryPoint("steps", "steps:ROW", "podium.tasks"), row) is row
