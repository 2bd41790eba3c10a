"""Files that people take for tasks: each is read right or refused in one sentence, and no other bytes become tasks."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainer.errors import UnusableTasks
from trainer.tasks.practice.pasted_lines import read_tasks, require_tasks
from trainer.tasks.practice.text_files import SIGNATURES, check_text, name_kind, read_text_file

RIGHT = {
    "array.json": '[{"query": "What is 6 x 7?", "answer": 42}]',
    "pretty.json": json.dumps([{"query": "What is 6 x 7?", "answer": 42}], indent=2),
    "lines.jsonl": '{"query": "What is 6 x 7?", "answer": 42}\n',
    "table.tsv": "query\tanswer\nWhat is 6 x 7?\t42\n",
    "table.csv": 'query,answer\r\n"What is 6 x 7?",42\r\n',
    "bom.csv": "\ufeffquery;answer\nWhat is 6 x 7?;42\n",
}
OTHER = {
    "alpaca.json": ('[{"instruction": "a", "input": "", "output": "42"}]', "the fields instruction, input, output"),
    "chat.jsonl": ('{"messages": [{"role": "user", "content": "q"}]}', "the fields messages"),
    "shares.jsonl": ('{"conversations": [], "tools": "[]"}', "the fields conversations, tools"),
    "config.json": ('{"mcpServers": {"memory": {"command": "npx"}}}', "the fields mcpServers"),
    "other.csv": ("question,answer\na,1\nb,2\n", "line 1, 'question,answer'"),
    "empty.jsonl": ("", "it is empty"),
    "prose.txt": ("Once upon a time.\n" * 300, "300 of 300 lines"),
}


def take(tmp_path, content: bytes) -> int:
    """How many tasks `podium tasks add --file` would add."""
    file = tmp_path / "given"
    file.write_bytes(content)
    text = read_text_file(file)
    return len(require_tasks(read_tasks(text, str(file), "given"), text, str(file)))


@pytest.mark.parametrize("name", RIGHT)
def test_the_forms_that_people_have_are_read(tmp_path, name):
    assert take(tmp_path, RIGHT[name].encode()) == 1


@pytest.mark.parametrize("name", OTHER)
def test_a_text_without_tasks_is_refused_with_what_it_seems_to_be(tmp_path, name):
    content, words = OTHER[name]
    with pytest.raises(UnusableTasks) as refusal:
        take(tmp_path, content.encode())
    assert words in str(refusal.value) and "query and answer" in str(refusal.value)


@pytest.mark.parametrize(("signature", "kind"), SIGNATURES)
def test_a_file_of_another_kind_is_named(tmp_path, signature, kind):
    content = signature + b"\x00\x01\n{}\t1\n"
    with pytest.raises(UnusableTasks, match="it seems to be") as refusal:
        take(tmp_path, content)
    assert kind in str(refusal.value)
    assert name_kind(content.decode("utf-8", "replace").encode()), "also when a browser read it as text"


@pytest.mark.parametrize("size", [300, 3_000, 200_000])
def test_random_bytes_are_never_tasks(tmp_path, size):
    for seed in range(10):
        content = random.Random(seed).randbytes(size)
        with pytest.raises(UnusableTasks):
            take(tmp_path, content)
        with pytest.raises(UnusableTasks):
            check_text(content.decode("utf-8", "replace"), "this")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\t1\n" * 50 + "Größe?\t4\n".encode("latin-1"), "not text in UTF-8 .line 51"),
        (b"a\t1\n" * 50 + b"b\x07\t2\n", "on line 51"),
    ],
)
def test_a_damaged_text_is_refused_with_its_line(tmp_path, content, words):
    with pytest.raises(UnusableTasks, match=words):
        take(tmp_path, content)


def test_a_few_slips_in_a_list_are_told_by_line():
    rows = read_tasks("a\t1\nno answer\nb\t2\n", "this", "own")
    assert [row.number for row in rows if row.problems] == [2]


@given(st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"[" * 5000)
@example(b'[{"query": "a", "answer": [[[[]]]]}]')
@example(b"[1]")
@settings(deadline=None)
def test_any_bytes_are_tasks_or_one_sentence(tmp_path_factory, content):
    try:
        assert take(tmp_path_factory.getbasetemp(), content) > 0
    except UnusableTasks as refusal:
        assert "\n" not in str(refusal)
