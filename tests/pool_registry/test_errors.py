"""Errors that stand for others: a path that a person chose and that cannot be written."""

from __future__ import annotations

import pytest

from pool_registry.errors import UnwritablePath, writing_to


def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path):
    out = tmp_path / "no" / "such" / "file"
    reason = r"file cannot be written \(No such file or directory\); choose .* with --out"
    with pytest.raises(UnwritablePath, match=reason), writing_to(out):
        out.write_text("x")


def test_an_error_of_another_library_passes(tmp_path):
    with pytest.raises(OSError, match="no weights"), writing_to(tmp_path):
        raise OSError("no weights")
