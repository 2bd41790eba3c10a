"""Uploads stay in their folder under safe names; a key for the keyring is repeated nowhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keyring
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError
from starlette.exceptions import HTTPException

from studio.access.request_guards import SameOrigin
from studio.frame import uploads

KEY = "planted-4711-secret"


class MemoryKeyring(KeyringBackend):
    priority = 1

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class BrokenKeyring(MemoryKeyring):
    def set_password(self, service: str, username: str, password: str) -> None:
        raise KeyringError(f"cannot store {password}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def client(home: Path) -> TestClient:
    app = FastAPI()
    app.include_router(uploads.upload_routes())
    app.add_middleware(SameOrigin)
    return TestClient(app, base_url="http://127.0.0.1:7860")


@pytest.fixture
def memory() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_several_files_go_into_one_folder_under_the_home(client, home):
    first = client.post("/api/documents", params={"name": "notes.md"}, content=b"# Notes").json()
    more = {"name": "notes.md", "folder": first["folder"]}
    second = client.post("/api/documents", params=more, content=b"more").json()
    assert first["path"] == second["path"] and first["file"] != second["file"]
    assert Path(first["file"]).read_bytes() == b"# Notes" and Path(second["file"]).read_bytes() == b"more"
    assert Path(first["path"]).parent == home / "artifacts" / "documents"


def test_files_of_one_name_that_come_at_once_are_all_kept(client, monkeypatch):
    folder = client.post("/api/documents", params={"name": "first.md"}, content=b"# First").json()["folder"]
    all_here, stream = threading.Barrier(4), uploads._stream

    async def stream_together(request: Request, draft: Path) -> int:
        all_here.wait(30)
        return await stream(request, draft)

    def upload(number: int) -> str:
        fields = {"name": "notes.md", "folder": folder}
        return client.post("/api/documents", params=fields, content=str(number).encode()).json()["file"]

    monkeypatch.setattr(uploads, "_stream", stream_together)
    with ThreadPoolExecutor(4) as threads:
        files = list(threads.map(upload, range(4)))
    assert [Path(file).read_text() for file in files] == [str(number) for number in range(4)]


@pytest.mark.parametrize(
    "name", ["../../evil.txt", "/etc/evil.txt", "..\\..\\evil.txt", ".evil.txt", "a/b/evil.txt", "evil\n.txt"]
)
def test_a_name_cannot_leave_its_folder(client, home, name):
    answer = client.post("/api/documents", params={"name": name}, content=b"x").json()
    place = Path(answer["file"])
    assert place.parent.parent == home / "artifacts" / "documents" and not place.name.startswith(".")


@given(st.text(max_size=300))
def test_any_name_is_made_safe_or_refused(name):
    try:
        safe = uploads.safe_name(name + ".txt")
    except HTTPException as refused:
        assert refused.status_code == 415
        return
    assert safe.endswith(".txt") and "/" not in safe and "\\" not in safe and not safe.startswith(".")
    assert len(safe) <= 104 and safe.isprintable()


@pytest.mark.parametrize("name", ["evil.html", "evil.svg", "evil.py", "evil", "", "evil.txt.exe"])
def test_only_documents_that_can_be_searched_are_taken(client, home, name):
    assert client.post("/api/documents", params={"name": name}, content=b"x").status_code == 415
    assert not (home / "artifacts" / "documents").exists()


def test_a_file_that_is_too_large_or_empty_leaves_nothing(client, home, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 100_000)
    parts = (b"x" * 10_000 for _ in range(20))  # no content-length: only counting helps
    assert client.post("/api/documents", params={"name": "big.txt"}, content=parts).status_code == 413
    assert client.post("/api/documents", params={"name": "no.txt"}, content=b"").status_code == 400
    assert not [place for place in (home / "artifacts" / "documents").rglob("*") if place.is_file()]


@pytest.mark.parametrize("folder", ["..", "../..", "000000000000", "a" * 12, "/tmp"])
def test_a_folder_that_we_did_not_make_is_refused(client, folder):
    answer = client.post("/api/documents", params={"name": "a.txt", "folder": folder}, content=b"x")
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/api/documents?name=a.txt", "/api/keyring"])
def test_another_sites_page_may_neither_upload_nor_store(client, memory, path):
    answer = client.post(path, content=b"x", headers={"origin": "http://evil.example"})
    assert answer.status_code == 403 and memory.kept == {}


def test_a_key_goes_into_the_keyring_and_into_no_answer(client, memory):
    answer = client.post("/api/keyring", json={"name": "OPENAI_API_KEY", "value": f" {KEY}\n"})
    assert answer.json() == {"reference": "keyring:OPENAI_API_KEY"}
    assert memory.kept == {("podium", "OPENAI_API_KEY"): KEY}


@pytest.mark.parametrize(
    "body",
    [
        {"name": "a b", "value": KEY}, {"name": "A", "value": [KEY]}, {"value": KEY}, [KEY], KEY,
        {"name": "A", "value": f"{KEY}\n{KEY}"},
    ],
)  # fmt: skip
def test_what_is_refused_is_not_repeated(client, memory, body):
    answer = client.post("/api/keyring", json=body)
    assert answer.status_code in (400, 409) and KEY not in answer.text and memory.kept == {}


def test_a_keyring_that_does_not_answer_is_told_without_the_key(client, memory):
    keyring.set_keyring(BrokenKeyring())
    answer = client.post("/api/keyring", json={"name": "A_KEY", "value": KEY})
    assert answer.status_code == 409 and "export A_KEY=" in answer.json()["detail"] and KEY not in answer.text
