"""A checkpoint whose files are not those that were saved is not used, exported or published."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.checkpoints import (
    MANIFEST,
    STARTERS,
    find_checkpoint,
    is_complete,
    open_checkpoint,
    read_checkpoint,
    starter_checkpoint,
    verify_checkpoint,
)
from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.model import checkpoint_policy
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from studio.export.checkpoint import export_checkpoint
from studio.orchestrators.notes import checkpoint_note
from studio.publish.model_repo import find_checkpoint_weights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a checkpoint that ships."""
    return Path(shutil.copytree(starter_checkpoint("starter-sft"), tmp_path / "copy"))


def change_a_byte(folder: Path) -> None:
    """Another byte in a file, of the same size and with the same time of its last change."""
    file = folder / "tokenizer.json"
    state, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def add_a_file(folder: Path) -> None:
    (folder / "special_tokens_map.json").write_text("{}")


CHANGES = pytest.mark.parametrize(
    ("change", "reason"), [(change_a_byte, "tokenizer.json is not the file"), (add_a_file, "was not saved with it")]
)
USES: dict[str, Callable[[Path, Path], object]] = {
    "orchestrate": lambda folder, _: checkpoint_policy(open_live_pool(starter_pool()), str(folder)),
    "publish": lambda folder, _: find_checkpoint_weights(str(folder)),
    "export": lambda folder, out: export_checkpoint(str(folder), "merged", out),
}


@CHANGES
@pytest.mark.parametrize("use", USES)
def test_a_changed_checkpoint_is_refused_also_when_it_was_used_before(folder, tmp_path, change, reason, use):
    USES[use](folder, tmp_path / "before")
    change(folder)
    with pytest.raises(UnknownOrchestrator, match=reason):
        USES[use](folder, tmp_path / "after")
    assert not (tmp_path / "after").exists()


@pytest.mark.medium
@CHANGES
def test_a_changed_checkpoint_is_not_trained_on(folder, change, reason):
    from trainer.learner.load_and_save import load_learner
    from trainer.recipe_sections import ModelSettings

    change(folder)
    with pytest.raises(UnknownOrchestrator, match=reason):
        load_learner(ModelSettings(base="starter:tiny", start=str(folder)), 0)


@pytest.mark.parametrize("name", STARTERS)
def test_what_ships_is_what_was_saved(name):
    if is_complete(starter_checkpoint(name)):
        assert open_checkpoint(name)[1].files


def test_hashes_are_read_once_until_a_file_changes(folder, monkeypatch):
    verify_checkpoint(folder)
    monkeypatch.setattr("orchestrator.checkpoints._sha256", lambda _: "no file is read")
    verify_checkpoint(folder)
    (folder / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    with pytest.raises(UnknownOrchestrator, match="damaged"):
        verify_checkpoint(folder)


def test_a_checkpoint_of_an_earlier_version_is_used_and_says_that_it_has_no_hashes(folder, caplog):
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "files": {}}))
    with caplog.at_level(logging.WARNING):
        assert verify_checkpoint(folder) == read_checkpoint(folder)
    assert "saved without hashes" in caplog.text
    assert "saved without hashes" in checkpoint_note(str(folder), starter_pool())
    assert "without hashes" not in checkpoint_note("starter-sft", starter_pool())


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-4711/run", "a\x00b"])
def test_a_name_that_no_folder_can_have_is_of_no_checkpoint(name):
    with pytest.raises(UnknownOrchestrator, match="there is no checkpoint"):
        find_checkpoint(name)
