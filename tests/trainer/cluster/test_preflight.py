"""What a cluster cannot do is said before anything is sent there."""

from __future__ import annotations

import json
import socket

import pytest

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.cluster.connection import ClusterNode, check_address, connect
from trainer.cluster.placement import Placement, place_actors
from trainer.cluster.preflight import find_cluster_problems, list_clusters, refuse_cluster_problems
from trainer.errors import InvalidRecipe, TrainingFailed
from trainer.job_place import parse_place
from trainer.recipe import Recipe, dump_recipe, parse_recipe

CLUSTER = "ray://10.0.0.5:10001"
CALCULATOR = WorkerSpec(name="calculator", kind="calculator", description="arithmetic")


def chat(name: str, host: str) -> WorkerSpec:
    config = {"base_url": f"http://{host}:8000/v1", "model": "m", "allow_private": True}
    return WorkerSpec(name=name, kind="chat", description="answers", config=config)


def make_recipe(**sections: object) -> Recipe:
    return parse_recipe(json.dumps({"name": "measure", **sections}))


@pytest.fixture
def closed_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_cluster_does_not_train_and_the_sentence_says_what_to_do():
    recipe = make_recipe(where=CLUSTER, sft={}, evaluate={})
    with pytest.raises(InvalidRecipe) as refused:
        refuse_cluster_problems(recipe, [])
    assert [key for key, _ in refused.value.problems] == ["where"]
    for part in ("does not train", f"sft.demonstrations.where: {CLUSTER}", f"evaluate RECIPE --on {CLUSTER}"):
        assert part in str(refused.value)


def test_a_place_is_a_node_and_where_models_are_loaded_a_gpu():
    nodes = [ClusterNode("a", "a", 8, 2), ClusterNode("b", "b", 8, 0)]
    here, there = (Placement(nodes[0], 1), Placement(nodes[1], 0))
    model = WorkerSpec(name="model", kind="local_model", description="answers")
    inner = WorkerSpec(name="inner", kind="orchestrator", description="asks", config={"orchestrator": "my-job@4"})
    for pool, orchestrator in (
        (Pool(name="p", workers=(model,)), "oracle"),
        (Pool(name="p", workers=(inner,)), "oracle"),
        (Pool(name="p", workers=(CALCULATOR,)), "my-job@4"),
    ):
        assert place_actors(nodes, [pool], [orchestrator]) == [here, there, here]
    same = inner.model_copy(update={"config": {}})
    alone = Pool(name="p", workers=(CALCULATOR, same))
    assert place_actors(nodes, [alone], ["oracle", "random_plan"]) == [Placement(node) for node in nodes]


def test_there_are_no_more_places_than_a_worker_elsewhere_takes_calls_at_a_time():
    nodes = [ClusterNode(name, name, 8, 0) for name in "abcd"]
    narrow = chat("narrow", "10.0.0.9").model_copy(update={"max_concurrency": 2})
    local = CALCULATOR.model_copy(update={"max_concurrency": 1})
    assert place_actors(nodes, [Pool(name="p", workers=(local, narrow))], []) == [Placement(node) for node in nodes[:2]]
    assert len(place_actors(nodes, [Pool(name="p", workers=(local,))], [])) == 4


def test_demonstrations_go_to_a_cluster_while_training_stays_here():
    recipe = make_recipe(sft={"demonstrations": {"where": CLUSTER}})
    assert recipe.place.is_here and [str(place) for place in list_clusters(recipe)] == [CLUSTER]
    assert list(find_cluster_problems(recipe, [Pool(name="p", workers=(CALCULATOR,))])) == []
    rounds = make_recipe(sft={"demonstrations": {"where": CLUSTER, "rounds": 2}})
    assert [key for key, _ in find_cluster_problems(rounds, [])] == ["sft.demonstrations.where"]
    capped = make_recipe(sft={"demonstrations": {"where": CLUSTER, "max_cost": 1.0}})
    assert ["a cluster keeps no cap" in sentence for _, sentence in find_cluster_problems(capped, [])] == [True]


@pytest.mark.parametrize("where", ["hf:l4x1", "there", "ray://host"])
def test_demonstrations_are_made_here_or_on_a_cluster(where):
    with pytest.raises(InvalidRecipe, match=r"sft\.demonstrations\.where"):
        make_recipe(sft={"demonstrations": {"where": where}})


def test_recipes_without_a_cluster_are_written_as_before():
    text = dump_recipe(make_recipe(sft={}))
    assert "where" not in text
    recipe = make_recipe(sft={"demonstrations": {"where": CLUSTER}})
    assert parse_recipe(dump_recipe(recipe)) == recipe


def test_a_worker_on_loopback_is_named_and_one_in_the_network_is_not():
    nested = WorkerSpec(name="later", kind="delayed", description="d", config={
        "latency_ms": 1, "inner": {"name": "page", "kind": "http", "description": "d", "config": {
            "method": "GET", "url": "http://127.0.0.1:9/x"}}})  # fmt: skip
    pool = Pool(
        name="mixed",
        workers=(CALCULATOR, chat("far", "10.0.0.9"), chat("near", "localhost"), chat("six", "[::1]"), nested),
    )
    recipe = make_recipe(where=CLUSTER, evaluate={"orchestrators": ["oracle"]})
    problems = list(find_cluster_problems(recipe, [pool]))
    assert [key for key, _ in problems] == ["pool"] * 3
    assert [sentence.split()[2] for _, sentence in problems] == ["near", "six", "later"]
    switched_off = pool.model_copy(
        update={"workers": tuple(spec.model_copy(update={"enabled": False}) for spec in pool.workers)}
    )
    assert list(find_cluster_problems(recipe, [switched_off])) == []


def test_an_address_that_does_not_answer_is_said_at_once(closed_port):
    place = parse_place(f"ray://127.0.0.1:{closed_port}")
    with pytest.raises(TrainingFailed, match=rf"nothing answers at ray://127.0.0.1:{closed_port}") as failure:
        check_address(place)
    assert "start the cluster, or correct the address" in str(failure.value) and failure.value.code == "cluster"
    with pytest.raises(TrainingFailed, match="nothing answers"), connect(place):
        pass


def test_an_address_without_a_host_of_that_name_is_said_too():
    with pytest.raises(TrainingFailed, match=r"nothing answers at ray://no-such-host\.invalid:10001"):
        check_address(parse_place("ray://no-such-host.invalid:10001"))
