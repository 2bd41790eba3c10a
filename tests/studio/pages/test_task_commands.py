"""The Tasks panel's commands: own tasks of a pool are made, read, added, written, edited, struck and tried."""

from __future__ import annotations

import json
import random
from base64 import b64encode

import pytest
from typer.testing import CliRunner

from studio.pages.train.commands import TrainCommands
from tests.studio.support.making import wait_for_making
from tests.trainer.support.shop import build_shop
from tests.trainer.support.task_files import TEXT_FILES, write_parquet
from trainer.__main__ import app
from trainer.errors import UnusableTasks
from trainer.tasks.practice.stored import find_practice_file
from trainer.tasks.sources.files.reader import read_task_file

PLAN = {
    "steps": [{"id": 1, "worker": "calc", "arguments": {"expression": "6 * 7"}, "access": []}],
    "answer": "$1",
}


@pytest.fixture
def send(runtime, tmp_path, monkeypatch):
    """Commands about the tasks of a shop, which has none yet."""
    runtime.store.pools.save(build_shop(tmp_path))
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    find_practice_file("shop").unlink(missing_ok=True)
    page = TrainCommands(runtime)

    def run(action: str, **fields) -> dict:
        return page.run(action, {"pool": "shop", **fields})

    return run


def make(send) -> tuple[dict, str]:
    """The tasks once they are made, and the sentence about it."""
    assert send("make_tasks", count=20)["making"]["pool"] == "shop"
    outcome = wait_for_making("shop").outcome
    return send("tasks", source="practice:shop")["tasks"], outcome


def write(**fields) -> dict[str, str]:
    """What the form sends for a task."""
    plain = {"query": "What is 6 * 7?", "answer": "42", "verifier": "", "split": "train", "plan": ""}
    return {**plain, **fields}


def test_made_tasks_leave_alone_what_a_person_did(send):
    made, _ = make(send)
    first, second = made["rows"][:2]
    assert send("strike_task", query=first["query"])["tasks"]["struck"] == [first["query"].rstrip(".?!")]
    edited = write(query=second["query"], answer="1", verifier="number")
    assert send("save_task", query=second["query"], task=edited)["ok"]
    again, outcome = make(send)
    queries = {row["query"]: row for row in again["rows"]}
    assert first["query"] not in queries and queries[second["query"]]["answer"] == "1"
    assert (again["own"], again["made"]) == (1, made["made"] - 2) and "of your own stay" in outcome


def test_pasted_lines_are_shown_with_problems_before_they_are_added(send):
    text = "What is 2 + 2?\t4\nno answer here\nCapital of Kenya?\tNairobi"
    preview = send("read_tasks", text=text)["preview"]
    assert preview["total"] == 2 and [problem["line"] for problem in preview["problems"]] == [2]
    examples = {row["verifier"]: dict(row["answers"]) for row in preview["examples"]}
    assert examples["number"] == {"4": True, "It is 4.": True, "5": False}
    assert examples["exact"]["NAIROBI"] and not examples["exact"]["It is Nairobi."]
    assert send("tasks", source="practice:shop")["tasks"]["own"] == 0
    added = send("add_tasks", text=text)
    assert added["message"] == "Added 2 tasks" and added["tasks"]["own"] == 2
    twice = send("add_tasks", text=text)
    assert not twice["ok"] and "already" in twice["problems"][0][1]


@pytest.mark.parametrize("name", [*TEXT_FILES, "parquet"])
def test_an_uploaded_file_is_read_as_the_commands_read_it(send, tmp_path, name):
    file = write_parquet() if name == "parquet" else TEXT_FILES[name]
    path = tmp_path / name
    path.write_bytes(file.content)
    checked = CliRunner().invoke(app, ["tasks", "check", str(path)])
    upload = {"name": name, "data": b64encode(file.content).decode()}
    preview = send("read_tasks", **upload)["preview"]
    assert (
        file.form in preview["form"] and preview["total"] == 2 and preview["form"] in " ".join(checked.output.split())
    )
    assert f"{name}: 2 tasks" in checked.output
    assert send("add_tasks", **upload)["tasks"]["own"] == 2


WRONG_LINES = (
    '{"query": "What is 6 * 7?", "answer": 42}',
    "nonsense",
    '{"query": "What is 6 * 7?", "answer": 42}',
    '{"query": "What is 6 * 8?"}',
    '{"query": "[b]x[/b]", "answer": "Paris", "split": "tomorrow"}',
    '{"query": "q", "answer": 1, "plan": {"steps": [{"worker": "ghost", "arguments": {}}], "answer": "$1"}}',
    '{"query": "r", "answer": 1, "plan": {"steps": [{"worker": "ghost", "arguments": {}}], "answer": "$2"}}',
    '{"query": "s", "answer": "a", "verifier": {"kind": "regex", "pattern": "("}}',
)


def test_the_command_and_the_page_find_the_same_problems(send, tmp_path, runtime, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    path = tmp_path / "wrong.jsonl"
    path.write_text("\n".join(WRONG_LINES))
    preview = send("read_tasks", text=path.read_text())["preview"]
    options = ["--pool", "shop", "--home", str(runtime.store.home.root)]
    checked = CliRunner().invoke(app, ["tasks", "check", str(path), *options]).output
    lines = {line.strip() for line in checked.splitlines()}
    problems = {f"line {problem['line']}: {problem['sentence']}" for problem in preview["problems"]}
    assert len(problems) >= 5 and problems == {line for line in lines if line.startswith("line ") and ": " in line}
    assert preview["lacking"] == ["ghost"] and "The plans call ghost, which this pool lacks." in lines


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_are_no_tasks_but_a_clear_error(send, tmp_path, seed):
    content = random.Random(seed).randbytes(200_000)
    path = tmp_path / "noise"
    path.write_bytes(content)
    with pytest.raises(UnusableTasks, match="seems to be binary data") as refused:
        read_task_file(path)
    for posted in ({"name": "noise", "data": b64encode(content).decode()}, {"text": content.decode("latin-1")}):
        ((_, problem),) = send("read_tasks", **posted)["problems"]
        assert "seems to be binary data; give lines such as" in problem
        assert problem.partition(" holds ")[2] == str(refused.value).partition(" holds ")[2]


def test_a_data_set_is_previewed_its_columns_chosen_and_its_rows_added(send, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "set").mkdir()
    for split, count in (("train", 9), ("test", 3)):
        rows = {"title": [f"{split} {n}?" for n in range(count)], "answer": [f"So\n#### {n}" for n in range(count)]}
        datasets.Dataset.from_dict(rows).to_parquet(tmp_path / "set" / f"{split}.parquet")
    posted = {"dataset": str(tmp_path / "set")}
    refused = send("read_tasks", **posted)
    assert "choose one below" in refused["problems"][0][1] and "title" in refused["columns"]
    preview = send("read_tasks", **posted, query_column="title")["preview"]
    assert preview["counts"] == {"train": 9, "validation": 0, "test": 3} and preview["rows"][0]["split"] == "test"
    added = send("add_tasks", **posted, query_column="title")
    assert added["message"] == "Added 12 tasks"
    missing = send("read_tasks", dataset="nobody/nothing-like-this")["problems"][0][1]
    assert "cannot be loaded" in missing and "OWNER/NAME" in missing


def test_columns_are_chosen_where_a_file_does_not_say(send):
    upload = {"name": "mine.csv", "data": b64encode(b"Aufgabe;Ergebnis\n6 mal 7?;42\n7 mal 7?\n2 mal 7?;14\n").decode()}
    refused = send("read_tasks", **upload)
    assert refused["columns"] == ["Aufgabe", "Ergebnis"] and "choose one below" in refused["problems"][0][1]
    chosen = {"query_column": "Aufgabe", "answer_column": "Ergebnis"}
    preview = send("read_tasks", **upload, **chosen)["preview"]
    assert (preview["total"], preview["left_out"], preview["query_column"]) == (2, 1, "Aufgabe")
    assert send("add_tasks", **upload, **chosen)["message"] == "Added 2 tasks"


def test_an_upload_that_is_torn_or_in_another_encoding_says_what_to_do(send):
    assert "choose it again" in send("read_tasks", name="a.csv", data="%")["problems"][0][1]
    upload = {"name": "a.csv", "data": b64encode("question,answer\nGröße?,1\n".encode("cp850")).decode()}
    preview = send("read_tasks", **upload, encoding="cp850")["preview"]
    assert preview["rows"][0]["query"] == "Größe?"
    assert "there is no encoding" in send("read_tasks", **upload, encoding="latin-99")["problems"][0][1]


@pytest.mark.parametrize("action", ["read_tasks", "add_tasks"])
def test_a_file_that_is_no_text_is_refused_as_a_whole(send, action):
    for content in (random.Random(7).randbytes(200_000), b"PK\x03\x04" + bytes(30)):
        for given in ({"text": content.decode("utf-8", "replace")}, {"data": b64encode(content).decode()}):
            reply = send(action, **given)
            assert not reply["ok"] and "holds no tasks: it seems to be" in reply["problems"][0][1]
    assert send("tasks", source="practice:shop")["tasks"]["own"] == 0


def test_a_written_task_shows_how_it_is_graded_and_is_saved_with_its_plan(send):
    task = write(plan=json.dumps(PLAN))
    tried = send("try_task", task=task, answer="It is 43.")["verifier"]
    assert (tried["kind"], tried["correct"]) == ("number", False)
    assert send("run_plan", task=task)["plan"] == {"answer": "42", "failure": "", "correct": True}
    row = send("save_task", task=task)["tasks"]["rows"][0]
    assert (row["origin"], row["workers"], row["split"]) == ("own", ["calc"], "train")


def test_a_function_of_ones_own_is_tried_in_the_sandbox(send):
    task = write(answer="", verifier="python", code="def check(answer, query):\n    return answer == 'yes'")
    assert send("try_task", task=task, answer="yes")["verifier"]["correct"] is True
    assert send("try_task", task=task, answer="no")["verifier"]["correct"] is False


def test_a_task_that_no_worker_can_do_needs_no_answer(send):
    task = write(answer="", verifier="refusal")
    tried = send("try_task", task=task, answer="No worker of this pool can do this: a song")["verifier"]
    assert (tried["kind"], tried["correct"]) == ("refusal", True)
    assert send("save_task", task=task)["ok"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"query": ""}, "query"),
        ({"answer": ""}, "answer"),
        ({"verifier": "number", "answer": "many"}, "answer"),
        ({"plan": "{"}, "plan"),
        ({"plan": json.dumps({**PLAN, "answer": "$2"})}, "plan"),
        ({"plan": json.dumps(PLAN).replace("calc", "abacus")}, "plan"),
        ({"verifier": "python", "code": "x = 1"}, "verifier"),
    ],
)
def test_problems_of_a_written_task_are_told_at_their_fields(send, fields, field):
    reply = send("save_task", task=write(**fields))
    assert not reply["ok"] and reply["problems"][0][0] == field


def test_tasks_are_found_by_words_and_split(send):
    send("add_tasks", text="Apples?\t1\nPears?\t2")
    send("save_task", task=write(split="test"))
    assert [row["query"] for row in send("tasks", source="practice:shop", words="pear")["tasks"]["rows"]] == ["Pears?"]
    assert send("tasks", source="practice:shop", split="test", words="6 *")["tasks"]["total"] == 1


def test_other_sources_are_shown_too(send, tmp_path):
    forge = send("tasks", source="forge", levels=[1])["tasks"]
    assert forge["rows"] and not forge["counts"] and "number" in forge["verifiers"]
    file = tmp_path / "mine.jsonl"
    file.write_text('{"query": "a", "answer": 1}\n{"query": 3}\n')
    mine = send("tasks", source=f"file:{file}")["tasks"]
    assert sum(mine["counts"].values()) == 1 and mine["problems"][0]["line"] == 2
    assert not send("tasks", source="nothing:here")["ok"]


def test_own_tasks_without_plans_name_every_teacher_there_is(send):
    send("add_tasks", text="\n".join(f"What is {k} + {k}?\t{2 * k}" for k in range(30)))
    reply = send("of_pool", name="shop")
    gap = next(gap for gap in reply["missing"] if gap["key"] == "sft.demonstrations.teacher")
    for way in ("podium tasks make", "What if", "smollm2-reader", "GRPO"):
        assert way in gap["sentence"]


def test_the_recipe_for_a_pool_has_its_tasks(send):
    make(send)
    recipe = send("of_pool", name="shop")["recipe"]
    assert (recipe["pool"], recipe["tasks"]["source"]) == ("shop", "practice:shop")


def test_an_edit_from_a_stale_tab_is_refused_and_the_next_save_replaces_the_other(send):
    assert send("save_task", task=write())["ok"]
    row = send("tasks", source="practice:shop")["tasks"]["rows"][0]
    edit = {"query": row["query"], "based_on": row["based_on"]}
    assert send("save_task", task=write(answer="43"), **edit)["ok"]
    refused = send("save_task", task=write(answer="44"), **edit)
    assert not refused["ok"] and "43" in refused["problems"][0][1] and "44" in refused["problems"][0][1]
    assert send("save_task", task=write(answer="44"), query=row["query"], based_on=refused["based_on"])["ok"]
    assert send("save_task", task=write(answer="45"), query=row["query"])["ok"], "an old client names nothing"
