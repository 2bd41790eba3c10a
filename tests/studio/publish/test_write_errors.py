"""A write that fails, each in turn, while something is exported or published: the old state or the new one is there."""

from __future__ import annotations

from pathlib import Path

from pool_registry.errors import UnwritablePath
from pool_registry.storage.data_folder import find_home
from studio.publish.bundle import Bundle, Entry, write_folder
from studio.publish.publication_record import claim_record, list_records
from studio.publish.request import Publication
from tests.trainer.jobs.test_write_errors import fail_every_write


def write_version(out: Path, version: str) -> None:
    """Write a dry run, with the error of the disk as it was."""
    entries = tuple(Entry(name, version.encode(), "") for name in ("README.md", "app.py", "podium_files.json"))
    try:
        write_folder([Bundle("space", entries), Bundle("model", entries)], out)
    except UnwritablePath as error:
        assert "cannot be written" in str(error)
        assert isinstance(error.__cause__, OSError)
        raise error.__cause__ from None


def test_a_failing_write_leaves_a_dry_run_whole_as_it_was_or_as_it_is_to_be(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_version(out, "old")

    def check() -> None:
        texts = {path.read_text() for path in out.rglob("*") if path.is_file()}
        assert texts in ({"old"}, {"new"}) and len(list(out.rglob("*.py"))) == 2
        assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["out"]

    fail_every_write(tmp_path, lambda: write_version(out, "new"), check, monkeypatch)


def test_a_failing_write_leaves_a_publication_that_can_be_repeated(tmp_path, monkeypatch):
    home = find_home(tmp_path)
    (home.root / "publications").mkdir(exist_ok=True)
    publication = Publication(pool="starter", orchestrator="oracle", repo="mine")

    def publish() -> None:
        record = claim_record(home, publication)
        for stage in ("prepare", "create", "files"):
            record.start_stage(stage)
            record.finish_stage(stage)
        record.update(state="done", owner="")

    def check() -> None:
        for record in list_records(home):
            assert record.request == publication and record.state().state in ("ready", "running", "interrupted", "done")
            record.update(state="interrupted", owner="")

    fail_every_write(home.root / "publications", publish, check, monkeypatch)
    assert list_records(home)[0].state().state != "ready"
