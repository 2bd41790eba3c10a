"""A pool's own tasks: what a person adds, edits or strikes survives every making of tasks."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pool_registry.atomic_write import write_atomically
from trainer.errors import UnusableTasks
from trainer.tasks.practice import task_book
from trainer.tasks.practice.task_book import ChangedTask, TaskBook
from trainer.tasks.registry import open_source
from trainer.tasks.sources.jsonl import TaskLine


def write_line(query: str, answer: object = 1, **fields: object) -> TaskLine:
    return TaskLine.model_validate({"query": query, "answer": answer, "split": "train", **fields})


def list_queries(book: TaskBook) -> list[str]:
    return [row.task.query for row in book.read() if row.task]


@pytest.fixture
def book(tmp_path: Path) -> TaskBook:
    """A book with four made tasks."""
    book = TaskBook(tmp_path / "shop.jsonl")
    book.replace_made([write_line(f"made {k}") for k in range(4)])
    return book


def make_again(book: TaskBook, count: int = 5) -> None:
    book.replace_made([write_line(f"made {k}") for k in range(count)])


def test_made_tasks_take_the_place_of_made_ones(book):
    merge = book.replace_made([write_line("made anew")])
    assert list_queries(book) == ["made anew"] and (merge.made, merge.own, merge.struck) == (1, 0, 0)


def test_an_added_task_stays(book):
    book.add([write_line("mine")])
    make_again(book)
    assert list_queries(book) == ["mine", *(f"made {k}" for k in range(5))]


def test_a_struck_task_stays_out_until_it_is_put_back(book):
    book.strike("made 1?")
    make_again(book)
    assert "made 1" not in list_queries(book) and [row.key for row in book.list_struck()] == ["made 1"]
    book.restore("made 1")
    make_again(book)
    assert list_queries(book).count("made 1") == 1 and not book.list_struck()


def test_an_edited_task_stays_edited_and_its_first_form_stays_out(book):
    book.replace("made 1", write_line("better words", 7))
    book.replace("made 2", write_line("made 2", 99))
    make_again(book)
    rows = {row.key: row.line.answer for row in book.read()}
    assert rows["better words"] == 7 and rows["made 2"] == 99 and "made 1" not in rows
    assert len(rows) == 5


def test_what_is_edited_and_deleted_in_an_editor_counts_too(book):
    lines = book.file.read_text().splitlines()
    changed = json.loads(lines[0]) | {"query": "by hand"}
    book.file.write_text("\n".join([json.dumps(changed), "{broken", *lines[2:], ""]))
    make_again(book)
    assert list_queries(book) == ["by hand", "made 2", "made 3", "made 4"]
    assert [row.raw for row in book.read() if row.problems] == ["{broken"]


def test_other_lines_stay_byte_for_byte(book):
    odd = '{ "query" : "odd  spaces", "answer":1 }'
    book.file.write_text(f"{odd}\n{book.file.read_text()}")
    book.strike("made 0")
    assert book.file.read_text().startswith(f"{odd}\n")


def test_a_task_that_somebody_else_has_changed_is_not_struck_unseen(book):
    seen = book.find("made 0")
    book.replace("made 0", seen.line.model_copy(update={"answer": "theirs"}))
    with pytest.raises(UnusableTasks, match=r"changed it meanwhile.*theirs"):
        book.strike("made 0", seen.digest)
    book.strike("made 0", book.find("made 0").digest)
    assert "made 0" not in list_queries(book)


def test_removing_the_file_forgets_what_was_struck(book):
    book.strike("made 1")
    book.file.unlink()
    make_again(book)
    assert len(list_queries(book)) == 5


@pytest.mark.parametrize("change", ["strike", "restore"])
def test_a_task_that_is_not_there_is_told(book, change):
    with pytest.raises(UnusableTasks, match="no such task"):
        getattr(book, change)("nothing like it")


def test_a_query_that_is_there_already_is_refused_and_nothing_changes(book):
    before = book.file.read_bytes()
    with pytest.raises(UnusableTasks, match="already"):
        book.add([write_line("new"), write_line("Made 1".lower())])
    with pytest.raises(UnusableTasks, match="already"):
        book.replace("made 0", write_line("made 1"))
    assert book.file.read_bytes() == before


def test_two_writers_at_a_time_lose_nothing(book):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: book.add([write_line(f"mine {k}")]), range(24)))
    assert len(list_queries(book)) == 28


@pytest.mark.parametrize("writes", range(3))
def test_a_making_that_is_cut_off_between_two_writes_loses_no_task(book, monkeypatch, writes):
    left = iter(range(writes))

    def write_or_die(file, text):
        if next(left, None) is None:
            raise OSError("no space left on device")
        write_atomically(file, text)

    monkeypatch.setattr(task_book, "write_atomically", write_or_die)
    with pytest.raises(OSError, match="no space"):
        make_again(book, 6)
    monkeypatch.undo()
    make_again(book, 6)
    assert list_queries(book) == [f"made {k}" for k in range(6)] and not book.list_struck()


def test_the_marks_do_not_disturb_a_source(book):
    assert len(open_source(f"file:{book.file}").tasks("train", 10)) == 4


def test_an_edit_of_a_task_that_another_has_changed_since_is_refused_with_both(book):
    seen = book.find("made 1").digest
    book.replace("made 1", write_line("made 1", "theirs"), seen)
    with pytest.raises(ChangedTask, match=r"theirs.*yours") as refusal:
        book.replace("made 1", write_line("made 1", "yours"), seen)
    assert book.find("made 1").task.expected == "theirs"
    book.replace("made 1", write_line("made 1", "yours"), refusal.value.based_on)
    assert book.find("made 1").task.expected == "yours"


def test_a_book_that_moves_remembers_what_was_struck(book):
    book.strike("made 1")
    moved = book.file.with_name("other.jsonl")
    book.move(moved)
    assert not book.read() and len(TaskBook(moved).read()) == 3
    make_again(TaskBook(moved))
    assert "made 1" not in list_queries(TaskBook(moved))


def read_since(book: TaskBook) -> dict[str, datetime | None]:
    return {row.task.query: row.task.since for row in book.read() if row.task}


def test_own_tasks_say_since_when_they_are_there_and_made_ones_do_not(book):
    before = datetime.now(UTC)
    book.add([write_line("mine"), write_line("older", since="2026-11-01T10:00:00Z")])
    since = read_since(book)
    assert before <= since["mine"] <= datetime.now(UTC) and since["older"] == datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert since["made 1"] is None


def test_an_edit_does_not_make_a_task_new(book):
    book.add([write_line("mine")])
    since = read_since(book)["mine"]
    book.replace("mine", write_line("mine in better words", 2))
    assert read_since(book)["mine in better words"] == since
