"""Attention for a few new tokens gives what torch's fused kernel gives, and leaves everything else to it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pool_registry.language_models.model_files import TINY, model_path

pytestmark = pytest.mark.medium

ROWS, HEADS, GROUPS, SIZE = 3, 6, 2, 16
MODULE = SimpleNamespace(is_causal=True, num_key_value_groups=HEADS // GROUPS, training=False)


def make_inputs(new: int, tokens: int, dtype, padding: int = 0):
    """Queries, keys and values behind `padding` tokens that the first row does not have, and their mask."""
    import torch

    generator = torch.Generator().manual_seed(new + tokens)

    def draw(heads: int, count: int):
        return torch.randn(ROWS, heads, count, SIZE, generator=generator).to(dtype)

    keys, values = (draw(GROUPS, tokens + 5)[:, :, :tokens] for _ in range(2))  # as views of a cache with spare room
    mask = torch.ones(ROWS, 1, new, tokens, dtype=torch.bool).tril(tokens - new)
    mask[0, ..., :padding] = False
    return draw(HEADS, new), keys, values, mask


@pytest.mark.parametrize("new", [1, 2, 9, 16, 17, 40])
@pytest.mark.parametrize("padding", [0, 7])
@pytest.mark.parametrize(("kind", "tolerance"), [("float32", 1e-5), ("bfloat16", 3e-2)])
def test_it_attends_as_the_fused_kernel_does(new, padding, kind, tolerance):
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    from pool_registry.language_models.decode_attention import attend

    inputs = make_inputs(new, 40, getattr(torch, kind), padding)
    ours, _ = attend(MODULE, *inputs, scaling=0.2)
    fused, _ = sdpa_attention_forward(MODULE, *inputs, scaling=0.2)
    seen = inputs[3].any(-1).transpose(1, 2)[..., None]  # what sees nothing is padding, whose values are not used
    assert ours.shape == fused.shape and ours.dtype == fused.dtype
    assert torch.isfinite(ours).all()
    torch.testing.assert_close(ours * seen, fused.nan_to_num() * seen, atol=tolerance, rtol=tolerance)


def test_without_a_mask_a_token_sees_all_and_several_see_none_after_them():
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    from pool_registry.language_models.decode_attention import attend

    for new, tokens in ((1, 12), (12, 12)):
        query, key, value, _ = make_inputs(new, tokens, torch.float32)
        expected, _ = sdpa_attention_forward(MODULE, query, key, value, None)
        torch.testing.assert_close(attend(MODULE, query, key, value, None)[0], expected, atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_the_fused_kernel():
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    from pool_registry.language_models.decode_attention import attend

    gradients = []
    for function in (attend, sdpa_attention_forward):
        query, key, value, mask = make_inputs(3, 20, torch.float32)
        query.requires_grad_()
        function(MODULE, query, key, value, mask, scaling=0.25)[0].pow(2).sum().backward()
        gradients.append(query.grad)
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)


def test_a_model_uses_it_writes_the_same_text_and_is_saved_without_it(tmp_path):
    import json

    import torch
    from transformers import AutoModelForCausalLM

    from pool_registry.language_models.decode_attention import NAME, speed_up_on_cpu

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(model_path(TINY), local_files_only=True).eval()
    ids = torch.tensor([[5, 9, 17, 4, 33, 8]])

    def write() -> list[int]:
        return model.generate(ids, max_new_tokens=24, do_sample=False, pad_token_id=0)[0].tolist()

    usual = write()
    speed_up_on_cpu(model)
    assert model.config._attn_implementation == NAME and write() == usual
    model.save_pretrained(tmp_path)
    assert NAME not in json.dumps(json.loads((tmp_path / "config.json").read_text()))
    speed_up_on_cpu(model)  # a second time changes nothing
    assert model.config._attn_implementation == NAME


def test_a_model_that_attends_otherwise_stays_as_it_is():
    from transformers import AutoModelForCausalLM

    from pool_registry.language_models.decode_attention import speed_up_on_cpu

    model = AutoModelForCausalLM.from_pretrained(model_path(TINY), local_files_only=True, attn_implementation="eager")
    speed_up_on_cpu(model)
    assert model.config._attn_implementation == "eager"
