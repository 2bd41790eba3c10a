"""What the Compare page is given: figures as trainer/results computes them, and errors that say what to do."""

from __future__ import annotations

import json

import pytest

from orchestrator.engine.episode import Episode, replay
from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, TurnStarted, TurnTaken
from orchestrator.graphs.alignment import align
from orchestrator.plan import Step, Turn
from studio.pages.compare.commands import CompareCommands, evaluation_recipe
from studio.pages.compare.graph_diff import build_graph_diff
from studio.pages.compare.results import ResultShelf, Selection
from studio.pages.compare.suite import PAGE
from studio.pages.compare.training_drift import checkpoint_step, measure_topology, pick_evenly
from tests.browser.support.evaluations import SKILL, TASKS, Pair, write_evaluation
from tests.browser.support.jobs import write_job
from tests.studio.pages.test_run_routes import messages
from trainer.errors import InvalidRecipe
from trainer.jobs.queue import JobStore
from trainer.recipe import Recipe
from trainer.results.figures import compute_figures
from trainer.results.judge_agreement import count_agreement, save_agreement
from trainer.results.paired import compare_paired
from trainer.results.rows import RESULTS, JudgeKey, ResultRow, read_results


@pytest.fixture(scope="module")
def jobs(runtime) -> JobStore:
    return runtime.jobs


@pytest.fixture(scope="module")
def empty(client) -> dict:
    """What the page is told before anything was measured; asked for before `measured` exists."""
    paths = ("suite", "tasks?orchestrator=oracle&which=improved", "matrix", "ablation")
    return {path: client.get(f"/api/compare/{path}").json() for path in paths}


@pytest.fixture(scope="module")
def measured(runtime, empty) -> tuple[str, Pair]:
    return write_evaluation(runtime.store)


@pytest.fixture(scope="module")
def rows(jobs, measured) -> list[ResultRow]:
    return read_results(jobs.folder(measured[0]).path / RESULTS)


def of(rows: list[ResultRow], orchestrator: str, condition: str = "seen") -> list[ResultRow]:
    return [row for row in rows if row.orchestrator == orchestrator and row.condition == condition]


def test_before_the_first_evaluation_every_view_says_what_to_do(empty):
    for told in empty.values():
        assert told["ok"] is False and "Start one" in told["hint"]


def test_the_table_holds_the_figures_of_the_rows(client, measured, rows):
    told = client.get("/api/compare/suite", params={"reference": "base"}).json()
    assert [line["orchestrator"] for line in told["rows"]] == list(SKILL) and told["condition"] == "seen"
    for line in told["rows"]:
        expected = compute_figures(of(rows, line["orchestrator"]))
        assert line["mean"] == [expected.mean.mean, expected.mean.low, expected.mean.high]
        assert line["pass_all_k"][0] == expected.pass_all_k.mean and line["k"] == 2
        if line["orchestrator"] == "base":
            assert line["paired"] is None
        else:
            against = compare_paired(of(rows, line["orchestrator"]), of(rows, "base"))
            assert (line["paired"]["wins"], line["paired"]["losses"]) == (against.wins, against.losses)
            assert line["paired"]["difference"][1] == against.difference.low


def test_a_filter_restricts_every_part_of_the_view(client, measured, rows):
    told = client.get("/api/compare/suite", params={"family": "atlas", "level": "1", "only": "oracle"}).json()
    kept = [row for row in of(rows, "oracle") if (row.family, row.level) == ("atlas", 1)]
    assert [line["orchestrator"] for line in told["rows"]] == ["oracle"]
    assert told["rows"][0]["episodes"] == len(kept) and [cell["family"] for cell in told["cells"]] == ["atlas"]
    assert set(told["choices"]["families"]) == {"ledger", "atlas", "workshop"}, "the filters can be set back"
    everything = client.get("/api/compare/suite", params={"condition": "all"}).json()
    assert sum(line["episodes"] for line in everything["rows"]) == len(rows)
    nothing = client.get("/api/compare/suite", params={"level": "9"}).json()
    assert nothing["ok"] is False and "filter" in nothing["hint"]


def test_counts_open_exactly_their_tasks(client, measured, rows):
    asked = {"reference": "base", "orchestrator": "starter-grpo"}
    expected = compare_paired(of(rows, "starter-grpo"), of(rows, "base"))
    for which in ("improved", "regressed", "equal"):
        told = client.get("/api/compare/tasks", params={**asked, "which": which}).json()
        assert told["of"] == len(getattr(expected, which)) == len(told["tasks"]) < PAGE
        assert all(len(task["episodes"]) == 2 for task in told["tasks"])
    later = client.get("/api/compare/tasks", params={**asked, "which": "improved", "first": 3}).json()
    assert len(later["tasks"]) == expected.wins - 3
    wrong = client.get("/api/compare/tasks", params={**asked, "which": "lucky"}).json()
    assert wrong["ok"] is False and "improved" in wrong["hint"]


def test_new_rows_are_seen_and_a_deleted_job_is_told(client, jobs, measured, rows):
    job, _ = measured
    before = client.get("/api/compare/suite").json()["rows"][0]["episodes"]
    path = jobs.folder(job).path / RESULTS
    text = path.read_text(encoding="utf-8")
    extra = rows[0].model_copy(update={"index": 500, "query": "one more"})
    path.write_text(f"{text}{extra.model_dump_json()}\n", encoding="utf-8")
    try:
        assert client.get("/api/compare/suite").json()["rows"][0]["episodes"] == before + 1
    finally:
        path.write_text(text, encoding="utf-8")
    gone = client.get("/api/compare/suite", params={"job": "never-was"}).json()
    assert gone["ok"] is False and "never-was" in gone["hint"]


def test_of_two_evaluations_of_a_sample_the_newer_one_counts(runtime, jobs, measured):
    job, _ = write_evaluation(runtime.store, tasks=1, samples=1, name="again")
    path = jobs.folder(job).path / RESULTS
    flipped = [row.model_copy(update={"correct": not row.correct}) for row in read_results(path)]
    path.write_text("".join(f"{row.model_dump_json()}\n" for row in flipped), encoding="utf-8")
    shelf = ResultShelf(jobs)
    both = {row.slot: row.correct for row in shelf.rows(Selection(jobs=(job, measured[0])))}
    assert {row.slot: row.correct for row in flipped}.items() <= both.items()
    path.unlink()  # the next tests are about the other one


def test_the_matrix_pairs_conditions_with_the_seen_pool_and_keeps_held_out_families_apart(client, measured, rows):
    told = client.get("/api/compare/matrix", params={"job": measured[0]}).json()
    line = next(line for line in told["rows"] if line["orchestrator"] == "oracle")
    seen = [row for row in of(rows, "oracle") if row.family != "workshop"]
    assert line["cells"]["seen"]["mean"][0] == compute_figures(seen).mean.mean
    change = compare_paired(of(rows, "oracle", "renamed"), seen, across_conditions=True).difference
    assert line["cells"]["renamed"]["change"][0] == change.mean
    assert line["cells"]["held-out family"]["tasks"] == TASKS and line["cells"]["held-out family"]["change"] is None
    assert "missing" not in line["cells"]


def test_the_ablation_says_which_worker_carries_the_score(client, measured, rows):
    told = client.get("/api/compare/ablation", params={"job": measured[0], "orchestrator": "starter-grpo"}).json()
    assert [each["without"] for each in told["workers"]] == ["sql", "calculator"], "the dearest first"
    first = told["workers"][0]
    against = compare_paired(of(rows, "starter-grpo", "without:sql"), of(rows, "starter-grpo"), across_conditions=True)
    assert first["change"] == [against.difference.mean, against.difference.low, against.difference.high]
    assert first["change"][2] < 0


def test_training_drift_comes_from_metrics_traces_and_evaluated_checkpoints(runtime, client, jobs, measured):
    job = write_job(runtime.store)
    row = next(row for row in read_results(jobs.folder(measured[0]).path / RESULTS))
    path = jobs.folder(job).path / RESULTS
    path.write_text(row.model_copy(update={"orchestrator": f"{job}@60"}).model_dump_json() + "\n", encoding="utf-8")
    told = client.get("/api/compare/training", params={"job": job}).json()
    assert set(told["series"]) == {"accuracy", "validation", "turns", "width"} and "sql" in told["workers"]
    assert told["traces"]["steps"] == [98, 99, 100] and told["traces"]["lost"] == 0
    for name in ("depth", "steps", "parallelism", "tools", "entropy"):
        assert all(value > 0 for value in told["traces"]["series"][name]), name
    assert [each["step"] for each in told["checkpoints"]] == [60]
    assert told["checkpoints"][0]["width"] == row.width
    path.unlink()
    assert client.get("/api/compare/training", params={"job": "nothing"}).json()["ok"] is False


def test_the_shape_of_an_episode_counts_layers_over_all_rounds():
    shape = measure_topology([[Step(1, "a"), Step(2, "b"), Step(3, "a", {}, (1, 2))], [Step(4, "c", {}, (3,))]])
    assert (shape.steps, shape.depth, shape.width, dict(shape.workers)) == (4, 3, 2, {"a": 2, "b": 1, "c": 1})
    assert measure_topology([]).parallelism == 0.0
    assert pick_evenly(list(range(100)), 5) == [0, 25, 50, 74, 99] and pick_evenly([1, 2], 5) == [1, 2]
    assert (checkpoint_step("job@7", "job"), checkpoint_step("job", "job"), checkpoint_step("other@7", "job")) == (
        7,
        None,
        None,
    )


def episode(*turns: Turn) -> Episode:
    events = [EpisodeStarted("q", "p", "h", "o", {}, "2026-01-01T00:00:00")]
    for number, turn in enumerate(turns, start=1):
        events += [TurnStarted(number, 0.0), TurnTaken(number, turn, 1.0)]
    return replay("e", [*events, EpisodeEnded("answered", 2.0, "x")])


def test_a_diff_is_told_in_sentences_with_the_place_of_what_is_gone():
    left = episode(
        Turn(
            (
                Step(1, "sql", {"q": "revenue"}),
                Step(2, "units", {"q": "$1 in EUR"}, (1,)),
                Step(3, "check", {"q": "sum"}),
            )
        )
    )
    right = episode(
        Turn(
            (
                Step(1, "sql", {"q": "revenue"}),
                Step(2, "rates", {"q": "$1 in EUR"}, (1,)),
                Step(3, "reader", {"q": "memo"}, (1,)),
            )
        )
    )
    one, two = align([left, right], [None, None])
    told = build_graph_diff((left, one), (right, two)).to_json()
    assert told["marks"] == {"1": ["same"], "2": ["worker"], "3": ["added"]}
    assert [(ghost["id"], ghost["worker"]) for ghost in told["ghosts"]] == [(3, "check")]
    said = [sentence for entry in told["entries"] for sentence in entry["says"]]
    assert "Step 2 (rates) is done by rates instead of units" in said
    assert "Step 3 (reader) is only here" in said and "Step 3 (check) of the reference is not here" in said
    assert told["counts"]["same"] == 1 and not told["empty"]


def test_a_stream_of_two_episodes_ends_with_both_graded_and_the_diff(client, measured):
    _, pair = measured
    told = messages(client.get("/api/compare/stream", params={"e": [pair.whole, pair.short], "reference": "0"}).text)
    assert [name for name, _ in told] == ["views", "end"]
    views, diffs = told[0][1]["views"], told[0][1]["diffs"]
    assert [view["episode"]["verdict"]["correct"] for view in views] == [True, False]
    assert diffs[0] is None and diffs[1]["counts"]["removed"] == 1
    places = [{node["worker"]: (node["x"], node["y"]) for node in view["graph"]["nodes"]} for view in views]
    assert all(places[0][worker] == place for worker, place in places[1].items())
    other = messages(client.get("/api/compare/stream", params={"e": [pair.whole, pair.short], "reference": "1"}).text)
    assert other[0][1]["diffs"][0]["counts"]["added"] == 1
    assert client.get("/api/compare/stream", params={"e": "nothing"}).status_code == 404


@pytest.fixture
def commands(runtime, jobs) -> CompareCommands:
    return CompareCommands(runtime)


def test_a_run_starts_what_can_be_started_and_tells_the_rest(commands, runtime):
    told = commands.run("open", {})
    assert told["ok"] and {each["name"] for each in told["orchestrators"]} >= {"oracle", "random_plan", "starter-grpo"}
    reply = commands.run("run", {"pool": "starter", "query": told["query"], "orchestrators": ["oracle", "nobody"]})
    started, refused = reply["started"]
    assert runtime.store.traces.row(started["episode"]).orchestrator == "oracle"
    assert refused["episode"] is None and "nobody" in refused["problem"]
    assert commands.run("stop", {"episodes": [started["episode"], "gone"]})["ok"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"orchestrators": ["oracle"]}, "2 to 4"),
        ({"orchestrators": ["oracle", "oracle"]}, "different"),
        ({"orchestrators": ["nobody", "neither"]}, "nobody"),
        ({"query": "  "}, "query"),
        ({"pool": "nowhere"}, "nowhere"),
        ({"action": "dance"}, "dance"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_reason(commands, change, word):
    request = {
        "pool": "starter",
        "query": "What?",
        "orchestrators": ["oracle", "random_plan"],
        **change,
    }
    told = commands.run(request.pop("action", "run"), request)
    assert told["ok"] is False and any(word in what for _, what in told["problems"]), told


EVALUATION = {
    "pool": "starter", "orchestrators": ["oracle"], "families": ["ledger", "atlas"], "levels": [1, 2], "count": 4,
    "samples": 2, "conditions": ["seen", "without:sql"], "max_cost": 1.5,
}  # fmt: skip


def test_a_pools_own_tasks_can_be_evaluated(commands, runtime, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    assert "practice:starter" not in commands.run("open", {})["families"]
    file = runtime.store.home.root / "tasks" / "starter.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    assert commands.run("open", {})["families"][0] == "practice:starter"
    recipe = evaluation_recipe({"evaluation": EVALUATION | {"families": ["practice:starter"]}})
    assert recipe.evaluate.source == "practice:starter"
    file.unlink()


def test_an_evaluation_of_the_page_is_a_recipe_of_one_stage(commands):
    recipe = evaluation_recipe({"evaluation": EVALUATION})
    assert recipe.stages == ("evaluate",) and recipe.evaluate.source == "ledger,atlas"
    assert (recipe.evaluate.samples, recipe.evaluate.max_cost) == (2, 1.5)
    assert recipe.evaluate.conditions == ("seen", "without:sql")
    told = commands.run("check", {"evaluation": EVALUATION})
    assert told["ok"] and not [each for each in told["missing"] if each["blocks"]] and "without:sql" in told["yaml"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"orchestrators": []}, "evaluate.orchestrators"),
        ({"families": []}, "evaluate.source"),
        ({"count": 0}, "evaluate.count"),
        ({"samples": 1000}, "evaluate.samples"),
        ({"conditions": ["upside down"]}, "evaluate.conditions.0"),
        ({"max_cost": -1}, "evaluate.max_cost"),
        ({"levels": "all"}, "tasks.levels"),
    ],
)
def test_what_is_wrong_with_an_evaluation_is_told_at_its_key(commands, change, key):
    with pytest.raises(InvalidRecipe) as refused:
        evaluation_recipe({"evaluation": EVALUATION | change})
    assert key in [where for where, _ in refused.value.problems]
    told = commands.run("check", {"evaluation": EVALUATION | change})
    assert told["ok"] is False and key in json.dumps(told["problems"])


def test_the_baselines_are_ticked_for_every_agent_alone_and_once_for_each_policy(commands, runtime):
    told = commands.run("open", {"pool": "starter"})
    names = {choice["name"] for choice in told["orchestrators"]}
    assert set(told["baselines"]) <= names
    agents = [spec.name for spec in runtime.store.pools.latest("starter").pool.agents()]
    assert {f"{policy}:{agent}" for policy in ("direct", "self_consistency") for agent in agents} <= set(
        told["baselines"]
    )
    assert {"cascade+who=predictor", "router", "router+who=log", f"tools:{agents[0]}"} <= set(told["baselines"])
    assert any(name.startswith("model:") for name in told["baselines"]) and "oracle" not in told["baselines"]


def test_every_orchestrator_is_compared_with_the_baselines_at_equal_cost(client, measured, runtime, jobs, rows):
    told = client.get("/api/compare/suite", params={"job": measured[0]}).json()
    assert told["hull"]["cost"] == [] and told["equal_cost"]["cost"] == {}, "no baseline was measured"
    job = jobs.submit(
        Recipe.model_validate({"name": "priced", "evaluate": {"orchestrators": ["oracle", "direct:solver"]}})
    ).id
    priced = [
        row.model_copy(update={"orchestrator": name, "cost": cost, "correct": name == "oracle" or row.index % 2 == 0})
        for row in of(rows, "oracle")
        for name, cost in (("oracle", 0.02), ("direct:solver", 0.01))
    ]
    lines = "".join(f"{row.model_dump_json()}\n" for row in priced)
    (jobs.folder(job).path / RESULTS).write_text(lines, encoding="utf-8")
    told = client.get("/api/compare/suite", params={"job": job}).json()
    assert [point["name"] for point in told["hull"]["cost"]] == ["direct:solver"]
    against = told["equal_cost"]["cost"]["oracle"]
    single = next(row for row in told["rows"] if row["orchestrator"] == "direct:solver")
    assert against["shares"] == {"direct:solver": 1.0}
    assert against["difference"][0] == pytest.approx(1 - single["mean"][0])


def test_every_view_says_how_far_its_judge_agrees_with_the_person(client, jobs, measured, rows):
    chosen = {"job": measured[0]}
    judge = JudgeKey(name="referee", work="a" * 16)
    path = jobs.folder(measured[0]).path / RESULTS
    text = path.read_text(encoding="utf-8")
    assert client.get("/api/compare/suite", params=chosen).json()["judges"] == []
    extra = rows[0].model_copy(update={"index": 501, "query": "judged", "judge": judge})
    path.write_text(f"{text}{extra.model_dump_json()}\n", encoding="utf-8")
    try:
        views = ("suite", "matrix", "ablation")
        for view in views:
            [sentence] = client.get(f"/api/compare/{view}", params=chosen).json()["judges"]
            assert sentence.startswith("Judge referee: not measured against your verdicts")
        save_agreement(count_agreement(judge, [(True, True)] * 18 + [(True, False)] * 2))
        for view in views:
            [sentence] = client.get(f"/api/compare/{view}", params=chosen).json()["judges"]
            assert sentence.startswith("Judge referee agrees with 18 of 20 of your verdicts"), "measured meanwhile"
    finally:
        path.write_text(text, encoding="utf-8")
