"""The timers of improvements: when they are due, who begins them, and what is made up for."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from typer.testing import CliRunner

from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import find_home
from studio.__main__ import app
from studio.housekeeping import daily
from studio.improving import start
from studio.improving.schedule import DAYS, Timer, find_timer_file, read_timers, set_timer, take_due
from trainer.improve.record import hold_pool

MONDAY_NOON = datetime(2026, 11, 30, 12, 0)
MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2030, 1, 1))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    return find_home(str(tmp_path))


@pytest.mark.parametrize(
    ("every", "last"),
    [
        ("night", datetime(2026, 11, 30, 2, 0)),
        ("11:59", datetime(2026, 11, 30, 11, 59)),
        ("12:01", datetime(2026, 11, 29, 12, 1)),
        ("mon 12:00", datetime(2026, 11, 30, 12, 0)),
        ("mon 12:01", datetime(2026, 11, 23, 12, 1)),
        ("sun 03:30", datetime(2026, 11, 29, 3, 30)),
    ],
)
def test_the_last_of_its_times(every, last):
    assert Timer(every=every, since=0).find_last(MONDAY_NOON) == last


@given(MOMENTS, st.times(), st.sampled_from(["", *DAYS]))
def test_the_last_time_is_past_and_of_that_day_and_no_later_one_is(now, moment, day):
    timer = Timer(every=f"{day} {moment:%H:%M}".strip(), since=0)
    last = timer.find_last(now)
    assert last <= now and f"{last:%H:%M}" == f"{moment:%H:%M}"
    assert now - last < timedelta(days=7 if day else 1) and (not day or DAYS[last.weekday()] == day)


@pytest.mark.parametrize("every", ["", "3:30", "24:00", "someday 03:30", "sun", "* * * * *"])
def test_what_is_no_time_is_refused_with_how_one_is_written(every):
    with pytest.raises(ValidationError, match="write night, a time such as 03:30"):
        Timer(every=every, since=0)


def test_a_new_timer_waits_for_its_next_time_and_begins_once(home):
    set_timer(home, "shop", "night", "router")
    set_timer(home, "clinic", "sun 03:30")
    assert take_due(home) == {}
    tomorrow = datetime.now() + timedelta(days=1)
    assert [(pool, timer.serving) for pool, timer in take_due(home, tomorrow).items() if pool == "shop"] == [
        ("shop", "router")
    ]
    assert "shop" not in take_due(home, tomorrow)  # another process that looks has nothing to do
    month = tomorrow + timedelta(days=30)
    assert take_due(home, month).keys() == {"shop", "clinic"} and take_due(home, month) == {}  # made up for once
    set_timer(home, "shop", "off")
    assert read_timers(home).keys() == {"clinic"}


def test_a_pool_called_schedule_is_improved_while_timers_are_set(home):
    with hold_pool(home, "schedule"):
        set_timer(home, "schedule", "night")
    assert read_timers(home).keys() == {"schedule"}


def test_a_damaged_file_is_an_error_that_says_what_to_do_and_stops_no_studio(home, caplog):
    set_timer(home, "shop", "night")
    find_timer_file(home, "shop").write_text("{")
    with pytest.raises(StorageError, match="correct or delete it"):
        read_timers(home)


def test_what_is_due_begins_as_the_command_in_a_process_of_its_own(home, monkeypatch):
    started: list[list[str]] = []
    serving = ["--serving", "router+who=log"]
    monkeypatch.setattr(start.subprocess, "Popen", lambda command, **_: started.append(command))
    store = SimpleNamespace(home=home)
    set_timer(home, "shop", "night", "router+who=log")
    timer = {"every": "night", "serving": "router+who=log", "since": 0}
    find_timer_file(home, "shop").write_text(json.dumps(timer))
    daily.start_due(store)
    daily.start_due(store)
    assert started == [
        [sys.executable, "-m", "studio", "improve", "--pool", "shop", "--home", str(home.root), *serving]
    ]


def test_the_command_sets_and_takes_away_a_timer(home):
    def run(*arguments: str):
        return CliRunner().invoke(app, ["improve", "--pool", "starter", *arguments])

    assert "starter is improved at sun 03:30" in run("--every", "sun 03:30").output
    assert read_timers(home)["starter"].every == "sun 03:30"
    assert "not improved by itself" in run("--every", "off").output and read_timers(home) == {}
    assert run("--every", "soon").exit_code and read_timers(home) == {}
