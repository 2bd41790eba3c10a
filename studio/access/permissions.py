"""The table of what each role may send to a studio or a served model, and the one check of it.

A request that stands in no row needs an owner: a page of another package, or a route that was forgotten here, which a
test finds. Pages' events that Gradio carries have rows of their own, by the name of the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from re import Pattern

from starlette.routing import compile_path

from studio.access.roles import Rights, RoleRefused, UserRole

COMMAND_PREFIX = "POST /api/pages/"

# The commands of each page.
COMMANDS: Mapping[str, Mapping[UserRole, str]] = {
    "pool": {
        UserRole.VIEWER: "show compare gallery binding memory practice orchestrators dependents check_local",
        UserRole.EDITOR: "save_worker remove_worker set_enabled set_description check_worker try_worker test_worker "
        "save_limits save_mode restore create import add_template discover add_found list_models look add_workers "
        "refresh bind reset_binding set_memory forget learn make_practice strike_practice train_on_pool value_worker "
        "describe_worker evidence rename_pool delete_pool put_back",
        UserRole.OWNER: "switch_on check_reference set_read_only",
    },
    "train": {
        UserRole.VIEWER: "open preset of_job of_pool check tasks",
        UserRole.EDITOR: "fit submit stop resume start_queue make_tasks read_tasks add_tasks save_task strike_task "
        "restore_task try_task run_plan",
        UserRole.OWNER: "places rent",
    },
    "compare": {UserRole.VIEWER: "open draw", UserRole.EDITOR: "run stop check evaluate"},
    "traces": {UserRole.VIEWER: "check", UserRole.EDITOR: "delete restore star"},
    "housekeeping": {UserRole.VIEWER: "dependents trash", UserRole.EDITOR: "rename delete put_back"},
    "publish": {UserRole.VIEWER: "open runs", UserRole.EDITOR: "preview file", UserRole.OWNER: "publish"},
    "serve": {UserRole.EDITOR: "add_token remove_token", UserRole.OWNER: "start stop"},
}

# Commands of the Pool page that only owners send for a pool that is shared read-only.
POOL_CHANGES = frozenset(
    (
        *("save_worker", "remove_worker", "set_enabled", "set_description", "save_limits", "save_mode", "restore"),
        *("switch_on", "add_template", "add_found", "add_workers", "refresh", "bind", "reset_binding", "set_memory"),
        *("forget", "rename_pool", "delete_pool"),
    )
)

# Everything else that is sent to the studio.
ROUTES: Mapping[UserRole, tuple[str, ...]] = {
    UserRole.VIEWER: (
        "GET /api/me",
        "GET /api/sessions",
        "POST /api/sessions/{key}/end",
        "POST /logout",
        "GET /api/approvals",
        "GET /api/traces",
        "GET /api/episodes/{episode_id}",
        "GET /api/episodes/{episode_id}/stream",
        "GET /api/episodes/{episode_id}/star",
        "GET /api/episodes/{episode_id}/steps/{step_id}",
        "GET /api/episodes/{episode_id}/turns/{number}",
        "GET /api/episodes/{episode_id}/what-if",
        "GET /api/episodes/{episode_id}/variations",
        "GET /api/episodes/{episode_id}/approval",
        "GET /api/episodes/{episode_id}/export/{name}",
        "GET /api/export/python",
        "GET /api/pools/{name}",
        "GET /api/jobs",
        "GET /api/jobs/{job}",
        "GET /api/jobs/{job}/stream",
        "GET /api/jobs/{job}/rollouts",
        "GET /api/recipes",
        "GET /api/compare/stream",
        "GET /api/compare/jobs",
        "GET /api/compare/suite",
        "GET /api/compare/tasks",
        "GET /api/compare/matrix",
        "GET /api/compare/ablation",
        "GET /api/compare/training",
        "GET /api/serve",
        "GET /api/publications",
        "GET /api/publications/{key}",
        "GET /api/publications/previews/{preview}.html",
    ),
    UserRole.EDITOR: (
        "POST /api/episodes/{episode_id}/star",
        "POST /api/episodes/{episode_id}/again",
        "POST /api/episodes/{episode_id}/task",
        "POST /api/episodes/{episode_id}/credit",
        "POST /api/episodes/{episode_id}/what-if",
        "POST /api/episodes/{episode_id}/what-if/check",
        "POST /api/episodes/{episode_id}/approval",
        "POST /api/episodes/{episode_id}/approval/check",
        "POST /api/documents",
    ),
    UserRole.OWNER: (
        "POST /api/keyring",
        "GET /api/accounts",
        "POST /api/accounts",
        "POST /api/accounts/{name}/role",
        "POST /api/accounts/{name}/remove",
    ),
}

# What the pages need of Gradio; its other routes are closed to everybody (request_guards.py).
GRADIO_ROUTES = (
    "GET /",
    "GET /config",
    "GET /theme.css",
    "GET /favicon.ico",
    "GET /manifest.json",
    "GET /robots.txt",
    "GET /static/{path:path}",
    "GET /assets/{path:path}",
    "GET /gradio_api/app_id",
    "GET /gradio_api/theme.css",
    "GET /gradio_api/startup-events",
    "GET /gradio_api/heartbeat/{session_hash}",
    "GET /gradio_api/queue/data",
    "POST /gradio_api/queue/join",
    "POST /gradio_api/cancel",
    "POST /gradio_api/reset",
)

# Served models. A client's role is that of the account whose token it sends.
SERVED_ROUTES: Mapping[UserRole, tuple[str, ...]] = {
    UserRole.VIEWER: (
        "GET /health",
        "GET /v1/models",
        "GET /v1/models/{name:path}",
        "GET /v1/responses/{name}",
        "GET /v1/responses/{name}/input_items",
        "GET /v1/approvals",
        "GET /v1/approvals/{episode_id}",
        "GET /v1/pools",
        "GET /v1/pools/{pool}",
    ),
    UserRole.EDITOR: (
        "POST /v1/chat/completions",
        "POST /v1/responses",
        "POST /v1/responses/{name}/cancel",
        "DELETE /v1/responses/{name}",
        "POST /v1/approvals/{episode_id}",
        "POST /v1/pools",
        "POST /v1/pools/import",
        "POST /v1/pools/{pool}/workers",
        "POST /v1/pools/{pool}/check",
        "POST /v1/pools/{pool}/workers/{worker}/test",
        "GET /mcp",
        "POST /mcp",
        "DELETE /mcp",
    ),
}

# Events of the Run page, by the name of their function.
EVENTS: Mapping[str, UserRole] = {
    "open_page": UserRole.VIEWER,
    "list_agents": UserRole.VIEWER,
    "adapt": UserRole.VIEWER,
    "_parts": UserRole.VIEWER,
    "tell": UserRole.VIEWER,
    "draw_query": UserRole.VIEWER,
    "list_fitting": UserRole.VIEWER,
    "start": UserRole.EDITOR,
    "halt": UserRole.EDITOR,
}


def find_role(method: str, path: str) -> UserRole:
    """The role that a request needs; that of an owner where no row declares one."""
    deed = f"{'GET' if method == 'HEAD' else method} {path}"
    exact = _list_exact().get(deed)
    if exact is not None:
        return exact
    matches = [role for verb, pattern, role in _list_patterns() if verb == deed.split()[0] and pattern.match(path)]
    return max(matches, key=list(UserRole).index, default=UserRole.OWNER)


def check_request(rights: Rights, method: str, path: str) -> None:
    """Raise RoleRefused when the request needs another role."""
    rights.require(find_role(method, path), describe_request(method, path))


def check_event(rights: Rights, name: str, deed: str) -> None:
    """Raise RoleRefused when an event of a page needs another role."""
    rights.require(EVENTS.get(name, UserRole.OWNER), deed)


def list_refused(rights: Rights) -> dict[str, str]:
    """What a person's controls must not send, by METHOD PATH or EVENT NAME, each with the reason in a sentence."""
    rows = [*list_declared(), *((f"EVENT {name}", role) for name, role in EVENTS.items())]
    return {row: reason for row, role in rows if (reason := _explain_refusal(rights, role))}


def list_refused_on_read_only(rights: Rights) -> dict[str, str]:
    """The same for pools that are shared read-only."""
    reason = _explain_refusal(rights, UserRole.OWNER)
    return {f"{COMMAND_PREFIX}pool/{name}": reason for name in sorted(POOL_CHANGES)} if reason else {}


def _explain_refusal(rights: Rights, needed: UserRole) -> str:
    try:
        rights.require(needed, "do this")
    except RoleRefused as refusal:
        return f"{str(refusal)[0].upper()}{str(refusal)[1:]}."
    return ""


def stands_in_gradio_rows(method: str, path: str) -> bool:
    """Whether a request is one of those that the pages need of Gradio."""
    verb = "GET" if method == "HEAD" else method
    plain = path.rstrip("/") or "/"
    return any(
        row == f"{verb} {plain}" or (row.startswith(f"{verb} ") and compile_path(row.split()[1])[0].match(plain))
        for row in GRADIO_ROUTES
    )


def describe_request(method: str, path: str) -> str:
    """What a request does, to follow "may": "do this (save worker)"."""
    deed = f"{method} {path}"
    if deed.startswith(COMMAND_PREFIX):
        page, _, command = deed.removeprefix(COMMAND_PREFIX).partition("/")
        return f"do this ({page}: {command.replace('_', ' ')})"
    return f"do this ({deed})"


def list_declared() -> Iterator[tuple[str, UserRole]]:
    """Every row: METHOD PATH and the role."""
    for page, roles in COMMANDS.items():
        for role, names in roles.items():
            yield from ((f"{COMMAND_PREFIX}{page}/{name}", role) for name in names.split())
    for table in (ROUTES, SERVED_ROUTES):
        for role, rows in table.items():
            yield from ((row, role) for row in rows)
    yield from ((row, UserRole.VIEWER) for row in GRADIO_ROUTES)


@cache
def _list_exact() -> Mapping[str, UserRole]:
    return {row: role for row, role in list_declared() if "{" not in row}


@cache
def _list_patterns() -> tuple[tuple[str, Pattern[str], UserRole], ...]:
    rows = [(row.split(" ", 1), role) for row, role in list_declared() if "{" in row]
    return tuple((verb, compile_path(path)[0], role) for (verb, path), role in rows)
