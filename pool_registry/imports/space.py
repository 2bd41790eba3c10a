"""List the named endpoints of a Hugging Face Space, or any Gradio app, as workers of kind `space`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.imports import FreeNames, Offer
from pool_registry.kinds import field_problems
from pool_registry.schemas.argument_schema import schema_problem
from pool_registry.worker import WorkerSpec
from pool_registry.workers.space import CHECK_S, SpaceClient, SpaceConfig

MAX_DESCRIPTION = 1_000


class UnfitEndpoint(Exception):
    """An endpoint cannot become a worker; the message says why."""


async def list_endpoints(space: str, *, token: str = "", allow_private: bool = False) -> list[Offer]:
    """Return one offer for each endpoint of a Space: owner/name or a URL; `token` is a reference.

    Raises InvalidPool for what a person can correct, WorkerFault when the Space does not answer.
    """
    given: dict[str, Any] = {"space": space, "token": token}
    if allow_private:
        given["allow_private"] = True
    try:
        config = SpaceConfig.model_validate(given)
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error
    app = await SpaceClient(config, CHECK_S).app()
    names, results = FreeNames(), list[Offer]()
    short = config.space.rpartition("/")[2].partition(":")[0]
    for api_name, endpoint in app.endpoints.items():
        name = names.choose(f"{short}_{api_name.strip('/')}" if len(app.endpoints) > 1 else short)
        results.append(_offer(name, {**given, "space": config.space, "api_name": api_name}, endpoint))
    if not results:
        raise InvalidPool([("space", "it has no endpoint with a name, so there is nothing to call")])
    return results


def _offer(name: str, config: dict[str, Any], endpoint: Mapping[str, Any]) -> Offer:
    described = endpoint.get("description")
    description = described if isinstance(described, str) else ""
    problem = ""
    try:
        config = {**config, **_arguments(endpoint)}
    except UnfitEndpoint as reason:
        problem = str(reason)
    description = (description.strip() or f"{config['api_name']} of {config['space']}")[:MAX_DESCRIPTION]
    return Offer(WorkerSpec(name=name, kind="space", description=description, config=config, timeout_s=120), problem)


def _arguments(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return `inputs` and `parameters` of the configuration. Raises UnfitEndpoint."""
    listed = endpoint.get("parameters")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise UnfitEndpoint("it does not say what it takes")
    inputs: list[dict[str, Any]] = []
    properties: dict[str, Any] = {}
    required: list[str] = []
    for number, entry in enumerate(listed, start=1):
        name = str(entry.get("parameter_name") or f"input_{number}")
        has_default = entry.get("parameter_has_default") is True
        if name in properties:
            raise UnfitEndpoint(f"two of its inputs are called {name[:60]}")
        properties[name], is_file = _schema(name, entry, has_default)
        inputs.append({"name": name, "is_file": is_file, "default": entry.get("parameter_default")})
        if not has_default:
            required.append(name)
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    problem = schema_problem(parameters)
    if problem:
        raise UnfitEndpoint(problem)
    return {"inputs": inputs, "parameters": parameters}


def _schema(name: str, parameter: Mapping[str, Any], has_default: bool) -> tuple[dict[str, Any], bool]:
    """Return an input's JSON Schema, and whether it is a file. Raises UnfitEndpoint."""
    python = parameter.get("python_type")
    kind = str(python.get("type", "")) if isinstance(python, dict) else ""
    label = str(parameter.get("label") or name)[:200]
    if "filepath" in kind:
        if kind.removesuffix(" | None") != "filepath":
            raise UnfitEndpoint(f"its input {name[:60]} is not one file but {kind[:80]}")
        rule: dict[str, Any] = {"type": ["string", "null"] if has_default else "string", "pattern": "^https?://"}
        return {**rule, "description": f"{label}: URL of a file"}, True
    schema = parameter.get("type")
    rule = dict(schema) if isinstance(schema, dict) else {}
    more = rule.pop("additional_description", None)
    described = rule.get("description") or label
    rule["description"] = f"{described}. {more}" if isinstance(more, str) and more else described
    if has_default and "default" not in rule:
        rule["default"] = parameter.get("parameter_default")
    return rule, False
