"""The form of a run's limits: what it shows of a pool and of a recorded run, and what it reads."""

from __future__ import annotations

import pytest

from pool_registry.calls.run_limits import build_run_limits, parse_seen_by, write_seen_by
from pool_registry.errors import InvalidRunLimits
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

POOL = Pool(
    name="p", workers=tuple(WorkerSpec(name=name, kind="calculator", description="c") for name in ("ada", "bob"))
)
LIMITS = build_run_limits(["bob"], 0.02, {"ada": ["bob"], "2": []})


def test_what_is_typed_becomes_the_limits_of_the_run():
    from studio.pages.run.limit_form import read_limits

    assert read_limits(["bob"], " $0.02 ", "ada = bob; 2 =") == LIMITS
    assert not read_limits(None, "", " "), "an empty form limits nothing"


@pytest.mark.parametrize(
    ("cost", "seen_by", "sentence"),
    [
        ("two", "", "'two' is no number of US dollars"),
        ("-1", "", "is no cap on what a run may cost"),
        ("", "ada", "'ada' names no readers; write WORKER=READER,READER"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(cost, seen_by, sentence):
    from studio.pages.run.limit_form import read_limits

    with pytest.raises(InvalidRunLimits) as refusal:
        read_limits([], cost, seen_by)
    assert sentence in str(refusal.value)


def test_a_recorded_runs_limits_stand_in_the_open_form():
    from studio.pages.run.limit_form import read_limits, show_limits

    without, cost, seen_by, panel = show_limits(POOL, LIMITS)
    assert without["choices"] == [("ada", "ada"), ("bob", "bob")] or without["choices"] == ["ada", "bob"]
    assert panel["open"] and read_limits(without["value"], cost["value"], seen_by["value"]) == LIMITS
    assert not show_limits(POOL)[3]["open"]


def test_who_may_see_what_is_written_as_it_is_read():
    text = write_seen_by(LIMITS)
    assert (
        text == "ada = bob; 2 = " and build_run_limits(seen_by=parse_seen_by(text.split(";"))).seen_by == LIMITS.seen_by
    )
