"""The commands behind the gallery: templates, servers found on this machine, key references, tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from pool_registry import secrets
from pool_registry.errors import InvalidPool, SecretNotFound, WorkerFault
from pool_registry.gallery.discover_servers import discover_servers
from pool_registry.gallery.found_models import make_model_worker
from pool_registry.gallery.templates import SHIPPED_MODEL, WorkerTemplate, templates
from pool_registry.gallery.worker_from_template import choose_base, find_missing, list_bases, make_worker
from pool_registry.imports import FreeNames
from pool_registry.kinds import open_worker
from pool_registry.language_models import endpoints
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.access.pool_rights import check_address, check_worker
from studio.frame.commands import Fields, PageCommands, PageReply, command, table, text, words
from studio.pages.pool.documents import describe_target
from studio.pages.pool.edits import Edit
from studio.pages.pool.schema import GalleryDocument, ModelChoice, TemplateCard
from studio.pages.pool.worker_test import run_worker_test
from studio.runtime import Runtime

STORE_HINT = f"this looks like a key itself; it was not kept: {secrets.WRITE_REFERENCE}"


MAX_DESCRIPTION = 2000


class GalleryCommands(PageCommands):
    """What a click on a template does."""

    def __init__(self, runtime: Runtime, edit: Edit) -> None:
        self._runtime = runtime
        self._pools = runtime.store.pools
        self._edit = edit

    @command("viewer")
    def _gallery(self, fields: Fields) -> PageReply:
        """Every template, and the models on which a role agent can run."""
        pool = self._pools.latest(text(fields, "pool")).pool
        bases = list_bases(pool) or [SHIPPED_MODEL]
        gallery = GalleryDocument(
            templates=[build_template_card(template) for template in templates().values()],
            models=[ModelChoice(name=spec.name, label=f"{spec.name} · {describe_target(spec)}") for spec in bases],
        )
        return PageReply(fields=gallery.to_json())

    @command("editor", edits_pool=True)
    def _add_template(self, fields: Fields) -> PageReply:
        """Add what a template makes; when something is needed for which there is no default, say what."""
        template = templates().get(text(fields, "template"))
        if template is None:
            raise InvalidPool([("template", f"there is no template {fields.get('template')!r}")])
        pool = self._pools.latest(text(fields, "pool")).pool
        values = table(fields, "values") if "values" in fields else {}
        missing = find_missing(template, values)
        if missing and "values" not in fields:
            return PageReply(fields={"needs": missing})
        base = choose_base(pool, words(fields, "model_of")) if template.runs_on_model else None
        try:
            return self._add(fields, self._describe_source(make_worker(template, values, pool, base)))
        except InvalidPool as error:
            raise InvalidPool([(where.rpartition("config.")[2], what) for where, what in error.problems]) from error

    def _add(self, fields: Fields, spec: WorkerSpec) -> PageReply:
        """Add a worker to the pool as it is now, under a name that is free there."""
        names: list[str] = []
        reply = self._edit(fields, lambda pool: add_workers(pool, [spec], names), "")
        return reply.extend(f"Added {names[0]}", added=names[0])

    def _describe_source(self, spec: WorkerSpec) -> WorkerSpec:
        """The worker with what it reads in its description, so that an orchestrator knows when to call it."""
        worker = open_worker(spec)
        if worker.remote:
            return spec
        try:
            source = self._runtime.run(worker.describe_source())
        except WorkerFault:  # its card says what is missing
            return spec
        if not source:
            return spec
        return spec.model_copy(update={"description": f"{spec.description} {source}"[:MAX_DESCRIPTION]})

    @command("editor")
    def _discover(self, _fields: Fields) -> PageReply:
        """Find model servers on this machine, each with the models that it lists."""
        servers = self._runtime.run(discover_servers())
        return PageReply(fields={"found": [asdict(server) for server in servers]})

    @command("editor", edits_pool=True)
    def _add_found(self, fields: Fields) -> PageReply:
        """Add one model of a server that was found."""
        model, base_url = text(fields, "model"), text(fields, "base_url")
        try:
            spec = make_model_worker(model, base_url, words(fields, "server") or "model server")
        except ValueError as error:
            raise InvalidPool([("base_url", f"this is not a URL: {error}")]) from error
        return self._add(fields, spec)

    @command("editor")
    def _list_models(self, fields: Fields) -> PageReply:
        """What an endpoint itself lists, for the field of the model. Raises WorkerFault."""
        check_address({"base_url": fields.get("base_url"), "api_key": fields.get("api_key")})
        names = self._runtime.run(endpoints.models(text(fields, "base_url"), words(fields, "api_key")))
        return PageReply(fields={"models": names})

    @command("owner")
    def _check_reference(self, fields: Fields) -> PageReply:
        """Whether a key reference resolves here. What it resolves to is never told, nor is what is no reference."""
        reference = words(fields, "reference")
        if not secrets.REFERENCE.match(reference):
            return PageReply(fields={"resolves": False, "sentence": STORE_HINT if looks_like_key(reference) else ""})
        try:
            secrets.resolve(reference)
        except SecretNotFound as error:
            return PageReply(fields={"resolves": False, "sentence": str(error)})
        return PageReply(fields={"resolves": True, "sentence": f"{reference} is set on this machine"})

    @command("editor")
    def _test_worker(self, fields: Fields) -> PageReply:
        pool = self._pools.latest(text(fields, "pool")).pool
        spec = pool.worker(text(fields, "name"))
        check_worker(spec.model_copy(update={"enabled": True}), pool)
        tried = table(fields, "tried") if fields.get("tried") else None
        test = run_worker_test(self._runtime, pool.name, spec, tried)
        return PageReply(fields={"test": test.to_json()})


def looks_like_key(written: str) -> bool:
    """Whether the text may be the key itself instead of a reference to it."""
    return len(written) >= 16 and not written.startswith(("env:", "keyring:"))


def build_template_card(template: WorkerTemplate) -> TemplateCard:
    """One card of the gallery; the preset goes along for the form that "Edit first" opens."""
    return TemplateCard(
        id=template.id,
        group=template.group,
        title=template.title,
        line=template.line,
        needs=template.needs,
        note=template.note,
        fields=list(template.fields),
        runs_on_model=template.runs_on_model,
        kind=template.kind,
        role="agent" if template.group in ("models", "roles") else "tool",
        icon=template.shown_icon,
        preset=template.spec,
    )


def add_workers(pool: Pool, specs: list[WorkerSpec], names: list[str]) -> Pool:
    """`pool` with `specs` at its end, each under a name that is free; `names` becomes a list of those. Raises
    InvalidPool."""
    free = FreeNames(worker.name for worker in pool.workers)
    names[:] = [free.choose(spec.name) for spec in specs]
    chosen = dict(zip((spec.name for spec in specs), names, strict=True))
    return pool.with_workers([_rename(spec, name, chosen) for spec, name in zip(specs, names, strict=True)])


def _rename(spec: WorkerSpec, name: str, chosen: Mapping[str, str]) -> WorkerSpec:
    """The worker under its new name; the tools that it calls have theirs, too."""
    tools = spec.config.get("tools")
    renamed = {"tools": [chosen.get(str(tool), tool) for tool in tools]} if isinstance(tools, list | tuple) else {}
    return spec.model_copy(update={"name": name, "config": {**spec.config, **renamed}})
