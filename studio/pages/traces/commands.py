"""The commands of the Traces page: what is chosen there is deleted, starred, or put back."""

from __future__ import annotations

from collections.abc import Sequence

from pool_registry.errors import InvalidPool
from studio.frame.commands import Fields, PageCommands, PageReply, command, text
from studio.housekeeping.things import Things, open_things
from studio.runtime import Runtime


class TraceCommands(PageCommands):
    """The commands of the Traces page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def _things(self) -> Things:
        return open_things(self._runtime.store)

    @command("viewer")
    def _check(self, fields: Fields) -> PageReply:
        dependents = self._things.find_trace_dependents(_read_ids(fields))
        return PageReply("", {"blocking": list(dependents.blocking), "affected": list(dependents.affected)})

    @command("editor")
    def _delete(self, fields: Fields) -> PageReply:
        ids = _read_ids(fields)
        entry = self._things.delete_traces(ids)
        return PageReply(f"{len(ids)} deleted.", {"trash": entry.key})

    @command("editor")
    def _restore(self, fields: Fields) -> PageReply:
        entry = self._things.trash.restore(text(fields, "trash"))
        return PageReply(f"{entry.name} put back.")

    @command("editor")
    def _star(self, fields: Fields) -> PageReply:
        ids, on = _read_ids(fields), fields.get("on") is not False
        for episode in ids:
            self._runtime.store.traces.star(episode, on)
        return PageReply(f"{len(ids)} {'starred' if on else 'no longer starred'}.")


def _read_ids(fields: Fields) -> Sequence[str]:
    ids = fields.get("ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(name, str) for name in ids):
        raise InvalidPool([("ids", "choose at least one run")])
    return ids
