"""When pools are improved: PODIUM_HOME/timers/POOL.json, a file for each pool that is.

A time is `night` (02:00), `HH:MM` of every day, or `sun HH:MM` of one day of the week, by the clock of this machine.
What was missed while nothing ran is made up for once.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import ValidationError, field_validator

from pool_registry.atomic_write import lock_file, write_atomically
from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import Home
from pool_registry.strict_model import FrozenModel
from pool_registry.validation_words import describe_problems
from trainer.errors import TrainerError

NIGHT = "02:00"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = re.compile(rf"(?:({'|'.join(DAYS)}) )?([01]\d|2[0-3]):([0-5]\d)")


class UnknownTime(TrainerError):
    """A time that is written in another way than timers are."""


class Timer(FrozenModel):
    """When a pool is improved. `since`: seconds since 1970 of the last time that it began, or was set."""

    every: str
    serving: str = ""
    since: float

    @field_validator("every")
    @classmethod
    def _check_time(cls, text: str) -> str:
        if text != "night" and _TIME.fullmatch(text) is None:
            raise ValueError("write night, a time such as 03:30, or a day and a time such as sun 03:30")
        return text

    def is_due(self, now: datetime) -> bool:
        """Whether one of its times has passed since it last began. `now` is local, without a zone."""
        return datetime.fromtimestamp(self.since) < self.find_last(now)

    def find_last(self, now: datetime) -> datetime:
        """The last of its times that is not after `now`."""
        match = _TIME.fullmatch(NIGHT if self.every == "night" else self.every)
        assert match is not None, "its times are checked when it is made"
        day, hour, minute = match.groups()
        moment = now.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
        back = (now.weekday() - DAYS.index(day)) % len(DAYS) if day else 0
        moment -= timedelta(days=back)
        return moment if moment <= now else moment - timedelta(days=len(DAYS) if day else 1)


def read_timers(home: Home) -> dict[str, Timer]:
    """The timers by pool. Raises StorageError where a file is damaged."""
    return {file.stem: _read(file) for file in sorted(_folder(home).glob("*.json"))}


def set_timer(home: Home, pool: str, every: str, serving: str = "") -> Timer | None:
    """Improve a pool at these times, `off` for never again. Raises UnknownTime and StorageError."""
    try:
        timer = None if every == "off" else Timer(every=every.lower(), serving=serving, since=time.time())
    except ValidationError as error:
        raise UnknownTime(f"{every[:80]!r} is no time to improve at: {describe_problems(error)}") from error
    _folder(home).mkdir(parents=True, exist_ok=True)
    with lock_file(_lock(home)):
        if timer is None:
            find_timer_file(home, pool).unlink(missing_ok=True)
        else:
            _write(home, pool, timer)
    return timer


def describe_timer(pool: str, timer: Timer | None) -> str:
    """What a timer does, in a sentence."""
    if timer is None:
        return f"{pool} is not improved by itself."
    moment = "every night at 02:00" if timer.every == "night" else f"at {timer.every}"
    return f"{pool} is improved {moment}, by the clock of this machine, while a studio or a server of Podium runs."


def take_due(home: Home, now: datetime | None = None) -> dict[str, Timer]:
    """The timers that are due, which begin with this call: of several processes that look, one gets each."""
    now = now or datetime.now()
    if not _folder(home).is_dir():
        return {}
    with lock_file(_lock(home)):
        timers = read_timers(home)
        due = {pool: timer for pool, timer in timers.items() if timer.is_due(now)}
        for pool, timer in due.items():
            _write(home, pool, timer.model_copy(update={"since": now.timestamp()}))
    return due


def find_timer_file(home: Home, pool: str) -> Path:
    """The file of a pool's timer, which may not exist."""
    return _folder(home) / f"{pool}.json"


def _read(file: Path) -> Timer:
    try:
        return Timer.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problem = describe_problems(error)
        raise StorageError(f"{file} cannot be read; correct or delete it: {problem}") from error


def _write(home: Home, pool: str, timer: Timer) -> None:
    write_atomically(find_timer_file(home, pool), timer.model_dump_json(indent=1))


def _folder(home: Home) -> Path:
    return home.root / "timers"


def _lock(home: Home) -> Path:
    return _folder(home) / ".lock"  # no pool is called so
