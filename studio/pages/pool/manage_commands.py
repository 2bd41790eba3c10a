"""The Pool page's commands on a whole pool: another name, deletion with what depends on it, and its undo."""

from __future__ import annotations

from studio.frame.commands import Command, Fields, PageReply, text
from studio.housekeeping.things import Things, open_things
from studio.runtime import Runtime

POOL = "pool"


class ManageCommands:
    """Commands by name; `show` answers with the page's state."""

    def __init__(self, runtime: Runtime, show: Command) -> None:
        self._runtime, self._show = runtime, show
        self.commands: dict[str, Command] = {
            "dependents": self._list_dependents,
            "rename_pool": self._rename,
            "delete_pool": self._delete,
            "put_back": self._put_back,
        }

    @property
    def _things(self) -> Things:
        return open_things(self._runtime.store)

    def _list_dependents(self, fields: Fields) -> PageReply:
        dependents = self._things.find_dependents(POOL, text(fields, "pool"))
        return PageReply("", {"blocking": list(dependents.blocking), "affected": list(dependents.affected)})

    def _rename(self, fields: Fields) -> PageReply:
        name, new = text(fields, "pool"), text(fields, "name")
        stays = self._things.rename(POOL, name, new)
        return PageReply(f"{name} is now called {new}; {stays}.", self._show({"pool": new}).fields)

    def _delete(self, fields: Fields) -> PageReply:
        entry = self._things.delete(POOL, text(fields, "pool"))
        return PageReply("", {**self._show({}).fields, "trash": entry.key})

    def _put_back(self, fields: Fields) -> PageReply:
        entry = self._things.trash.restore(text(fields, "trash"))
        return PageReply(f"{entry.name} is back.", self._show({"pool": entry.name}).fields)
