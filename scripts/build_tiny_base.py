"""Builds `tiny`: a Llama of 2.4 million parameters with a tokenizer of its own, which can only copy.

    python -m scripts.build_tiny_base [--out FOLDER] [--steps N]

It is the base that `cpu-first-steps` trains: small enough to learn the starter pool on two CPU cores in minutes. A
model of this size does not discover copying in that time, and a plan must quote the query's names and numbers. So
three attention heads start as what training would make of them: one attends to the previous token; one finds where
the present token stood before and brings what followed it (an induction head, Olsson et al., arXiv 2209.11895); one
brings what stood before it, as in "9A" or "15%". The base then learns to repeat texts with invented names and numbers,
some of them backwards, which trains the third head. It has not seen a plan: everything about workers comes from SFT
and GRPO.

The tokenizer has one token for every number up to three digits, and one for each piece of JSON that a plan for the
starter pool is built of; the rest is byte-level BPE on the queries and plans of the train split with invented names.
So no name of the train split is a token of its own, just as no name of the test split is.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from assets import asset
from orchestrator.checkpoints import Checkpoint, seal
from orchestrator.dialects.plan_json import PlanDialect
from pool_registry.atomic_write import draft_folder
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.starter import starter_pool
from trainer.sft.demonstrations import Demonstration, DemonstrationMessage
from trainer.sft.renamed_copies import make_name, make_variants
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task

FAMILIES = "ledger,atlas,forge,itinerary"
VOCABULARY = 3072
HIDDEN, LAYERS, HEAD = 192, 4, 64
THETA = 1e6
CONTEXT = 2048
BACKWARDS = 0.2  # of the texts that the base repeats: from the last token to the first
TURN_TOKENS = 288  # the longest plan of a level from 1 to 3 has 170
PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
# Names and numbers never include the blank before them, so they are the same tokens in a query and in a plan.
WORDS = r"\d{1,3}|\p{Lu}[\p{L}'’-]*| ?\p{Ll}+| ?[^\s\p{L}\d]+|\s"
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>{{ m.content }}<|end|>"
    "{% else %}<|user|>{{ m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def main() -> None:
    """Build, pre-train and save. The same arguments give the same files on the same machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=asset("starters/tiny-base"))
    parser.add_argument("--steps", type=int, default=1400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tasks = open_source(FAMILIES).tasks("train", 6000, levels=(1, 2, 3, 4))
    tokenizer = build_tokenizer(tasks)
    model = build_model(tokenizer, arguments.seed)
    teach_to_copy(model, tokenizer, [task.query for task in tasks], arguments.steps, arguments.seed)
    save_model(model, tokenizer, arguments.out, "base", arguments.steps)


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


def teach_to_copy(model: Any, tokenizer: Any, queries: Sequence[str], steps: int, seed: int) -> None:
    """Train the model to repeat texts: random tokens, and queries with invented names and numbers."""
    import torch

    random = Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.01)
    stock: list[Any] = []
    model.train()
    for step in range(steps):
        # Warm-up of 50 steps, then a cosine down to 5 % of the peak
        rate = 1e-3 * min(1.0, (step + 1) / 50) * (0.05 + 0.95 * (1 + math.cos(math.pi * step / steps)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if not stock:
            stock = _draw_batches(tokenizer, queries, random)
        loss = model(**stock.pop()).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 49:
            print(f"step {step + 1} of {steps}: loss {loss.item():.4f}", flush=True)


def _draw_batches(tokenizer: Any, queries: Sequence[str], random: Random, size: int = 32, count: int = 16) -> list[Any]:
    """Draw `count` batches of `size` rows of similar length, in random order."""
    import torch

    rows = sorted((_draw_row(tokenizer, queries, random) for _ in range(size * count)), key=lambda row: len(row[0]))
    batches = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        width = max(len(ids) for ids, _ in part)
        ids = torch.tensor([ids + [tokenizer.pad_token_id] * (width - len(ids)) for ids, _ in part])
        labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in part])
        batches.append({"input_ids": ids, "labels": labels, "attention_mask": (ids != tokenizer.pad_token_id).long()})
    random.shuffle(batches)
    return batches


def _draw_row(tokenizer: Any, queries: Sequence[str], random: Random) -> tuple[list[int], list[int]]:
    if random.random() < 0.25:
        text = random.sample(range(4, len(tokenizer)), random.randint(3, 40))
    else:
        text = tokenizer(scramble(random.choice(queries), random), add_special_tokens=False)["input_ids"]
    user, assistant = tokenizer.convert_tokens_to_ids([USER, ASSISTANT])
    backwards = random.random() < BACKWARDS
    before = [user, *text, user if backwards else assistant]
    answer = [*(text[::-1] if backwards else text), tokenizer.eos_token_id]
    return [*before, *answer], [-100] * len(before) + answer


def scramble(query: str, random: Random) -> str:
    """Replace the numbers and names of a query; sometimes add words or change their order."""
    text = re.sub(r"\d+", lambda match: str(random.randrange(10 ** len(match[0]))).zfill(len(match[0])), query)
    if random.random() < 0.7:
        text = re.sub(r"(?<![.?:] )(?<!^)\b[A-Z][\w'-]{2,}\b", lambda _: invent_name(random), text)
    if random.random() < 0.5:
        words = text.split(" ")
        for _ in range(random.randint(1, 6)):
            words.insert(
                random.randrange(len(words)), random.choice((invent_name(random), str(random.randrange(100_000))))
            )
        if random.random() < 0.4:
            random.shuffle(words)
        text = " ".join(words)
    return text


def invent_name(random: Random) -> str:
    """Invent a name such as "Borvelia", or three capital letters like an airport's."""
    if random.random() < 0.2:
        return "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=3))
    return " ".join(make_name(random) for _ in range(2 if random.random() < 0.15 else 1))


def save_model(model: Any, tokenizer: Any, folder: Path, stage: str, step: int) -> None:
    """Write a checkpoint folder with half-precision weights (4.8 MB); config.json loads them in single precision."""
    with draft_folder(folder, replace=True) as draft:
        tokenizer.save_pretrained(draft)
        model.half().save_pretrained(draft)
        config = draft / "config.json"
        settings = json.loads(config.read_text(encoding="utf-8"))
        settings["dtype"] = "float32"
        config.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        manifest = Checkpoint.model_validate(
            {
                "name": folder.name,
                "kind": "full",
                "base": "starter:tiny",
                "stage": stage,
                "step": step,
                "prompt": "query",
                "turn_tokens": TURN_TOKENS,
            }
        )
        seal(draft, manifest)


if __name__ == "__main__":
    main()
