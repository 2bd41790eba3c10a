"""What-ifs on copies: edited steps change copies of files, folders and databases, and not the originals."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote, unquote
from uuid import uuid4

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import Sink
from orchestrator.engine.events import CopiesCompared
from orchestrator.engine.process_identity import is_alive, this_process
from orchestrator.errors import InvalidEdits
from orchestrator.what_if import Variation
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.errors import CannotFork, InvalidPool
from pool_registry.forks.fork import Fork, fork_pool
from pool_registry.storage.data_folder import Home, find_home

FOLDER, SEPARATOR = "forks", "."  # in the data folder, while such a what-if runs


def list_effectful_steps(variation: Variation, pool: LivePool) -> dict[int, str]:
    """The steps that a variation calls and whose call may change something, with their workers."""
    steps = {step.id: step.worker for turn in variation.turns for step in turn.steps}
    return {k: steps[k] for k in variation.rerun if steps[k] in pool.workers and pool.workers[steps[k]].has_effects}


def fork_for(variation: Variation, pool: LivePool) -> Fork:
    """Copy what the called steps of a variation may change. Raises InvalidEdits, at the step where there is one.

    Blocks while it copies.
    """
    steps = list_effectful_steps(variation, pool)
    if not steps:
        raise InvalidEdits([("", "none of the steps that are called again changes anything, so no copy is needed")])
    try:
        return fork_pool(pool.pool, _choose_folder(), set(steps.values()))
    except CannotFork as error:
        raise InvalidEdits([("", f"it cannot run on a copy: {error}")]) from error


def open_fork(fork: Fork, pool: LivePool) -> LivePool:
    """The pool on copies, recorded as the one that it stands for. What has effects elsewhere is not called. Raises
    InvalidPool, and deletes the copies then."""
    try:
        forked = refuse_effects(open_live_pool(fork.pool), fork.moved)
    except InvalidPool:
        fork.delete()
        raise
    forked.stand_for(pool)
    return forked


def sweep_forks(home: Home) -> None:
    """Delete the copies that what-ifs of processes which are no more have left behind."""
    for folder in (home.root / FOLDER).glob("*"):
        if not is_alive(unquote(folder.name).partition(SEPARATOR)[2], home.root):
            shutil.rmtree(folder, ignore_errors=True)


def _choose_folder() -> Path:
    """A new folder, whose name says which process needs it."""
    return find_home().root / FOLDER / quote(f"{uuid4().hex}{SEPARATOR}{this_process()}", safe="")


async def run_on_copies(start: Callable[[], Awaitable[Episode]], fork: Fork, pool: LivePool, sink: Sink) -> Episode:
    """Run an episode on copies to its end, record what it changed on them, and delete them."""
    try:
        try:
            episode = await start()
        finally:
            await pool.close()
        if episode.ended is not None:
            compared = CopiesCompared(tuple(await asyncio.to_thread(fork.compare)), episode.ended.at)
            episode.apply(compared)
            sink.append(episode.id, compared)
        return episode
    finally:
        await asyncio.to_thread(fork.delete)
