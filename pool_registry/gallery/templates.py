"""The gallery of templates: workers with sane defaults, ready to be added with one click.

A template is a `WorkerSpec` preset and what it still needs from a person. The texts stand in assets/gallery/. A kind
that none of them names is offered with what its class says (`Worker.template`). worker_from_template.py makes workers
of templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from pool_registry.gallery import read_gallery
from pool_registry.gallery.providers import PROVIDERS, Provider
from pool_registry.kinds import KINDS, Kind, icon_of
from pool_registry.strict_model import FrozenModel, StrictModel
from pool_registry.worker import WorkerSpec

Group = Literal["models", "roles", "tools", "imports"]
Needs = Literal["nothing", "a key", "a running server", "a file", "a model", "an address", "a program"]
Control = Literal["text", "model", "key", "path", "documents"]


class TemplateField(FrozenModel):
    """A field of the worker's configuration that a person may have to fill in, and how the page asks for it."""

    field: str
    label: str
    about: str = ""
    control: Control = "text"
    value: str = ""  # the default; "" when there is none
    choices: tuple[str, ...] = ()
    optional: bool = False


class WorkerTemplate(FrozenModel):
    """One card of the gallery. `spec` is None for what opens an importer of its own."""

    id: str
    title: str
    line: str
    group: Group = "tools"
    needs: Needs = "nothing"
    icon: str = ""  # an SVG path; "" for that of the kind
    spec: WorkerSpec | None = None
    fields: tuple[TemplateField, ...] = ()
    note: str = ""  # what a person should know before choosing it
    runs_on_model: bool = False  # a role agent: takes endpoint and model from another agent

    @property
    def kind(self) -> str:
        return self.spec.kind if self.spec else self.id

    @property
    def shown_icon(self) -> str:
        return self.icon or icon_of(self.kind)


class RoleCard(StrictModel):
    """One entry of assets/gallery/roles.yaml."""

    id: str
    title: str
    line: str
    icon: str
    description: str
    prompt: str


def _read_templates(group: Group) -> list[WorkerTemplate]:
    entries = [{**entry, "group": group} for entry in read_gallery(group)]
    return TypeAdapter(list[WorkerTemplate]).validate_python(entries)


def _find_shipped_model(models: list[WorkerTemplate]) -> WorkerSpec:
    return next(template.spec for template in models if template.id == "small_model" and template.spec)


_MODELS = _read_templates("models")
SHIPPED_MODEL = _find_shipped_model(_MODELS)


@cache
def templates() -> Mapping[str, WorkerTemplate]:
    """Every template by its id, in the order of the gallery."""
    written = [*map(_provider_template, PROVIDERS), *_MODELS, *_role_templates(), *_read_templates("tools")]
    imports = _read_templates("imports")
    covered = {template.kind for template in (*written, *imports)}
    others = [_kind_template(kind) for kind in KINDS.values() if kind.name not in covered]
    return {template.id: template for template in (*written, *filter(None, others), *imports)}


def _provider_template(provider: Provider) -> WorkerTemplate:
    """Build the card of a chat worker at this provider, which asks for a model and, for a remote one, a key."""
    model = TemplateField(
        field="model",
        label="Model",
        about="As the provider names it.",
        control="model",
        value=provider.suggested[0] if provider.suggested else "",
        choices=provider.suggested,
    )
    about = f"A key can be had at {provider.key_url}" if provider.key_url else ""
    key = TemplateField(field="api_key", label="API key", about=about, control="key", value=f"env:{provider.key}")
    url = TemplateField(field="base_url", label="Base URL", about="Where it listens.", value=provider.base_url)
    return WorkerTemplate(
        id=provider.name,
        group="models",
        title=provider.label,
        line=provider.line,
        needs="a running server" if provider.is_local else "a key",
        spec=WorkerSpec(
            name=provider.name,
            kind="chat",
            description=f"A language model at {provider.label} ({{model}}).",
            config=provider.config(),
            timeout_s=180 if provider.is_local else 120,
        ),
        fields=(url, model) if provider.is_local else (key, model),
        note=provider.note,
    )


def _role_templates() -> Iterator[WorkerTemplate]:
    """Yield our own prompts, on a model that the pool has or that ships."""
    for role in TypeAdapter(list[RoleCard]).validate_python(read_gallery("roles")):
        config = {**SHIPPED_MODEL.config, "role": role.prompt.strip(), "max_tokens": 512}
        preset = SHIPPED_MODEL.model_copy(update={"name": role.id, "description": role.description, "config": config})
        yield WorkerTemplate(
            id=role.id,
            group="roles",
            title=role.title,
            line=role.line,
            needs="a model",
            icon=role.icon,
            spec=preset,
            runs_on_model=True,
        )


def _kind_template(kind: Kind) -> WorkerTemplate | None:
    """Build the card of a kind from its class; None when it wants none. It asks for the required settings."""
    worker = kind.load()
    if worker.template is None:
        return None
    extra: dict[str, Any] = dict(worker.template)
    summary = kind.summary or kind.label
    spec = {"name": kind.name, "kind": kind.name, "description": summary, **extra.pop("spec", {})}
    required = {name: field for name, field in worker.Config.model_fields.items() if field.is_required()}
    fields = [
        {"field": name, "label": name.replace("_", " ").capitalize(), "about": field.description or ""}
        for name, field in required.items()
        if name not in spec.get("config", {})
    ]
    group = "models" if kind.role == "agent" else "tools"
    card = {"id": kind.name, "group": group, "title": kind.label, "line": summary, "fields": fields, "spec": spec}
    return WorkerTemplate.model_validate(card | extra)
