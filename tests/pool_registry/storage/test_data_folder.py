"""What is built from files that ship can be shared by data folders; what somebody's own files say is not."""

from __future__ import annotations

from pool_registry.language_models.model_files import starter_folder
from pool_registry.starter.ledger import VERSION, ledger_database
from pool_registry.storage.data_folder import find_home
from pool_registry.workers.search import load_index


def test_data_folders_share_what_is_built_from_files_that_ship(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_BUILT", str(tmp_path / "built"))
    one, two = find_home(tmp_path / "one"), find_home(tmp_path / "two")
    assert ledger_database(one) == ledger_database(two) == tmp_path / "built" / f"ledger-v{VERSION}.db"
    assert starter_folder().is_relative_to(tmp_path / "built")


def test_without_a_shared_folder_each_data_folder_has_its_own(tmp_path, monkeypatch):
    monkeypatch.delenv("PODIUM_BUILT")
    assert find_home(tmp_path / "one").built == find_home(tmp_path / "one").artifacts


def test_the_index_of_a_persons_own_files_stays_in_their_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_BUILT", str(tmp_path / "built"))
    corpus = tmp_path / "own.jsonl"
    corpus.write_text('{"title": "Secret", "text": "the amber room"}\n')
    home = find_home(tmp_path / "home")
    assert load_index(str(corpus), home).search("amber", 1) == ["Secret: the amber room"]
    assert list(home.artifacts.glob("search-v*")) and not (tmp_path / "built").exists()
