"""A file or folder is there whole or not at all, and no draft stays behind."""

from __future__ import annotations

import pytest

from pool_registry.atomic_write import draft_file, draft_folder, make_once, write_atomically


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a.json"
    write_atomically(path, "one ä")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    with pytest.raises(ZeroDivisionError), draft_file(path) as draft:  # noqa: PT012  (it fails while it is written)
        draft.write_text("half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"two" and list(tmp_path.iterdir()) == [path]


def test_a_folder_is_replaced_only_when_asked_to(tmp_path):
    folder = tmp_path / "deep" / "folder"
    for content in ("one", "two"):
        with draft_folder(folder, replace=True) as draft:
            (draft / "a").write_text(content)
    assert (folder / "a").read_text() == "two"
    with pytest.raises(OSError, match=r"not empty|exists"), draft_folder(folder) as draft:
        (draft / "a").write_text("three")
    assert (folder / "a").read_text() == "two" and list(folder.parent.iterdir()) == [folder]


def test_whoever_fills_a_folder_second_takes_what_the_first_one_made(tmp_path):
    def make(draft):
        (draft / "mine").write_text("x")
        (tmp_path / "folder" / "theirs").mkdir(parents=True)  # another process was faster

    assert make_once(tmp_path / "folder", make) == tmp_path / "folder"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"] and (tmp_path / "folder" / "theirs").exists()


def test_what_cannot_be_made_is_not_taken_for_made(tmp_path):
    def make(draft):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        make_once(tmp_path / "folder", make)
    assert not list(tmp_path.iterdir())
