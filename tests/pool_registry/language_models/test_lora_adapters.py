"""Adapters of one base: one set of weights in memory, and never a word from another adapter. Real generation."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from pool_registry.actions import Action
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import WorkerFault
from pool_registry.language_models import batched_model
from pool_registry.language_models.batched_model import LoadedModel, Sampling, open_model
from pool_registry.language_models.lora_adapters import Adapters
from pool_registry.language_models.model_files import model_path
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

pytestmark = pytest.mark.medium

TINY = model_path("starter:tiny")
PROMPTS = ["LIS to GRU", "memo 17", "irrigated land of Mexico", "company 2056 in Q2 2023"]
TOKENS = 12


@pytest.fixture(scope="module", autouse=True)
def _exact():
    """Weights in float32: in bfloat16 two tokens are often equally likely, and the batch decides between them."""
    import torch

    patch = pytest.MonkeyPatch()
    patch.setattr(batched_model, "pick_dtype", lambda device: torch.float32)
    batched_model._load.cache_clear()
    yield
    patch.undo()
    batched_model._load.cache_clear()


def adapter(folder: Path, seed: int, **changes) -> Path:
    """A LoRA adapter for the tiny model whose weights are random, so that it says something else."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    settings = {"r": 4, "lora_alpha": 16, "target_modules": "all-linear", "init_lora_weights": False, **changes}
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
    get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("adapters")
    return [adapter(folder / "one", 1), adapter(folder / "two", 2, r=8)]


async def said(model: LoadedModel, prompt: str, folder: Path | None) -> str:
    return (await model.generate([{"role": "user", "content": prompt}], TOKENS, Sampling(), adapter=folder))[0]


def all_said(model: LoadedModel, wanted: list[tuple[str, Path | None]]) -> list[str]:
    async def ask() -> list[str]:
        return await asyncio.gather(*(said(model, *each) for each in wanted))

    return asyncio.run(ask())


def test_interleaved_requests_get_what_each_adapter_says_alone(pair):
    choices = [*pair, None]
    wanted = [(prompt, choice) for prompt in PROMPTS * 2 for choice in choices]
    together = all_said(open_model(TINY, "cpu"), wanted)
    apart = {}
    for choice in choices:
        alone = LoadedModel(TINY, "cpu")
        apart |= {(prompt, choice): all_said(alone, [(prompt, choice)])[0] for prompt in PROMPTS}
    assert together == [apart[each] for each in wanted]
    different = [len({apart[prompt, choice] for choice in choices}) for prompt in PROMPTS]
    assert max(different) == 3, "adapters that all say the same would prove nothing"


def test_an_adapter_says_what_it_says_merged_into_the_base(pair):
    from peft import PeftModel

    merged = LoadedModel(TINY, "cpu")
    merged.model = PeftModel.from_pretrained(merged.model, pair[0]).merge_and_unload().eval()
    wanted = [(prompt, None) for prompt in PROMPTS]
    assert all_said(open_model(TINY, "cpu"), [(prompt, pair[0]) for prompt, _ in wanted]) == all_said(merged, wanted)


def test_the_base_comes_back_to_the_bit(pair):
    import torch

    model = LoadedModel(TINY, "cpu").model.to(torch.bfloat16)
    before = {name: weights.clone() for name, weights in model.named_parameters()}
    adapters = Adapters(model)
    for choice in (pair[0], pair[1], None, pair[0], None):
        adapters.use(choice)
        now = {name.replace("base_layer.", ""): weights for name, weights in model.named_parameters()}
        same = [torch.equal(now[name], weights) for name, weights in before.items()]
        assert all(same) == (choice is None)


def test_the_adapter_of_a_large_base_is_not_merged(pair):
    import torch

    model = LoadedModel(TINY, "cpu").model
    ids = torch.tensor([[5, 6, 7]])
    merged = Adapters(model)
    merged.use(pair[0])
    with torch.inference_mode():
        logits = model(ids).logits
    other = LoadedModel(TINY, "cpu").model
    before = {name: weights.clone() for name, weights in other.named_parameters()}
    apart = Adapters(other, max_copy_bytes=0)
    apart.use(pair[0])
    now = {name.replace("base_layer.", ""): weights for name, weights in other.named_parameters()}
    assert all(torch.equal(now[name], weights) for name, weights in before.items())
    with torch.inference_mode():
        assert torch.allclose(other(ids).logits, logits, atol=1e-4)


def test_workers_with_adapters_and_without_share_one_model(pair):
    def spec(name: str, folder: Path | None) -> WorkerSpec:
        config = {"model": "starter:tiny", "adapter": str(folder or ""), "role": "", "max_tokens": TOKENS}
        return WorkerSpec(name=name, kind="local_model", description="d", config=config)

    async def ask() -> list[str]:
        async with live_pool(Pool(name="p", workers=(spec("a", pair[0]), spec("b", pair[1]), spec("c", None)))) as pool:
            calls = [pool.call(Action(name, {"instruction": PROMPTS[0]})) for name in "abcabc"]
            return [observation.value for observation in await asyncio.gather(*calls)]

    batched_model._load.cache_clear()
    answers = asyncio.run(ask())
    assert batched_model._load.cache_info().misses == 1
    assert answers[:3] == answers[3:] == all_said(open_model(TINY, "cpu"), [(PROMPTS[0], a) for a in (*pair, None)])


def test_what_is_not_used_makes_room_and_comes_back_when_it_is(pair, tmp_path):
    third = adapter(tmp_path / "three", 3)
    model = LoadedModel(TINY, "cpu")
    model.adapters = Adapters(model.model, kept=2)
    before = all_said(model, [(PROMPTS[0], folder) for folder in pair])
    weights = sum(parameter.numel() for parameter in model.model.parameters())
    all_said(model, [(PROMPTS[0], pair[0])])
    all_said(model, [(PROMPTS[0], third)])
    assert model.adapters.loaded == [pair[0], third]
    assert sum(parameter.numel() for parameter in model.model.parameters()) < weights, "what was forgotten is gone"
    assert all_said(model, [(PROMPTS[0], folder) for folder in pair]) == before


def test_an_adapter_saved_anew_under_the_same_name_is_read_again(pair, tmp_path):
    folder = tmp_path / "job"
    shutil.copytree(pair[0], folder)
    model = LoadedModel(TINY, "cpu")
    first = all_said(model, [(prompt, folder) for prompt in PROMPTS])
    shutil.rmtree(folder)
    shutil.copytree(pair[1], folder)
    second = all_said(model, [(prompt, folder) for prompt in PROMPTS])
    assert first != second == all_said(model, [(prompt, pair[1]) for prompt in PROMPTS])


# Adapters that cannot be used


def edited(folder: Path, source: Path, **changes) -> Path:
    shutil.copytree(source, folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, **changes}))
    return folder


BROKEN = {
    "no_weights": lambda to, good: to,
    "no_config": lambda to, good: (shutil.copytree(good, to), (to / "adapter_config.json").unlink(), to)[-1],
    "no_json": lambda to, good: (shutil.copytree(good, to), (to / "adapter_config.json").write_text("{"), to)[-1],
    "other_method": lambda to, good: edited(to, good, peft_type="IA3"),
    "unknown_method": lambda to, good: edited(to, good, peft_type="MAGIC"),
    "trained_biases": lambda to, good: edited(to, good, bias="all"),
    "changes_the_base": lambda to, good: edited(to, good, init_lora_weights="pissa"),
    "other_layers": lambda to, good: edited(to, good, target_modules=["c_attn"]),
    "fewer_layers": lambda to, good: edited(to, good, target_modules=["q_proj"]),
    "other_size": lambda to, good: edited(to, good, r=7),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_adapter_that_cannot_be_used_says_why_and_leaves_the_others_alone(pair, tmp_path, name):
    bad = BROKEN[name](tmp_path / "bad", pair[0])
    model = LoadedModel(TINY, "cpu")
    base = all_said(model, [(prompt, None) for prompt in PROMPTS])
    with pytest.raises(WorkerFault) as first:  # before any other adapter is there
        all_said(model, [(PROMPTS[0], bad)])
    assert first.value.code == "model_refused" and str(bad) in str(first.value)
    assert all_said(model, [(prompt, None) for prompt in PROMPTS]) == base
    good = all_said(model, [(prompt, pair[0]) for prompt in PROMPTS])
    with pytest.raises(WorkerFault, match="bad"):  # and after one is
        all_said(model, [(PROMPTS[0], bad)])
    assert all_said(model, [(prompt, pair[0]) for prompt in PROMPTS]) == good
    assert good == all_said(open_model(TINY, "cpu"), [(prompt, pair[0]) for prompt in PROMPTS])
    assert model.adapters.loaded == [pair[0]]
