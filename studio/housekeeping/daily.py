"""What a data folder needs once a day, done beside the studio and beside served models: retention, a copy of the
database, and improvements at the times that a person chose."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from orchestrator.traces.store import Store
from pool_registry.errors import PoolError
from pool_registry.storage.backups import keep_daily_copy
from studio.housekeeping.retention import read_retention, tidy
from studio.improving.start import LOOK_S, start_due
from trainer.errors import TrainerError

FIRST_COPY_S = 30.0  # a start has more urgent reads of the disk
CHECK_S = 3600.0  # seconds between two looks at what is due

log = logging.getLogger(__name__)


def start_daily_work(store: Store) -> None:
    """Do what is due now and whenever it is again, in a thread that ends with the process."""
    threading.Thread(target=_repeat, args=(store,), daemon=True).start()
    threading.Thread(target=_watch_timers, args=(store,), daemon=True).start()


def copy_if_due(store: Store) -> None:
    """Copy the database where the newest daily copy is a day old. Raises StorageError."""
    retention = read_retention(store.home)
    keep_daily_copy(store.engine, store.home, retention.copies, retention.copies_days)


def _repeat(store: Store) -> None:
    _try(tidy, store)
    time.sleep(FIRST_COPY_S)
    while True:
        _try(copy_if_due, store)
        time.sleep(CHECK_S)
        _try(tidy, store)


def _watch_timers(store: Store) -> None:
    """Begin the improvements that are due, each in a process that outlives this one."""
    while True:
        time.sleep(LOOK_S)
        _try(start_due, store)


def _try(work: Callable[[Store], object], store: Store) -> None:
    try:
        work(store)
    except (PoolError, TrainerError, SQLAlchemyError, OSError) as error:
        log.warning("%s", error)  # the studio goes on, and so does this: what is due is tried again in an hour
