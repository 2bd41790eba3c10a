"""`podium delete | rename | tidy | trash` on a data folder."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pool_registry.errors import StorageError
from pool_registry.pool import Pool
from studio.__main__ import app
from studio.prepare import prepare_store


@pytest.fixture
def podium(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))  # the commands choose it for their whole process
    store = prepare_store(str(tmp_path))
    store.pools.save(Pool(name="mine"))
    store.close()
    return lambda *words: CliRunner().invoke(app, [*words, "--home", str(tmp_path)], catch_exceptions=False)


def test_what_is_deleted_is_listed_and_put_back(podium):
    deleted = podium("delete", "pool", "mine")
    assert "podium trash restore" in deleted.output and "mine" not in podium("pool", "list").output
    key = deleted.output.split()[-1]
    assert key in podium("trash", "list").output
    assert "is back" in podium("trash", "restore", key).output and "mine" in podium("pool", "list").output


def test_a_pool_is_renamed_and_the_trash_emptied(podium):
    assert "now called ours" in podium("rename", "pool", "mine", "ours").output
    assert "1 things" in podium("trash", "empty", "--yes").output
    assert "empty" in podium("trash", "list").output


def test_retention_is_set_and_shown(podium):
    assert "drawn_days 30, served_days 90, trash_days 14" in podium("tidy", "--drawn-days", "30").output
    assert "drawn_days 30" in podium("tidy").output
    assert "drawn_days" not in podium("tidy", "--drawn-days", "0").output


def test_a_dry_run_with_another_retention_keeps_the_setting(podium):
    assert "drawn_days 1" in podium("tidy", "--drawn-days", "1", "--dry-run").output
    assert "drawn_days" not in podium("tidy").output


@pytest.mark.parametrize(
    ("option", "value"), [("--traces-days", "1000000"), ("--trash-days", "inf"), ("--jobs-gb", "inf")]
)
def test_a_retention_that_cannot_be_followed_is_refused_and_the_setting_stays(podium, option, value):
    with pytest.raises(StorageError, match="the retention stays as it is"):
        podium("tidy", option, value)
    assert podium("tidy").output.startswith("Retention: served_days 90, trash_days 14, copies 7, copies_days 30")


def test_a_data_folder_before_a_command_is_the_command_s(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "other"))
    store = prepare_store(str(tmp_path / "mine"))
    store.pools.save(Pool(name="shop"))
    store.close()
    deleted = CliRunner().invoke(app, ["--home", str(tmp_path / "mine"), "delete", "pool", "shop"])
    assert deleted.exit_code == 0, deleted.output
    assert "shop" not in CliRunner().invoke(app, ["pool", "list", "--home", str(tmp_path / "mine")]).output
    assert not (tmp_path / "other" / "podium.db").exists()


def test_an_option_of_the_page_before_a_command_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    refused = CliRunner().invoke(app, ["--port", "9000", "pool", "list"])
    assert refused.exit_code == 2 and "--port stands before pool" in refused.output


def test_what_is_not_there_is_said(podium):
    with pytest.raises(StorageError, match="there is no trace"):
        podium("delete", "trace", "nope")
    with pytest.raises(StorageError, match="use one of"):
        podium("delete", "elephant", "nope")
