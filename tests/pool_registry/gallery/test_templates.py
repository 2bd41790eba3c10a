"""Templates: every one makes a worker that its kind accepts, and every kind can be added from the gallery."""

from __future__ import annotations

import pytest

from pool_registry.errors import InvalidPool
from pool_registry.gallery.templates import SHIPPED_MODEL, templates
from pool_registry.gallery.worker_from_template import choose_base, find_missing, list_bases, make_worker
from pool_registry.kinds import KINDS, open_worker
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec

PLAUSIBLE = {
    "model": "acme/small-1",
    "base_url": "http://127.0.0.1:9/v1",
    "api_key": "env:SOME_KEY",
    "database": "starter:ledger",
    "path": "/tmp/documents",
    "url": "https://example.org/{city}",
    "space": "owner/name",
}
PRESETS = [template.id for template in templates().values() if template.spec]


@pytest.mark.parametrize("id", PRESETS)
def test_a_template_with_its_fields_filled_in_makes_a_valid_worker(id):
    template = templates()[id]
    values = {need.field: PLAUSIBLE[need.field] for need in template.fields}
    assert find_missing(template, values) == []
    pool = Pool(name="p")
    spec = make_worker(template, values, pool, SHIPPED_MODEL)
    open_worker(pool.with_worker(spec).worker(spec.name))
    assert "{model}" not in spec.description and len(template.line) < 60


def test_every_kind_but_those_of_the_task_families_can_be_added_from_the_gallery():
    families = {"airports", "great_circle", "clock", "elements", "memos", "extractor"}
    wrappers_and_worlds = {
        "flaky",
        "delayed",
        "renamed_parameters",
        "recorded",
        "world",
        "everyday",
        "project",
        "lesson_agent",
    } | {"catalog_tool", "composed"}
    of_a_persons_runs = {"skill"}
    offered = {template.kind for template in templates().values()}
    assert set(KINDS) - offered == families | wrappers_and_worlds | of_a_persons_runs


@pytest.mark.parametrize("id", [id for id in PRESETS if templates()[id].needs not in ("nothing", "a model", "a key")])
def test_what_has_no_default_is_asked_for(id):
    missing = find_missing(templates()[id], {})
    assert missing
    with pytest.raises(InvalidPool) as refused:
        make_worker(templates()[id], {}, Pool(name="p"))
    assert refused.value.problems == missing


def test_role_prompts_are_distinct_and_fit_a_small_window():
    prompts = [
        template.spec.config["role"] for template in templates().values() if template.runs_on_model and template.spec
    ]
    assert len(set(prompts)) == len(prompts) == 6
    assert all(300 < len(str(prompt)) < 1500 for prompt in prompts)


def test_each_model_of_a_pool_is_offered_once_and_endpoints_come_first():
    chat = WorkerSpec(
        name="far", kind="chat", description="d", config={"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    )
    pool = starter_pool().with_worker(chat)
    assert [spec.name for spec in list_bases(pool)] == ["far", "solver"]
    assert choose_base(pool) == chat and choose_base(pool, "planner").name == "planner"
    assert choose_base(Pool(name="empty")) == SHIPPED_MODEL
    with pytest.raises(InvalidPool):
        choose_base(pool, "nobody")
