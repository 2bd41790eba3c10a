"""Which of the readers that ship is made for a pool."""

from __future__ import annotations

from orchestrator.checkpoints import STARTERS, is_complete, starter_checkpoint
from pool_registry.errors import InvalidPool
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.schemas.result_outline import format_fields
from pool_registry.worker import WorkerSpec

MAX_LOOKED_AT = 100  # workers, to see whether some return records


def returns_records(pool: Pool) -> bool:
    """Whether one of the first enabled workers of a pool returns objects whose fields are known."""
    return any(map(_returns_fields, pool.enabled[:MAX_LOOKED_AT]))


def find_reader_of_records(pool: Pool) -> str:
    """The reader that learnt to combine the fields of records, where the pool returns some and it is there; else ""."""
    names = (name for name, starter in STARTERS.items() if starter.made_for == "records")
    name = next((name for name in names if is_complete(starter_checkpoint(name))), "")
    return name if name and returns_records(pool) else ""


def _returns_fields(spec: WorkerSpec) -> bool:
    try:
        return bool(format_fields(open_worker(spec).output_schema))
    except InvalidPool:
        return False  # it cannot be called as it is, whatever it would return
