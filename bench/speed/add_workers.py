"""How long it takes to add everything that an OpenAPI document offers, and to show the pool that it makes.

    python bench/speed/add_workers.py [--json] [--operations N ...]

The documents are made here, with sizes as GitHub's has them: some 6 kB an operation, with parameters, a body of nested
fields, shared components and answers. Measured is what `podium pool add POOL --from openapi:FILE` does: looking, adding
all in one version, and the page's document of the new pool; then one more worker, and the same pool opened again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SIZES = (100, 200, 400, 1222)
GOAL_S = 15.0  # for the last size, looking and adding together, on quiet cores
WORDS = ("the", "repository", "of", "an", "organization", "whose", "members", "see", "its", "issues", "and", "requests")


@dataclass(frozen=True, slots=True)
class AddTimes:
    """Seconds of processor time for a document of so many operations; `versions`: how many versions adding made."""

    operations: int
    megabytes: float
    look_s: float
    add_s: float
    one_more_s: float
    page_s: float
    versions: int


def write_document(operations: int) -> str:
    """An OpenAPI document of so many operations."""
    methods = ("get", "post", "patch", "delete")
    paths: dict[str, dict[str, Any]] = {}
    for number in range(operations):
        path = f"/orgs/{{org}}/area{number // len(methods)}/{{item}}"
        method = methods[number % len(methods)]
        paths.setdefault(path, {})[method] = _write_operation(number, method)
    components = {
        "parameters": {"org": _write_parameter("org", "path"), "page": _write_parameter("page", "query", "integer")},
        "schemas": {f"shared{k}": _write_object(k, 12) for k in range(200)},
    }
    info = {"title": "A forge", "version": "1"}
    servers = [{"url": "https://api.example.org"}]
    return json.dumps({"openapi": "3.0.3", "info": info, "servers": servers, "paths": paths, "components": components})


def _write_operation(number: int, method: str) -> dict[str, Any]:
    shared = {"$ref": f"#/components/schemas/shared{number % 200}"}
    answer = {"description": _write_text(number, 8), "content": {"application/json": {"schema": shared}}}
    operation: dict[str, Any] = {
        "operationId": f"area{number // 4}/{method}-item",
        "summary": _write_text(number, 8),
        "description": _write_text(number, 120),
        "parameters": [
            {"$ref": "#/components/parameters/org"},
            {"$ref": "#/components/parameters/page"},
            _write_parameter("item", "path"),
            *(_write_parameter(f"filter_{k}", "query") for k in range(4)),
        ],
        "responses": {"200": answer, "404": answer, "422": answer},
    }
    if method in ("post", "patch"):
        body = _write_object(number, 14)
        body["properties"]["owner"] = shared
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return operation


def _write_parameter(name: str, place: str, kind: str = "string") -> dict[str, Any]:
    schema = {"type": kind, "enum": ["all", "open", "closed"]} if name.startswith("filter") else {"type": kind}
    text = _write_text(len(name), 20)
    return {"name": name, "in": place, "required": place == "path", "description": text, "schema": schema}


def _write_object(number: int, fields: int) -> dict[str, Any]:
    properties: dict[str, Any] = {
        f"field_{k}": {"type": "string", "description": _write_text(number + k, 15), "maxLength": 100}
        for k in range(fields)
    }
    inner = {"id": {"type": "integer"}, "url": {"type": "string", "format": "uri"}, "name": {"type": "string"}}
    properties["labels"] = {"type": "array", "items": {"type": "object", "properties": inner}}
    return {"type": "object", "properties": properties, "required": ["field_0"]}


def _write_text(seed: int, words: int) -> str:
    return " ".join(WORDS[(seed + k) % len(WORDS)] for k in range(words)).capitalize()


def measure(operations: int) -> AddTimes:
    """Add a document's operations to an empty pool in a data folder of its own."""
    from pool_registry.imports.openapi import operations as importer  # noqa: F401, loaded before the clock runs
    from pool_registry.pool import Pool
    from studio.pages.pool.commands import PoolCommands
    from studio.prepare import prepare_store
    from studio.runtime import Runtime

    text = write_document(operations)
    with tempfile.TemporaryDirectory() as home:
        store = prepare_store(home)
        runtime = Runtime(store)
        store.pools.save(Pool(name="forge"))
        page = PoolCommands(runtime)

        def send(action: str, **fields: Any) -> dict[str, Any]:
            reply = page.run(action, {"pool": "forge", **fields})
            assert reply["ok"], reply["problems"][:3]
            return reply

        send("show")  # imports and caches
        look_s, reply = _clock(lambda: send("look", source="openapi", text=text))
        specs = [offer["spec"] for offer in reply["offers"] if not offer["problem"]]
        add_s, _ = _clock(lambda: send("add_workers", workers=specs))
        versions = store.pools.latest("forge").version - 1
        one_more_s, _ = _clock(lambda: send("add_workers", workers=specs[:1]))
        page_s, shown = _clock(lambda: send("show"))
        assert len(shown["state"]["pool"]["workers"]) == len(specs) + 1 == operations + 1
        runtime.close()
        store.close()
    return AddTimes(operations, round(len(text) / 1e6, 1), look_s, add_s, one_more_s, page_s, versions)


def _clock(work: Callable[[], dict[str, Any]]) -> tuple[float, dict[str, Any]]:
    start = time.process_time()
    reply = work()
    return round(time.process_time() - start, 2), reply


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--operations", type=int, nargs="+", default=list(SIZES))
    options = parser.parse_args()
    rows = []
    for operations in options.operations:
        rows.append(measure(operations))
        if not options.json:
            row = rows[-1]
            added = f"look {row.look_s:.2f} s, add {row.add_s:.2f} s ({row.versions} version)"
            shown = f"one more {row.one_more_s:.2f} s, page {row.page_s:.2f} s"
            print(f"{row.operations:5} operations, {row.megabytes} MB: {added}, {shown}", flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
