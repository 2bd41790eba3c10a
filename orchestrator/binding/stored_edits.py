"""A person's choices in bindings, stored for a checkpoint and one version of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine, delete
from sqlmodel import Field, Session, SQLModel, col, select

from pool_registry.errors import InvalidPool
from pool_registry.storage.database import writing

AUTOMATIC = "auto:"  # what a learnt worker stands for that nobody has chosen for; no worker's name holds a colon


class BindingEditRow(SQLModel, table=True):
    """One choice: `worker` is the one at hand that `learnt` stands for, "" for none. `pool_hash` is that of the
    version."""

    __tablename__ = "binding_edit"

    checkpoint: str = Field(primary_key=True)
    pool_hash: str = Field(primary_key=True)
    learnt: str = Field(primary_key=True)
    worker: str


@dataclass(frozen=True, slots=True)
class FrozenEdits:
    """The choices as they were when they were read, for episodes on another machine. `choices` are by checkpoint and
    hash of a pool's version."""

    choices: Mapping[tuple[str, str], Mapping[str, str]]

    def read(self, checkpoint: str, pool_hash: str) -> Mapping[str, str]:
        """What was chosen: learnt worker -> worker at hand, or "" for none."""
        return self.choices.get((checkpoint, pool_hash), {})


class BindingEdits:
    """The choices for all checkpoints. They are named as `spell_checkpoint` does."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def read(self, checkpoint: str, pool_hash: str) -> Mapping[str, str]:
        """What was chosen: learnt worker -> worker at hand, or "" for none."""
        query = select(BindingEditRow).where(
            BindingEditRow.checkpoint == checkpoint, BindingEditRow.pool_hash == pool_hash
        )
        with Session(self._engine) as session:
            return {row.learnt: row.worker for row in session.exec(query.order_by(col(BindingEditRow.learnt)))}

    def freeze(self) -> FrozenEdits:
        """All choices as they are now."""
        choices: dict[tuple[str, str], dict[str, str]] = {}
        with Session(self._engine) as session:
            for row in session.exec(select(BindingEditRow).order_by(col(BindingEditRow.learnt))):
                choices.setdefault((row.checkpoint, row.pool_hash), {})[row.learnt] = row.worker
        return FrozenEdits(choices)

    def choose(self, checkpoint: str, pool_hash: str, learnt: str, worker: str, seen: str | None = None) -> None:
        """Store a choice; it replaces an earlier one. Raises ChangedChoice where that is not what was `seen`."""
        with writing(self._engine, "binding_edit") as session:
            _check_seen(session, (checkpoint, pool_hash, learnt), seen, worker)
            session.merge(BindingEditRow(checkpoint=checkpoint, pool_hash=pool_hash, learnt=learnt, worker=worker))

    def forget(self, checkpoint: str, pool_hash: str, learnt: str | None = None, seen: str | None = None) -> int:
        """Delete one choice, or all of a checkpoint for this version; returns how many there were. Raises ChangedChoice
        where the one is not what was `seen`."""
        chosen = delete(BindingEditRow).where(
            col(BindingEditRow.checkpoint) == checkpoint, col(BindingEditRow.pool_hash) == pool_hash
        )
        if learnt is not None:
            chosen = chosen.where(col(BindingEditRow.learnt) == learnt)
        with writing(self._engine, "binding_edit") as session:
            if learnt is not None:
                _check_seen(session, (checkpoint, pool_hash, learnt), seen, AUTOMATIC)
            return session.connection().execute(chosen).rowcount


class ChangedChoice(InvalidPool):
    """Raised where somebody else has chosen otherwise since a person looked."""


def _check_seen(session: Session, key: tuple[str, str, str], seen: str | None, new: str) -> None:
    row = session.get(BindingEditRow, key)
    now = AUTOMATIC if row is None else row.worker
    if seen is not None and now not in (seen, new):
        done = "taken the choice back" if now == AUTOMATIC else f"chosen {now or 'no worker'}"
        raise ChangedChoice([("worker", f"not changed: somebody else has {done} for {key[2]} meanwhile; look again")])
