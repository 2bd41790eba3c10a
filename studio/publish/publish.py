"""Publishing: from a request to a model repository and a Space, step by step, each of which may be repeated.

Nothing is public before it is whole: a new Space is made private and empty, gets its secrets, then all its files
in one commit, then hardware, and its visibility last. An update is one commit. A publish that failed or was killed
is simply run again: what is there already is left as it is.
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
from studio.publish.plan import Plan, make_plan
from studio.publish.publication_record import STAGES, Record, State, find_record
from studio.publish.traces import record_examples

Tell = Callable[[str], None]


def publish_now(store: Store, record: Record, tell: Tell = lambda _: None) -> State:
    """Publish in this process and keep the record up to date. Raises what a person can mend, recorded as well."""
    with record.publishing():
        try:
            _publish(store, record, tell)
        except (OrchestratorError, PoolError, WorkerFault) as error:
            record.write(state="failed", message=redact(str(error)))
            raise
        except BaseException:
            record.write(
                state="failed", message="Podium could not go on; the log says why. Publish again to try once more"
            )
            raise
        state = record.write(state="done", owner="", message="")
    tell(f"model: {state.model}" if state.model else "no model was published")
    tell(f"space: {state.space}")
    return state


def go_on(store: Store, key: str) -> None:
    """Publish what the page has recorded under `key`."""
    record = find_record(store.home, key)
    record_examples(store, record.request)
    publish_now(store, record)


def start(home: str, record: Record) -> None:
    """Publish in a process of its own: it outlives the page and the studio."""
    record.write(state="running", owner="", done=(), stage="", message="")
    command = [sys.executable, "-m", "studio", "publish", "--record", record.key, "--home", home]
    with record.log.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  our own interpreter and module, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
    record.write(owner=process_of(process.pid))


def _publish(store: Store, record: Record, tell: Tell) -> None:
    asked = record.request

    def done(stage: str, **changes: object) -> None:
        record.finished(stage, **changes)
        tell(STAGES[stage])  # type: ignore[index]

    record.began("prepare")
    token = find_token(asked)
    plan = make_plan(store, asked, record.folder, token)
    secrets = {key.name: resolve(key.reference).get_secret_value() for key in plan.secrets}
    hub = open_hub(token)
    repo = hub.repo_id(asked.repo)
    done("prepare")

    revision = ""
    if plan.model is not None:
        record.began("model")
        revision = _send_model(hub, repo, plan)
        done("model", model=f"{hub.endpoint}/{repo}", model_revision=revision)

    record.began("create")
    hub.make(repo, "space", "static" if asked.static else "gradio")
    hub.hide_if_private(repo, "space", asked.visibility == "private")
    done("create", space=f"{hub.endpoint}/spaces/{repo}")
    if secrets:
        record.began("secrets")
        for name, value in secrets.items():
            hub.set_secret(repo, name, value)
        done("secrets")

    record.began("files")
    sent = hub.send(repo, plan.space(repo, revision), f"Publish {asked.heading} with Podium")
    done("files", space_revision=sent)
    if not asked.static:
        record.began("hardware")
        hub.want_hardware(repo, asked.hardware)
        done("hardware")

    record.began("visibility")
    if asked.visibility == "public":
        hub.show(repo, "space")
    done("visibility")


def _send_model(hub: Hub, repo: str, plan: Plan) -> str:
    """The model's repository, public before the Space that reads it; its revision."""
    assert plan.model is not None, "asked before"
    hub.make(repo, "model")
    hub.hide_if_private(repo, "model", plan.asked.visibility == "private")
    revision = hub.send(repo, plan.model, f"Publish {plan.asked.heading} with Podium")
    if plan.asked.visibility == "public":
        hub.show(repo, "model")
    return revision
