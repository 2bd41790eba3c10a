"""The Pool page's commands on a whole pool: another name, deletion with what depends on it, and its undo."""

from __future__ import annotations

from studio.frame.commands import Command, Fields, PageCommands, PageReply, command, text
from studio.housekeeping.things import Things, open_things
from studio.runtime import Runtime

POOL = "pool"


class ManageCommands(PageCommands):
    """Commands by name; `show` answers with the page's state."""

    def __init__(self, runtime: Runtime, show: Command) -> None:
        self._runtime, self._show = runtime, show

    @property
    def _things(self) -> Things:
        return open_things(self._runtime.store)

    @command("viewer", "dependents")
    def _list_dependents(self, fields: Fields) -> PageReply:
        dependents = self._things.find_dependents(POOL, text(fields, "pool"))
        return PageReply("", {"blocking": list(dependents.blocking), "affected": list(dependents.affected)})

    @command("editor", "rename_pool", edits_pool=True)
    def _rename(self, fields: Fields) -> PageReply:
        name, new = text(fields, "pool"), text(fields, "name")
        stays = self._things.rename(POOL, name, new)
        return PageReply(f"{name} is now called {new}; {stays}.", self._show({"pool": new}).fields)

    @command("editor", "delete_pool", edits_pool=True)
    def _delete(self, fields: Fields) -> PageReply:
        entry = self._things.delete(POOL, text(fields, "pool"))
        return PageReply("", {**self._show({}).fields, "trash": entry.key})

    @command("editor")
    def _put_back(self, fields: Fields) -> PageReply:
        entry = self._things.trash.restore(text(fields, "trash"))
        return PageReply(f"{entry.name} is back.", self._show({"pool": entry.name}).fields)
