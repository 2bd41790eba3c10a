"""A write that fails, each in turn, while something is exported: the old file or the new one is there, never a part."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.checkpoints import Checkpoint, read_checkpoint, seal
from pool_registry.errors import UnwritablePath
from studio.__main__ import app
from studio.cli.export import _write
from studio.export.checkpoint import export_checkpoint
from tests.trainer.jobs.test_write_errors import fail_every_write


def raise_cause(error: UnwritablePath) -> None:
    """Raise the error of the disk as it was."""
    assert "cannot be written" in str(error) and isinstance(error.__cause__, OSError)
    raise error.__cause__ from None


@pytest.mark.parametrize("name", ["pool.json", "link.json"])
def test_a_failing_write_leaves_an_exported_file_old_or_new(tmp_path, monkeypatch, name):
    (tmp_path / "link.json").symlink_to("pool.json")
    (tmp_path / "pool.json").write_text("old")

    def write() -> None:
        try:
            _write("new", tmp_path / name)
        except UnwritablePath as error:
            raise_cause(error)

    def check() -> None:
        assert (tmp_path / "pool.json").read_text() in ("old", "new")

    fail_every_write(tmp_path, write, check, monkeypatch)
    assert (tmp_path / name).read_text() == "new"
    assert (tmp_path / "link.json").is_symlink() and len(list(tmp_path.iterdir())) == 2


def test_a_failing_write_leaves_an_exported_checkpoint_whole_or_away(tmp_path, monkeypatch):
    folder, out = tmp_path / "checkpoint", tmp_path / "out" / "exported"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights" * 100)
    (folder / "config.json").write_text("{}")
    seal(folder, Checkpoint(name="tuned", kind="full", base="starter:tiny", stage="sft", step=1))

    def write() -> None:
        try:
            if not out.exists():
                export_checkpoint(str(folder), "merged", out)
        except UnwritablePath as error:
            raise_cause(error)

    def check() -> None:
        assert not out.exists() or read_checkpoint(out, verify=True).name == "tuned"

    fail_every_write(tmp_path / "out", write, check, monkeypatch)
    assert read_checkpoint(out, verify=True).name == "tuned"
    assert [path.name for path in out.parent.iterdir()] == ["exported"]


def test_a_pipe_gets_what_is_exported_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    done = CliRunner().invoke(app, ["export", "pool", "starter", "--out", str(pipe), "--home", str(tmp_path / "home")])
    reader.join(timeout=60)
    assert done.exit_code == 0 and read[0].startswith("{") and pipe.is_fifo()
    assert Path("/dev/null").is_char_device()
