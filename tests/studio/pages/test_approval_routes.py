"""Plans that wait for a person, through the studio's routes: the question, edits, the decision, and its audit trail."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from pool_registry.deployment_mode import DeploymentMode
from studio.episode_documents.audit import build_request
from studio.prepare import prepare_store
from studio.runtime import Runtime
from trainer.tasks import find_task

TASK = find_task("forge", 3, "test", 2)


def wait_for_state(runtime, episode: str, *states: str):
    deadline = time.monotonic() + 60
    while runtime.store.traces.row(episode).state not in states and time.monotonic() < deadline:
        time.sleep(0.02)
    return runtime.store.traces.row(episode)


def start_held(runtime) -> str:
    episode = runtime.start_episode("starter", "oracle", TASK.query, mode="review")
    assert wait_for_state(runtime, episode, "waiting").state == "waiting"
    return episode


@pytest.fixture
def held(runtime) -> str:
    return start_held(runtime)


def decide(client, episode: str, **fields):
    return client.post(f"/api/episodes/{episode}/approval", json={"verdict": "approve", **fields})


def test_a_reviewed_plan_waits_until_it_is_approved_and_is_graded(client, runtime, held):
    episode = runtime.store.traces.episode(held)
    assert episode.observations() == {}, "nothing runs before"
    calls = build_request(episode).calls
    assert [call.worker for call in calls] == [step.worker for step in TASK.oracle_turn.steps]
    assert calls[0].instruction == TASK.oracle_turn.steps[0].arguments["code"]
    assert held in [line["id"] for line in client.get("/api/approvals").json()["waiting"]]
    assert decide(client, held, note="fine").json() == {"problems": [], "episode": held}
    row = wait_for_state(runtime, held, "answered")
    assert row.state == "answered" and row.steps == len(TASK.oracle_turn.steps)
    trace = client.get(f"/api/episodes/{held}").json()
    assert [line["kind"] for line in trace["audit"]] == ["held", "approved"]
    assert trace["audit"][1]["by"] == "the person at this studio" and trace["audit"][1]["text"] == "fine"
    assert trace["correct"] is True
    again = decide(client, held)
    assert again.status_code == 409 and "has approved this plan already" in again.json()["detail"]


def test_an_edited_plan_runs_as_it_was_edited_and_the_trace_keeps_both(client, runtime, held):
    document = client.get(f"/api/episodes/{held}/approval").json()
    (only,) = document["rounds"]
    step = only["steps"][0]
    edit = {"edit": "change", "step": step["id"], "worker": step["worker"], "access": step["access"]}
    wrong = {**edit, "worker": "nobody", "arguments": step["arguments"]}
    assert decide(client, held, edits=[wrong]).json()["problems"][0][0] == str(step["id"])
    right = {**edit, "arguments": {"code": "print(7)"}}
    checked = client.post(f"/api/episodes/{held}/approval/check", json={"round": 1, "edits": [right]}).json()
    assert checked["problems"] == []
    assert decide(client, held, edits=[right]).json()["episode"] == held
    assert wait_for_state(runtime, held, "answered").state == "answered"
    trace = client.get(f"/api/episodes/{held}").json()
    planned = next(event for event in trace["events"] if event["type"] == "turn_taken")
    assert planned["turn"]["steps"][0]["arguments"] == step["arguments"], "what the orchestrator wrote stays"
    started = next(event for event in trace["events"] if event["type"] == "step_started" and event["step"] == 1)
    assert started["arguments"] == {"code": "print(7)"}
    assert trace["audit"][-1]["kind"] == "edited" and "step 1 changed" in trace["audit"][-1]["text"]


def test_a_rejected_plan_calls_nobody_and_says_who_rejected_it(client, runtime, held):
    assert decide(client, held, verdict="reject", note="too risky").json()["episode"] == held
    row = wait_for_state(runtime, held, "rejected")
    episode = runtime.store.traces.episode(held)
    assert row.state == "rejected" and episode.observations() == {}
    assert episode.ended.reason == "the person at this studio rejected the plan: too risky"


def test_a_plan_survives_a_restart_of_the_studio(tmp_path):
    first = Runtime(prepare_store(str(tmp_path)))
    episode = start_held(first)
    first.close()
    second = Runtime(prepare_store(str(tmp_path)))
    try:
        assert second.store.traces.row(episode).state == "waiting"
        second.decide(episode, "approve")
        row = wait_for_state(second, episode, "answered")
        assert row.state == "answered" and row.steps == len(TASK.oracle_turn.steps) and row.correct is not False
    finally:
        second.close()


def test_only_one_of_two_decisions_counts(runtime, held):
    from studio.approvals import NotWaiting, claim_plan, read_waiting

    plan, same = read_waiting(runtime.store, held), read_waiting(runtime.store, held)
    claim_plan(runtime.store, plan)
    with pytest.raises(NotWaiting, match="somebody else"):
        claim_plan(runtime.store, same)


def test_a_stale_tab_decides_nothing_about_a_plan_that_it_does_not_show(client, runtime, held):
    from studio.approvals import NotWaiting, claim_plan, read_waiting

    plan = read_waiting(runtime.store, held)
    with pytest.raises(NotWaiting, match="somebody else"):
        claim_plan(runtime.store, replace(plan, last_event=plan.last_event - 1))
    address = f"/api/episodes/{held}/approval"
    stale = client.post(address, json={"verdict": "approve", "round": plan.held.round + 1})
    assert stale.status_code == 409 and f"round {plan.held.round} waits now" in stale.text
    assert runtime.store.traces.row(held).state == "waiting"
    assert client.post(address, json={"verdict": "reject", "round": plan.held.round}).status_code == 200


def test_a_what_if_of_a_plan_that_waits_says_what_to_do(client, held):
    document = client.get(f"/api/episodes/{held}/what-if").json()
    assert "waits for approval" in document["problems"][0][1]


def test_the_mode_of_a_pool_holds_for_its_runs_and_a_run_may_choose_another(runtime):
    pool = runtime.store.pools.latest("starter").pool
    copy = pool.model_copy(update={"name": "reviewed", "mode": DeploymentMode(name="review")})
    runtime.store.pools.save(copy)
    assert runtime.store.pools.latest("reviewed").pool.mode.name == "review"
    held = runtime.start_episode("reviewed", "oracle", TASK.query)
    assert wait_for_state(runtime, held, "waiting", "answered").state == "waiting"
    free = runtime.start_episode("reviewed", "oracle", TASK.query, mode="autonomous")
    assert wait_for_state(runtime, free, "waiting", "answered").state == "answered"


def test_escalation_runs_alone_where_doubt_does_not_count_and_says_so(runtime, client):
    pool = runtime.store.pools.latest("starter").pool
    calm = DeploymentMode(name="escalate", max_doubt=1)
    runtime.store.pools.save(pool.model_copy(update={"name": "calm", "mode": calm}))
    runtime.store.pools.save(pool.model_copy(update={"name": "anxious", "mode": DeploymentMode(name="escalate")}))
    alone = runtime.start_episode("calm", "oracle", TASK.query)
    assert wait_for_state(runtime, alone, "waiting", "answered").state == "answered"
    audit = client.get(f"/api/episodes/{alone}").json()["audit"]
    assert [(line["kind"], line["by"], line["text"]) for line in audit] == [
        ("approved", "mode:escalate", "within every limit")
    ]
    asks = runtime.start_episode("anxious", "oracle", TASK.query)
    assert wait_for_state(runtime, asks, "waiting", "answered").state == "waiting"
    held = runtime.store.traces.episode(asks).held
    assert [reason.code for reason in held.reasons] == ["doubt"]
