"""What cannot work on a cluster, said before anything runs there: by the recipe alone, and by each node itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pool_registry.extensions.installed_packages import pin_version
from pool_registry.pool import Pool
from pool_registry.portable_pool import find_loopback_host
from trainer.cluster.connection import CODE, INSTALL, ClusterNode, import_ray
from trainer.errors import InvalidRecipe, TrainingFailed
from trainer.job_place import JobPlace
from trainer.recipe import Recipe

CHECK_S = 180.0


def list_clusters(recipe: Recipe) -> list[JobPlace]:
    """The clusters that a recipe uses: for the job, and for what its methods have done elsewhere."""
    own = [place for stage in recipe.training_stages for place in stage.method.list_places(stage.settings)]
    places = [recipe.place, *own]
    return [place for place in dict.fromkeys(places) if place.is_cluster]


def find_cluster_problems(recipe: Recipe, pools: Sequence[Pool]) -> Iterator[tuple[str, str]]:
    """Yield what the recipe asks of a cluster that none can do, as (key, sentence)."""
    if not list_clusters(recipe):
        return
    if recipe.place.is_cluster and recipe.trains:
        keys = [stage.method.place_key for stage in recipe.training_stages if stage.method.place_key]
        ways = "".join(f" and, to have the demonstrations made there, {key}: {recipe.place}" for key in keys)
        yield (
            "where",
            f"a cluster runs evaluations and demonstrations, and does not train. Train with where: here{ways}; then "
            f"measure with `python -m trainer evaluate RECIPE --on {recipe.place}`",
        )
    for stage in recipe.training_stages:
        yield from stage.method.find_cluster_problems(stage.settings)
    for pool in pools:
        for spec in pool.switched_on:
            if host := find_loopback_host(spec):
                yield (
                    "pool",
                    f"the worker {spec.name} of {pool.name} asks {host}, which on a node is the node itself: write an "
                    "address that all nodes reach (several vLLM servers stand behind one router), or switch the worker "
                    "off",
                )


def refuse_cluster_problems(recipe: Recipe, pools: Sequence[Pool]) -> None:
    """Raise InvalidRecipe with what keeps a recipe from a cluster."""
    problems = list(find_cluster_problems(recipe, pools))
    if problems:
        raise InvalidRecipe(problems)


def check_nodes(
    nodes: Sequence[ClusterNode],
    pools: Sequence[Pool],
    orchestrators: Sequence[str] = (),
    packages: Sequence[str] = (),
) -> None:
    """Let each node of the cluster that this process is connected to check what it needs for these pools and
    orchestrators, and whether it has these installed packages. Raises TrainingFailed with what nodes lack, and for one
    that does not answer."""
    from trainer.cluster.work import NodeRequest

    pins = tuple(map(pin_version, packages))
    request = NodeRequest(pools=tuple(pools), orchestrators=tuple(orchestrators), packages=pins).model_dump_json()
    ray = import_ray()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(_define_question())
    replies = [
        ask.options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)).remote(request)
        for node in nodes
    ]
    problems = [problem for node, reply in zip(nodes, replies, strict=True) for problem in _judge(ray, node, reply)]
    if problems:
        raise TrainingFailed(CODE, "; ".join(problems))


def _define_question() -> Any:
    """The function that a node runs. It is made here, and not imported: a node may have no Podium."""

    def answer(request: str) -> str:
        try:
            from trainer.cluster.node import report_node
        except ImportError as error:
            return f"!{error}"
        return report_node(request)

    return answer


def _judge(ray: Any, node: ClusterNode, reply: Any) -> Iterator[str]:
    """Yield what a node lacks."""
    from trainer.cluster.node import digest_code
    from trainer.cluster.work import NodeReport

    try:
        text = ray.get(reply, timeout=CHECK_S)
    except ray.exceptions.RayError as error:
        raise TrainingFailed(CODE, f"{node.name} does not answer: {error}. `ray status` says how it is") from error
    if text.startswith("!"):
        yield f"{node.name} does not have this Podium ({text[1:]}): run {INSTALL} there, then start its Ray again"
        return
    report = NodeReport.model_validate_json(text)
    if report.code != digest_code():
        yield (
            f"{node.name} has another version of Podium (code {report.code}, here {digest_code()}): install the same "
            "there, then start its Ray again"
        )
        return
    yield from (f"{node.name}: {problem}" for problem in report.problems)
