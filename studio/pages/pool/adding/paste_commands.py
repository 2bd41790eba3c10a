"""The commands behind the box of the Pool page, and behind `podium pool add --paste`: say what a text is, and look at
what it offers. Workers are added by the importers' command."""

from __future__ import annotations

from collections.abc import Sequence

from pool_registry import secrets
from pool_registry.errors import InvalidPool, SecretNotFound, WorkerFault
from pool_registry.gallery.worker_from_template import choose_base, list_bases
from pool_registry.imports import FreeNames, Offer
from pool_registry.pasted.base import ImportSettings, Source, refuse
from pool_registry.pasted.keys import KeyReferences
from pool_registry.pasted.table import RecognisedText, check_offers, find_kind, recognise
from studio.access.pool_rights import check_source
from studio.access.roles import UserRole, current_rights
from studio.frame.commands import Fields, PageCommands, PageReply, command, words
from studio.pages.pool.adding.import_commands import build_offer, read_pairs
from studio.pages.pool.documents import describe_target
from studio.pages.pool.schema import ModelChoice, PastedDocument
from studio.runtime import Runtime


class PasteCommands(PageCommands):
    """What becomes of a text that a person has."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pools = runtime.store.pools

    @command("editor")
    def _recognise(self, fields: Fields) -> PageReply:
        """What a text is; nothing is asked, started or kept."""
        text = self._recognise_text(fields, KeyReferences())
        pasted = build_pasted(text, text.recognition.offers)
        return PageReply(fields={"pasted": pasted.to_json(), "models": self._list_models(fields)})

    @command("editor")
    def _look_pasted(self, fields: Fields) -> PageReply:
        """What a text offers, after its sources were asked; `to_keyring` stores the keys in it. One source that does
        not answer leaves the others. Raises InvalidPool, and WorkerFault where the only source fails."""
        to_keyring = fields.get("to_keyring") is True
        if to_keyring:
            current_rights.get().require(UserRole.OWNER, "store a key in the system's keyring")
        text = self._recognise_text(fields, KeyReferences(keep_new_key if to_keyring else None))
        sources = text.recognition.sources
        for source in sources:
            check_source(source.fields)
        offers = list(text.recognition.offers)
        for source in sources:
            offers += self._ask(source, alone=len(sources) == 1 and not offers)
        offers = list(check_offers(rename_apart(offers)))
        return PageReply(fields={"pasted": build_pasted(text, offers).to_json()})

    def _ask(self, source: Source, *, alone: bool) -> Sequence[Offer]:
        try:
            return self._runtime.run(source.list_offers())
        except (InvalidPool, WorkerFault) as error:
            if alone:
                raise
            return [refuse(source.name, "mcp", str(error))]

    def _recognise_text(self, fields: Fields, keys: KeyReferences) -> RecognisedText:
        text = fields.get("text")
        return recognise(text if isinstance(text, str) else "", self._read_settings(fields, keys))

    def _read_settings(self, fields: Fields, keys: KeyReferences) -> ImportSettings:
        """Raises InvalidPool with every setting that cannot be read."""
        key = words(fields, "key")
        if key and not secrets.REFERENCE.match(key):
            raise InvalidPool([("key", secrets.WRITE_REFERENCE)])
        name = words(fields, "pool")
        pool = self._pools.latest(name).pool if name in self._pools.names() else None
        model = words(fields, "model_of")
        return ImportSettings(
            key=key,
            server=words(fields, "server"),
            env=read_pairs(fields, "env", "="),
            headers=read_pairs(fields, "headers", ":"),
            name=words(fields, "name"),
            private=fields.get("private") is True,
            model=choose_base(pool, model) if pool is not None else None,
            keys=keys,
        )

    def _list_models(self, fields: Fields) -> list[dict[str, object]]:
        """The models of the pool on which an agent can run."""
        name = words(fields, "pool")
        bases = list_bases(self._pools.latest(name).pool) if name in self._pools.names() else []
        choices = [ModelChoice(name=spec.name, label=f"{spec.name} · {describe_target(spec)}") for spec in bases]
        return [choice.to_json() for choice in choices]


def build_pasted(text: RecognisedText, offers: Sequence[Offer]) -> PastedDocument:
    """A recognised text as the page shows it."""
    return PastedDocument(
        label=text.kind.label,
        actions=[source.action for source in text.recognition.sources],
        offers=[build_offer(offer) for offer in offers],
        notes=list(text.recognition.notes),
        takes=list(text.kind.settings),
        keys=text.recognition.keys,
    )


def keep_new_key(name: str, key: str) -> str:
    """Store a key in the keyring and return its reference. Raises InvalidPool where another key has the name."""
    try:
        held = secrets.resolve(f"keyring:{name}").get_secret_value()
    except SecretNotFound:
        held = ""
    if held and held != key.strip():
        remove = f"python -m keyring del {secrets.KEYRING_SERVICE} {name}"
        raise InvalidPool(
            [("text", f"the keyring holds another key under {name}, which stays; remove it with: {remove}")]
        )
    return secrets.keep(name, key)


def rename_apart(offers: Sequence[Offer]) -> list[Offer]:
    """The offers of several sources, each under a name of its own."""
    names = FreeNames()
    named = [offer.spec.model_copy(update={"name": names.choose(offer.spec.name)}) for offer in offers]
    return [Offer(spec, offer.problem) for spec, offer in zip(named, offers, strict=True)]


def explain_text(text: str) -> list[tuple[str, str]]:
    """Where a text that should be a pool's file is something else: what it is, and how workers are made of it."""
    kind = find_kind(text)
    if kind is None:
        return []
    how = "paste it on the Pool page, or: podium pool add POOL --paste FILE"
    return [("text", f"this is {kind.label} and no pool's file: {how}")]
