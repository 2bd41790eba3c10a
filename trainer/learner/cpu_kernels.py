"""Parts of a transformer for training adapters on a CPU: the same results with fewer and cheaper operations.

PEFT multiplies an adapter in float32 and stores what only a trained weight needs; attention over packed rows would
compute and store a square of which it needs a small part. Nothing here changes a model's weights or its saved form.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear
from transformers import AttentionInterface

TREES = "podium_trees"


class AdaptedLinear(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed
    """y = x W' + scale (x A') B', with gradients for x, A and B only.

    A and B [rank, in], [out, rank] are float32 and multiplied in the dtype of x: a CPU multiplies bfloat16 more than
    twice as fast, and the small steps of an optimizer need float32.
    """

    @staticmethod
    def forward(
        context: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
        a: torch.Tensor, b: torch.Tensor, scale: float,
    ) -> torch.Tensor:  # fmt: skip
        flat = x.reshape(-1, x.shape[-1])
        a, b = a.to(x.dtype), b.to(x.dtype) * scale
        low = linear(flat, a)
        context.save_for_backward(flat, weight, a, b, low)
        context.shape, context.scale = x.shape, scale
        return linear(flat, weight, bias).addmm_(low, b.T).view(*x.shape[:-1], -1)

    @staticmethod
    def backward(context: Any, *grads: torch.Tensor) -> Any:
        flat, weight, a, b, low = context.saved_tensors
        grad = grads[0].reshape(-1, grads[0].shape[-1])
        grad_low = grad @ b
        grad_x = None
        if context.needs_input_grad[0]:
            grad_x = (grad @ weight).addmm_(grad_low, a).view(context.shape)
        grad_a = (grad_low.T @ flat).float()
        grad_b = (grad.T @ low).float() * context.scale
        return grad_x, None, None, grad_a, grad_b, None


def speed_up_adapters(model: Any, samples: bool = False) -> None:
    """Let each plain LoRA layer of `model` multiply by AdaptedLinear in training. Other layers stay as they are.

    With `samples` also where it writes: rollouts then come from the very policy that learns, rounded in the same way.
    """
    from peft.tuners.lora import Linear

    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.forward = _bind_forward(layer, layer.forward, samples)  # type: ignore[method-assign]


def _bind_forward(layer: Any, usual: Any, samples: bool) -> Any:
    def forward(x: torch.Tensor, *arguments: Any, **more: Any) -> torch.Tensor:
        base, names = layer.base_layer, layer.active_adapters
        plain = (layer.training or samples) and not (arguments or more or layer.disable_adapters or layer.merged)
        if not plain or len(names) != 1 or names[0] in layer.lora_variant or base.weight.requires_grad:
            return usual(x, *arguments, **more)
        (name,) = names
        lora_a, lora_b = layer.lora_A[name], layer.lora_B[name]
        if getattr(layer.lora_dropout[name], "p", 0) or lora_a.bias is not None or lora_b.bias is not None:
            return usual(x)
        return AdaptedLinear.apply(x, base.weight, base.bias, lora_a.weight, lora_b.weight, layer.scaling[name])

    return forward


# torch's attention for a CPU, block by block: no square of scores is ever stored. The public function does not return
# the logarithms of the sums, and without them two pieces of one softmax cannot be joined.
_attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default  # noqa: SLF001
_attend_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Trees:
    """Where a packed sequence holds what.

    Every part sees itself, causally. What stands below an opening sees all of the opening as well.
    """

    parts: tuple[slice, ...]
    openings: tuple[tuple[slice, slice], ...]  # an opening, and what stands below it


def find_trees(spans: torch.Tensor) -> Trees:
    """Read `spans` [parts, 4]: the opening and the tokens of each part. The parts below an opening follow it."""
    rows = spans.tolist()
    ends = {(root, root_end): end for root, root_end, _, end in rows if root_end > root}
    openings = tuple((slice(root, root_end), slice(root_end, end)) for (root, root_end), end in ends.items())
    return Trees(tuple(slice(start, end) for _, _, start, end in rows), openings)


class TreeAttention(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed
    """Attention over a packed sequence in which each part sees its opening and, causally, itself.

    Shapes: query [heads, tokens, size], key and value [groups, tokens, size]; each group of keys serves heads / groups
    neighbouring heads. All is computed in float32. The softmax over an opening and a part is joined from one over
    each by the logarithms of their sums (Milakov and Gimelshein, arXiv 1805.02867), and its gradients likewise.
    """

    @staticmethod
    def forward(
        context: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, trees: Trees, scale: float
    ) -> torch.Tensor:
        query, key, value = query.float(), key.float(), value.float()
        result, log_sums = torch.empty_like(query), query.new_empty(query.shape[:2])
        for part in trees.parts:
            keys, values = (_repeat(tensor[:, part], query) for tensor in (key, value))
            own, own_sums = _attend(query[None, :, part], keys, values, 0.0, True, scale=scale)
            result[:, part], log_sums[:, part] = own[0], own_sums[0]
        for opening, below in trees.openings:
            stacked = _stack(query[:, below], key)
            above, above_sums = _attend(stacked, key[None, :, opening], value[None, :, opening], scale=scale)
            own, own_sums = result[:, below], log_sums[:, below].clone()
            above, above_sums = above.reshape(own.shape), above_sums.reshape(own_sums.shape)
            sums = torch.logaddexp(own_sums, above_sums, out=log_sums[:, below])
            own.mul_((own_sums - sums).exp()[..., None]).addcmul_(above, (above_sums - sums).exp()[..., None])
        context.save_for_backward(query, key, value, result, log_sums)
        context.trees, context.scale = trees, scale
        return result

    @staticmethod
    def backward(context: Any, *grads: torch.Tensor) -> Any:
        query, key, value, result, log_sums = context.saved_tensors
        scale, grad = context.scale, grads[0]
        grad_query, grad_key, grad_value = (torch.empty_like(tensor) for tensor in (query, key, value))
        for part in context.trees.parts:
            keys, values = (_repeat(tensor[:, part], query) for tensor in (key, value))
            of_part = (tensor[None, :, part] for tensor in (result, log_sums))
            own = _attend_backward(
                grad[None, :, part], query[None, :, part], keys, values, *of_part, 0.0, True, scale=scale
            )
            grad_query[:, part] = own[0][0]
            for target, repeated in ((grad_key, own[1]), (grad_value, own[2])):
                target[:, part] = repeated.view(len(key), -1, *repeated.shape[2:]).sum(1)
        for opening, below in context.trees.openings:
            stacked = [_stack(tensor[:, below], key) for tensor in (grad, query, result, log_sums)]
            seen = [tensor[None, :, opening] for tensor in (key, value)]
            above = _attend_backward(*stacked[:2], *seen, *stacked[2:], 0.0, False, scale=scale)
            grad_query[:, below] += above[0].reshape(grad_query[:, below].shape)
            grad_key[:, opening] += above[1][0]
            grad_value[:, opening] += above[2][0]
        return grad_query, grad_key, grad_value, None, None


def _repeat(groups: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
    """Give every head the keys or values of its group: [groups, tokens, size] to [1, heads, tokens, size]."""
    return groups.repeat_interleave(len(heads) // len(groups), 0)[None]


def _stack(heads: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Put the heads of a group below each other: [heads, tokens, ...] to [1, groups, heads per group * tokens, ...]."""
    return heads.reshape(1, len(groups), -1, *heads.shape[2:])


def attend_to_trees(
    _module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    *,
    trees: Trees,
    scaling: float,
    **_more: Any,
) -> tuple[torch.Tensor, None]:
    """Attend to trees in the form that transformers calls: [1, heads, tokens, size] to [1, tokens, heads, size]."""
    result = TreeAttention.apply(query[0], key[0], value[0], trees, scaling).to(query.dtype)
    return result.transpose(0, 1)[None], None


AttentionInterface.register(TREES, attend_to_trees)


@contextmanager
def tree_attention(config: Any) -> Iterator[None]:
    """Let the model of this config attend to trees."""
    usual = config._attn_implementation  # noqa: SLF001  the public setter rebuilds what each step would again
    config._attn_implementation = TREES  # noqa: SLF001
    try:
        yield
    finally:
        config._attn_implementation = usual  # noqa: SLF001
