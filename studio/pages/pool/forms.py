"""What a person filled in, as a worker or a pool; every wrong field is told at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.kinds import field_problems, load_config
from pool_registry.pool import Pool, check_files
from pool_registry.worker import WorkerSpec


def parse_worker(document: Mapping[str, Any]) -> WorkerSpec:
    """A worker from the form. Raises InvalidPool with every wrong field, `config.` before the kind's own."""
    given = {name: document[name] for name in WorkerSpec.model_fields if name in document}
    problems: list[tuple[str, str]] = []
    spec = None
    try:
        spec = WorkerSpec.model_validate(given)
    except ValidationError as error:
        problems += field_problems(error)
    # The kind's own fields are judged also when a common one is wrong: all problems at once.
    config = given.get("config")
    probe = spec or WorkerSpec(
        name="probe",
        kind=str(given.get("kind")),
        description="probe",
        config=config if isinstance(config, dict) else {},
    )
    try:
        load_config(probe)  # the pool that it is saved in knows its fallback
    except InvalidPool as error:
        problems += [("kind" if where == "kind" else f"config.{where}", what) for where, what in error.problems]
    if spec is None or problems:
        raise InvalidPool(problems)
    return spec


def place_worker(pool: Pool, spec: WorkerSpec, replacing: str | None) -> Pool:
    """`pool` with `spec` in it. Raises InvalidPool with the worker's own problems at its fields, such as a
    fallback or a file that is not there; those of other workers name them."""
    try:
        changed = pool.with_worker(spec, replacing)
        check_files(changed, pool)
        return changed
    except InvalidPool as error:
        names = [old.name for old in pool.workers]
        own = names.index(replacing) if replacing in names else len(names)
        problems = [(where.removeprefix(f"workers.{own}."), what) for where, what in error.problems]
        raise InvalidPool(problems) from error
