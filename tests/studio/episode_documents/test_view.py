"""What the Run page is given: the view, its patches, the details of steps and turns."""

from __future__ import annotations

import json
from dataclasses import replace

from orchestrator.engine.episode import replay
from orchestrator.engine.events import (
    EpisodeEnded,
    EpisodeStarted,
    Retried,
    ServedAs,
    StepEnded,
    StepStarted,
    TurnStarted,
    TurnTaken,
    dump_event,
    load_event,
)
from orchestrator.plan import (
    OutOfDepth,
    ShownWorkers,
    Step,
    Turn,
    Vote,
)
from orchestrator.traces.store import EpisodeRow
from pool_registry.actions import Observation, Status, Usage
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.episode_documents.chance import show_chance
from studio.episode_documents.replay_document import build_replay
from studio.episode_documents.view import build_episode_view, build_step_detail, build_turn_detail, build_view_patch

POOL = Pool(
    name="p",
    workers=(
        WorkerSpec(name="calc", kind="calculator", description="c"),
        WorkerSpec(name="read", kind="extractor", description="r"),
    ),
)
ROW = EpisodeRow(id="e", query="q", pool="p", pool_hash=POOL.hash, orchestrator="oracle", started_at="2026-01-01")
STEPS = (
    Step(1, "calc", {"expression": "1+1"}),
    Step(2, "calc", {"expression": "3"}),
    Step(3, "calc", {"expression": "$1*2"}, (1, 2)),
)
EVENTS = [
    EpisodeStarted("q", "p", POOL.hash, "oracle", {}, "2026-01-01T00:00:00+00:00"),
    TurnStarted(1, 0.0),
    TurnTaken(1, Turn(STEPS, "$3", text="{}"), 0.5),
    StepStarted(1, 0.5, {"expression": "1+1"}),
    StepEnded(1, Observation(Status.OK, 2, 0.4, Usage(10, 5, 0.01)), 0.9),
    StepStarted(2, 0.5, {"expression": "3"}),
    StepEnded(2, Observation.failure(Status.EXEC_ERR, "math_error", "no"), 0.8),
    StepStarted(3, 0.9, {"expression": "2*2"}),
    StepEnded(3, Observation(Status.OK, 4, 0.1), 1.0),
    EpisodeEnded("answered", 1.0, 4),
]


def view(count: int = len(EVENTS)) -> dict:
    return build_episode_view(replay("e", EVENTS[:count]), ROW, POOL, 1).to_json()


def test_a_view_is_json_and_holds_every_step_edge_and_total():
    document = json.loads(json.dumps(view()))
    nodes = {node["id"]: node for node in document["graph"]["nodes"]}
    assert [nodes[k]["status"] for k in (1, 2, 3)] == ["OK", "EXEC_ERR", "OK"]
    assert nodes[1]["layer"] == nodes[2]["layer"] == 0 and nodes[3]["layer"] == 1
    edges = {(edge["from"], edge["to"]): edge["used"] for edge in document["graph"]["edges"]}
    assert edges == {(1, 3): True, (2, 3): False}
    assert document["graph"]["answer"]["from"] == [3]
    assert document["totals"]["tokens_in"] == 10 and document["totals"]["speedup"] == 1.0
    assert document["episode"]["answer"] == "4"


def test_a_view_of_every_prefix_of_a_trace_can_be_drawn():
    for count in range(1, len(EVENTS) + 1):
        document = view(count)
        assert document["episode"]["state"] == ("ended" if count == len(EVENTS) else "running")
        json.dumps(document)


def test_a_patch_changes_states_but_carries_no_edges():
    patch = build_view_patch(replay("e", EVENTS[:4]), ROW, POOL, 1).to_json()
    assert [node["status"] for node in patch["nodes"]] == ["RUNNING", "PENDING", "PENDING"]
    assert "graph" not in patch


def test_the_detail_of_a_step_shows_what_it_was_allowed_to_see_and_nothing_else():
    found = build_step_detail(replay("e", EVENTS), 3, POOL)
    assert found is not None
    detail = found.to_json()
    assert [seen["step"] for seen in detail["visible"]] == [1, 2]
    assert detail["visible"][1]["error"] == "math_error: no"
    assert detail["arguments"] == {"expression": "$1*2"} and detail["resolved"] == {"expression": "2*2"}
    assert build_step_detail(replay("e", EVENTS), 9, POOL) is None


def test_a_step_shows_the_values_that_it_was_called_with_and_how_they_were_planned():
    nodes = {node["id"]: (node["instruction"], node["planned"]) for node in view()["graph"]["nodes"]}
    assert nodes[3] == ("2*2", "$1*2") and nodes[1][1] == ""
    waiting = {node["id"]: node for node in view(3)["graph"]["nodes"]}
    assert (waiting[3]["instruction"], waiting[3]["planned"]) == ("$1*2", ""), (
        "nothing is known before step 1 has ended"
    )


def test_the_detail_of_a_turn_has_its_text():
    detail = build_turn_detail(replay("e", EVENTS), 1)
    assert detail is not None and detail.text == "{}" and detail.latency_s == 0.5


def test_of_a_large_pool_the_view_says_what_was_shown_best_first():
    shown = ShownWorkers({"calc": 0.25, "read": 0.5}, of=200, by="meaning and words")
    events = [*EVENTS[:2], TurnTaken(1, replace(EVENTS[2].turn, shown=shown), 0.5), *EVENTS[3:]]
    turn = build_episode_view(replay("e", events), ROW, POOL, 1).to_json()["turns"][0]
    assert turn["shown"] == {"count": 2, "of": 200}
    detail = build_turn_detail(replay("e", events), 1)
    assert detail is not None and detail.shown is not None and detail.shown.by == "meaning and words"
    assert [(worker.worker, worker.score) for worker in detail.shown.workers] == [("read", 0.5), ("calc", 0.25)]
    assert view()["turns"][0]["shown"] is None


def test_a_round_that_tries_other_words_is_named_so():
    event = load_event(dump_event(TurnTaken(1, replace(EVENTS[2].turn, trial=True), 0.5)))
    lanes = build_episode_view(replay("e", [*EVENTS[:2], event, *EVENTS[3:]]), ROW, POOL, 1).to_json()["graph"]["lanes"]
    assert [lane["label"] for lane in lanes] == ["Round 1: other words"]


def test_a_round_with_another_plan_after_a_failed_one_is_named_so():
    vote = Vote(sampled=4, unreadable=0, failed=1, untried=0, votes=3, answers={"7": 3})
    plain, chosen = Turn(STEPS[:1], text="{}"), Turn((replace(STEPS[1], id=4),), "$4", vote=vote)

    def list_labels(first: Turn) -> list[str]:
        events = [*EVENTS[:2], TurnTaken(1, first, 0.5), TurnStarted(2, 0.6), TurnTaken(2, chosen, 0.7)]
        graph = build_episode_view(replay("e", events), ROW, POOL, 1).to_json()["graph"]
        return [lane["label"] for lane in graph["lanes"]]

    assert list_labels(plain) == ["Round 1", "Round 2: another plan"]
    assert list_labels(replace(plain, vote=vote)) == ["Round 1", "Round 2"], "here every turn is voted on"
    assert [lane["label"] for lane in view()["graph"]["lanes"]] == ["Round 1"], "one head for all columns of a round"


def test_a_turn_that_the_model_planned_again_is_named_so_and_is_no_repair():
    again = Turn((replace(STEPS[1], id=4),), "$4", repairs=("named_operations", "second_turns"))
    events = [*EVENTS[:2], TurnTaken(1, Turn(STEPS[:1]), 0.5), TurnStarted(2, 0.6), TurnTaken(2, again, 0.7)]
    graph = build_episode_view(replay("e", events), ROW, POOL, 1).to_json()["graph"]
    assert [lane["label"] for lane in graph["lanes"]] == ["Round 1", "Round 2: planned again"]
    detail = build_turn_detail(replay("e", events), 2)
    assert detail is not None and detail.repairs == ["the operation was asked for"]


def test_a_failed_try_is_no_failure():
    event = load_event(dump_event(TurnTaken(1, replace(EVENTS[2].turn, trial=True), 0.5)))
    episode = replay("e", [*EVENTS[:2], event, *EVENTS[3:]])
    document = build_episode_view(episode, ROW, POOL, 1).to_json()
    nodes = {node["id"]: (node["status"], node["tried"]) for node in document["graph"]["nodes"]}
    assert nodes == {1: ("OK", True), 2: ("TRIED", True), 3: ("OK", True)}
    assert document["totals"]["counts"] == {"steps": 0, "failed": 0, "tries": 3}
    detail = build_step_detail(episode, 2, POOL)
    assert detail is not None and (detail.status, detail.error) == ("TRIED", "no")


def test_the_detail_of_a_turn_that_was_voted_on_says_how_the_vote_went():
    vote = Vote(4, 0, 1, 0, 2, {"3": 1, "4": 2}, chosen_answer="4", chosen_usage=Usage(10, 5))
    turn = replace(EVENTS[2].turn, vote=vote, usage=Usage(40, 20))
    event = load_event(dump_event(TurnTaken(1, turn, 0.5)))
    detail = build_turn_detail(replay("e", [*EVENTS[:2], event]), 1)
    assert detail is not None and detail.vote is not None
    assert (detail.vote.plans, detail.vote.agreed, detail.vote.failed, detail.vote.answer) == (4, 2, 1, "4")
    assert [(row.answer, row.votes) for row in detail.vote.answers] == [("4", 2), ("3", 1)]
    assert (detail.vote.chosen_tokens, detail.tokens_in + detail.tokens_out) == (15, 60)
    plain = build_turn_detail(replay("e", EVENTS), 1)
    assert plain is not None and plain.vote is None


def test_a_vote_of_an_older_trace_is_shown_without_what_it_does_not_say():
    written = json.loads(dump_event(TurnTaken(1, replace(EVENTS[2].turn, vote=Vote(4, 0, 1, 0, 3, {"4": 3})), 0.5)))
    del written["turn"]["vote"]["chosen_answer"], written["turn"]["vote"]["chosen_usage"]
    detail = build_turn_detail(replay("e", [*EVENTS[:2], load_event(json.dumps(written))]), 1)
    assert detail is not None and detail.vote is not None
    assert (detail.vote.agreed, detail.vote.answer, detail.vote.chosen_tokens) == (3, "", None)


def test_a_repair_that_is_no_more_is_shown_by_its_name():
    turn = replace(EVENTS[2].turn, repairs=("joined_names", "other_words"))
    detail = build_turn_detail(replay("e", [*EVENTS[:2], TurnTaken(1, turn, 0.5)]), 1)
    assert detail is not None and detail.repairs == ["joined names", "other words were tried"]


def test_the_head_says_first_that_drawn_plans_disagree_and_never_a_percentage():
    vote = Vote(5, 0, 0, 0, 1, {"269": 1}, "269", incomplete=4, unvoted={"1": 1, "2": 1, "3": 1, "4": 1})
    taken = TurnTaken(1, Turn(STEPS, "$3", vote=vote, out_of_depth=OutOfDepth(0.0, 0.9, 0.0, 0.6)), 0.5)
    episode = replay("e", [*EVENTS[:2], taken, *EVENTS[3:]])
    head = build_episode_view(episode, ROW, POOL, 1).episode
    assert head.agreement and (head.agreement.sentence, head.agreement.unsure, head.agreement.round) == (
        "Unsure: 5 plans, 5 different answers.",
        True,
        1,
    )
    assert head.out_of_depth and "%" not in head.out_of_depth.sentence
    detail = build_turn_detail(episode, 1)
    assert detail and detail.vote and len(detail.vote.answers) + len(detail.vote.unvoted) == 5
    assert view()["episode"]["agreement"] is None, "one plan was written"


def test_a_measured_reader_has_one_figure_in_the_head_and_another_orchestrator_has_words():
    vote = Vote(5, 0, 0, 0, 5, {"269": 5}, "269")
    taken = TurnTaken(1, Turn(STEPS, "$3", vote=vote, out_of_depth=OutOfDepth(0.0, 0.9, 0.0, 0.6)), 0.5)
    episode = replay("e", [*EVENTS[:2], taken, *EVENTS[3:]])
    row = EpisodeRow(**{**ROW.model_dump(), "orchestrator": "smollm2-reader"})
    chance = build_episode_view(episode, row, POOL, 1).episode.chance
    assert chance and chance.probability and chance.sentence.startswith(("Likely right", "Perhaps right"))
    words = build_episode_view(episode, ROW, POOL, 1).episode.chance
    assert words and words.probability is None and words.sentence == "5 of 5 plans agree"
    assert show_chance(replay("e", EVENTS[:2]), "smollm2-reader") is None, "there is no answer yet"


def test_a_served_run_says_which_deployment_answered_and_a_published_one_does_not():
    served = ServedAs("support", "shadow", shadow_of="answered", change=4)
    events = [replace(EVENTS[0], served_as=served), *EVENTS[1:]]
    head = build_episode_view(replay("e", events), ROW, POOL, 1).episode
    assert (head.served.deployment, head.served.change, head.served.shadow_of) == ("support", 4, "answered")
    assert head.served.sentence == (
        "Asked of the deployment support, change 4: "
        "its candidate ran in the shadow, and its answer was given to nobody."
    )
    assert build_replay(replay("e", events), ROW)["view"]["episode"]["served"] is None
    older = json.loads(dump_event(events[0]))
    del older["served_as"]["change"]
    assert load_event(json.dumps(older)).served_as == replace(served, change=0)
    assert view()["episode"]["served"] is None


def test_a_failed_run_and_its_second_try_name_each_other():
    tried = build_episode_view(replay("e", [*EVENTS, Retried("second", True, 1.0)]), ROW, POOL, 1).episode
    assert (tried.retried.episode, tried.retry_of) == ("second", "") and "lesson is kept" in tried.retried.sentence
    lost = Retried("second", None, 1.0, "interrupted")
    lost = build_episode_view(replay("e", [*EVENTS, lost]), ROW, POOL, 1).episode.retried
    assert lost.episode == "" and "interrupted" in lost.sentence, "there may be no run to open"
    second = build_episode_view(replay("e", [replace(EVENTS[0], retry_of="first"), *EVENTS[1:]]), ROW, POOL, 1).episode
    assert second.retry_of == "first" and second.retried is None
    older = json.loads(dump_event(EVENTS[0]))
    del older["retry_of"]
    assert load_event(json.dumps(older)) == EVENTS[0]
