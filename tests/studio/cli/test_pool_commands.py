"""`podium pool ...`: a pool is made, filled, checked, tried and kept as a file, without the page."""

from __future__ import annotations

import json
from unittest.mock import Mock

import keyring
import pytest
from typer.testing import CliRunner

from pool_registry.errors import InvalidPool, PoolError, SecretNotFound
from studio.__main__ import app
from tests.orchestrator.support.endpoint import Endpoint, endpoint
from tests.trainer.support.shop import build_shop

__all__ = ["endpoint"]


@pytest.fixture
def podium(tmp_path):
    """Runs a command on a data folder of its own; a problem is raised."""

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["pool", *words, "--home", str(tmp_path / "home")])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout

    return run


@pytest.mark.medium
def test_a_pool_is_made_filled_and_tried(podium, tmp_path):
    file = build_shop(tmp_path).workers[1].config["database"]
    podium("new", "crm")
    podium("add", "crm", "books", "--kind", "sql", "--description", "Reads the books.", "--set", f"database={file}")
    podium("add", "crm", "calc", "--kind", "calculator", "--description", "Calculates.")
    assert {"name": "crm", "version": 3, "workers": 2} in json.loads(podium("list", "--json"))
    assert "books (tool, sql): Reads the books." in podium("show", "crm")
    assert podium("test", "crm", "calc", "--arguments", '{"expression": "6 * 7"}').strip() == "42"
    query = json.dumps({"query": "select count(*) from customers"})
    assert json.loads(podium("test", "crm", "books", "--arguments", query, "--json"))["value"] == "15"
    assert "PARSE_ERR" in podium("test", "crm", "calc", "--arguments", '{"expression": "6 *"}', code=1)
    assert json.loads(podium("check", "crm", "--json"))["books"]["ok"]
    podium("switch", "crm", "calc", "--off")
    assert "calc (tool, calculator, off)" in podium("show", "crm")
    podium("remove", "crm", "books")
    assert "books" not in podium("show", "crm")


@pytest.mark.medium
def test_every_field_of_a_worker_is_set_from_the_command_line(podium):
    podium("new", "mine")
    settings = [
        *("--set", "base_url=https://models.example.com/v1", "--set", "config.model=m", "--set", "price_in=0.5"),
        *("--set", "judge_only=true", "--set", "effects=none", "--set", 'extra={"top_p": 0.9}'),
        *("--set", "output.pattern=YES|NO"),
    ]
    podium("add", "mine", "judge", "--kind", "chat", "--description", "Grades.", *settings)
    [added] = json.loads(podium("show", "mine", "--json"))["workers"]
    assert (added["price_in"], added["judge_only"], added["effects"]) == (0.5, True, "none")
    assert (added["config"]["model"], added["config"]["extra"]) == ("m", {"top_p": 0.9})
    assert added["output"]["pattern"] == "YES|NO"
    assert "judge (agent, chat, judge): Grades." in podium("show", "mine")
    podium("set", "mine", "judge", "--set", "timeout_s=9", "--set", "output=null", "--set", "extra.seed=3")
    [changed] = json.loads(podium("show", "mine", "--json"))["workers"]
    assert (changed["timeout_s"], changed["output"], changed["price_in"]) == (9, None, 0.5)
    assert changed["config"]["extra"] == {"top_p": 0.9, "seed": 3}
    podium("set", "mine", "judge", "--set", "name=referee")
    assert "referee (agent, chat, judge)" in podium("show", "mine")


@pytest.mark.medium
def test_what_a_changed_worker_newly_wants_is_confirmed_first(podium):
    podium("new", "mine")
    url = "base_url=https://models.example.com/v1"
    podium("add", "mine", "far", "--kind", "chat", "--description", "A model.", "--set", url, "--set", "model=m")
    key = ("set", "mine", "far", "--set", "api_key=env:SOME_KEY")
    podium(*key, code=1)
    assert "SOME_KEY" not in podium("show", "mine", "--json")
    podium(*key, "--yes")
    assert "env:SOME_KEY" in podium("show", "mine", "--json")


@pytest.mark.medium
def test_settings_hold_for_all_that_a_source_offers(podium, tmp_path):
    (tmp_path / "tools.py").write_text('def double(x: float) -> float:\n    """Twice a number."""\n    return 2 * x\n')
    podium("new", "sums")
    podium("add", "sums", "--from", f"function:{tmp_path / 'tools.py'}", "--set", "price_call=0.01")
    assert json.loads(podium("show", "sums", "--json"))["workers"][0]["price_call"] == 0.01


def test_a_pools_file_comes_back_byte_for_byte(podium, tmp_path):
    podium("new", "mine", "--copy-of", "starter")
    written = podium("show", "mine", "--json")
    (tmp_path / "mine.json").write_text(written, encoding="utf-8")
    podium("import", str(tmp_path / "mine.json"), "--name", "yours")
    assert podium("show", "yours", "--json").replace('"name": "yours"', '"name": "mine"', 1) == written


def test_a_worker_is_shown_in_one_line_whatever_its_docstring_holds(podium, tmp_path):
    (tmp_path / "tools.py").write_text(
        'def double(x: float):\n    """Twice\n    a number.\n\n    Example: double(4)\n    """\n    return 2 * x\n'
    )
    podium("new", "sums")
    podium("add", "sums", "--from", f"function:{tmp_path / 'tools.py'}")
    assert podium("show", "sums").splitlines()[1:] == ["  double (tool, function): Twice a number."]


def test_everything_that_a_file_of_functions_offers_is_added_or_one_of_it(podium, tmp_path):
    (tmp_path / "tools.py").write_text(
        'def double(x: float) -> float:\n    """Twice a number."""\n    return 2 * x\n\n\n'
        'def triple(x: float) -> float:\n    """Three times a number."""\n    return 3 * x\n'
    )
    podium("new", "all")
    assert "2 workers" in podium("add", "all", "--from", f"function:{tmp_path / 'tools.py'}")
    podium("new", "one")
    podium("add", "one", "triple", "--from", f"function:{tmp_path / 'tools.py'}", "--reads-only")
    assert [name for name in ("double", "triple") if name in podium("show", "one")] == ["triple"]
    assert podium("test", "one", "triple", "--arguments", '{"x": 4}').strip() == "12"
    assert '"effects": "none"' in podium("show", "one", "--json") and "none" not in podium("show", "all", "--json")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "nothing"], "there is no pool 'nothing'; there are: starter"),
        (["add", "starter", "x", "--kind", "nonsense", "--description", "d"], "nonsense"),
        (["add", "starter", "x", "--kind", "sql", "--description", "d", "--set", "database"], "FIELD=VALUE"),
        (["set", "starter", "calculator", "--set", "pric_in=2"], "a worker has name, description"),
        (["set", "starter", "atlas_search", "--set", "config.topk=2"], "the kind search has corpus, top_k"),
        (["set", "starter", "calculator", "--set", "timeout_s=soon"], "timeout_s"),
        (["set", "starter", "calculator", "--set", "price_in=NaN"], "price_in"),
        (["set", "starter", "calculator", "--set", "judge_only=true"], "only a language model can judge"),
        (["set", "starter", "calculator", "--set", "name.first=x"], "name holds"),
        (["set", "starter", "calculator"], "nothing to change"),
        (["add", "starter", "--from", "carrier:pigeon"], "--from takes function:"),
        (["add", "starter", "tools.py"], "--from function:FILE.py"),
        (["add", "nothing", "--from", "function:x.py"], "make it with: podium pool new nothing"),
        (["test", "starter", "calculator", "--arguments", "{"], "--arguments is not JSON"),
        (["test", "starter", "nobody"], "nobody"),
        (["import", "no/such/file.json"], "cannot be read"),
        (["new", "starter"], "there is a pool 'starter' already"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(podium, words, sentence):
    with pytest.raises(Exception) as raised:  # noqa: PT011  every kind of error that main() prints
        podium(*words)
    assert sentence in str(raised.value)


@pytest.fixture
def keyring_keys(monkeypatch):
    """What the system's keyring holds, by name."""
    kept: dict[str, str] = {}
    monkeypatch.setattr(keyring, "set_password", lambda _, name, key: kept.update({name: key}))
    monkeypatch.setattr(keyring, "get_password", lambda _, name: kept.get(name))
    return kept


KEY = "sk-" + "a1b2c3d4" * 5


@pytest.mark.medium
def test_keys_of_a_file_move_to_the_keyring_when_they_may(podium, tmp_path, keyring_keys):
    config = {"base_url": "https://models.example.com/v1", "model": "m", "api_key": KEY}
    worker = {"name": "far", "kind": "chat", "description": "A model.", "config": config}
    file = tmp_path / "pool.json"
    file.write_text(json.dumps({"podium_pool": 1, "name": "theirs", "workers": [worker]}))
    with pytest.raises(InvalidPool, match=r"--keys-to-keyring.*keyring set podium THEIRS_FAR_API_KEY"):
        podium("import", str(file))
    podium("import", str(file), "--keys-to-keyring")
    assert keyring_keys == {"THEIRS_FAR_API_KEY": KEY}
    document = podium("show", "theirs", "--json")
    assert "keyring:THEIRS_FAR_API_KEY" in document and KEY not in document
    config["api_key"] = KEY[::-1]
    file.write_text(json.dumps({"podium_pool": 1, "name": "theirs", "workers": [worker]}))
    with pytest.raises(SecretNotFound, match=r"another key under THEIRS_FAR_API_KEY.*keyring del"):
        podium("import", str(file), "--keys-to-keyring")
    assert keyring_keys == {"THEIRS_FAR_API_KEY": KEY}, "the pool that is there still has its key"


@pytest.mark.medium
def test_a_key_of_a_new_worker_is_refused_with_the_command_that_stores_it_or_moved(podium, keyring_keys):
    settings = (
        *("--set", "base_url=https://models.example.com/v1", "--set", "model=m"),
        *("--set", f"api_key={KEY}"),
    )
    worker = ("add", "mine", "far", "--kind", "chat", "--description", "A model.", *settings)
    podium("new", "mine")
    with pytest.raises(InvalidPool) as refused:
        podium(*worker)
    sentence = str(refused.value)
    assert "keyring set podium MINE_FAR_API_KEY, and write keyring:MINE_FAR_API_KEY" in sentence
    assert "--keys-to-keyring" in sentence and KEY not in sentence and keyring_keys == {}
    podium(*worker, "--keys-to-keyring")
    assert keyring_keys == {"MINE_FAR_API_KEY": KEY}
    assert '"api_key": "keyring:MINE_FAR_API_KEY"' in podium("show", "mine", "--json")
    podium("set", "mine", "far", "--set", f"api_key={KEY}2", "--keys-to-keyring")
    assert keyring_keys == {"MINE_FAR_API_KEY": f"{KEY}2"}, "a worker's own key may be renewed"


@pytest.mark.medium
def test_a_key_within_a_longer_setting_is_refused_with_what_to_write_instead(podium, keyring_keys):
    podium("new", "mine")
    with pytest.raises(InvalidPool, match=r"keyring set podium NAME") as refused:
        podium(
            *("add", "mine", "api", "--kind", "http", "--description", "An API.", "--keys-to-keyring"),
            *("--set", f"url=https://api.example.com/x?api_key={KEY}"),
        )
    assert KEY not in str(refused.value) and keyring_keys == {}


@pytest.mark.medium
def test_a_judge_is_measured_against_verdicts_of_a_file(podium, tmp_path, monkeypatch, endpoint):
    Endpoint.reply = staticmethod(lambda messages: "YES" if "good" in messages[-1]["content"] else "NO")
    podium("new", "mine")
    settings = [*("--set", f"base_url={endpoint}"), *("--set", "model=m"), *("--set", "judge_only=true")]
    podium("add", "mine", "referee", "--kind", "chat", "--description", "Grades.", *settings)
    judge = ("judge", "referee", "--pool", "mine")
    with pytest.raises(InvalidPool, match="Keep as a task"):
        podium(*judge)
    lines = [{"query": "?", "answer": text, "right": right} for text, right in (("good", True), ("bad", False)) * 9]
    lines += [{"query": "?", "answer": "good", "expected": "bad", "right": False}] * 2
    (tmp_path / "verdicts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    shown = podium(*judge, "--verdicts", str(tmp_path / "verdicts.jsonl"))
    assert shown.startswith("Judge referee agrees with 18 of 20 of your verdicts")
    assert "false yes 2, false no 0" in shown
    document = json.loads(podium(*judge, "--verdicts", str(tmp_path / "verdicts.jsonl"), "--json"))
    assert (document["agreeing"], document["verdicts"]) == (18, 20)
    with pytest.raises(Exception, match="has no worker 'nobody'"):
        podium("judge", "nobody", "--pool", "mine", "--verdicts", str(tmp_path / "verdicts.jsonl"))


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000])
def test_json_that_is_nested_beyond_reason_is_refused_in_a_sentence(podium, tmp_path, deep):
    (tmp_path / "deep.json").write_text(deep)
    with pytest.raises(PoolError):
        podium("import", str(tmp_path / "deep.json"))
    podium("new", "mine")
    podium("add", "mine", "calc", "--kind", "calculator", "--description", "Calculates.")
    with pytest.raises(InvalidPool, match="--arguments is not JSON"):
        podium("test", "mine", "calc", "--arguments", deep)


def test_what_is_piped_in_and_is_no_text_is_refused_in_a_sentence(podium, monkeypatch):
    podium("new", "mine")
    piped = Mock(read=Mock(side_effect=UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")))
    monkeypatch.setattr("studio.cli.sources.sys", Mock(stdin=piped))
    with pytest.raises(InvalidPool, match="not UTF-8 text"):
        podium("add", "mine", "--paste", "-")
