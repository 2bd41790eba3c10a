"""The `server.json` of the MCP registry, which says where a server is reached or from which package it is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pool_registry.pasted.base import UnfitText

# How a package of each registry is started, and what stands between its name and its version.
STARTERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "npm": (("npx", "-y"), "@"),
    "pypi": (("uvx",), "=="),
    "oci": (("docker", "run", "-i", "--rm"), ":"),
}


def find_listing(document: object) -> Mapping[str, Any]:
    """The listing in a document, which the registry's answers wrap; none where there is none."""
    inner = document.get("server") if isinstance(document, Mapping) else None
    listing = inner if isinstance(inner, Mapping) else document
    if not isinstance(listing, Mapping) or not isinstance(listing.get("name"), str):
        return {}
    places = [*_list(listing, "remotes"), *_list(listing, "packages")]
    return listing if any("url" in place or _read_registry(place) for place in places) else {}


def read_listing(listing: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name of a listed server, and its entry as settings of clients have it. Raises UnfitText where it can be
    neither reached nor started."""
    name = str(listing["name"]).rpartition("/")[2]
    for remote in _list(listing, "remotes"):
        if isinstance(remote.get("url"), str):
            return name, {"type": "http", "url": remote["url"], "headers": dict(_read_variables(remote, "headers"))}
    for package in _list(listing, "packages"):
        if _read_registry(package) in STARTERS and isinstance(package.get("identifier", package.get("name")), str):
            return name, _read_package(package)
    raise UnfitText(f"its packages are none of {', '.join(STARTERS)}, and it has no address")


def _read_package(package: Mapping[str, Any]) -> Mapping[str, Any]:
    registry = _read_registry(package)
    (command, *words), mark = STARTERS[registry]
    env = dict(_read_variables(package, "environmentVariables"))
    identifier, version = str(package.get("identifier", package.get("name"))), package.get("version")
    has_version = mark in identifier.rpartition("/")[2] or not isinstance(version, str) or not version
    passed = [word for name in env if registry == "oci" for word in ("-e", name)]
    args = [
        *words,
        *passed,
        *_read_arguments(package, "runtimeArguments"),
        identifier if has_version else f"{identifier}{mark}{version}",
        *_read_arguments(package, "packageArguments"),
    ]
    return {"command": command, "args": args, "env": env}


def _read_registry(package: Mapping[str, Any]) -> str:
    registry = package.get("registryType", package.get("registry_type", package.get("registry_name")))
    return {"docker": "oci"}.get(registry, registry) if isinstance(registry, str) else ""


def _list(listing: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = listing.get(name)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _read_variables(place: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """What a server takes by name; what the listing leaves to a person and is needed refers to the environment."""
    for row in _list(place, name):
        value = row.get("value", row.get("default"))
        field = str(row.get("name") or "")
        if field and isinstance(value, str) and "{" not in value:
            yield field, value
        elif field and (row.get("isRequired") or row.get("isSecret")):
            yield field, f"env:{field.upper().replace('-', '_')}"


def _read_arguments(package: Mapping[str, Any], name: str) -> Iterator[str]:
    """Raises UnfitText where a person must say one."""
    for row in _list(package, name):
        value = row.get("value", row.get("default"))
        flag = str(row["name"]) if row.get("type") == "named" and row.get("name") else ""
        if isinstance(value, str | int | float) and "{" not in str(value):
            yield from filter(None, (flag, str(value)))
        elif row.get("isRequired"):
            hint = flag or row.get("valueHint") or row.get("description") or "argument"
            raise UnfitText(f"it needs {str(hint)[:80]}, which its listing leaves to you: paste its whole command")
