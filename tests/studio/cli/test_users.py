"""The commands for people and tokens, and a studio that refuses to be reached without them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.__main__ import app
from studio.access.accounts import AccountError, Accounts, Tokens

pytestmark = pytest.mark.medium

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("home"))


@pytest.fixture
def store(home):
    opened = open_store(find_home(home))
    yield opened
    opened.close()


def said(*arguments: str, home: str, typed: str = "") -> str:
    done = CliRunner().invoke(app, [*arguments, "--home", home], input=typed, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_person_is_added_listed_and_removed(home, store):
    said("users", "add", "ada", home=home, typed=f"{PASSWORD}\n")
    assert Accounts(store.engine).check("ada", PASSWORD)
    assert said("users", "list", home=home).startswith("ada\tsince 20")
    said("users", "remove", "ada", home=home)
    assert said("users", "list", home=home) == ""
    with pytest.raises(AccountError, match="users list"):
        said("users", "remove", "ada", home=home)


def test_a_token_is_printed_once_listed_by_name_and_removed(home, store):
    token = said("tokens", "add", "notebook", home=home).strip()
    assert Tokens(store.engine).owner(token) == "notebook"
    assert token not in said("tokens", "list", home=home) and "notebook" in said("tokens", "list", home=home)
    said("tokens", "remove", "notebook", home=home)
    assert Tokens(store.engine).owner(token) is None


@pytest.mark.parametrize("arguments", [("--host", "0.0.0.0"), ("--login",)])
def test_a_studio_that_asks_for_a_login_wants_somebody_who_can(tmp_path, arguments):
    command = [sys.executable, "-m", "studio", "--no-browser", "--port", "18998", "--home", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "users add" in done.stderr and "Traceback" not in done.stderr
