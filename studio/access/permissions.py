"""What each request to a studio or a served model needs: a role, which every command, route and event declares itself.

A request that declares nothing needs an owner: of a page of another package, or a route that was forgotten here, which
a test finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from re import Pattern
from typing import Literal, TypeVar

from fastapi import routing
from starlette.routing import BaseRoute, compile_path

from studio.access.roles import Rights, RoleRefused, UserRole

RoleName = Literal["viewer", "editor", "owner"]
Function = TypeVar("Function", bound=Callable[..., object])
COMMAND_PREFIX = "POST /api/pages/"
_MARK = "_podium_need"


@dataclass(frozen=True, slots=True)
class Need:
    """What a request needs: a role, and with `edits_pool` a pool that is not shared read-only."""

    role: UserRole = UserRole.OWNER
    edits_pool: bool = False


def needs(role: RoleName, *, edits_pool: bool = False) -> Callable[[Function], Function]:
    """Declare what a command, the function of a route, or an event of Gradio needs."""
    need = Need(UserRole(role), edits_pool)

    def mark(function: Function) -> Function:
        setattr(function, _MARK, need)
        return function

    return mark


def find_need(function: object) -> Need | None:
    """What a function declares; None where it declares nothing."""
    need: Need | None = getattr(function, _MARK, None)
    return need


class Permissions:
    """What the requests of one application need, by METHOD PATH, and its events by EVENT NAME."""

    def __init__(self, rows: Iterable[tuple[str, Need]] = ()) -> None:
        self.rows: dict[str, Need] = {}
        self._patterns: list[tuple[str, Pattern[str], UserRole]] = []
        for row, need in rows:
            self._add(row, need)

    def add_routes(self, routes: Sequence[BaseRoute]) -> None:
        """Add what the routes of an application declare."""
        for row, endpoint in list_endpoints(routes):
            if (need := find_need(endpoint)) is not None:
                self._add(row, need)

    def add_events(self, functions: Iterable[object]) -> None:
        """Add what the functions of Gradio's events declare."""
        for function in functions:
            if (need := find_need(function)) is not None:
                self.rows[f"EVENT {getattr(function, '__name__', '')}"] = need

    def find_role(self, method: str, path: str) -> UserRole:
        """The role that a request needs; that of an owner where nothing declares one."""
        verb = "GET" if method == "HEAD" else method
        exact = self.rows.get(f"{verb} {path}")
        if exact is not None:
            return exact.role
        matches = [role for declared, pattern, role in self._patterns if declared == verb and pattern.match(path)]
        return max(matches, key=list(UserRole).index, default=UserRole.OWNER)

    def check_request(self, rights: Rights, method: str, path: str) -> None:
        """Raise RoleRefused when the request needs another role."""
        rights.require(self.find_role(method, path), describe_request(method, path))

    def list_refused(self, rights: Rights) -> dict[str, str]:
        """What a person's controls must not send, each with the reason in a sentence."""
        return {row: reason for row, need in self.rows.items() if (reason := _explain_refusal(rights, need.role))}

    def list_refused_on_read_only(self, rights: Rights) -> dict[str, str]:
        """The same for pools that are shared read-only."""
        reason = _explain_refusal(rights, UserRole.OWNER)
        return {row: reason for row, need in self.rows.items() if need.edits_pool} if reason else {}

    def _add(self, row: str, need: Need) -> None:
        if row in self.rows:  # the first of two equal routes is the one that answers
            return
        self.rows[row] = need
        if "{" in row:
            verb, path = row.split(" ", 1)
            self._patterns.append((verb, compile_path(path)[0], need.role))


def list_endpoints(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, object]]:
    """METHOD PATH and function of every route, without those of mounted applications."""
    # Newer versions of FastAPI keep the routes of a router together; the one that comes with vLLM lists them all.
    list_contexts = getattr(routing, "iter_route_contexts", iter)
    for context in list_contexts(routes):
        for method in sorted(getattr(context, "methods", None) or ()):
            if method not in ("HEAD", "OPTIONS"):
                yield f"{method} {getattr(context, 'path', '')}", getattr(context, "endpoint", None)


def check_event(rights: Rights, function: object, deed: str) -> None:
    """Raise RoleRefused when an event of a page needs another role."""
    rights.require((find_need(function) or Need()).role, deed)


def describe_request(method: str, path: str) -> str:
    """What a request does, to follow "may": "do this (save worker)"."""
    deed = f"{method} {path}"
    if deed.startswith(COMMAND_PREFIX):
        page, _, command = deed.removeprefix(COMMAND_PREFIX).partition("/")
        return f"do this ({page}: {command.replace('_', ' ')})"
    return f"do this ({deed})"


def _explain_refusal(rights: Rights, needed: UserRole) -> str:
    try:
        rights.require(needed, "do this")
    except RoleRefused as refusal:
        return f"{str(refusal)[0].upper()}{str(refusal)[1:]}."
    return ""
