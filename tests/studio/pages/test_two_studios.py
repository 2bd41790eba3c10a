"""Twenty people edit one pool through two studios on one folder, one of which is killed: what was acknowledged is there
in the end, or was refused with both shown."""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.pool_store import PoolStore
from pool_registry.storage.upgrade import open_engine
from pool_registry.worker import WorkerSpec
from studio.prepare import prepare_store
from tests.browser.conftest import Studio
from tests.studio.support.edits_at_once import COMMON, NOBODY, POOL, Ledger, Saver, describe_common, read_tags
from tests.trust.trials import choose_trials, count_trials
from trainer.tasks.practice.task_book import TaskBook

SAVERS = 20
MOST = 25  # edits of a saver: each reply draws the page, with every version until then
LIMIT_S = 3000


def make_pool(home: Path) -> None:
    """A pool with a worker for each saver, whose description counts edits, and one that all of them edit."""
    texts = {f"w{number}": "0" for number in range(SAVERS)} | {COMMON: describe_common(NOBODY, NOBODY)}
    workers = [WorkerSpec(name=name, kind="calculator", description=text) for name, text in texts.items()]
    store = prepare_store(str(home))
    store.pools.save(Pool(name=POOL, workers=tuple(workers)))
    store.close()


def list_lost(home: Path, ledger: Ledger) -> list[str]:
    """The acknowledged edits that a version after them does not hold, and those that replaced another one unseen."""
    versions = [stored.pool for stored in reversed(PoolStore(open_engine(find_home(home))).versions(POOL))]
    numbers = [[int(pool.worker(f"w{saver}").description) for saver in range(SAVERS)] for pool in versions]
    common = [read_tags(pool.worker(COMMON).description) for pool in versions]
    lost = [
        f"saver {saver}: {after[saver]} after {before[saver]}"
        for before, after in itertools.pairwise(numbers)
        for saver in range(SAVERS)
        if after[saver] < before[saver]
    ]
    for saver, acknowledged in ledger.own.items():
        kept = {row[saver] for row in numbers}
        lost += [f"saver {saver}: {number} is in no version" for number in acknowledged - kept]
    lost += [
        f"{tag} replaced {before}, having seen {seen}"
        for (before, _), (tag, seen) in itertools.pairwise(common)
        if tag != before and seen != before
    ]
    lost += [f"{tag} is in no version" for tag in ledger.common - {tag for tag, _ in common}]
    book = TaskBook(home / "tasks" / f"{POOL}.jsonl").read()
    return lost + [f"no task {query}" for query in ledger.tasks - {row.task.query for row in book if row.task}]


@pytest.mark.slow
def test_no_acknowledged_edit_is_lost_through_two_studios_one_of_which_is_killed(tmp_path, monkeypatch):
    edits = min(choose_trials(5), MOST)
    home = tmp_path / "home"
    monkeypatch.setenv("PODIUM_HOME", str(home))
    make_pool(home)
    studios, ledger, errors = [Studio(home), Studio(home)], Ledger(), []
    for studio in studios:
        studio.start()

    def work(number: int) -> None:
        try:
            Saver(number, lambda: studios[number % 2].url, ledger).save(edits)
        except BaseException as error:  # noqa: BLE001  shown at the end
            errors.append(error)

    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(SAVERS)]
        for thread in threads:
            thread.start()
        wait_for_edits(ledger, random.randint(1, SAVERS * edits // 2))
        random.choice(studios).restart(signal.SIGKILL)
        for thread in threads:
            thread.join(LIMIT_S)
    finally:
        for studio in studios:
            studio.stop()
    assert not errors, errors
    lost = list_lost(home, ledger)
    count_trials(ledger.acknowledged + ledger.refused, len(lost))
    assert not lost
    assert ledger.acknowledged + ledger.refused >= SAVERS * (edits - 1), "each lost one reply to the kill at most"


def wait_for_edits(ledger: Ledger, count: int) -> None:
    end = time.monotonic() + LIMIT_S
    while ledger.acknowledged < count:
        assert time.monotonic() < end, "the savers stand still"
        time.sleep(0.005)


def test_a_lost_edit_is_noticed(tmp_path):
    make_pool(tmp_path)
    pools = PoolStore(open_engine(find_home(tmp_path)))

    def write(name: str, description: str) -> None:
        spec = pools.latest(POOL).pool.worker(name).model_copy(update={"description": description})
        pools.edit(POOL, lambda pool: pool.with_worker(spec, name))

    write("w0", "2")
    write(COMMON, describe_common("1.1", NOBODY))
    assert list_lost(tmp_path, Ledger({0: {2}}, {"1.1"})) == []
    write("w0", "1")
    write(COMMON, describe_common("2.1", NOBODY))
    lost = list_lost(tmp_path, Ledger({0: {1, 2, 3}}, {"1.1", "3.1"}, {"Question 1?"}))
    assert lost == [
        "saver 0: 1 after 2",
        "saver 0: 3 is in no version",
        "2.1 replaced 1.1, having seen 0.0",
        "3.1 is in no version",
        "no task Question 1?",
    ]
