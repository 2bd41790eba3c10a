"""The table of promises: counts what was tried, tells a broken promise, and names tests that there are."""

from __future__ import annotations

import json

import pytest

from pool_registry.sandbox.levels import Level
from tests.trust import __main__ as trust
from tests.trust.promises import PROMISES, Promise

BROKEN = """
from tests.trust.trials import choose_trials, count_trials

def test_many():
    for number in range(choose_trials(3)):
        count_trials()
        assert number < 5
"""


def test_every_promise_names_tests_that_exist_and_has_a_name_of_its_own():
    names = [promise.name for promise in PROMISES]
    assert len(set(names)) == len(names)
    for promise in PROMISES:
        assert all((trust.ROOT / place).exists() for place in promise.tests), promise.name
        assert promise.quick <= promise.full


@pytest.mark.parametrize(
    ("failures", "trials", "bound"),
    [(0, 0, 1.0), (0, 1, 0.95), (0, 300, 0.00994), (1, 100, 0.0466), (5, 5, 1.0)],
)
def test_the_bound_is_that_of_clopper_and_pearson(failures, trials, bound):
    assert trust.bound_failures(failures, trials) == pytest.approx(bound, rel=0.01)


@pytest.mark.medium
def test_trials_are_counted_and_a_broken_promise_is_said(tmp_path, monkeypatch, capsys):
    broken = tmp_path / "test_broken.py"
    broken.write_text(BROKEN)
    rows = (
        Promise("holds", "It holds", "a number", "random", (str(broken),), "", 3, 5),
        Promise("breaks", "It breaks", "a number", "list", (str(broken),), "", 3, 9),
    )
    monkeypatch.setattr(trust, "PROMISES", rows)
    file = tmp_path / "trust.json"
    assert trust.main(["holds", "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())
    assert (row["trials"], row["failures"], row["skipped"]) == (5, 0, [])
    assert row["upper_bound"] == pytest.approx(0.4507, rel=0.01)
    assert "| It holds | a number | random | 5 | 0 | 45.07% |" in capsys.readouterr().out
    assert trust.main(["breaks", "--json", str(file)]) == 1
    out = capsys.readouterr().out
    assert "| It breaks | a number | list | 6 | 1 | – |" in out and "failed: " in out
    assert "| It holds | a number | random | 5 |" in out and len(json.loads(file.read_text())) == 2
    assert trust.main(["breaks", "--quick"]) == 0
    with pytest.raises(SystemExit):
        trust.main(["nothing"])


SKIPPED = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_many(number):
    pytest.skip("this machine has no such level")
"""


@pytest.mark.medium
def test_what_a_machine_lacks_is_named_and_does_not_count_as_held(tmp_path, monkeypatch, capsys):
    (skipped := tmp_path / "test_skipped.py").write_text(SKIPPED)
    monkeypatch.setattr(trust, "PROMISES", (Promise("level", "It holds", "a number", "list", (str(skipped),)),))
    trust.main([])
    out = capsys.readouterr().out
    assert "| It holds | a number | list | not run | – | – | – |" in out
    assert "- level: 3 not run here: this machine has no such level" in out
    assert "0 of 1 promises hold." in out and "Not tried here, so not held: level." in out


def test_each_level_of_the_sandbox_is_a_promise_of_its_own():
    names = [promise.only for promise in PROMISES if promise.name.startswith("sandbox")]
    assert [level.name for level, only in zip(Level, names, strict=True) if level.name not in only] == []


def test_the_document_holds_a_row_for_every_promise():
    text = trust.DOCUMENT.read_text(encoding="utf-8")
    assert trust.MARKS[0] in text and trust.MARKS[1] in text
    assert [promise.name for promise in PROMISES if f"| {promise.says} |" not in text] == []
