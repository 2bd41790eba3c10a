"""A page that is no part of the studio, as another package would add one."""

from __future__ import annotations

from fastapi import APIRouter

from pool_registry.errors import InvalidPool
from studio.access.accounts import current_user
from studio.frame.commands import Fields, PageCommands, PageReply, command, command_routes, text
from studio.frame.web_page import draw_web_page
from studio.runtime import Runtime


class ToyCommands(PageCommands):
    """`greet` and `refuse`."""

    @command("editor")
    def greet(self, fields: Fields) -> PageReply:
        return PageReply(f"Hello {text(fields, 'name')}", {"user": current_user.get()})

    @command("viewer")
    def refuse(self, _fields: Fields) -> PageReply:
        raise InvalidPool([("toy", "this toy is broken")])


def build(_runtime: Runtime) -> None:
    draw_web_page("toy")


def routes(_runtime: Runtime) -> APIRouter:
    return command_routes("toy", ToyCommands())
