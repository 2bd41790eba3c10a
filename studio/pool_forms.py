"""What a person filled in, as a worker or a pool; every wrong field is told at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.kinds import field_problems
from pool_registry.pool import Pool, check_pool
from pool_registry.worker import WorkerSpec


def spec_from(document: Mapping[str, Any]) -> WorkerSpec:
    """A worker from the form. Raises InvalidPool with every wrong field, `config.` before the kind's own."""
    known = {name: document[name] for name in WorkerSpec.model_fields if name in document}
    problems: list[tuple[str, str]] = []
    spec = None
    try:
        spec = WorkerSpec.model_validate(known)
    except ValidationError as error:
        problems += field_problems(error)
    # The kind's own fields are judged also when a common one is wrong: all problems at once.
    config = known.get("config")
    probe = spec or WorkerSpec(
        name="probe",
        kind=str(known.get("kind")),
        description="probe",
        config=config if isinstance(config, dict) else {},
    )
    try:
        alone = probe.model_copy(update={"fallback": ""})  # the pool that it is saved in knows the others
        check_pool(Pool(name="probe", workers=(alone,)))
    except InvalidPool as error:
        problems += [(where.removeprefix("workers.0."), what) for where, what in error.problems]
    if spec is None or problems:
        raise InvalidPool(problems)
    return spec


def named(pool: Pool, name: str) -> Pool:
    """`pool` under another name. Raises InvalidPool when that is no name."""
    try:
        return Pool.model_validate({**pool.model_dump(), "name": name})
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error
