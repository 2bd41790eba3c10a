"""Everything that a publication would send, prepared and scanned for secrets before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.traces.store import Store, TraceFilter
from pool_registry.pool import Pool
from pool_registry.portable_pool import Secret, Travellers, travellers
from studio.episode_documents.recorded_runs import build_replays
from studio.export.python_file import explain_model_stay
from studio.publish.bundle import Bundle
from studio.publish.cards import display_name
from studio.publish.eval_results import make_eval_results
from studio.publish.evaluations import evaluation_tables
from studio.publish.model_repo import Weights, find_checkpoint_weights, make_model_bundle
from studio.publish.request import Publication, PublishError
from studio.publish.secret_scan import check_bundles, collect_secrets
from studio.publish.space_repo import ModelLink, make_space_bundle
from studio.publish.traces import choose_runs

JUDGED_RUNS = 200  # the newest, in which the workers that stay are looked for


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """What is to be published. The Space's bundle is made when the model's revision is known."""

    publication: Publication
    portable: Travellers
    version: int
    traces: list[dict[str, Any]]
    weights: Weights | None
    model: Bundle | None

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets that the Space gets."""
        return self.portable.secrets if self.publication.visitors == "secrets" else ()

    @property
    def links_model(self) -> bool:
        """Whether the Space downloads the checkpoint from the model repository. It cannot read a private one."""
        return self.model is not None and self.publication.visibility == "public"

    @property
    def bundles(self) -> list[Bundle]:
        """The repositories to publish, as a preview shows them: the model's, if there is one, and the Space's."""
        return [*([self.model] if self.model else []), self.space(self.publication.repo)]

    def space(self, repo: str, revision: str = "") -> Bundle:
        """The Space's repository, for a model repository `repo` at `revision`."""
        link = ModelLink(repo, revision) if self.links_model else None
        return make_space_bundle(self.publication, self.portable, self.version, self.traces, self.weights, link)


def make_plan(store: Store, publication: Publication, folder: Path, token: str | None = None) -> PublishPlan:
    """Prepare a publication and check that it holds no secret. A merged model, if needed, goes to `folder`.

    Raises PublishError, UnknownOrchestrator or PoolError saying what to change.
    """
    stored = store.pools.latest(publication.pool)
    portable = _tell_breakage(store, publication, travellers(stored.pool, publication.take))
    _check_take(publication, portable)
    _check_orchestrator(publication, stored.pool, portable)
    weights = find_checkpoint_weights(publication.orchestrator, folder / "merged")
    traces = build_replays(store, choose_runs(store, publication), display_name(publication.orchestrator))
    model = None
    if weights is not None and publication.with_model:
        tables = evaluation_tables(store.home, publication.orchestrator)
        scores = make_eval_results(store.home, publication.orchestrator, publication.pool)
        model = make_model_bundle(publication, weights, portable, stored.version, tables, scores)
    plan = PublishPlan(publication, portable, stored.version, traces, weights, model)
    pools = [store.pools.latest(name).pool for name in store.pools.names()]
    check_bundles(plan.bundles, collect_secrets(pools, token))
    return plan


def _check_take(publication: Publication, portable: Travellers) -> None:
    taken = {luggage.worker for luggage in portable.luggage}
    going = {spec.name for spec in portable.pool.workers}
    reasons = dict(portable.stays)
    for name in publication.take:
        if name not in taken | going:
            why = reasons.get(name, f"the pool {publication.pool} has no such worker")
            raise PublishError(f"the files of {name} cannot go along: {why}")


def _check_orchestrator(publication: Publication, pool: Pool, portable: Travellers) -> None:
    reason = explain_model_stay(publication.orchestrator, pool, portable)
    if publication.visitors != "replay" and reason:
        raise PublishError(f"{reason}; let visitors replay recorded runs instead, or choose another orchestrator")


def _tell_breakage(store: Store, publication: Publication, portable: Travellers) -> Travellers:
    """The travellers with what is lost without those that stay: how many recorded runs call each of them."""
    criteria = TraceFilter(pool=publication.pool, orchestrator=publication.orchestrator, limit=JUDGED_RUNS)
    runs = [store.traces.episode(row.id) for row in store.traces.search(criteria)]
    if not runs:
        return portable
    stays = []
    for name, reason in portable.stays:
        calling = sum(any(run.step.worker == name for run in episode.steps.values()) for episode in runs)
        lost = f"; {calling} of {len(runs)} recorded runs call it and would fail or take another way" if calling else ""
        stays.append((name, f"{reason}{lost}"))
    return replace(portable, stays=tuple(stays))
