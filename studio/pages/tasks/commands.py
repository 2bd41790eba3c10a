"""The commands of the Tasks page: candidates are accepted, edited or struck, many at once; what is stored is set."""

from __future__ import annotations

from collections.abc import Sequence

from pool_registry.errors import InvalidPool
from pool_registry.text import count_of
from studio.frame.commands import Fields, PageCommands, PageReply, command, flag, tables, text, words
from studio.housekeeping.retention import change_retention
from studio.pages.tasks.documents import SHOWN, build_candidates_document
from studio.runtime import Runtime
from trainer.improve.set_aside import put_back
from trainer.tasks.suite import SPLITS
from trainer.traffic.accept import (
    Choice,
    accept_candidates,
    restore_candidates,
    set_consent,
    strike_candidates,
)

MAX_DAYS = 36_500


class CandidateCommands(PageCommands):
    """Commands by name. Each replies with the candidates as they are then."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store

    @command("viewer", "candidates")
    def _show(self, fields: Fields) -> PageReply:
        names = self._store.pools.names()
        if not names:
            raise InvalidPool([("pool", "there is no pool yet: make one on the Pool page")])
        return self._reply({"pool": words(fields, "pool") or names[0]})

    @command("editor")
    def _accept(self, fields: Fields) -> PageReply:
        """Make candidates tasks; `refused` says by their ids why some are not."""
        pool = self._pool(fields)
        acceptance = accept_candidates(self._store, pool, [_read_choice(row) for row in tables(fields, "choices")])
        added = f"{count_of(len(acceptance.added), 'task')} added" if acceptance.added else "No task added"
        count = len(acceptance.refused)
        left = f"; {count:,} {'needs' if count == 1 else 'need'} a look" if count else ""
        return self._reply(fields, f"{added}{left}.").extend(refused=acceptance.refused)

    @command("editor")
    def _strike(self, fields: Fields) -> PageReply:
        ids = _read_names(fields, "ids")
        digests = strike_candidates(self._store, self._pool(fields), ids)
        return self._reply(fields, f"{count_of(len(ids), 'question')} struck.").extend(struck=digests)

    @command("editor")
    def _restore(self, fields: Fields) -> PageReply:
        """Put struck questions back, by the digests that striking them gave."""
        restore_candidates(self._pool(fields), _read_names(fields, "struck"))
        return self._reply(fields, "Put back.")

    @command("editor")
    def _put_back(self, fields: Fields) -> PageReply:
        """Let the next improvement take tasks that were set aside, by their queries."""
        count = put_back(self._store.home, self._pool(fields), _read_names(fields, "queries"))
        return self._reply(fields, f"{count_of(count, 'task')} put back.")

    @command("owner")
    def _allow_clients(self, fields: Fields) -> PageReply:
        """Say whether requests of clients may become tasks of the pool."""
        allowed = flag(fields, "clients")
        set_consent(self._pool(fields), allowed)
        may = "may become tasks" if allowed else "do not become tasks"
        return self._reply(fields, f"Requests of clients {may}.")

    @command("owner")
    def _keep_served(self, fields: Fields) -> PageReply:
        """Say for how many days traces of served requests stay; an empty field for ever."""
        days = _read_days(fields)
        change_retention(self._store.home, {"served_days": days})
        stay = "for ever" if days is None else f"for {days:g} days"
        return self._reply(fields, f"Traces of served requests stay {stay}.")

    def _pool(self, fields: Fields) -> str:
        """The pool of a command. Raises PoolNotFound."""
        return self._store.pools.latest(text(fields, "pool")).pool.name

    def _reply(self, fields: Fields, message: str = "") -> PageReply:
        document = build_candidates_document(self._store, self._pool(fields))
        return PageReply(message, {"candidates": document.to_json()})


def _read_choice(row: Fields) -> Choice:
    split = words(row, "split")
    if split not in ("", *SPLITS):
        raise InvalidPool([("split", f"use one of: {', '.join(SPLITS)}")])
    return Choice(text(row, "id"), words(row, "query"), words(row, "answer"), split, row.get("confirmed") is True)


def _read_names(fields: Fields, name: str) -> Sequence[str]:
    names = fields.get(name)
    if not isinstance(names, list) or not names or not all(isinstance(row, str) for row in names):
        raise InvalidPool([(name, "choose at least one question")])
    return names[: 10 * SHOWN]


def _read_days(fields: Fields) -> float | None:
    written = words(fields, "days")
    if not written:
        return None
    try:
        days = float(written)
    except ValueError:
        days = 0.0
    if not 0 < days <= MAX_DAYS:
        raise InvalidPool([("days", "give a number of days above 0, or nothing to keep them for ever")])
    return days
