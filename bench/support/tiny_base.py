"""The tokenizer and the untrained model of `tiny`. scripts/build_tiny_base.py trains it, benchmarks generate with it.

The tokenizer has one token for every number up to three digits, and one for each piece of JSON that a plan for the
starter pool is built of; the rest is byte-level BPE on queries and plans with invented names. Three attention heads of
the model start as what training would make of them (scripts/build_tiny_base.py says why).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from orchestrator.dialects.plan_json import PlanDialect
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from trainer.demonstrations.renamed_copies import make_name, make_variants
from trainer.demonstrations.transcripts import Demonstration, DemonstrationMessage
from trainer.tasks.task import Task

VOCABULARY = 3072
HIDDEN, LAYERS, HEAD = 192, 4, 64
THETA = 1e6
CONTEXT = 2048
PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
# Names and numbers never include the blank before them, so they are the same tokens in a query and in a plan.
WORDS = r"\d{1,3}|\p{Lu}[\p{L}'’-]*| ?\p{Ll}+| ?[^\s\p{L}\d]+|\s"
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>{{ m.content }}<|end|>"
    "{% else %}<|user|>{{ m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def list_plan_pieces() -> list[str]:
    """List the pieces of JSON that surround the contents of a plan for the starter pool."""
    pieces = ['{"steps": [', "]}, ", "]}", '], "answer": "$', '"}', '"}, "access": [', '", "access": [']
    for name_in_pool, worker in open_live_pool(starter_pool()).workers.items():
        first, *others = list(worker.parameters.get("properties", {}))  # type: ignore[call-overload]
        lead = '"instruction": "' if first == "instruction" else f'"arguments": {{"{first}": "'
        pieces += [f'{{"worker": "{name_in_pool}", {lead}', *(f'", "{other}": "' for other in others)]
    return list(dict.fromkeys(pieces))


def build_tokenizer(tasks: Sequence[Task]) -> Any:
    """Train a fast tokenizer; deterministic for the same tasks."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    pieces = list_plan_pieces()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(pieces),
        special_tokens=[PAD, END, USER, ASSISTANT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_yield_texts(tasks, pieces), trainer)
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in pieces])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT,
    )


def _yield_texts(tasks: Sequence[Task], pieces: Sequence[str]) -> Iterator[str]:
    """Yield the texts that train the tokenizer: numbers, queries, plans without the pieces; all names are invented."""
    for digits in (1, 2, 3):
        for number in range(10**digits):
            for _ in range(8):  # often enough that every number becomes one token
                yield f"{number:0{digits}d}"
    piece = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))))
    dialect = PlanDialect()
    plain = [
        _to_demonstration(task.query, dialect.format(task.oracle_turn, ()))
        for task in tasks
        if task.oracle_turn is not None
    ]
    for row in make_variants(plain, 1, 0):
        query, plan = (message.content for message in row.messages)
        yield query
        yield from piece.split(plan)


def _to_demonstration(query: str, plan: str) -> Demonstration:
    return Demonstration(
        messages=[
            DemonstrationMessage(role="user", content=query),
            DemonstrationMessage(role="assistant", content=plan),
        ],
        query=query,
    )


def build_model(tokenizer: Any, seed: int) -> Any:
    """Build an untrained model with its three designed heads."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HIDDEN // HEAD,
            num_key_value_heads=HIDDEN // HEAD,
            intermediate_size=512,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": THETA},
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    with torch.no_grad():
        _design_heads(model)
    return model


def _design_heads(model: Any) -> None:
    """Set the weights of three attention heads by hand; all shapes below are [out, in], as torch.nn.Linear has them.

    Layer 0, head 0 attends to the previous token. Layer 1, head 0 finds the last place where the present token stood
    and brings what followed it; layer 1, head 1 brings what stood before it.

    Rotary position (Su et al., arXiv 2104.09864) turns the pair (i, i + 32) of a head by the angle theta_i per token.
    Fast pairs tell positions apart: a query that is turned back by one step matches the key one token before it.
    Slow pairs hardly turn within a few hundred tokens: there, contents can be compared wherever they stand.
    """
    import torch

    half = HEAD // 2
    theta = torch.tensor([THETA ** (-i / half) for i in range(half)])
    # The dimensions of a head that hold contents: slow pairs turn by less than 1 radian in 200 tokens.
    slow = [i for i in range(half) if theta[i] < 0.005]
    places = slow + [i + half for i in slow]
    size, fast = len(places), 8
    # The residual stream: dimension 0 is a constant, then every token's identity, then the identity of the token
    # before it (empty until layer 0 writes it), then what training makes of the rest.
    identity, previous = slice(1, 1 + size), slice(1 + size, 1 + 2 * size)
    embedding = model.model.embed_tokens.weight
    rest = embedding[:, 1 + 2 * size :]
    rest.normal_()
    rest *= 0.25 / rest.norm(dim=1, keepdim=True)
    embedding[:, 0] = 0.08
    # Random directions of equal length: the product of a token's identity with its own is far above all others.
    random_directions = torch.randn(embedding.shape[0], size)
    embedding[:, identity] = random_directions / random_directions.norm(dim=1, keepdim=True) * 0.05 * size**0.5
    embedding[:, previous] = 0
    normed = embedding / embedding.pow(2).mean(-1, keepdim=True).sqrt()  # what attention sees, after the RMS norm
    # Makes the constant 8 in queries and keys: one fast pair adds 8 * 8 / sqrt(64) = 8 to the score of a match.
    sharp = 8.0 / float(normed[:, 0].mean())
    first, second = model.model.layers[0].self_attn, model.model.layers[1].self_attn
    for attention, width in ((first, HEAD), (second, 2 * HEAD)):
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
            projection.weight[:width] = 0
        attention.o_proj.weight[:, :width] = 0
    # Layer 0, head 0: keys point along the first axis of each fast pair, queries too, but turned by -theta. After
    # rotation by position they agree exactly where the distance is one token.
    first.k_proj.weight[:fast, 0] = sharp
    first.q_proj.weight[:fast, 0] = sharp * torch.cos(theta[:fast])
    first.q_proj.weight[half : half + fast, 0] = -sharp * torch.sin(theta[:fast])
    # Layer 1, head 1 looks for the present token itself, which matches best where it stands now. Opposite signs in
    # the fast pairs lower the score at distance 0 and leave distant places as they are.
    second.k_proj.weight[HEAD : HEAD + fast, 0] = 0.7 * sharp
    second.q_proj.weight[HEAD : HEAD + fast, 0] = -0.7 * sharp
    match = 1.7 / float(normed[:, identity].std())  # 1.7: the match must stand out, but not saturate the softmax
    for index, place in enumerate(places):
        own, before = 1 + index, 1 + size + index  # this number of the identity, and of the previous token's
        # Layer 0, head 0 copies the previous token's identity to `previous`, about as large as an embedding.
        first.v_proj.weight[index, own] = 1.0
        first.o_proj.weight[before, index] = 2 * float(embedding.std())
        # Layer 1, head 0: "the token before you is what I am now" selects the token that followed the last time; its
        # identity is added to the prediction (the head of the model is the embedding, transposed).
        second.q_proj.weight[place, own] = match
        second.k_proj.weight[place, before] = match
        second.v_proj.weight[index, own] = 1.0
        second.o_proj.weight[own, index] = 0.3
        # Layer 1, head 1: "you are what I am now" selects an earlier place of this token; the token before it is
        # added, half as strongly: texts run forwards more often than backwards.
        second.q_proj.weight[HEAD + place, own] = 1.7 * match
        second.k_proj.weight[HEAD + place, own] = 1.7 * match
        second.v_proj.weight[HEAD + index, before] = 1.0
        second.o_proj.weight[own, HEAD + index] = 0.15


def invent_name(random: Random) -> str:
    """Invent a name such as "Borvelia", or three capital letters like an airport's."""
    if random.random() < 0.2:
        return "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=3))
    return " ".join(make_name(random) for _ in range(2 if random.random() < 0.15 else 1))
