"""The commands of the Publish page: choices, recorded runs, the preview of every file, publishing and its progress.

A preview is the plan itself: what is shown is what would be sent. Plans are kept for a while so that single files
can be looked into.
"""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from orchestrator.checkpoints import checkpoint_names
from orchestrator.policies.labels import label_orchestrator
from orchestrator.policies.registry import POLICIES
from pool_registry.errors import SecretNotFound
from pool_registry.pool import Pool
from pool_registry.portable_pool import Luggage, travellers
from pool_registry.secrets import resolve
from studio.episode_documents.static_page import static_page
from studio.frame.commands import Fields, PageCommands, PageReply, command, table, text
from studio.orchestrators.default import STARTER, choose_default
from studio.pages.publish.schema import (
    BundleDocument,
    BundleFile,
    FileDocument,
    LuggageDocument,
    PreviewDocument,
    PublicationDocument,
    PublishChoices,
    RunChoice,
    RunChoices,
    SecretDocument,
    SentTextDocument,
    StageDocument,
)
from studio.publish.bundle import Bundle, Entry
from studio.publish.plan import PublishPlan, make_plan
from studio.publish.publication_record import STAGES, PublicationRecord, claim_record, find_record, list_records
from studio.publish.publish import start_publisher
from studio.publish.request import HARDWARE, LICENCES, VISITORS, InvalidPublication, Publication, parse_publication
from studio.publish.sent_texts import list_sent_texts
from studio.publish.traces import choose_runs, list_candidates, record_examples
from studio.runtime import Runtime

KEPT = 4  # previews
MAX_SHOWN = 200_000  # characters of a file
BINARY = (".safetensors", ".woff2", ".png")


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan with the folder of the files made for it, which is removed together with it."""

    plan: PublishPlan
    bundles: tuple[Bundle, ...]
    place: tempfile.TemporaryDirectory[str]

    def entry(self, kind: str, path: str) -> Entry | None:
        entries = (entry for bundle in self.bundles if bundle.kind == kind for entry in bundle.entries)
        return next((entry for entry in entries if entry.path == path), None)


class PublishCommands(PageCommands):
    """The commands of the Publish page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._previews: dict[str, Preview] = {}

    def preview_html(self, preview: str) -> str | None:
        """The plain page of a preview as HTML; None when the preview is no longer kept."""
        kept = self._previews.get(preview)
        if kept is None:
            return None
        publication = kept.plan.publication
        info = {
            "title": publication.heading,
            "about": publication.about,
            "orchestrator": publication.orchestrator,
            "pool": publication.pool,
            "live": False,
            "links": [],
        }
        return static_page(info, kept.plan.traces)

    def progress(self, key: str) -> PublicationDocument:
        """How far a publication is. Raises PublishError."""
        return build_publication(find_record(self._store.home, key))

    def all(self) -> list[PublicationDocument]:
        """Every publication, newest first."""
        return [build_publication(record) for record in list_records(self._store.home)]

    @command("viewer")
    def _open(self, _: Fields) -> PageReply:
        choices = PublishChoices(
            pools=self._store.pools.names(),
            checkpoints=[(name, label_orchestrator(name)) for name in checkpoint_names()],
            suggestion=choose_default(Pool(name=STARTER)),
            policies=[(name, policy.label) for name, policy in POLICIES.items()],
            hardware=list(HARDWARE),
            licences=list(LICENCES),
            visitors=dict(VISITORS),
            logged_in=_has_hub_login(),
        )
        return PageReply(fields=choices.to_json())

    @command("viewer")
    def _runs(self, fields: Fields) -> PageReply:
        """List recorded runs of an orchestrator on a pool, and the files that its workers could take along."""
        publication = Publication(pool=text(fields, "pool"), orchestrator=text(fields, "orchestrator"), repo="any")
        chosen = {row.id for row in choose_runs(self._store, publication)}
        choices = [
            RunChoice(id=row.id, query=row.query[:200], correct=row.correct, counts=row.counts, shown=row.id in chosen)
            for row in list_candidates(self._store, publication)
        ]
        offers = travellers(self._store.pools.latest(publication.pool).pool).offered
        document = RunChoices(runs=choices, luggage=[_build_luggage(luggage) for luggage in offers])
        return PageReply(fields=document.to_json())

    @command("editor")
    def _preview(self, fields: Fields) -> PageReply:
        publication = parse_publication(table(fields, "publication"))
        recorded = record_examples(self._store, publication)
        place = tempfile.TemporaryDirectory(prefix="podium-preview-")
        plan = make_plan(self._store, publication, Path(place.name))
        bundles = tuple(bundle for bundle in (plan.space(publication.repo), plan.model) if bundle is not None)
        key = secrets.token_hex(6)
        self._previews[key] = Preview(plan, bundles, place)
        for old in list(self._previews)[:-KEPT]:
            self._previews.pop(old).place.cleanup()
        document = PreviewDocument(
            preview=key,
            recorded=recorded,
            bundles=[_build_bundle(bundle) for bundle in bundles],
            secrets=[_build_secret(secret.name, secret.reference, secret.workers) for secret in plan.secrets],
            runs=sum(bool(bundle["listed"]) for bundle in plan.traces),
            inside=plan.model is not None and not plan.links_model,
            texts=[SentTextDocument(**asdict(text)) for text in list_sent_texts(plan.portable.pool)],
        )
        return PageReply(fields=document.to_json())

    @command("editor")
    def _file(self, fields: Fields) -> PageReply:
        kept = self._previews.get(text(fields, "preview"))
        entry = kept.entry(text(fields, "kind"), text(fields, "path")) if kept else None
        if entry is None:
            raise InvalidPublication([("", "this preview is no longer kept; preview again")])
        return PageReply(fields=FileDocument(path=entry.path, size=entry.size, content=_preview_text(entry)).to_json())

    @command("owner")
    def _publish(self, fields: Fields) -> PageReply:
        publication = parse_publication(table(fields, "publication"))
        record = claim_record(self._store.home, publication)
        start_publisher(str(self._store.home.root), record)
        return PageReply(f"Publishing {publication.repo}", fields={"key": record.key})


def build_publication(record: PublicationRecord) -> PublicationDocument:
    """A publication with its stages, for the page."""
    state, publication = record.state(), record.request
    skipped = set()
    if publication.static:
        skipped.add("hardware")
    if publication.visitors != "secrets":
        skipped.add("secrets")
    if state.state == "done":
        skipped |= set(STAGES) - set(state.done)
    stages = [
        StageDocument(name=name, label=label, state=_stage_state(name, state.done, state.stage))
        for name, label in STAGES.items()
        if name not in skipped
    ]
    return PublicationDocument(
        key=record.key,
        repo=publication.repo,
        state=state.state,
        message=state.message,
        stages=stages,
        links=[(label, href) for label, href in (("Space", state.space), ("Model", state.model)) if href],
        visibility=publication.visibility,
        at=state.at,
    )


def _stage_state(name: str, done: tuple[str, ...], now: str) -> Literal["done", "running", "waiting"]:
    return "done" if name in done else "running" if name == now else "waiting"


def _build_bundle(bundle: Bundle) -> BundleDocument:
    files = [BundleFile(path=entry.path, size=entry.size, about=entry.about) for entry in bundle.entries]
    return BundleDocument(kind=bundle.kind, size=bundle.size, files=files, left_out=list(bundle.left_out))


def _build_luggage(luggage: Luggage) -> LuggageDocument:
    size = sum(file.stat().st_size for _, file in luggage.files)
    return LuggageDocument(worker=luggage.worker, files=len(luggage.files), size=size)


def _build_secret(name: str, reference: str, workers: tuple[str, ...]) -> SecretDocument:
    try:
        resolve(reference)
        is_set = True
    except SecretNotFound:
        is_set = False
    return SecretDocument(name=name, reference=reference, workers=list(workers), is_set=is_set)


def _preview_text(entry: Entry) -> str:
    if entry.path.endswith(BINARY):
        return f"{entry.size:,} bytes of numbers, SHA-256 {entry.sha256}"
    content = b"".join(entry.chunks()).decode("utf-8", "replace")
    return content if len(content) <= MAX_SHOWN else f"{content[:MAX_SHOWN]}\n… {len(content) - MAX_SHOWN:,} more"


def _has_hub_login() -> bool:
    """Whether the Hub's own login has left a token here; the Hub is not asked."""
    from huggingface_hub import get_token

    return bool(get_token())
