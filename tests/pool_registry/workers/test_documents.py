"""Document search: a person's files become passages with sources; what cannot be read is told and harms nothing."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.documents import passages
from pool_registry.documents.passages import PASSAGE_CHARS, READERS
from pool_registry.errors import WorkerFault
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.pool_registry.support.documents import pdf


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "papers"
    (place / "more").mkdir(parents=True)
    (place / "bees.txt").write_text("Bees make honey.\n\n" + "filler words here\n\n" * 200 + "A drone has no sting.\n")
    (place / "more" / "manual.md").write_text("# Pump\nTurn the valve.\n\n# Filter\nRinse the sieve weekly.\n")
    (place / "report.pdf").write_bytes(pdf("Turnover rose", "Losses in Portugal"))
    (place / "stock.csv").write_text("item;amount\ntea;4\ncoffee;19\n")
    (place / "faq.jsonl").write_text(
        json.dumps({"title": "Returns", "text": "Send it back within 30 days."}) + "\n"
        + json.dumps({"question": "Do you ship abroad?", "answer": "To Iceland only."}) + "\n"
    )  # fmt: skip
    return place


def worker(path: object, **config) -> WorkerSpec:
    return WorkerSpec(name="docs", kind="documents", description="d", config={"path": str(path), "top_k": 1, **config})


def search(path: object, query: str, **config) -> Observation:
    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(worker(path, **config),))) as pool:
            return await pool.call(Action("docs", {"query": query}))

    return asyncio.run(once())


def check(path: object) -> str:
    async def once() -> str:
        async with live_pool(Pool(name="p", workers=(worker(path),))) as pool:
            return await pool.workers["docs"].worker.check()

    return asyncio.run(once())


@pytest.mark.parametrize(
    ("query", "source", "text"),
    [
        ("honey", "bees.txt, line 1", "Bees make honey."),
        ("drone sting", "bees.txt, line", "A drone has no sting."),
        ("rinse weekly", "more/manual.md, line 4", "Rinse the sieve weekly."),
        ("Portugal losses", "report.pdf, page 2", "Losses in Portugal"),
        ("coffee", "stock.csv, row 3", "item: coffee; amount: 19"),
        ("send back 30 days", "faq.jsonl, line 1", "Send it back within 30 days."),
        ("Iceland", "faq.jsonl, line 2", "answer: To Iceland only."),
    ],
)
def test_every_kind_of_file_is_found_with_its_source(folder, query, source, text):
    [found] = search(folder, query).value
    assert found["source"].startswith(source) and text in found["text"]


def test_one_file_is_enough_and_words_that_are_nowhere_say_so(folder):
    assert search(folder / "stock.csv", "tea").value == [{"source": "stock.csv, row 2", "text": "item: tea; amount: 4"}]
    assert search(folder, "xylophone").error.code == "no_hits"


def test_changed_new_and_deleted_files_are_noticed(folder):
    assert search(folder, "honey").ok
    (folder / "bees.txt").write_text("Wasps make paper.")
    assert search(folder, "honey").error.code == "no_hits" and search(folder, "wasps paper").ok
    (folder / "new.md").write_text("Zebras are striped.")
    assert search(folder, "zebras").ok
    (folder / "new.md").unlink()
    assert search(folder, "zebras").error.code == "no_hits"


def test_an_index_is_built_once_for_its_content(folder, monkeypatch):
    assert search(folder, "honey").ok
    from pool_registry.workers import documents

    monkeypatch.setattr(documents, "_open", {})  # as in a new process
    monkeypatch.setattr(passages, "read_passages", lambda files: pytest.fail("read again"))
    assert search(folder, "honey").ok


def test_check_counts_and_names_what_is_skipped(folder):
    assert check(folder).startswith("5 files, ") and "skipped" not in check(folder)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 rubbish")
    (folder / "picture.png").write_bytes(b"png")
    (folder / "blank.txt").write_text(" \n")
    (folder / "binary.txt").write_bytes(b"\0\1\2")
    (folder / "odd.jsonl").write_text("{not json")
    said = check(folder)
    assert said.startswith("5 files, ")
    for part in ("broken.pdf (the PDF cannot be read", "picture.png (only .txt", "binary.txt (is not text)",
                 "odd.jsonl (line 1 is no JSON", "blank.txt (holds no text)"):  # fmt: skip
        assert part in said
    assert search(folder, "honey").ok


def test_links_and_hidden_files_stay_unread(folder, tmp_path):
    (tmp_path / "private.txt").write_text("platypus")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "private.txt").write_text("platypus")
    (folder / ".hidden.txt").write_text("platypus")
    (folder / ".git").mkdir()
    (folder / ".git" / "notes.txt").write_text("platypus")
    (folder / "link.txt").symlink_to(tmp_path / "private.txt")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    assert search(folder, "platypus").error.code == "no_hits"
    assert "link.txt (a link)" in check(folder)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda place: None, "documents_missing"),
        (lambda place: place.mkdir(), "documents_empty"),
        (lambda place: (place.mkdir(), (place / "a.png").write_bytes(b"x")), "documents_empty"),
        (lambda place: place.write_text("x"), "documents_unreadable"),
        (lambda place: (place.mkdir(), (place / "a.txt").write_text("- a - b ! ?")), "no_words"),
    ],
)
def test_a_place_without_documents_says_so(tmp_path, make, code):
    make(tmp_path / "place")
    seen = search(tmp_path / "place", "x")
    assert (seen.status, seen.error.code) == (Status.EXEC_ERR, code)


def test_limits_are_told(folder, monkeypatch):
    monkeypatch.setattr(passages, "MAX_FILE_BYTES", 1000)
    assert "bees.txt (larger than 1,000 bytes)" in check(folder)
    monkeypatch.setattr(passages, "MAX_FILES", 2)
    assert "more than 2 files" in search(folder, "honey").error.message


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("grüße".encode(), "grüße"),
        (b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", "grüße"),
        ("grüße".encode("utf-16"), "grüße"),
        ("grüße".encode("cp1252"), "grüße"),
    ],
)
def test_encodings(tmp_path, raw, text):
    (tmp_path / "a.txt").write_bytes(raw)
    assert search(tmp_path / "a.txt", text).value[0]["text"] == text


def test_a_file_that_vanishes_between_listing_and_reading_is_skipped(folder):
    files = passages.find_documents(str(folder))
    (folder / "stock.csv").unlink()
    collection = passages.read_passages(files)
    assert [name for name, _ in collection.skipped] == ["stock.csv"] and collection.passages


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(READERS)), st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_passages_or_a_reason(suffix, raw):
    try:
        passages = list(READERS[suffix](f"a{suffix}", raw))
    except WorkerFault:
        return
    for passage in passages:
        json.dumps(passage.text).encode()
        assert len(passage.text) <= 4 * PASSAGE_CHARS and passage.source.startswith(f"a{suffix}, ")


def test_no_word_of_a_text_is_lost(tmp_path):
    words = [f"w{n}" for n in range(5000)]
    passages = READERS[".md"]("a.md", ("# h\n" + " ".join(words) + "\n\n## h2\n" + "\n".join(words)).encode())
    seen = " ".join(passage.text for passage in passages).split()
    assert [word for word in seen if word.startswith("w")] == words * 2
