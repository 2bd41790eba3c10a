"""What the Train page asks: recipes with what is missing, jobs from their files, their stream and rollouts."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.pages.train.commands import TrainCommands, drop_foreign_title
from studio.pages.train.curves import Columns, MetricsReader, thin_out
from studio.pages.train.preflight import _find_gpu_problem
from studio.pages.train.progress import compute_job_progress
from tests.browser.support.jobs import recipe, write_job
from tests.studio.support.hub_stand_in import client_environment, hub_stand_in
from tests.trainer.support.nvidia import install_driver
from trainer.jobs.queue import JobRow
from trainer.pool_recipe import build_pool_recipe
from trainer.recipe import dump_recipe, load_recipe, parse_recipe

SMALL = {"name": "small", "model": {"base": "starter:smollm2"}, "sft": {"steps": 4}}


@pytest.fixture(scope="module")
def commands(runtime) -> TrainCommands:
    return TrainCommands(runtime)


@pytest.fixture(scope="module")
def job(runtime) -> str:
    return write_job(runtime.store)


@pytest.fixture
def never_started(monkeypatch):
    """Jobs stay in the queue: no process is started."""
    monkeypatch.setattr("trainer.jobs.queue._spawn", lambda *_: None)


def blocking(reply: dict) -> dict[str, str]:
    return {each["key"]: each["sentence"] for each in reply["missing"] if each["blocks"]}


def messages(text: str) -> list[tuple[str, str, object]]:
    """(id, event, data) of a server-sent stream."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


# Recipes


def test_the_page_opens_with_the_gentlest_preset_and_its_schema(commands):
    told = commands.run("open", {})
    assert told["ok"] and told["preset"] == "cpu-first-steps"
    assert {"cpu-first-steps", "single-gpu-24gb", "single-gpu-80gb", "conductor-paper", "paramanager-paper"} <= {
        each["name"] for each in told["presets"]
    }
    assert told["command"].startswith("python -m trainer train cpu-first-steps") and told["file"] is None
    assert told["schema"]["properties"]["grpo"] and told["missing"] is None  # asked for after the first picture
    json.dumps(told)


def test_form_and_yaml_are_two_forms_of_the_same_recipe(commands):
    by_form = commands.run("check", {"recipe": SMALL})
    by_yaml = commands.run("check", {"yaml": by_form["yaml"]})
    assert by_form["recipe"] == by_yaml["recipe"] and by_form["yaml"] == by_yaml["yaml"]
    assert parse_recipe(by_form["yaml"]).sft.steps == 4
    assert by_form["file"] == "small.yaml" and "train small.yaml" in by_form["command"]


def test_an_edited_preset_is_no_preset_any_more(commands):
    told = commands.run("preset", {"name": "cpu-first-steps"})
    told["recipe"]["sft"]["steps"] += 1
    edited = commands.run("check", {"preset": "cpu-first-steps", "recipe": told["recipe"]})
    assert edited["file"] == "first-steps.yaml" and "train first-steps.yaml" in edited["command"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"sft": {"steps": "many"}}, "sft.steps"),
        ({"sft": {"steps": 0}}, "sft.steps"),
        ({"name": "No Name!"}, "name"),
        ({"tasks": {"levels": [1, "x"]}}, "tasks.levels.1"),
        ({"grpo": {"micro_batch": 7}}, "grpo"),
        ({"grpo": {"rewards": [{"weight": 1}]}}, "grpo.rewards.0.term"),
        ({"sft": {"no_such_key": 1}}, "sft.no_such_key"),
    ],
)
def test_problems_are_told_at_their_keys(commands, change, key):
    told = commands.run("check", {"recipe": {**SMALL, **change}})
    assert not told["ok"] and key in [where for where, _ in told["problems"]]


@pytest.mark.parametrize("text", ["[1]", "a: [", "name: x\nname", "&a [*a]", "\x00", "sft: 3"])
def test_bad_yaml_is_a_sentence(commands, text):
    told = commands.run("check", {"yaml": text})
    assert not told["ok"] and told["problems"][0][1]


# What is missing


def test_a_gpu_that_cannot_be_used_is_told_but_does_not_prevent_a_start(commands, tmp_path, monkeypatch):
    install_driver(tmp_path, monkeypatch, "Failed to initialize NVML: Driver/library version mismatch", 18)
    _find_gpu_problem.cache_clear()
    try:
        told = commands.run("check", {"recipe": SMALL})
    finally:
        _find_gpu_problem.cache_clear()
    (gap,) = (each for each in told["missing"] if each["key"] == "model")
    assert "version mismatch" in gap["sentence"] and "Restart the machine" in gap["sentence"] and not gap["blocks"]


@pytest.mark.parametrize(
    "preset", ["single-gpu-24gb", "single-gpu-80gb", "conductor-paper", "paramanager-paper", "reader-gpu"]
)
def test_a_preset_for_a_gpu_says_first_that_there_is_none(commands, monkeypatch, preset):
    monkeypatch.setattr("trainer.jobs.gpus.list_gpus", list)
    missing = commands.run("preset", {"name": preset})["missing"]
    first = missing[0]
    assert first["key"] == "where" and first["blocks"] and first["sentence"].startswith("No GPU here")
    assert "Runs on" in first["sentence"] and not any("make vllm" in gap["sentence"] for gap in missing)


def test_everything_that_prevents_a_start_is_named(commands, runtime, monkeypatch):
    monkeypatch.setattr("trainer.jobs.gpus.list_gpus", lambda: ["0"])
    monkeypatch.setattr("trainer.learner.vllm_server.is_installed", lambda: False)
    runtime.store.pools.save(Pool(name="bare", workers=()))
    told = commands.run(
        "check",
        {
            "recipe": {
                "pool": "bare",
                "model": {"base": "/no/such/model", "start": "no-job@3"},
                "sft": {"demonstrations": {"file": "/no/such/file.jsonl"}},
                "grpo": {"rollouts": {"backend": "vllm"}, "rewards": [{"term": "beauty"}, {"term": "/no/file.py:f"}]},
            },
        },
    )
    found = blocking(told)
    assert "calculator" in found["pool"] and "no pool" not in found["pool"]
    assert "make vllm" in found["grpo.rollouts.backend"] and "config.json" in found["model.base"]
    assert {
        "model.start",
        "model.lora",
        "sft.demonstrations.file",
        "grpo.rewards.0.term",
        "grpo.rewards.1.term",
    } <= set(found)
    refused = commands.run("submit", {"recipe": told["recipe"]})
    assert not refused["ok"] and {key for key, _ in refused["problems"]} == set(found)


def test_an_unknown_pool_and_a_task_file_that_is_not_there_are_named(commands):
    told = commands.run("check", {"recipe": {**SMALL, "pool": "nowhere", "tasks": {"source": "file:/no.jsonl"}}})
    assert "nowhere" in blocking(told)["pool"] and "/no.jsonl" in blocking(told)["tasks.source"]


def test_own_tasks_without_plans_need_another_teacher(commands, tmp_path):
    file = tmp_path / "mine.jsonl"
    lines = [{"query": f"What is {k} * 7?", "answer": k * 7, "split": "train"} for k in range(9)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = commands.run("check", {"recipe": {**SMALL, "tasks": {"source": f"file:{file}"}}})
    assert "sft.demonstrations.teacher" in blocking(told)


def test_the_teachers_of_a_pool_are_its_models_the_reader_and_reference_plans(commands, runtime):
    planner = WorkerSpec(
        name="planner",
        kind="chat",
        description="Plans.",
        config={"base_url": "https://api.example.com/v1", "model": "large"},
    )
    runtime.store.pools.save(Pool(name="mine", workers=(planner,)))
    reply = commands.run("check", {"recipe": {**SMALL, "pool": "mine"}})
    assert reply["teachers"] == ["oracle", "smollm2-agents", "smollm2-reader", "model:planner:plan"]


@pytest.mark.parametrize(("teacher", "lacks"), [("model:nobody", "no agent"), ("job-that-is-not", "job-that-is-not")])
def test_a_teacher_that_the_pool_lacks_prevents_a_start(commands, teacher, lacks):
    recipe = {**SMALL, "pool": "starter", "sft": {"demonstrations": {"teacher": teacher}}}
    assert lacks in blocking(commands.run("check", {"recipe": recipe}))["sft.demonstrations.teacher"]


def test_a_full_disk_is_told_before_it_is_full(commands, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1))
    assert "saving.keep" in blocking(commands.run("check", {"recipe": SMALL}))


def test_the_tiny_model_on_another_pool_is_a_warning(commands, runtime):
    runtime.store.pools.save(Pool(name="other", workers=()))
    told = commands.run("check", {"recipe": {"pool": "other", "sft": {"demonstrations": {"teacher": "direct"}}}})
    said = [each for each in told["missing"] if each["key"] == "model.base" and not each["blocks"]]
    assert said and "starter pool" in said[0]["sentence"]


# Jobs


def test_submit_queue_stop_and_resume(commands, runtime, never_started, monkeypatch):
    monkeypatch.setattr("studio.pages.train.commands.find_gaps", lambda *_: [])
    told = commands.run("submit", {"recipe": SMALL})
    assert told["ok"] and "starts" in told["message"]
    key = told["job"]
    assert [line.state for line in commands.list() if line.id == key] == ["queued"]
    assert commands.run("stop", {"job": key})["ok"]
    again = commands.run("stop", {"job": key})
    assert not again["ok"] and "stopped" in again["problems"][0][1]
    assert commands.run("resume", {"job": key})["ok"]
    assert commands.run("of_job", {"job": key})["recipe"]["name"] == "small"
    commands.run("stop", {"job": key})
    assert not commands.run("resume", {"job": "none"})["ok"]


def test_a_preset_that_was_made_into_something_else_loses_its_title():
    preset = load_recipe("cpu-first-steps")
    assert drop_foreign_title(preset).title == preset.title
    assert drop_foreign_title(preset.model_copy(update={"pool": "mine"})).title == ""
    assert drop_foreign_title(preset.model_copy(update={"sft": None})).title == ""
    assert drop_foreign_title(preset.model_copy(update={"title": "Mine", "pool": "mine"})).title == "Mine"
    own = build_pool_recipe("mine", 8)
    assert drop_foreign_title(own).title == own.title


def test_a_job_is_read_from_its_files(client, job):
    told = client.get(f"/api/jobs/{job}").json()
    assert told["state"] == "done" and told["place"]["share"] == 1.0
    assert len(told["curves"]["steps"]) == 100 and told["curves"]["series"]["reward"][:60] == [None] * 60
    best = [each for each in told["checkpoints"] if each["best"]]
    assert [each["step"] for each in best] == [100] and best[0]["name"] == f"{job}@100"
    assert best[0]["evaluation"]["mean"] == pytest.approx(0.6)
    assert parse_recipe(told["recipe"]) == recipe()
    assert job in [line["id"] for line in client.get("/api/jobs").json()["jobs"]]
    assert client.get("/api/recipes").json()["recipes"]


def test_an_evaluation_says_how_many_episodes_of_how_many_and_how_long_the_rest_takes(tmp_path):
    measured = parse_recipe("{evaluate: {orchestrators: [oracle, base], count: 50}}")
    row = JobRow(
        id="m", kind="evaluate", name="m", state="running", stage="evaluate", steps=100, created_at=datetime.now(UTC)
    )
    file = tmp_path / "metrics.jsonl"
    notes = [{"stage": "evaluate", "step": 10 * k, "at": 100.0 + 20 * k, "evaluate/done": 10 * k, "evaluate/total": 100}
             for k in range(4)]  # fmt: skip
    file.write_text("".join(json.dumps(note) + "\n" for note in notes))
    reader = MetricsReader(file)
    reader.poll()
    place = compute_job_progress(row, measured, reader, 0, now=200.0)
    assert (place.stage, place.done, place.total, place.share) == ("evaluate", 30, 100, 0.3)
    assert (place.step_s, place.eta_s) == (2.0, 140.0)
    assert reader.columns.steps == [], "progress is no curve"
    after_training = measured.model_copy(update={"sft": recipe().sft})
    assert compute_job_progress(row, after_training, reader, 0, now=200.0).done == 30


def test_between_the_last_demonstration_and_the_first_step_nothing_is_said_to_end(tmp_path):
    row = JobRow(id="s", kind="train", name="s", state="running", stage="sft", steps=2, created_at=datetime.now(UTC))
    reader = MetricsReader(tmp_path / "metrics.jsonl")

    def place_at(done: int) -> tuple[object, ...]:
        note = {"stage": "demonstrations", "step": 0, "at": 100.0 + done}
        note |= {"demonstrations/done": done, "demonstrations/total": 8}
        with (tmp_path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(note) + "\n")
        reader.poll()
        place = compute_job_progress(row, recipe(), reader, 0, now=200.0)
        return place.stage, place.done, place.eta_s

    assert [place_at(done) for done in (2, 4)] == [("demonstrations", 2, None), ("demonstrations", 4, 4.0)]
    assert place_at(8) == ("sft", 0, None)


@pytest.mark.parametrize("path", ["", "/stream", "/rollouts"])
def test_a_job_that_is_not_there_is_a_404_with_a_sentence(client, path):
    answer = client.get(f"/api/jobs/nothing{path}")
    assert answer.status_code == 404 and "no job" in answer.json()["detail"]


def test_a_stream_gives_everything_then_ends_and_later_only_what_is_new(client, commands, job):
    seen = messages(client.get(f"/api/jobs/{job}/stream").text)
    names = [name for _, name, _ in seen]
    assert names[0] == "curves" and names[-1] == "end" and {"job", "log"} <= set(names)
    place = seen[0][0]
    again = messages(client.get(f"/api/jobs/{job}/stream", headers={"last-event-id": place}).text)
    assert "curves" not in [name for _, name, _ in again]
    job_folder = commands.jobs.folder(job)
    job_folder.append_metrics("grpo", 101, {"reward": float("nan"), "loss": 0.5})
    added = messages(client.get(f"/api/jobs/{job}/stream", headers={"last-event-id": place}).text)
    rows = next(data for _, name, data in added if name == "rows")
    assert [(row["step"], row["reward"], row["loss"]) for row in rows] == [(101, None, 0.5)]
    job_folder.truncate_after(100)  # as a resume does
    renewed = messages(client.get(f"/api/jobs/{job}/stream", headers={"last-event-id": place}).text)
    assert renewed[0][1] == "curves"


@pytest.mark.parametrize("place", ["", "x", "1:2", ":", "9:99999999999", "1:-4", "é:²"])
def test_a_strange_place_gets_the_whole(client, job, place):
    header = {"last-event-id": place.encode()}
    assert messages(client.get(f"/api/jobs/{job}/stream", headers=header).text)[0][1] == "curves"


def test_the_rollouts_of_a_step_have_graphs_terms_and_flags(client, job):
    told = client.get(f"/api/jobs/{job}/rollouts").json()
    assert told["step"] == 100 and told["steps"] == [98, 99, 100] and told["of"] == 3 and told["equal"] == 1
    mixed = told["groups"][0]
    assert (mixed["solved"], mixed["of"], mixed["equal"]) == (2, 4, False)
    first, _, _, last = mixed["episodes"]
    assert first["graph"]["nodes"] and first["graph"]["answer"] and first["terms"]["accuracy"] == 1.0
    assert last["graph"]["nodes"] == [] and last["graph"]["failed"] and last["advantage"] < 0
    assert told["groups"][2]["equal"] and not told["groups"][2]["kept"]
    assert client.get(f"/api/jobs/{job}/rollouts?step=98").json()["step"] == 98
    assert client.get(f"/api/jobs/{job}/rollouts?step=98&first=2").json()["groups"][0]["equal"]


def test_episodes_whose_trace_is_gone_keep_their_figures(client, commands, runtime, job):
    job_folder = commands.jobs.folder(job)
    gone = {"id": "gone", "correct": True, "terms": {}, "reward": 1.0, "advantage": 0.0, "tokens": 3}
    job_folder.append_group({"step": 105, "query": "q", "family": "f", "level": 0, "equal": True, "episodes": [gone]})
    group = client.get(f"/api/jobs/{job}/rollouts?step=105").json()["groups"][0]
    assert group["episodes"][0]["graph"] is None and group["episodes"][0]["reward"] == 1.0


def test_a_job_whose_process_was_killed_is_failed_and_says_resume(client, commands, runtime, never_started):
    from pool_registry.storage.database import writing

    key = commands.jobs.submit(recipe()).id
    with writing(runtime.store.engine) as session:
        row = session.get(JobRow, key)
        row.state, row.owner = "running", "999999:1.00"
        session.add(row)
    told = client.get("/api/jobs").json()["jobs"]
    assert next(line for line in told if line["id"] == key)["state"] == "failed"
    view = client.get(f"/api/jobs/{key}").json()
    assert view["resumable"] and view["advice"][0]["alarming"] and "Resume" in view["advice"][0]["action"]


def test_a_damaged_folder_is_still_a_job(client, commands, job):
    job_folder = commands.jobs.folder(job)
    kept = {path: path.read_bytes() for path in (job_folder.recipe, job_folder.metrics, job_folder.rollouts)}
    try:
        job_folder.recipe.write_text("{")
        for path in (job_folder.metrics, job_folder.rollouts):
            path.write_bytes(b'{"step": 1, "loss"\nnot json\n[1]\n' + kept[path] + b'{"torn": ')
        told = client.get(f"/api/jobs/{job}").json()
        assert told["recipe"] == "" and len(told["curves"]["steps"]) == 100
        assert client.get(f"/api/jobs/{job}/rollouts").status_code == 200
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


# Stars


def test_a_star_is_kept_and_only_our_own_page_may_set_it(client, runtime, job):
    episode = client.get(f"/api/jobs/{job}/rollouts?step=100").json()["groups"][0]["episodes"][0]["id"]
    address = f"/api/episodes/{episode}/star"
    assert client.get(address).json() == {"on": False}
    assert client.post(address, json={"on": True}).json() == {"on": True}
    assert client.get(address).json() == {"on": True} and episode in runtime.store.traces.list_starred()
    assert next(r for r in client.get("/api/traces?text=" + episode).json()["rows"])["starred"]
    foreign = client.post(address, json={"on": False}, headers={"origin": "http://evil.invalid"})
    assert foreign.status_code == 403 and client.get(address).json() == {"on": True}
    assert client.post(address, json={"on": False}).json() == {"on": False}
    assert client.post("/api/episodes/nothing/star", json={"on": True}).status_code == 404
    assert client.post(address, json={}).status_code == 422


# Curves


def test_columns_join_the_rows_of_a_step():
    columns = Columns()
    for row in ({"step": 2, "loss": 1.0}, {"step": 1, "loss": 2.0}, {"step": 2, "reward": 0.5, "stage": "grpo"}):
        columns.take(row)
    assert columns.document().to_json() == {"steps": [1, 2], "series": {"loss": [2.0, 1.0], "reward": [None, 0.5]}}


def test_a_long_job_is_thinned_and_no_spike_is_lost(tmp_path):
    file = tmp_path / "metrics.jsonl"
    rows = [{"step": k, "loss": 99.0 if k == 7777 else 1.0} for k in range(20_000)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = MetricsReader(file)
    begun = time.process_time()
    parsed = [json.loads(line) for line in file.read_text().splitlines()]
    parsing = time.process_time() - begun
    reader.poll()
    document = reader.columns.document().to_json()
    taken = time.process_time() - begun - parsing
    assert len(parsed) == 20_000 and taken < 30 * parsing, "a page may read a long job whenever it is opened"
    assert len(document["steps"]) == len(document["series"]["loss"]) == 2000
    assert 99.0 in document["series"]["loss"]
    assert document["steps"] == sorted(document["steps"]) and document["steps"][-1] == 19_999


@given(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=2, max_size=300), st.integers(2, 100))
def test_thinning_keeps_the_extremes_and_never_makes_more(values, most):
    found = thin_out(values, most)
    known = [value for value in values if value is not None]
    assert len(found) <= max(2, most)
    if known:
        kept = [value for value in found if value is not None]
        assert min(kept) == min(known) and max(kept) == max(known)


def test_a_recipe_survives_the_way_through_the_page(commands):
    for preset in commands.run("open", {})["presets"]:
        told = commands.run("preset", {"name": preset["name"]})
        assert commands.run("check", {"recipe": told["recipe"]})["yaml"] == told["yaml"]
        assert dump_recipe(parse_recipe(told["yaml"])) == told["yaml"]


def test_a_rented_machine_needs_consent_and_its_terms_name_the_price(commands, never_started, monkeypatch, tmp_path):
    from huggingface_hub import constants

    rented = {**SMALL, "model": {"base": "starter:tiny"}, "where": "hf:l4x1", "max_hours": 2}
    with hub_stand_in() as (address, hub):
        for name, value in client_environment(address, str(tmp_path)).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        places = commands.run("places", {})["places"]
        terms = commands.run("rent", {"recipe": rented})["terms"]
    assert {"where": "hf:l4x1", "label": "Nvidia L4 x1 (24 GB), $0.80 an hour"} in places
    assert "$1.60 at most" in terms[0] and not hub.rentals.machines
    refused = commands.run("submit", {"recipe": rented})
    assert not refused["ok"] and refused["problems"][0][0] == "where"
    agreed = commands.run("submit", {"recipe": rented, "agreed": True})
    assert agreed["ok"] and {line.id: line.where for line in commands.list()}[agreed["job"]] == "hf:l4x1"
    commands.run("stop", {"job": agreed["job"]})


def test_what_keeps_a_recipe_from_a_cluster_is_shown_while_it_is_edited(commands):
    evaluation = {"name": "measured", "evaluate": {"orchestrators": ["oracle"], "source": "ledger"}}
    silent = {**evaluation, "where": "ray://127.0.0.1:9"}
    gaps = {gap["sentence"]: gap["blocks"] for gap in commands.run("check", {"recipe": silent})["missing"]}
    (refused,) = [sentence for sentence, blocks in gaps.items() if blocks]
    assert refused.startswith("Nothing answers at ray://127.0.0.1:9")
    assert any(sentence.startswith("Every node needs this version of Podium") for sentence in gaps)
    assert not commands.run("submit", {"recipe": silent})["ok"]
    training = commands.run("check", {"recipe": {**SMALL, "where": "ray://127.0.0.1:9"}})["missing"]
    assert any(gap["key"] == "where" and "does not train" in gap["sentence"] for gap in training)


def test_a_job_that_has_spent_its_cap_goes_on_with_another(commands, runtime, never_started):
    recipe = load_recipe("own-agents").model_copy(update={"max_cost": 0.5})
    job = runtime.jobs.submit(recipe).id
    assert runtime.jobs.claim(job)
    runtime.jobs.finish(job, "stopped", "max_cost", "its cap is reached")
    refused = commands.run("resume", {"job": job, "max_cost": "nothing"})
    assert not refused["ok"] and refused["problems"][0][0] == "max_cost"
    assert commands.run("resume", {"job": job, "max_cost": "2"})["ok"]
    assert runtime.jobs.recipe(job).max_cost == 2 and runtime.jobs.get(job).state in ("queued", "running")
