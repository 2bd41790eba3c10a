"""What the Run page says about a checkpoint that meets a pool."""

from __future__ import annotations

import pytest

from orchestrator.checkpoints import Checkpoint, TrainedPool, seal
from pool_registry.pool import Limits, Pool
from pool_registry.starter import starter_pool
from studio.orchestrators.notes import checkpoint_note, suite_note

POOL = starter_pool()


@pytest.fixture
def trained(tmp_path):
    """A function that seals a checkpoint trained on a pool and returns its folder."""

    def make(pool: Pool | None, prompt: str = "query") -> str:
        known = pool and TrainedPool(name=pool.name, hash=pool.hash, workers=tuple(spec.name for spec in pool.enabled))
        seal(tmp_path, Checkpoint(name="c", kind="full", base="b", stage="sft", prompt=prompt, pool=known))
        return str(tmp_path)

    return make


def test_the_languages_of_a_checkpoint_are_said_where_its_manifest_names_them(tmp_path):
    assert "reads questions in English only" in checkpoint_note("smollm2-reader", POOL)
    for languages, said in (((), ""), (("German", "French"), "in German and French only")):
        about = Checkpoint(name="c", kind="full", base="b", stage="sft", prompt="reader", languages=languages)
        seal(tmp_path, about)
        note = checkpoint_note(str(tmp_path), POOL)
        assert said in note if said else "only" not in note


def test_policies_have_no_note():
    assert checkpoint_note("oracle", POOL) == checkpoint_note("model:agent:plan", POOL) == ""


def test_the_untrained_model_is_announced_as_such():
    assert "has not been trained" in checkpoint_note("base", POOL)


def test_the_pool_of_training_is_recognized(trained):
    assert checkpoint_note(trained(POOL), POOL).startswith("Trained on this version of starter.")


def test_what_the_pool_lacks_and_adds_is_named(trained):
    spec = POOL.workers[0]
    other = POOL.with_worker(spec.model_copy(update={"name": "newcomer"}), spec.name)
    note = checkpoint_note(trained(POOL), other)
    assert f"lacks {spec.name} and adds newcomer" in note and "does not call new workers" in note


def test_other_settings_alone_are_told_apart(trained):
    other = POOL.model_copy(update={"limits": Limits(max_steps=7)})
    assert "same workers" in checkpoint_note(trained(POOL), other)


def test_a_model_that_reads_the_pool_is_not_said_to_know_it_by_heart(trained):
    note = checkpoint_note(trained(None, prompt="full"), POOL)
    assert "not recorded" in note and "reads the pool" in note and "bare query" not in note


def test_a_reader_says_that_it_reads_any_pool(trained):
    note = checkpoint_note(trained(POOL, prompt="reader"), Pool(name="mine"))
    assert "reads any pool" in note and "lacks" not in note


def test_a_suite_that_a_checkpoint_was_not_trained_for_is_named():
    assert (
        suite_note("starter-grpo", "ledger") == suite_note("oracle", "dossier") == suite_note("base", "dossier") == ""
    )
    assert "not trained on queries of the suite dossier" in suite_note("starter-grpo", "dossier")
