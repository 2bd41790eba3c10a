"""Publishes a model repository and a Space in stages, each of which may be repeated.

Nothing is public before it is complete: a new Space is created private and empty, then gets its secrets, all its files
in one commit, its hardware, and its visibility last. An update is one commit. A publish that failed or was killed is
run again: what is done already is left as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from orchestrator.engine.process_identity import process_of
from orchestrator.errors import OrchestratorError
from orchestrator.traces.store import Store
from pool_registry.errors import PoolError, WorkerFault
from pool_registry.secrets import redact, resolve
from studio.publish.hub import Hub, find_token, open_hub
from studio.publish.plan import PublishPlan, make_plan
from studio.publish.publication_record import STAGES, PublicationRecord, PublicationState, find_record
from studio.publish.request import PublishError
from studio.publish.traces import record_examples

Report = Callable[[str], None]


def publish_now(store: Store, record: PublicationRecord, report: Report = lambda _: None) -> PublicationState:
    """Publish in this process and keep the record up to date.

    Raises OrchestratorError, PoolError or WorkerFault for what the user can fix; the record holds the message, too.
    """
    with record.lock():
        try:
            _publish(store, record, report)
        except (OrchestratorError, PoolError, WorkerFault) as error:
            record.update(state="failed", message=redact(str(error)))
            raise
        except BaseException:
            record.update(
                state="failed", message="Podium could not go on; the log says why. Publish again to try once more"
            )
            raise
        state = record.update(state="done", owner="", message="")
    report(f"model: {state.model}" if state.model else "no model was published")
    report(f"space: {state.space}")
    return state


def resume_publication(store: Store, key: str) -> None:
    """Publish what the page recorded under `key`."""
    record = find_record(store.home, key)
    record_examples(store, record.request)
    publish_now(store, record)


def start_publisher(home: str, record: PublicationRecord) -> None:
    """Publish what this process has claimed in a process of its own, which goes on when the page and the studio are
    closed."""
    command = [sys.executable, "-m", "studio", "publish", "--record", record.key, "--home", home]
    try:
        with record.log.open("wb") as log:
            process = subprocess.Popen(  # noqa: S603  our own interpreter and module, no shell
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
    except OSError as error:
        record.update(state="failed", message=f"it could not be started ({error}); publish again")
        raise PublishError(f"publishing could not be started: {error}") from error
    record.update(owner=process_of(process.pid))


def _publish(store: Store, record: PublicationRecord, report: Report) -> None:
    publication = record.request

    def finish(stage: str, **changes: object) -> None:
        record.finish_stage(stage, **changes)
        report(STAGES[stage])  # type: ignore[index]

    record.start_stage("prepare")
    token = find_token(publication)
    plan = make_plan(store, publication, record.folder, token)
    secrets = {key.name: resolve(key.reference).get_secret_value() for key in plan.secrets}
    hub = open_hub(token)
    repo = hub.repo_id(publication.repo)
    finish("prepare")

    revision = ""
    if plan.model is not None:
        record.start_stage("model")
        revision = _publish_model(hub, repo, plan)
        finish("model", model=f"{hub.endpoint}/{repo}", model_revision=revision)

    record.start_stage("create")
    hub.ensure_repo(repo, "space", "static" if publication.static else "gradio")
    hub.hide_if_private(repo, "space", publication.visibility == "private")
    finish("create", space=f"{hub.endpoint}/spaces/{repo}")
    if secrets:
        record.start_stage("secrets")
        for name, value in secrets.items():
            hub.set_secret(repo, name, value)
        finish("secrets")

    record.start_stage("files")
    revision = hub.commit(repo, plan.space(repo, revision), f"Publish {publication.heading} with Podium")
    finish("files", space_revision=revision)
    if not publication.static:
        record.start_stage("hardware")
        hub.request_hardware(repo, publication.hardware)
        finish("hardware")

    record.start_stage("visibility")
    if publication.visibility == "public":
        hub.make_public(repo, "space")
    finish("visibility")


def _publish_model(hub: Hub, repo: str, plan: PublishPlan) -> str:
    """Publish the model repository, before the Space that reads it, and return its revision."""
    assert plan.model is not None, "the caller has checked it"
    hub.ensure_repo(repo, "model")
    hub.hide_if_private(repo, "model", plan.publication.visibility == "private")
    revision = hub.commit(repo, plan.model, f"Publish {plan.publication.heading} with Podium")
    if plan.publication.visibility == "public":
        hub.make_public(repo, "model")
    return revision
