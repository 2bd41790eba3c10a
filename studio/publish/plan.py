"""Everything that a publication would send, made ready and looked through before a byte leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import explain_stay
from orchestrator.traces.store import Store
from studio.episode_documents.recorded_runs import replay_documents
from studio.publish.bundle import Bundle
from studio.publish.cards import shown_name
from studio.publish.evaluations import evaluation_tables
from studio.publish.model_repo import Weights, checkpoint_of, model_bundle
from studio.publish.portable_pool import Secret, Travellers, travellers
from studio.publish.request import Publication, PublishError
from studio.publish.secret_scan import check_bundles, known_secrets
from studio.publish.space_repo import ModelLink, space_bundle
from studio.publish.traces import chosen_rows


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be published. The Space's bundle is made once the model's revision is known."""

    asked: Publication
    going: Travellers
    version: int
    traces: list[dict[str, Any]]
    weights: Weights | None
    model: Bundle | None

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What the Space is given as secrets."""
        return self.going.secrets if self.asked.visitors == "secrets" else ()

    @property
    def links_model(self) -> bool:
        """Whether the Space fetches the checkpoint from the model's repository: a private one it could not read."""
        return self.model is not None and self.asked.visibility == "public"

    def space(self, repo: str, revision: str = "") -> Bundle:
        """The Space's repository, for a model repository `repo` at `revision`."""
        link = ModelLink(repo, revision) if self.links_model else None
        return space_bundle(self.asked, self.going, self.version, self.traces, self.weights, link)


def make_plan(store: Store, asked: Publication, place: Path, token: str | None = None) -> Plan:
    """The plan of a publication, free of secrets. `place` takes what has to be made for it (a merged model).

    Raises PublishError, UnknownOrchestrator or PoolError saying what to change.
    """
    stored = store.pools.latest(asked.pool)
    _check_orchestrator(asked)
    going = travellers(stored.pool)
    weights = checkpoint_of(asked.orchestrator, place / "merged")
    traces = replay_documents(store, chosen_rows(store, asked), shown_name(asked.orchestrator))
    model = None
    if weights is not None and asked.with_model:
        tables = evaluation_tables(store.home, asked.orchestrator, weights.checkpoint)
        model = model_bundle(asked, weights, going.pool, stored.version, tables)
    plan = Plan(asked, going, stored.version, traces, weights, model)
    bundles = [each for each in (model, plan.space(asked.repo)) if each is not None]
    check_bundles(bundles, known_secrets(stored.pool, token))
    return plan


def _check_orchestrator(asked: Publication) -> None:
    reason = explain_stay(asked.orchestrator)
    if asked.visitors != "replay" and reason:
        policy = OrchestratorName.parse(asked.orchestrator).policy
        raise PublishError(f"{policy} {reason} and cannot run elsewhere; let visitors replay recorded runs instead")
