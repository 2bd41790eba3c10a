"""Housekeeping on the pages: what depends on a thing, its deletion and new name, and the trash.

Every page sends these commands to one address, /api/pages/housekeeping.
"""

from __future__ import annotations

from fastapi import APIRouter

from studio.frame.commands import Fields, PageCommands, PageReply, command, command_routes, text
from studio.frame.document import PageDocument
from studio.housekeeping.retention import read_retention
from studio.housekeeping.things import Things, open_things
from studio.runtime import Runtime


class DeletedThing(PageDocument):
    """Something in the trash; `days` are left until it goes for good."""

    key: str
    kind: str
    name: str
    deleted_at: str
    size: int
    days: float


class HousekeepingCommands(PageCommands):
    """Commands on a thing of a data folder, which is named by `kind` and `name`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def _things(self) -> Things:
        return open_things(self._runtime.store)

    @command("viewer", "dependents")
    def _list_dependents(self, fields: Fields) -> PageReply:
        dependents = self._things.find_dependents(text(fields, "kind"), text(fields, "name"))
        return PageReply("", {"blocking": list(dependents.blocking), "affected": list(dependents.affected)})

    @command("editor")
    def _rename(self, fields: Fields) -> PageReply:
        kind, name, new = (text(fields, field) for field in ("kind", "name", "new"))
        stays = self._things.rename(kind, name, new)
        return PageReply(f"It is now called {new.strip()}; {stays}.")

    @command("editor")
    def _delete(self, fields: Fields) -> PageReply:
        entry = self._things.delete(text(fields, "kind"), text(fields, "name"))
        return PageReply(f"{entry.name} is deleted.", {"trash": entry.key})

    @command("viewer", "trash")
    def _list_trash(self, fields: Fields) -> PageReply:
        """What of these kinds can be put back, the latest first."""
        kinds, kept = fields.get("kinds"), read_retention(self._runtime.store.home).trash_days
        entries = [
            DeletedThing(**entry.model_dump(exclude={"places"}), days=max(0.0, kept - entry.age_days))
            for entry in self._things.trash.list()
            if not isinstance(kinds, list) or entry.kind in kinds
        ]
        return PageReply("", {"entries": [entry.to_json() for entry in entries]})

    @command("editor")
    def _put_back(self, fields: Fields) -> PageReply:
        entry = self._things.trash.restore(text(fields, "trash"))
        return PageReply(f"{entry.name} is back.", {"kind": entry.kind, "name": entry.name})


def housekeeping_routes(runtime: Runtime) -> APIRouter:
    """The commands, below /api/pages/housekeeping."""
    return command_routes("housekeeping", HousekeepingCommands(runtime))
