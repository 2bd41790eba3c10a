"""What-ifs on copies: the edited run changes copies, and shows what is other on them beside the originals."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from orchestrator.engine.process_identity import this_process
from orchestrator.errors import InvalidEdits
from pool_registry.storage.data_folder import choose_home
from studio.__main__ import app
from studio.forks import FOLDER
from studio.prepare import prepare_store
from tests.studio.support.shop_run import ShopRun, record_order

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> ShopRun:
    folder = tmp_path_factory.mktemp("shop")
    store = prepare_store(str(folder / "home"))
    try:
        return record_order(store, folder)
    finally:
        store.close()


@pytest.fixture
def home(shop) -> Path:
    return shop.database.parents[1] / "home"


@pytest.fixture
def what_if(shop, home, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(home))
    choose_home(str(home))

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["what-if", shop.episode, *arguments, "--home", str(home)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


def count_orders(shop) -> int:
    with closing(sqlite3.connect(shop.database)) as connection:
        return connection.execute("select count(*) from orders").fetchone()[0]


def test_the_check_names_the_steps_that_may_change_something(what_if):
    edit = '{"edit": "change", "step": 1, "arguments": {"item": "cup", "count": 9}}'
    assert json.loads(what_if("--edit", edit, "--check", "--json"))["effectful"] == [1, 2]


def test_the_edited_run_changes_copies_and_shows_both_worlds(what_if, shop, home):
    edit = '{"edit": "change", "step": 1, "arguments": {"item": "cup", "count": 9}}'
    shown = what_if("--edit", edit, "--on-copies")
    assert "a row of orders" in shown and "copy:     id 3, item cup, count 9" in shown
    assert "list.txt, line 3" in shown and "copy:     cups are ordered" in shown
    assert count_orders(shop) == 2 and (shop.notes / "list.txt").read_text() == "buy milk\ncups are ordered\n"
    assert not list((home / FOLDER).iterdir())


def test_a_step_whose_effects_cannot_be_copied_is_refused_before_anything_runs(what_if, shop):
    answer = '{"edit": "answer", "answer": "$1"}'
    with pytest.raises(InvalidEdits, match="no copy is needed"):
        what_if("--edit", answer, "--on-copies")


def test_copies_that_a_dead_process_left_are_swept_at_the_next_start(home):
    child = "from orchestrator.engine.process_identity import this_process; print(this_process(), end='')"
    dead = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout
    left, used = (
        home / FOLDER / quote(f"{name}.{owner}", safe="") for name, owner in (("a", dead), ("b", this_process()))
    )
    for folder in (left, used):
        folder.mkdir(parents=True)
    prepare_store(str(home)).close()
    assert not left.exists() and used.exists()
    used.rmdir()
