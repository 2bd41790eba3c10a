"""Parts of a transformer for training adapters on a CPU: the same results with fewer and cheaper operations.

PEFT multiplies an adapter in float32 and stores what only a trained weight needs; attention over packed rows costs
most where a mask hides the greater part of a square. Nothing here changes a model's weights or its saved form.
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


@dataclass(frozen=True, slots=True)
class Part:
    """Tokens `start` to `end` of a packed sequence. They see the opening `root` to `root_end`, and themselves.

    `mask` [1, heads per group * tokens, tokens seen] is 0 where a token is seen and minus infinity elsewhere.
    """

    root: int
    root_end: int
    start: int
    end: int
    mask: torch.Tensor

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Take the keys or values [groups, tokens, size] that this part sees."""
        own = tensor[:, self.start : self.end]
        return own if self.root == self.root_end else torch.cat([tensor[:, self.root : self.root_end], own], 1)

    def scatter(self, target: torch.Tensor, grad: torch.Tensor) -> None:
        """Put the gradient of what `gather` took into `target`, in which parts follow their opening."""
        opening = self.root_end - self.root
        target[:, self.start : self.end] = grad[:, opening:]
        if opening:
            target[:, self.root : self.root_end] += grad[:, :opening]


def make_parts(spans: torch.Tensor, copies: int, dtype: torch.dtype) -> list[Part]:
    """Make the parts of `spans` [parts, 4] for attention in which `copies` heads share their keys."""
    parts = []
    for root, root_end, start, end in spans.tolist():
        length, opening = end - start, root_end - root
        mask = torch.full((length, opening + length), float("-inf"), dtype=dtype).triu_(opening + 1)
        parts.append(Part(root, root_end, start, end, mask.repeat(copies, 1)[None]))
    return parts


class TreeAttention(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed
    """Attention over a packed sequence in which each part sees its opening and, causally, itself.

    Shapes: query [heads, tokens, size], key and value [groups, tokens, size]; each group of keys serves heads / groups
    neighbouring heads.
    """

    @staticmethod
    def forward(
        context: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, parts: list[Part], scale: float
    ) -> torch.Tensor:
        query = query * scale
        result = torch.empty_like(query)
        for part in parts:
            own = query[:, part.start : part.end]
            weights = _weigh(part, _stack(own, key), key)
            result[:, part.start : part.end] = (weights @ part.gather(value)).view(own.shape)
        context.save_for_backward(query, key, value)
        context.parts, context.scale = parts, scale
        return result

    @staticmethod
    def backward(context: Any, *grads: torch.Tensor) -> Any:
        query, key, value = context.saved_tensors
        grad_query = torch.empty_like(query)
        grad_key, grad_value = torch.empty_like(key), torch.empty_like(value)
        for part in context.parts:
            own = grad_query[:, part.start : part.end]
            grad_result, stacked_query = (_stack(tensor[:, part.start : part.end], key) for tensor in (grads[0], query))
            # Computed again: kept, they would take heads * tokens * tokens numbers in every layer.
            weights = _weigh(part, stacked_query, key)
            grad_weights = grad_result @ part.gather(value).transpose(1, 2)
            grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)  # noqa: SLF001  one pass over the scores instead of four
            part.scatter(grad_value, weights.transpose(1, 2) @ grad_result)
            part.scatter(grad_key, grad_scores.transpose(1, 2) @ stacked_query)
            own.copy_((grad_scores @ part.gather(key)).view(own.shape))
        return grad_query * context.scale, grad_key, grad_value, None, None


def _weigh(part: Part, stacked_query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Compute the weights [groups, heads per group * tokens, tokens seen] of a part's scaled queries."""
    return torch.baddbmm(part.mask, stacked_query, part.gather(key).transpose(1, 2)).softmax(-1)


def _stack(heads: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """Put the heads that share their keys below each other: one product a group instead of one a head."""
    return heads.reshape(len(groups), -1, heads.shape[-1])


def attend_to_trees(
    _module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    *,
    parts: list[Part],
    scaling: float,
    **_more: Any,
) -> tuple[torch.Tensor, None]:
    """Attend to trees in the form that transformers calls: [1, heads, tokens, size] to [1, tokens, heads, size]."""
    result = TreeAttention.apply(query[0], key[0], value[0], parts, scaling)
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
