"""The starter pool: what a new user finds. Works without a key, a GPU or a download.

Its workers stand in assets/pools/starter.yaml. The language model in it is the small one that ships as a package;
`reader` is rule-based and says so.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from assets import asset
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool

if TYPE_CHECKING:
    from pool_registry.storage.pool_store import PoolStore  # a published Space has the starter's data, and no database

STARTER_MODEL = "starter:smollm2"

# Hashes of the starter pools of earlier versions: a stored one that nobody has edited is brought up to date.
EARLIER = {"216586125135b5e423d13a2c95b996bf128aec61cf02a8ea82e845a4b57338a3"}


def seed_starter(pools: PoolStore) -> None:
    """Save the starter pool when there is none, or when that of an earlier version is unchanged."""
    if "starter" not in pools.names():
        with suppress(InvalidPool):  # another process that starts was faster, and somebody may have edited it since
            pools.create(starter_pool())
    elif pools.latest("starter").pool.hash in EARLIER:
        pools.edit("starter", lambda pool: starter_pool() if pool.hash in EARLIER else pool)


@cache
def starter_pool() -> Pool:
    """The pool that start-up saves when there is none."""
    import yaml  # a published Space has no PyYAML, and no starter pool

    return Pool.model_validate(yaml.safe_load(asset("pools/starter.yaml").read_text(encoding="utf-8")))
