"""Three-way merges of pools: what two people change apart is kept, what they change alike is refused with both."""

from __future__ import annotations

import pytest

from pool_registry.deployment_mode import DeploymentMode
from pool_registry.errors import InvalidPool
from pool_registry.pool import Limits, Pool
from pool_registry.pools.pool_merge import EditConflict, merge_edits
from pool_registry.worker import WorkerSpec


def calculator(name: str, description: str = "adds", **fields) -> WorkerSpec:
    return WorkerSpec(name=name, kind="calculator", description=description, **fields)


BASE = Pool(name="p", workers=(calculator("a"), calculator("b"), calculator("c")))


def names(pool: Pool) -> list[str]:
    return [spec.name for spec in pool.workers]


def test_edits_of_different_workers_are_both_kept_in_their_places():
    head = BASE.with_worker(calculator("b", "theirs"), "b").with_worker(calculator("new"))
    merged = merge_edits(BASE, BASE.with_worker(calculator("z", "mine"), "a"), head)
    assert names(merged) == ["z", "b", "c", "new"]
    assert merged.worker("b").description == "theirs" and merged.worker("z").description == "mine"


def test_removed_and_added_workers_of_both_edits_count():
    head = BASE.without_worker("a").with_worker(calculator("theirs"))
    merged = merge_edits(BASE, BASE.without_worker("b").with_worker(calculator("mine")), head)
    assert names(merged) == ["c", "theirs", "mine"]


@pytest.mark.parametrize(
    ("theirs", "yours"),
    [
        (BASE.with_worker(calculator("a", "one"), "a"), BASE.with_worker(calculator("a", "two"), "a")),
        (BASE.without_worker("a"), BASE.with_worker(calculator("a", "two"), "a")),
        (BASE.with_worker(calculator("a", "one"), "a"), BASE.without_worker("a")),
        (BASE.with_worker(calculator("a", "one"), "a"), BASE.with_worker(calculator("renamed"), "a")),
        (BASE.without_worker("a"), BASE.with_worker(calculator("renamed"), "a")),
        (BASE.with_worker(calculator("new", "one")), BASE.with_worker(calculator("new", "two"))),
        (BASE.with_worker(calculator("new", "one")), BASE.with_worker(calculator("new", "two"), "a")),
    ],
)
def test_two_edits_of_one_worker_are_refused(theirs, yours):
    with pytest.raises(EditConflict):
        merge_edits(BASE, yours, theirs)


def test_a_refusal_says_what_both_edits_say():
    theirs = BASE.with_worker(calculator("a", "counts beads", timeout_s=7), "a")
    with pytest.raises(EditConflict) as refusal:
        merge_edits(BASE, BASE.with_worker(calculator("a", "counts pebbles"), "a"), theirs)
    assert [(clash.field, clash.theirs, clash.yours) for clash in refusal.value.clashes] == [
        ("description", "counts beads", "counts pebbles"),
        ("timeout_s", 7, calculator("a").timeout_s),
    ]
    assert "counts beads" in str(refusal.value) and "counts pebbles" in str(refusal.value)


def test_equal_edits_do_not_clash():
    edit = BASE.with_worker(calculator("a", "same"), "a")
    assert merge_edits(BASE, edit, edit.without_worker("c")).worker("a").description == "same"


def test_limits_are_merged_one_by_one_and_the_same_limit_is_refused():
    def limited(**limits) -> Pool:
        return BASE.model_copy(update={"limits": Limits(**limits)})

    merged = merge_edits(BASE, limited(max_steps=7), limited(max_rounds=3))
    assert (merged.limits.max_steps, merged.limits.max_rounds) == (7, 3)
    with pytest.raises(EditConflict, match=r"limits.max_steps: the other edit says 9, yours says 7"):
        merge_edits(BASE, limited(max_steps=7), limited(max_steps=9))


def test_the_mode_is_one_setting():
    theirs, yours = (
        BASE.model_copy(update={"mode": DeploymentMode.model_validate({"name": name})})
        for name in ("escalate", "review")
    )
    with pytest.raises(EditConflict, match="mode"):
        merge_edits(BASE, yours, theirs)
    assert merge_edits(BASE, BASE.without_worker("a"), theirs).mode == theirs.mode


def test_a_change_from_one_to_true_is_a_change():
    def with_x(x: object) -> Pool:
        spec = WorkerSpec(name="a", kind="chat", description="talks", config={"extra": x})
        return BASE.model_copy(update={"workers": (spec,)})

    with pytest.raises(InvalidPool, match="does not fit"):  # such a kind has no such field: the edit was looked at
        merge_edits(with_x(1), with_x(True), with_x(1).model_copy(update={"description": "theirs"}))


def test_edits_that_do_not_fit_together_are_refused_plainly():
    theirs = BASE.without_worker("b")
    with pytest.raises(InvalidPool, match="does not fit with what somebody else has saved"):
        merge_edits(BASE, BASE.with_worker(calculator("a", fallback="b"), "a"), theirs)


def test_an_order_that_was_restored_stays():
    turned = BASE.model_copy(update={"workers": tuple(reversed(BASE.workers))})
    assert names(merge_edits(BASE, turned, BASE.with_worker(calculator("new")))) == ["c", "b", "a", "new"]
