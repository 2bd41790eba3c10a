"""Will it fit: exact counts, estimates that move the right way, one real measurement, and plain errors."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.support import contenders
from pool_registry.starter import starter_pool
from trainer.errors import TrainerError, TrainingFailed
from trainer.memory_fit import stages
from trainer.memory_fit.estimate import Fit, estimate_fit
from trainer.memory_fit.model_sizes import measure_model
from trainer.memory_fit.must_fit import check_it_fits
from trainer.memory_fit.stages import GB, Allocation, Machine, detect_machine
from trainer.recipe import Recipe, load_recipe, parse_recipe
from trainer.tasks.registry import open_source

pytestmark = pytest.mark.medium

LLAMA = {
    "model_type": "llama",
    "hidden_size": 96,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "tie_word_embeddings": True,
}
SMOLLM2_135M = LLAMA | {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49_152,
}
QWEN3_06B = LLAMA | asdict(contenders.QWEN3_06B) | {"model_type": "qwen3", "vocab_size": 151_936}
QWEN3_4B = QWEN3_06B | {
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
}
QWEN25_7B = LLAMA | {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18_944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152_064,
    "tie_word_embeddings": False,
}
CARD = Machine("a card", True, 24 * GB, 24 * GB)
PROCESSOR = Machine("cpu", False, 24 * GB, 24 * GB)
SMALL = Machine("a computer", False, 2 * GB, 2 * GB)
MACHINES = (CARD, SMALL)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> str:
    """A checkpoint whose weights are empty: nobody may read them."""
    return checkpoint(tmp_path_factory.mktemp("base"), LLAMA)


def checkpoint(folder, config) -> str:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"")
    return str(folder)


def recipe(base: str, **changes) -> Recipe:
    """A recipe of both stages; keys are dotted with two underscores: sft__batch=4."""
    document: dict = {"model": {"base": base}, "sft": {}, "grpo": {"micro_batch": 8}}
    for key, value in changes.items():
        *path, last = key.split("__")
        place = document
        for name in path:
            place = place.setdefault(name, {})
        place[last] = value
    return Recipe.model_validate({name: part for name, part in document.items() if part is not None})


def need(base: str, machine: Machine = CARD, **changes) -> int:
    return estimate_fit(recipe(base, **changes), machine=machine).need_bytes


def part(found: Fit, name: str) -> Allocation:
    return next(part for part in found.parts if part.name == name)


@pytest.mark.parametrize("tied", [True, False])
def test_counts_are_those_of_the_real_model(tmp_path, tied):
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    config = {**LLAMA, "tie_word_embeddings": tied}
    base = checkpoint(tmp_path, config)
    real = LlamaForCausalLM(LlamaConfig(**{key: value for key, value in config.items() if key != "model_type"}))
    whole = measure_model(recipe(base).model, gpu=False)
    assert whole.parameters == whole.trainable == sum(each.numel() for each in real.parameters())
    assert whole.weights == sum(each.nbytes for each in real.parameters())
    assert (whole.adapter, whole.tied, whole.layers, whole.kv_token) == (0, tied, 4, 4 * 2 * 2 * 16 * 4)

    adapted = get_peft_model(real, LoraConfig(r=5, target_modules="all-linear", task_type="CAUSAL_LM"))
    partly = measure_model(recipe(base, model__lora={"rank": 5}).model, gpu=False)
    assert partly.trainable == sum(each.numel() for each in adapted.parameters() if each.requires_grad)
    assert partly.adapter == 4 * partly.trainable
    assert not partly.head_trained


def test_what_a_layer_keeps_is_what_the_formula_by_hand_says(base):
    """Residuals, norms and their outputs 6 h; queries, keys, values (repeated) and output 4 h; MLP 4 I; and
    one number per norm (2) and per head."""
    hidden, inner, heads = 96, 256, 6
    kept = measure_model(recipe(base).model, gpu=False).layer
    assert kept.per_token == 4 * (10 * hidden + 4 * inner + 2 + heads)
    assert kept.fixed == 0


def test_a_traced_layer_keeps_what_a_real_one_does(base):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = {key: value for key, value in LLAMA.items() if key not in ("model_type", "num_hidden_layers")}
    kept = []
    for layers in (1, 2):
        model = LlamaForCausalLM(LlamaConfig(**config, num_hidden_layers=layers))
        own = {each.untyped_storage().data_ptr() for each in model.parameters()}
        storages: dict[int, torch.UntypedStorage] = {}
        ids = torch.zeros(2, 64, dtype=torch.long)
        mask = torch.ones_like(ids)
        mask[0, :8] = 0  # the rows differ in length

        def note(tensor, own=own, storages=storages):
            if tensor.untyped_storage().data_ptr() not in own:
                storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            output = model.model(input_ids=ids, attention_mask=mask, use_cache=False)
        kept.append(sum(storage.nbytes() for storage in storages.values()))
        del output
    expected = measure_model(recipe(base).model, gpu=False).layer.bytes_for(128) + stages.mask_bytes(2, 64, 4)
    assert kept[1] - kept[0] == pytest.approx(expected, rel=0.02)


SIZES = st.sampled_from([1, 2, 4, 8, 16, 32])
LENGTHS = st.sampled_from([64, 100, 512, 1024, 4096])
COMMON = {
    "machine": st.sampled_from(MACHINES),
    "model__checkpointing": st.booleans(),
    "model__precision": st.sampled_from(["float32", "bfloat16"]),
    "model__lora": st.sampled_from([None, {"rank": 4}]),
    "sft__batch": SIZES,
    "sft__accumulation": st.sampled_from([1, 2]),
    "sft__max_length": LENGTHS,
    "grpo__micro_batch": SIZES,
    "grpo__rollouts__max_length": LENGTHS,
    "grpo__rollouts__concurrency": SIZES,
    "grpo__loss__beta": st.sampled_from([0.0, 0.1]),
}
GROWING = {
    "sft__batch": SIZES,
    "sft__max_length": LENGTHS,
    "sft__accumulation": st.sampled_from([1, 2, 4]),
    "grpo__rollouts__max_length": LENGTHS,
    "grpo__rollouts__concurrency": SIZES,
    "grpo__loss__beta": st.sampled_from([0.0, 0.1]),
}


@settings(max_examples=60, deadline=None)
@given(
    chosen=st.fixed_dictionaries(COMMON),
    key=st.sampled_from(list(GROWING)).flatmap(lambda key: st.tuples(st.just(key), GROWING[key], GROWING[key])),
)
def test_more_never_needs_less(base, chosen, key):
    name, one, other = key
    assert need(base, **{**chosen, name: min(one, other)}) <= need(base, **{**chosen, name: max(one, other)})


@settings(max_examples=40, deadline=None)
@given(chosen=st.fixed_dictionaries(COMMON))
def test_checkpointing_never_needs_more_and_parts_add_up(base, chosen):
    without = estimate_fit(recipe(base, **{key: value for key, value in chosen.items() if key != "machine"}))
    assert without.need_bytes == sum(part.bytes for part in without.parts)
    assert min(part.bytes for part in without.parts) >= 0
    assert need(base, **{**chosen, "model__checkpointing": True}) <= need(
        base, **{**chosen, "model__checkpointing": False}
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_a_higher_rank_needs_more(base, machine):
    one, many = (need(base, machine, model__lora={"rank": rank}) for rank in (1, 64))
    assert one < many


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_larger_micro_batches_need_more(base, size):
    one, two = (
        need(base, sft=None, grpo__micro_batch=each, grpo__rollouts__concurrency=1) for each in (size, 2 * size)
    )
    assert one < two


def test_the_reference_model_is_whole_only_without_an_adapter(base):
    whole = estimate_fit(recipe(base, grpo__loss__beta=0.1), machine=CARD)
    assert part(whole, "reference model").bytes == part(whole, "weights").bytes
    partly = estimate_fit(recipe(base, grpo__loss__beta=0.1, model__lora={}), machine=CARD)
    assert part(partly, "reference model").bytes == part(partly, "adapter").bytes
    assert part(estimate_fit(recipe(base), machine=CARD), "reference model").bytes == 0


def test_bfloat16_halves_what_is_frozen_and_nothing_that_learns(base):
    def measure(precision, lora):
        return measure_model(recipe(base, model__precision=precision, model__lora=lora).model, gpu=True)

    whole, casting = (measure(name, None) for name in ("float32", "bfloat16"))
    assert whole.weights == casting.weights == 4 * whole.parameters and whole.trained == casting.trained
    single, adapted = (measure(name, {}) for name in ("float32", "bfloat16"))
    assert single.weights == 2 * adapted.weights and adapted.trained == 4 * adapted.trainable


@pytest.mark.parametrize("checkpointing", [False, True])
def test_every_weight_needs_16_bytes_and_its_copy_under_autocast(base, checkpointing):
    def fit(precision):
        changes = {"model__precision": precision, "model__checkpointing": checkpointing}
        return estimate_fit(recipe(base, grpo=None, sft__accumulation=2, sft__max_length=4096, **changes), machine=CARD)

    sizes = measure_model(recipe(base).model, gpu=True)
    assert sum(part(fit("bfloat16"), name).bytes for name in ("weights", "optimizer", "gradients")) == (
        16 * sizes.parameters
    )
    in_layers = sizes.parameters - sizes.head - 96  # the final norm
    norms = 2 * 96 * sizes.layers  # autocast copies what is multiplied
    copies = measure_model(recipe(base, model__precision="bfloat16").model, gpu=True).layer.fixed * sizes.layers
    assert copies == pytest.approx(2 * (in_layers - norms), rel=0.01)


def test_vllm_takes_its_share_of_the_card(base):
    server = estimate_fit(recipe(base, sft=None, model__lora={}, grpo__rollouts__backend="vllm"), machine=CARD)
    assert part(server, "vLLM").bytes == round(0.3 * CARD.total)
    asleep = estimate_fit(recipe(base, sft=None, grpo__rollouts__backend="vllm-colocate"), machine=CARD)
    assert asleep.need_bytes < server.need_bytes  # it sleeps while the step is taken
    url = {"backend": "vllm", "vllm_url": "http://127.0.0.1:1/v1"}
    assert part(estimate_fit(recipe(base, sft=None, grpo__rollouts=url), machine=CARD), "vLLM").bytes == 0


def test_advice_tells_what_each_edit_frees(base):
    tight = Machine("a tight card", True, 2 * GB, 2 * GB)
    found = estimate_fit(recipe(base), machine=tight)
    assert not found.fits
    gains = [line for line in found.advice if " frees " in line]
    assert gains
    assert "model.checkpointing: true" in " ".join(gains)
    # What it says about an edit is what the edited recipe needs.
    edited = estimate_fit(recipe(base, model__checkpointing=True), machine=tight)
    line = next(line for line in gains if "checkpointing" in line)
    assert stages.format_bytes(found.need_bytes - edited.need_bytes) in line
    assert line.endswith("then it fits") == edited.fits


def test_auto_precision_that_is_float32_here_may_be_bfloat16_to_save_memory(base, monkeypatch):
    monkeypatch.setattr("trainer.precision.measure_speedup", lambda: 0.5)
    asked = recipe(base, model__precision="auto", model__lora={})
    need = estimate_fit(asked, machine=PROCESSOR).need_bytes
    advice = estimate_fit(asked, machine=Machine("cpu", False, need - 1, need - 1)).advice
    assert any(line.startswith("model.precision: bfloat16 frees") for line in advice)


def test_advice_finds_a_set_of_edits_where_no_single_one_is_enough(base):
    found = estimate_fit(recipe(base, sft__batch=512, sft__max_length=4096), machine=CARD)
    assert not found.fits
    assert found.advice[-1].startswith("to make it fit: ")
    assert "sft.batch: " in found.advice[-1]
    nothing = estimate_fit(recipe(base), machine=Machine("a watch", True, 1000, 1000))
    assert "choose a smaller base model" in nothing.advice[-1]


def test_what_fits_says_how_much_is_left(base):
    found = estimate_fit(recipe(base, sft__batch=1, sft__max_length=64, grpo=None), machine=CARD)
    assert found.fits
    assert found.advice == [f"fits with {stages.format_bytes(CARD.free - found.need_bytes)} to spare"]


@pytest.mark.parametrize(
    ("preset", "title", "base", "config", "weights", "machine", "speedup"),
    [
        ("reader-cpu", "CPU", "starter:smollm2", SMOLLM2_135M, "134,515,008 parameters of 2 bytes", PROCESSOR, 2.5),
        ("reader-cpu", "CPU", "starter:smollm2", SMOLLM2_135M, "134,515,008 parameters of 4 bytes", PROCESSOR, 0.5),
        ("reader-gpu", "One GPU with 24 GB", "hub:Qwen/Qwen3-0.6B", QWEN3_06B, "596,049,920 parameters of 2 bytes",
         CARD, 0.5),
    ],
)  # fmt: skip
def test_the_presets_for_readers_fit_the_machine_of_their_title(
    tmp_path, monkeypatch, preset, title, base, config, weights, machine, speedup
):
    monkeypatch.setattr("trainer.precision.measure_speedup", lambda: speedup)
    ready = load_recipe(preset)
    assert ready.title.startswith(title) and ready.model.base == base
    model = ready.model.model_copy(update={"base": checkpoint(tmp_path, config)})  # the same sizes, without the network
    fit = estimate_fit(ready.model_copy(update={"model": model}), machine=machine)
    assert part(fit, "weights").note.startswith(weights)
    assert fit.fits and 0 < fit.need_bytes < machine.free


MEASURED_OWN_POOL = (5.8e9, 7.8e9)  # peaks of two jobs on two cores: 6 steps and 20 episodes, 27 steps and 100


def test_what_own_pool_needs_is_within_half_of_what_it_took(tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.precision.measure_speedup", lambda: 2.5)
    ready = load_recipe("own-pool")
    folder = checkpoint(tmp_path, SMOLLM2_135M)
    model = ready.model.model_copy(update={"base": folder, "start": ""})
    fit = estimate_fit(ready.model_copy(update={"model": model}), machine=PROCESSOR)
    assert all(taken / 1.5 <= fit.need_bytes <= taken * 1.5 for taken in MEASURED_OWN_POOL), fit.need_bytes
    assert part(fit, "evaluation").bytes and "practice tasks as they usually are" in fit.note
    elsewhere = ready.model_copy(update={"tasks": ready.tasks.model_copy(update={"source": "forge"}), "model": model})
    at_its_limit = estimate_fit(elsewhere, machine=PROCESSOR).need_bytes
    assert at_its_limit > 2 * fit.need_bytes, "rows of other tasks may reach their limit"


@pytest.mark.parametrize(
    ("preset", "config"),
    [("single-gpu-24gb", QWEN3_4B), ("single-gpu-80gb", QWEN3_4B), ("paramanager-paper", QWEN3_4B),
     ("conductor-paper", QWEN25_7B)],
)  # fmt: skip
def test_the_presets_fit_one_gpu_with_its_driver_running(tmp_path, preset, config):
    ready = load_recipe(preset)
    model = ready.model.model_copy(update={"base": checkpoint(tmp_path, config)})
    size = (24 if "24" in preset else 80) * 2**30
    card = Machine("a card", True, size, size - GB)
    small = ready.model_copy(update={"model": model})
    assert estimate_fit(small, machine=card).fits
    check_it_fits(small, card)
    assert small.grpo is not None
    rollouts = small.grpo.rollouts.model_copy(update={"vllm_memory": 0.15})
    starved = small.model_copy(update={"grpo": small.grpo.model_copy(update={"rollouts": rollouts})})
    if "24" in preset or "conductor" in preset:
        with pytest.raises(TrainingFailed, match=r"vllm_memory: 0\.15 gives vLLM .* set it to 0\.\d\d or more"):
            check_it_fits(starved, card)
    every_weight = ready.model_copy(update={"model": model.model_copy(update={"lora": None})})
    assert not estimate_fit(every_weight, machine=card).fits, "why the preset trains an adapter"


def test_this_machine_is_known():
    machine = detect_machine()
    assert 0 < machine.free <= machine.total


def test_an_evaluation_alone_needs_the_model_only(base):
    found = estimate_fit(parse_recipe(f"model: {{base: {base}}}\nevaluate: {{count: 7}}"), machine=CARD)
    assert [part.name for part in found.parts] == ["weights", "KV cache", "runtime"]
    assert found.episodes == 7


def test_episodes_and_their_cost(base):
    pool = starter_pool()
    plain = recipe(
        base,
        tasks={"source": "ledger", "count": 10},
        sft__saving__check_tasks=0,
        grpo__saving__check_tasks=0,
        grpo__steps=3,
    )
    assert estimate_fit(plain, pool, CARD).cost is None
    priced = pool.model_copy(
        update={"workers": tuple(spec.model_copy(update={"price_call": 0.01}) for spec in pool.workers)}
    )
    found = estimate_fit(plain, priced, CARD)
    assert found.episodes == 10 + 3 * 4 * 8
    tasks = open_source("ledger").tasks("train", 10, levels=(1, 2, 3))
    steps = sum(len(task.oracle_turn.steps) for task in tasks) / len(tasks)
    assert found.cost == pytest.approx(found.episodes * steps * 0.01)
    assert "reference plans" in found.note


def test_what_cannot_be_known_is_said(tmp_path, base):
    with pytest.raises(TrainerError, match=r"holds no config\.json"):
        estimate_fit(recipe(str(tmp_path)))
    with pytest.raises(TrainerError, match=r"not in the local cache and cannot be fetched"):
        estimate_fit(recipe("hub:nobody/nothing-here"))
    with pytest.raises(TrainerError, match="cannot be worked out"):
        estimate_fit(recipe(checkpoint(tmp_path, {**LLAMA, "model_type": "no-such-model"})))
    with pytest.raises(TrainerError, match="cannot be worked out"):
        estimate_fit(recipe(base, model__lora={"targets": ["no_such_layer"]}))
    with pytest.raises(TrainerError, match=r"model\.start"):
        estimate_fit(recipe(base, model__start="nobody@3"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_real_step_needs_about_what_was_said():
    from bench.memory import in_a_process

    row = in_a_process("sft-2M-full")
    ratio = next(value for key, value in row.items() if key.startswith("ratio_"))
    assert 0.6 < ratio < 1.7
