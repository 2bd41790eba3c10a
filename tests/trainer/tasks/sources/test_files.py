"""Files that people take for tasks: each is read right or refused in one sentence, and no other bytes become tasks."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.trainer.support.task_files import ANSWER, NAME, QUERY, TEXT_FILES, TOWN, write_parquet
from trainer.errors import UnusableTasks
from trainer.tasks.registry import open_source
from trainer.tasks.sources.files.cells import read_answer, read_expected
from trainer.tasks.sources.files.columns import ColumnChooser, UnclearColumns
from trainer.tasks.sources.files.kinds import SIGNATURES, name_kind
from trainer.tasks.sources.files.reader import ReadOptions, ReadTasks, read_task_file, read_tasks, require_tasks
from trainer.tasks.sources.jsonl import load_tasks

REFUSED = {
    "config.json": (b'{"mcpServers": {"memory": {"command": "npx"}}}', "has the columns mcpServers"),
    "calls.jsonl": (b'{"id": 1, "question": "q"}\n{"id": 2, "question": "r"}', "none is known to hold the answers"),
    "two.csv": (b"question,prompt,answer\na,b,1\n", "question and prompt could hold the queries"),
    "labels.csv": (b"question,answer,label\na,b,1\n", "answer and label could hold the answers"),
    "unnamed.csv": (b"a,b\nc,d\n", "has the columns a, b"),
    "broken.json": (b'[{"question": "a", "answer": 1},\n{"question"]', "no JSON list (Expecting ':'"),
    "empty.jsonl": (b"", "it is empty"),
    "prose.txt": (b"Once upon a time.\n" * 300, "300 of 300 lines"),
    "chat.jsonl": (b'[{"messages": [{"role": "user", "content": "q"}]}]', "answer: this is missing"),
    "torn.parquet": (b"PAR1" + b"\x15" * 40, "a Parquet file that cannot be read"),
    "damaged.csv": ("question,answer\nGröße,1\nWüste,2\n".encode() + b"\xe4,3\n", "is damaged on line 4"),
    "control.csv": (b"question,answer\n" + b"a,1\n" * 50 + b"b\x07,2\n", "on line 52"),
}


def read(content: bytes, **options: str) -> ReadTasks:
    return read_tasks(content, "this", "own", ReadOptions(**options))


def take(content: bytes, **options: str) -> list[tuple[str, object, str | None]]:
    """The query, answer and split of each task."""
    return [(line.query, line.answer, line.split) for line in require_tasks(read(content, **options), "this")]


def list_problems(content: bytes) -> dict[int, str]:
    return {line.number: line.problems[0] for line in read(content).lines if line.problems}


@pytest.mark.parametrize("name", [*TEXT_FILES, "parquet"])
def test_a_file_of_any_format_gives_its_tasks_and_says_how_it_was_read(tmp_path, name):
    file = write_parquet() if name == "parquet" else TEXT_FILES[name]
    tasks = read(file.content)
    (first, second) = [line.task for line in tasks.lines]
    assert file.form in tasks.form
    assert (" ".join(first.query.split()), " ".join(second.query.split())) == (QUERY, TOWN)
    assert first.verifier.accepts(ANSWER) and second.verifier.accepts(NAME) and not second.verifier.accepts("Graz")
    path = tmp_path / name
    path.write_bytes(file.content)
    source = open_source(f"file:{path}")
    assert sum(len(source.tasks(split, 9)) for split in ("train", "test")) == 2


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_without_clear_tasks_is_refused_with_what_it_is(name):
    content, words = REFUSED[name]
    with pytest.raises(UnusableTasks) as refusal:
        take(content)
    assert words in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["two.csv", "labels.csv", "unnamed.csv", "calls.jsonl"])
def test_columns_are_chosen_where_they_are_not_clear(name):
    content, _ = REFUSED[name]
    with pytest.raises(UnclearColumns) as refusal:
        take(content)
    query, answer = refusal.value.columns[0], refusal.value.columns[-1]
    assert take(content, query_column=query, answer_column=answer)
    with pytest.raises(UnclearColumns, match="none is called 'frage'"):
        take(content, query_column="frage")
    with pytest.raises(UnusableTasks, match="name no column"):
        take(b'{"query": "a", "answer": 1}', query_column="a")


def test_the_exact_columns_of_a_task_table_win():
    assert take(b"query,answer,question,label\na,1,b,2\n") == [("a", 1, None)]


def test_a_data_set_takes_the_first_of_several_columns():
    columns = ColumnChooser("set", takes_first=True).choose(["prompt", "query", "question", "solution", "answer"])
    assert (columns.query, columns.answer) == ("question", "answer")


@pytest.mark.parametrize(
    ("encoding", "text", "name"),
    [
        ("cp1252", "question,answer\nWie heißt es auf Französisch?,Éléphant\n", "Windows-1252"),
        ("cp1251", "question,answer\nСтолица Франции и Германии?,Париж и Берлин\n", "Windows-1251"),
        ("shift_jis", "question,answer\n日本の首都はどこですか?,東京\n", "Shift-JIS"),
        ("gb18030", "question,answer\n六乘七是多少?,四十二\n中国的首都是哪里?,北京\n", "GB 18030"),
        ("utf-16-be", "\ufeffquestion,answer\nGröße?,4\n", "UTF-16"),
    ],
)
def test_an_older_encoding_is_found_out_and_said(encoding, text, name):
    tasks = read(text.encode(encoding))
    assert f"in {name}" in tasks.form
    assert tasks.lines[0].task.query == text.removeprefix("\ufeff").split("\n")[1].split(",")[0]


def test_an_encoding_that_is_named_is_used():
    content = "question,answer\nGröße?,Maß\n".encode("cp850")
    tasks = read(content, encoding="cp850")
    assert tasks.lines[0].task.query == "Größe?" and "in CP850" in tasks.form
    for encoding, words in (("nope", "no encoding 'nope'"), ("base64", "no encoding"), ("utf-8", r"utf-8 \(line 2\)")):
        with pytest.raises(UnusableTasks, match=words):
            read(content, encoding=encoding)


def test_a_quoted_cell_may_have_several_lines_and_problems_keep_their_lines():
    content = b'question,answer\n"Add:\n- 1\n- 2",3\n\nno answer\na,b,c\n"never closed,4\nlost,5\n'
    assert take(content) == [("Add:\n- 1\n- 2", 3, None)]
    problems = list_problems(content)
    assert {6: "answer: this is missing"}.items() <= problems.items()
    assert "3 cells" in problems[7] and "never ends" in problems[8] and len(problems) == 3


def test_splits_are_those_of_the_file():
    content = b"question,answer,Split\na,1,dev\nb,2,Training\nc,3,\nd,4,holdout\n"
    assert [split for _, _, split in take(content)] == ["validation", "train", None]
    assert list(list_problems(content)) == [5]
    assert take(b"question,answer,subset\na,1,algebra\nb,2,test\n") == [("a", 1, None), ("b", 2, "test")]


def test_a_file_of_task_lines_means_what_it_did(tmp_path):
    lines = [
        {"query": "a", "answer": "So\n#### 4"},
        {"query": "b", "answer": "42"},
        {"query": "c", "answer": ["x", "y"], "verifier": "set", "split": "test", "family": "f"},
        {"query": "d", "anwser": 1},
        {"query": "e", "answer": 1, "label": 2},
        {"query": "a", "answer": 5},
        "broken",
    ]
    path = tmp_path / "mine.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_bytes("\n".join(texts).encode() + b'\n{"query": "Gr\xf6\xdfe \xc3\xa4\xc3\xb6\xc3\xbc", "answer": 1}\n')
    before, tasks = load_tasks(path), read_task_file(path)
    assert [line.task for line in tasks.lines if line.task] == list(before.tasks) and len(before.tasks) == 3
    assert [(line.number, problem) for line in tasks.lines for problem in line.problems] == list(before.problems)
    assert {number for number, _ in before.problems} == {4, 5, 6, 7, 8}


def test_answers_of_several_forms_are_graded_by_any():
    row = {"question": "Where?", "answer": {"value": "NYC", "aliases": ["New York", "NYC"]}}
    (line,) = read(json.dumps(row).encode()).lines
    assert line.task.verifier.kind == "one_of" and line.task.expected == ("NYC", "New York")
    (line,) = read(b'{"question": "Where?", "answers": {"text": [], "answer_start": []}}').lines
    assert line.problems == ("answer: this is missing",)


@pytest.mark.parametrize(
    "text",
    [
        '{"query": "a", "answer": 4}\n{"query": "b", "answer": "Rome"}',
        "a\t4\nb\tRome",
        "query,answer\na,4\nb,Rome\n",
        'Query;Answer\r\n"a";4\r\nb;Rome\r\n',
    ],
)
def test_lines_and_tables_are_read_alike(text):
    rows = read(text.encode()).lines
    assert [(row.task.query, row.task.expected) for row in rows] == [("a", 4.0), ("b", "Rome")]


def test_problems_of_pasted_text_are_told_by_line():
    rows = read(b"a\t4\n\nno tab here\nc\t\na\t5").lines
    problems = {row.number: row.problems[0] for row in rows if row.problems}
    assert set(problems) == {3, 4, 5} and "same as on line 1" in problems[5]
    assert "a tab between them" in problems[3] and "missing" in problems[4]


def test_a_cell_of_several_lines_keeps_the_numbers_of_those_below():
    rows = read(b'query,answer\n"a\nlong one",4\nb,\n').lines
    assert [row.number for row in rows if row.problems] == [4]


@pytest.mark.parametrize(
    ("text", "answer"), [("4", 4), ("4.50", 4.5), ("1,234", 1234), (" Rome ", "Rome"), ("007x", "007x")]
)
def test_typed_answers_are_numbers_where_they_are(text, answer):
    assert read_answer(text) == answer and type(read_answer(text)) is type(answer)


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("Half is 24.\n#### 1,072", 1072),
        ("so $x = \\boxed{7}$", 7),
        ("Paris", "Paris"),
        (3, 3),
        ("#### 0", 0),
        (["USA", "United States"], ["USA", "United States"]),
        ("", None),
        (None, None),
        (float("nan"), None),
    ],
)
def test_the_answer_of_a_cell_is_what_stands_at_its_end(cell, answer):
    assert read_expected(cell) == (answer, "one_of" if isinstance(cell, list) else None)


@pytest.mark.parametrize(("signature", "kind"), SIGNATURES)
def test_a_file_of_another_kind_is_named(signature, kind):
    content = signature + b"\x00\x01\n{}\t1\n"
    with pytest.raises(UnusableTasks, match="it seems to be") as refusal:
        take(content)
    assert kind in str(refusal.value)
    assert name_kind(content.decode("utf-8", "replace").encode()), "also when a browser read it as text"


@pytest.mark.parametrize("size", [300, 3_000, 200_000])
def test_random_bytes_are_never_tasks(size):
    for seed in range(10):
        content = random.Random(seed).randbytes(size)
        for form in (content, content.decode("utf-8", "replace").encode()):
            with pytest.raises(UnusableTasks):
                take(form)


def test_pasted_pairs_are_not_taken_for_a_header():
    assert take(b"answer\t42\ngold\tAu\n") == [("answer", 42, None), ("gold", "Au", None)]
    with pytest.raises(UnclearColumns):
        take("Question\tLösung\na\t1\n".encode())


def test_a_few_slips_in_a_list_are_told_by_line():
    assert list(list_problems(b"a\t1\nno answer\nb\t2\n")) == [2]


def test_a_file_that_is_not_there_says_so(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(UnusableTasks, match="cannot be read"):
            read_task_file(path)


_CELLS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "text", "value"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_ROWS = st.lists(st.dictionaries(st.sampled_from(["question", "answer", "messages", "split", "x"]), _CELLS), max_size=4)


@given(
    st.binary(max_size=400)
    | st.text(max_size=400).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.text(alphabet='qa,;\t|"\n\r{}[]:1é', max_size=80).map(lambda text: f"question,answer\n{text}".encode("cp1252"))
    | st.binary(max_size=200).map(lambda data: b"PAR1" + data + b"PAR1")
    | _ROWS.map(lambda rows: json.dumps(rows).encode()),
    st.sampled_from([ReadOptions(), ReadOptions("cp1252"), ReadOptions("utf-16"), ReadOptions("", "question", "x")]),
)
@example(b"[" * 5000, ReadOptions())
@example(b'{"question": "a", "answer": ' + b"[" * 900 + b"]" * 900 + b"}", ReadOptions())
@example(b'[{"query": "a", "answer": [[[[]]]]}]', ReadOptions())
@example(b'{"query": "\\ud800", "answer": 1}', ReadOptions())
@example(b'[{"question": "\\ud800", "answer": 1}]', ReadOptions())
@example(b'question,answer\n"' + b"x" * 200_000 + b",1\n", ReadOptions())
@example(b'[{"question": "a", "answer": 1, "\\ud800": 2, "a\\nb": 3}]', ReadOptions())
@example(b"[1]", ReadOptions())
@settings(deadline=None)
def test_any_bytes_are_tasks_or_one_sentence(content, options):
    try:
        tasks = read_tasks(content, "this", "own", options)
        " ".join([tasks.form, *tasks.columns, *(problem for line in tasks.lines for problem in line.problems)]).encode()
        assert require_tasks(tasks, "this")
    except UnusableTasks as refusal:
        assert "\n" not in str(refusal)
        str(refusal).encode()


def test_a_named_column_is_known_without_case():
    options = ReadOptions(query_column="f r a g e", answer_column="ziel")
    content = b"Nr;Frage;Ziel\n1;Wieviel?;3\n"
    assert read_tasks(content, "this", "own", options).lines[0].task.query == "Wieviel?"
    assert "not used: Nr" in read_tasks(content, "this", "own", replace(options, query_column="Frage")).form


CHOICES = {
    "letters": {"question": "2 + 2?", "choices": ["3", "4", "5"], "answer": "B"},
    "index": {"question": "2 + 2?", "options": ["3", "4", "5"], "answer": 1},
    "labels": {"question": "2 + 2?", "choices": {"text": ["3", "4", "5"], "label": ["1", "2", "3"]}, "answerKey": "2"},
    "text": {"question": "2 + 2?", "choices": ["three", "four"], "answer": "four"},
}


@pytest.mark.parametrize("record", CHOICES.values(), ids=CHOICES)
def test_a_question_with_choices_names_them_and_takes_the_label_or_the_text(record):
    task = read(json.dumps(record).encode()).lines[0].task
    right, text = task.expected
    assert task.query.startswith("2 + 2?") and f"{right}. {text}" in task.query
    assert text in ("4", "four") and task.verifier.accepts(text) and task.verifier.accepts(right)
    assert not task.verifier.accepts("3")


def test_the_rule_of_a_markdown_table_is_no_task():
    table = b"| question | answer |\n|---|:--:|\n| What is 6 x 7? | 42 |\n"
    assert [(query, answer) for query, answer, _ in take(table)] == [("What is 6 x 7?", 42)]


def test_a_chat_that_a_table_holds_as_text_is_a_chat():
    chat = json.dumps([{"role": "user", "content": "What is 6 x 7?"}, {"role": "assistant", "content": "42"}])
    assert [(query, answer) for query, answer, _ in take(json.dumps({"messages": chat}).encode())] == [
        ("What is 6 x 7?", 42)
    ]


def test_contents_of_gemini_are_a_chat():
    chat = [{"role": "user", "parts": [{"text": "What is 6 x 7?"}]}, {"role": "model", "parts": [{"text": "42"}]}]
    assert [(query, answer) for query, answer, _ in take(json.dumps({"contents": chat}).encode())] == [
        ("What is 6 x 7?", 42)
    ]


def test_the_names_of_googles_older_rows_are_known():
    for names in (("text_input", "output"), ("input_text", "output_text")):
        row = dict(zip(names, ("What is 6 x 7?", "42"), strict=True))
        assert [(query, answer) for query, answer, _ in take(json.dumps(row).encode())] == [("What is 6 x 7?", 42)]


@pytest.mark.parametrize("name", ["contents", "messages"])
def test_a_column_of_chats_that_holds_none_gives_no_task(name):
    content = json.dumps({"id": 7, name: "Tea is a drink."}).encode()
    problem = f"{name}: this is no chat, a list of messages with roles; choose columns of queries and answers"
    assert list_problems(content) == {1: problem}
    assert take(content, query_column="id", answer_column=name) == [("7", "Tea is a drink.", None)]


def test_articles_of_squad_are_questions_with_their_paragraphs():
    question = {"question": "Where is Graz?", "id": "1", "answers": [{"text": "Austria", "answer_start": 11}]}
    paragraph = {"context": "Graz is in Austria.", "qas": [question, {"question": "Why?", "id": "2", "answers": []}]}
    articles = {"version": "v2.0", "data": [{"title": "Graz", "paragraphs": [paragraph]}]}
    tasks = read(json.dumps(articles, indent=1).encode())
    (right, unanswerable) = tasks.lines
    assert right.task.query == "Where is Graz?\n\nGraz is in Austria."
    assert right.task.verifier.accepts("Austria") and not right.task.verifier.accepts("Graz")
    assert unanswerable.task is None and "missing" in str(unanswerable.problems)


def test_what_a_question_is_read_with_is_a_text():
    rows = [{"question": "Where is Graz?", "context": {"title": ["Graz"]}, "answer": "Austria"}]
    (line,) = read(json.dumps(rows).encode()).lines
    assert line.task.query == "Where is Graz?"
