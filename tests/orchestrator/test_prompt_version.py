"""Weights are used with the prompt that they learnt with, or not at all."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from orchestrator.checkpoints import MANIFEST, STARTERS, is_complete, open_checkpoint, starter_checkpoint
from orchestrator.dialects import find_dialect
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Step
from orchestrator.prompt import opening_messages
from orchestrator.prompt_styles import PROMPTS, PromptStyle
from orchestrator.reader.cards import make_listing_format
from orchestrator.reader.conversation import continue_conversation, open_conversation, reopen_conversation
from orchestrator.reader.states import TriedPlan
from pool_registry.actions import Observation, Status
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.completion import Message
from pool_registry.pool import Pool
from pool_registry.schemas.output_check import Output
from pool_registry.starter import starter_pool

QUERY = "How many miles are 5 km?"
# The prompts of the present versions, as hashes. Where one differs raise its version in PROMPTS, and train what
# ships again: a model reads another prompt worse than its own, and nobody would notice.
HASHES = {
    ("full", 1): "01dbdc5c56ed8ce5a8882ec5287b5e348bb6b580a74fb2d67969f3e78487f45a",
    ("query", 1): "4fbdcb1b41dd8e50b192251aa832acfc18e15c31a5d2c7db7da6d8b1e6bbf7ad",
    ("reader", 1): "ce2a63c33ed20b4169973d5cf110abaab775f44720dc18b65ba79e6e7ce227a9",
    ("reader-agents", 1): "7ba40426abb87bfc162aec6297dd51f34c4be0362e8ea096566f5a55f08e068c",
    ("reader-outputs", 1): "3aa39fc7cb80254a2175c7902d3d48c7acc643cdeb248a813469928150ada5f1",
    ("reader-fields", 1): "57938060a295610decd954f6a364e6dcad84cc3ac6d026bc55b64b52e9360392",
    ("reader-turns", 1): "016a82e9a6b42edf789d046c4424342f66755235a49629b3aa2ef021e1c58c50",
}
TRIED = TriedPlan(
    (
        Step(1, "units", {"value": 5}, need="a conversion"),
        Step(2, "calendar", {"request": "$1"}, (1,), need="a date"),
        Step(3, "calendar", {"request": "x"}, need="a day"),
    ),
    "$1.miles",
    {1: Observation(Status.OK, {"value": 3.1}), 2: Observation.failure(Status.EXEC_ERR, "bad_request", "write a date")},
)


def small_pool() -> LivePool:
    """Workers whose kinds differ: several parameters with choices and fields of a result, a request in words, and an
    agent."""
    workers = {worker.name: worker for worker in starter_pool().workers}
    chosen = (
        workers[name].model_copy(update={"description": f"Does {name}. More of it."})
        for name in ("units", "calendar", "solver")
    )
    units, *others = chosen
    fields = {"value": {"type": "number"}, "unit": {"type": "object", "properties": {"name": {"type": "string"}}}}
    units = units.model_copy(update={"output": Output(json_schema={"type": "object", "properties": fields})})
    return open_live_pool(Pool(name="small", workers=(units, *others)))


def write_prompt(style: PromptStyle) -> list[Message]:
    pool = small_pool()
    workers = list(pool.workers.values())
    if PROMPTS[style].binds_needs:
        listing = make_listing_format(style)
        opening = open_conversation(QUERY, workers, listing)
        if listing.shows_states:
            return reopen_conversation(opening, TRIED, pool.workers, listing)
        return continue_conversation(opening, "- Does units", workers, listing)
    return opening_messages(QUERY, pool, find_dialect("plan"), style)


@pytest.mark.parametrize("style", PROMPTS)
def test_a_changed_prompt_has_another_version(style: PromptStyle):
    messages = [[message.role, message.content] for message in write_prompt(style)]
    digest = sha256(json.dumps(messages).encode()).hexdigest()
    assert digest == HASHES[style, PROMPTS[style].version], "the prompt changed: raise its version, train and ship anew"


def test_every_checkpoint_that_ships_learnt_with_the_present_prompt():
    names = [name for name in STARTERS if is_complete(starter_checkpoint(name))]
    for name in names:
        _, checkpoint = open_checkpoint(name)
        assert checkpoint.prompt_version == PROMPTS[checkpoint.prompt].version, name
        facts, made_for = PROMPTS[checkpoint.prompt], STARTERS[name].made_for
        assert bool(made_for) == facts.marks_agents and (made_for == "records") == facts.lists_fields, name
    assert "smollm2-reader" in names


def test_a_checkpoint_of_another_prompt_is_refused_with_what_to_do(tmp_path: Path):
    folder = Path(shutil.copytree(starter_checkpoint("starter-sft"), tmp_path / "copy"))
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"prompt_version": 7}))
    with pytest.raises(UnknownOrchestrator, match=r"version 7 of the prompt .* train it again"):
        open_checkpoint(str(folder))
