"""A checkpoint on another pool: its turns, its traces, its prompts, its manifest, and what a person changed."""

from __future__ import annotations

import asyncio
import json

import pytest

from orchestrator.binding.bind_turn import bind_turn
from orchestrator.binding.bind_workers import BindingSettings, bind_workers
from orchestrator.binding.learnt_worker import describe_learnt_pool
from orchestrator.binding.stored_edits import BindingEdits
from orchestrator.checkpoints import Checkpoint, TrainedPool, find_checkpoint, seal, spell_checkpoint
from orchestrator.dialects import find_dialect
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import TurnTaken, dump_event, load_event
from orchestrator.plan import BoundStep, Step, Turn
from orchestrator.policies.model import ModelPolicy, plan_binding
from orchestrator.prompt import observation_text
from orchestrator.retrieval import sentence_vectors
from pool_registry.language_models.completion import Completion
from pool_registry.load_once import LoadOnce
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.upgrade import open_engine
from tests.orchestrator.binding.support import learnt, pool_of, schema_of, worker

SUM, ROUTE = "Adds numbers of a sum", "Distance between two airports in kilometers"
LEARNT = (learnt("sum", SUM, schema_of({"numbers": "string"})), learnt("route", ROUTE))
HAND = pool_of(worker("adder", SUM, schema_of({"figures": "string"})), worker("miles", "Tells a joke"))


@pytest.fixture(autouse=True)
def by_words(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "find_weights", lambda: None)


class Script:
    """A model that writes these turns, and keeps what it was shown."""

    def __init__(self, *turns: object) -> None:
        self.texts = [json.dumps(turn) for turn in turns]
        self.prompts: list[str] = []
        self.grammar = None

    async def complete(self, messages, _tools, _room, _draw, grammar):
        self.prompts.append(messages[-1].content)
        self.grammar = grammar
        return Completion(self.texts.pop(0))


def step(number: int, name: str, **arguments: object) -> dict:
    return {"worker": name, "arguments": arguments, "access": []}


def play(*turns: object, edits: dict | None = None) -> tuple[Episode, Script]:
    script = Script(*turns)
    return run(script, "plan", edits), script


def run(script: Script, dialect: str, edits: dict | None = None, constrained: bool = False) -> Episode:
    binding = LoadOnce(lambda: bind_workers(LEARNT, HAND, edits))
    how = {"constrained": constrained, "binding": binding}
    policy = ModelPolicy("c", HAND, script, find_dialect(dialect), "query", **how)
    return asyncio.run(run_episode(EpisodeSpec("q"), policy, HAND))


def test_a_step_calls_the_bound_worker_with_its_parameters_and_the_trace_says_so():
    episode, script = play({"steps": [step(1, "sum", numbers="1+1")]}, {"answer": "$1"})
    turn = episode.rounds[0].turn
    assert (turn.steps[0].worker, turn.steps[0].arguments) == ("adder", {"figures": "1+1"})
    assert episode.answer == {"figures": "1+1"}
    (bound,) = turn.bindings
    assert (bound.step, bound.learnt, bound.worker, bound.by) == (1, "sum", "adder", "words")
    assert bound.likeness == 1.0 and bound.parameters == {"numbers": "figures"}
    assert '"sum"' in turn.text, "the text is what the model wrote"
    assert "Step 1 (sum) OK" in script.prompts[1], "the model reads the name that it knows"


def test_an_unbound_worker_is_a_malformed_step_that_says_why_and_the_others_run():
    steps = {"steps": [step(1, "route", text="LIS to GRU"), step(2, "sum", numbers="2")], "answer": "$2"}
    episode, _ = play(steps)
    problem = episode.steps[1].observation
    assert problem.status == "PARSE_ERR" and "no worker here is like it" in problem.error.message
    assert "the nearest is adder (0.00; at least 0.08 is needed)" in problem.error.message
    assert episode.answer == {"figures": "2"}
    assert [bound.worker for bound in episode.rounds[0].turn.bindings] == ["", "adder"]


def test_an_edited_binding_wins():
    episode, _ = play({"steps": [step(1, "route", text="a")], "answer": "$1"}, edits={"route": "miles"})
    assert episode.answer == {"text": "a"} and episode.rounds[0].turn.bindings[0].by == "person"
    refused, _ = play({"steps": [step(1, "sum", numbers="1")], "answer": "x"}, edits={"sum": ""})
    assert "a person chose so" in refused.steps[1].observation.error.message


def test_nothing_is_recorded_where_nothing_changes():
    pool = pool_of(worker("sum", SUM), worker("route", ROUTE))
    binding = bind_workers(describe_learnt_pool(pool), pool)
    turn = Turn((Step(1, "sum", {"text": "1"}), Step(2, "unheard", {"text": "1"})))
    assert binding.changes_nothing and bind_turn(turn, binding) is turn


def test_a_dialect_of_numbers_counts_the_learnt_workers():
    script = Script()
    script.texts = ['workers = [0]\nsubtasks = ["1+1"]\naccess = [[]]']
    episode = run(script, "conductor")
    assert episode.answer == {"figures": "1+1"} and episode.rounds[0].turn.bindings[0].learnt == "sum"


def test_a_grammar_allows_the_names_that_were_learnt():
    script = Script({"answer": "x"})
    run(script, "plan", constrained=True)
    assert '\\"sum\\"' in script.grammar.lark and "adder" not in script.grammar.lark


def test_traces_keep_bindings_and_older_ones_load():
    turn = Turn((Step(1, "adder"),), bindings=(BoundStep(1, "sum", "adder", 0.71, "meaning", {"numbers": "figures"}),))
    written = dump_event(TurnTaken(1, turn, 0.5))
    assert load_event(written).turn == turn
    older = json.loads(written)
    del older["turn"]["bindings"]
    assert load_event(json.dumps(older)).turn.bindings == ()


def test_the_observation_of_an_unbound_step_keeps_the_learnt_name():
    episode, _ = play({"steps": [step(1, "route", text="x")]}, {"answer": "none"})
    assert observation_text(episode.rounds[0], 2).startswith("Step 1 (route) PARSE_ERR")


def test_choices_are_stored_for_a_checkpoint_and_a_version(tmp_path):
    edits = BindingEdits(open_engine(find_home(tmp_path)))
    edits.choose("c", "v1", "sum", "adder")
    edits.choose("c", "v1", "sum", "miles")
    edits.choose("c", "v1", "route", "")
    edits.choose("c", "v2", "sum", "other")
    edits.choose("d", "v1", "sum", "third")
    assert edits.read("c", "v1") == {"route": "", "sum": "miles"}
    assert edits.forget("c", "v1", "route") == 1 and edits.forget("c", "v1") == 1
    assert edits.read("c", "v1") == {} and edits.read("c", "v2") == {"sum": "other"}
    assert edits.read("d", "v1") == {"sum": "third"}


@pytest.fixture
def trained(tmp_path):
    """A function that seals a checkpoint and returns its folder's path."""

    def make(prompt: str = "query", specs: tuple = LEARNT, pool_hash: str = "h") -> str:
        pool = TrainedPool(name="p", hash=pool_hash, workers=("sum", "route"), specs=specs)
        seal(tmp_path, Checkpoint(name="c", kind="full", base="b", stage="sft", prompt=prompt, pool=pool))
        return str(tmp_path)

    return make


def test_a_manifest_keeps_what_its_workers_do_and_older_ones_load(trained):
    folder = trained()
    assert find_checkpoint(folder)[1].pool.learnt == LEARNT
    older = TrainedPool.model_validate({"name": "p", "hash": "h", "workers": ["sum"]})
    assert older.learnt == ()


def test_shipped_checkpoints_know_the_workers_of_the_starter_pool():
    for name in ("starter-sft", "starter-grpo", "smollm2-sft"):
        workers = find_checkpoint(name)[1].pool
        assert [item.name for item in workers.learnt] == list(workers.workers)
        assert spell_checkpoint(name) == name


def test_only_a_checkpoint_that_never_saw_a_pool_is_bound(trained):
    assert plan_binding(HAND, trained("full")) is None
    assert plan_binding(HAND, trained(specs=())) is None
    assert plan_binding(HAND, trained(), BindingSettings(enabled=False)) is None
    chosen = plan_binding(
        HAND,
        folder := trained(),
        BindingSettings(read_edits=lambda *key: {"route": "miles"} if key == (folder, HAND.hash) else {}),
    )
    assert chosen().workers["route"].worker == "miles"
