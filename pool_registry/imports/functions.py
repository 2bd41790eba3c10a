"""List the functions of a Python file or module, with schemas from their signatures and docstrings. An agent of
another framework is listed as a function that asks it (processes/framework_agents.py).

The schema is pydantic's, which also checks and converts the arguments of each call, so what is promised and what
is done cannot drift apart. Docstrings are read by griffe (the reader behind mkdocstrings), which knows the
styles of Google, NumPy and Sphinx.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.imports import FreeNames, Offer
from pool_registry.processes.function_process import FunctionPermissions, Target, parse, start_process
from pool_registry.schemas.argument_schema import schema_problem, without_wording
from pool_registry.schemas.result_outline import outline_result
from pool_registry.worker import WorkerSpec

MAX_DOCSTRING_CHARS = 10_000
LOAD_S = 60.0
MAX_DESCRIPTION = 2000
AGENT_TIMEOUT_S = 180.0  # as of agents elsewhere (workers/a2a.py): one takes several turns


async def list_functions(target: str, python: str = "", permissions: FunctionPermissions | None = None) -> list[Offer]:
    """Return one offer per function. Imports the file or module in a process that ends afterwards: in the sandbox where
    there are `permissions`, which the workers keep.

    Raises InvalidPool when there is nothing to load or its code fails.
    """
    place = parse(target)
    if place.file and not await asyncio.to_thread(Path(place.file).is_file):
        raise InvalidPool([("target", f"there is no file {place.file}")])
    described = await _describe(place, python, permissions)
    if not described:
        raise InvalidPool([("target", f"{place} has no public function or agent; write one without _ before its name")])
    names = FreeNames()
    return [_offer(place, function, names.choose(function["name"]), python, permissions) for function in described]


async def _describe(place: Target, python: str, permissions: FunctionPermissions | None) -> list[Mapping[str, Any]]:
    try:
        async with asyncio.timeout(LOAD_S):
            process = await start_process(place, python, permissions)
    except TimeoutError:
        raise InvalidPool([("target", f"{place} did not load within {LOAD_S:g} s")]) from None
    except WorkerFault as fault:
        raise InvalidPool([("target", f"{place} cannot be loaded: {fault}")]) from fault
    try:
        return process.functions
    finally:
        await process.end()


def _offer(
    place: Target, function: Mapping[str, Any], name: str, python: str, permissions: FunctionPermissions | None
) -> Offer:
    description, arguments = _docstring(function["doc"])
    schema = function.get("schema") or {}
    parameters = _with_descriptions(without_wording(schema, words=("title",)), arguments)
    problem = function.get("problem") or schema_problem(parameters)
    target = Target(place.file, place.module, function["name"])
    config: dict[str, Any] = {"target": str(target), "parameters": {} if problem else parameters}
    if returns := outline_result(function.get("returns")):
        config["returns"] = returns
    if python:
        config["python"] = python
    if permissions is not None:
        config["permissions"] = permissions.model_dump()
    spec = WorkerSpec(
        name=name,
        kind="function",
        description=description[:MAX_DESCRIPTION] or f"The function {function['name']}.",
        config=config,
        max_concurrency=1,
        retries=0,
    )
    if function.get("agent"):
        spec = spec.model_copy(update={"timeout_s": AGENT_TIMEOUT_S})
    return Offer(spec, problem)


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the function's description, with its returns, and that of each argument."""
    from griffe import Docstring, DocstringSectionKind, parse_auto

    logging.getLogger("griffe").setLevel(logging.ERROR)  # it warns of every argument without a type
    lines: list[str] = []
    arguments: dict[str, str] = {}
    for section in parse_auto(Docstring(text[:MAX_DOCSTRING_CHARS])):
        if section.kind is DocstringSectionKind.text:
            lines.append(str(section.value).strip())
        elif section.kind is DocstringSectionKind.parameters:
            arguments |= {entry.name: " ".join(entry.description.split()) for entry in section.value}
        elif section.kind is DocstringSectionKind.returns:
            lines += [f"Returns: {' '.join(entry.description.split())}" for entry in section.value if entry.description]
    return "\n\n".join(lines), arguments


def _with_descriptions(schema: dict[str, Any], arguments: Mapping[str, str]) -> dict[str, Any]:
    """Add the docstring's descriptions to the arguments that have none of their own (from `Field`)."""
    rules = {
        name: {**({"description": arguments[name]} if arguments.get(name) else {}), **rule}
        for name, rule in schema.get("properties", {}).items()
    }
    return {**schema, "properties": rules}
