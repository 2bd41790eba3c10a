"""Make a worker of a template: a free name, the values that a person gave, a model to run on."""

from __future__ import annotations

from collections.abc import Mapping

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool, PoolNotFound, SecretNotFound
from pool_registry.gallery.templates import SHIPPED_MODEL, TemplateField, WorkerTemplate
from pool_registry.imports import worker_name
from pool_registry.kinds import kind_of
from pool_registry.pool import Pool
from pool_registry.secrets import resolve
from pool_registry.worker import WorkerSpec


def find_missing(template: WorkerTemplate, values: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """List (field, sentence) for every field that neither `values` nor a default fills.

    The usual key variable is a default only where it is set; a person who writes a reference to a key
    that is not there yet may add the worker all the same.
    """
    checks = ((need.field, _explain_missing(need, values)) for need in template.fields)
    return [(field, sentence) for field, sentence in checks if sentence]


def make_worker(
    template: WorkerTemplate, values: Mapping[str, JsonValue], pool: Pool, base: WorkerSpec | None = None
) -> WorkerSpec:
    """Make the worker of `template` with `values`, under a name that is free in `pool`.

    A role agent runs on the model of `base`. Raises InvalidPool with every field that is missing.
    """
    if template.spec is None:
        raise InvalidPool([("template", f"{template.title} is an import; open it and choose what to add")])
    missing = find_missing(template, values)
    if missing:
        raise InvalidPool(missing)
    spec = put_on_model(template.spec, base) if template.runs_on_model and base is not None else template.spec
    defaults = {need.field: need.value for need in template.fields if need.value}
    given = {need.field: values[need.field] for need in template.fields if values.get(need.field) not in (None, "")}
    config: dict[str, JsonValue] = {**spec.config, **defaults, **given}
    return spec.model_copy(
        update={
            "name": worker_name(spec.name, (worker.name for worker in pool.workers)),
            "description": spec.description.replace("{model}", str(config.get("model", ""))),
            "config": config,
        }
    )


def list_bases(pool: Pool) -> list[WorkerSpec]:
    """List the agents of `pool` on which a role agent can run: one per model, those behind an endpoint first."""
    bases: dict[tuple[str, ...], WorkerSpec] = {}
    for spec in pool.agents():
        if "model" in spec.config:
            key = (spec.kind, str(spec.config.get("base_url", "")), str(spec.config["model"]))
            bases.setdefault(key, spec)
    return sorted(bases.values(), key=lambda spec: spec.kind != "chat")


def choose_base(pool: Pool, name: str = "") -> WorkerSpec:
    """Return the agent called `name`; without a name the first that fits, or the small model that ships.

    Raises InvalidPool when `name` is no agent of the pool.
    """
    if not name:
        return next(iter(list_bases(pool)), SHIPPED_MODEL)
    if name == SHIPPED_MODEL.name and all(spec.name != name for spec in pool.workers):
        return SHIPPED_MODEL
    try:
        spec = pool.worker(name)
    except PoolNotFound as error:
        raise InvalidPool([("model_of", str(error))]) from error
    if kind_of(spec).role != "agent":
        raise InvalidPool([("model_of", f"{name} is no language model; choose an agent")])
    return spec


def _explain_missing(need: TemplateField, values: Mapping[str, JsonValue]) -> str:
    given = values.get(need.field)
    if given not in (None, "") or need.optional:
        return ""
    if not need.value:
        return "this is missing"
    if need.control == "key":
        try:
            resolve(need.value)
        except SecretNotFound as error:
            return str(error)
    return ""


def put_on_model(role: WorkerSpec, base: WorkerSpec) -> WorkerSpec:
    """Give `base` the role's name, description and prompt; the model's own settings stay."""
    config: dict[str, JsonValue] = {**base.config, "role": role.config["role"]}
    if base == SHIPPED_MODEL:
        config["max_tokens"] = role.config["max_tokens"]
    own = {"name": role.name, "description": role.description, "config": config, "enabled": True}
    return base.model_copy(update={**own, "output": None, "fallback": ""})
