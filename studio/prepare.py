"""What must be there before anything runs: the migrated database, the starter pool and the data of its workers."""

from __future__ import annotations

import logging

from orchestrator.errors import TrackerRefused
from orchestrator.traces.store import Store, open_store
from orchestrator.tracking.live import track
from pool_registry.errors import StorageError
from pool_registry.starter import seed_starter
from pool_registry.storage.backups import find_newest_whole
from pool_registry.storage.data_folder import Home, choose_home, find_home
from pool_registry.storage.integrity import find_damage_at_start
from studio.forks import sweep_forks
from trainer.demonstrations.second_try import mark_interrupted_tries

log = logging.getLogger(__name__)


def prepare_store(folder: str | None) -> Store:
    """Open the data folder's store, migrated and with the starter pool. Raises StorageError saying what to do."""
    store = open_store(find_home(folder))
    store.traces.mark_interrupted()
    mark_interrupted_tries(store)
    sweep_forks(store.home)
    if not (names := store.pools.names()) or "starter" in names:
        seed_starter(store.pools)
    return store


def open_chosen_store(folder: str | None) -> Store:
    """Make `folder` this process's data folder, where checkpoints and workers' data are looked up, and open its store.

    What is stored goes to the places of PODIUM_TRACK, too. Raises what `prepare_store` raises, and TrackerRefused.
    """
    store = prepare_store(str(choose_home(folder).root))
    try:
        track(store)
    except TrackerRefused:
        store.close()
        raise
    return store


def open_whole_store(folder: str | None) -> Store:
    """Open the store of a program that runs for long, after a look at whether its file is whole.

    Raises StorageError naming what is damaged and which copy opens, and what `prepare_store` raises. Where no copy
    opens it only warns: most of the file can still be read and exported.
    """
    home = choose_home(folder)
    damage = find_damage_at_start(home)
    if damage and find_newest_whole(home):
        raise StorageError(damage)
    if damage:
        log.warning("%s", damage)
    return open_chosen_store(folder)


def build_starter_data(home: Home, with_model: bool) -> None:
    """Build what the starter pool reads (database, search index, converted model), once per data folder."""
    from pool_registry.starter.ledger import ledger_database
    from pool_registry.workers.search import load_index

    ledger_database(home)
    load_index("starter:factbook", home)
    if with_model:
        from pool_registry.language_models.model_files import model_path
        from pool_registry.starter import STARTER_MODEL

        model_path(STARTER_MODEL)
