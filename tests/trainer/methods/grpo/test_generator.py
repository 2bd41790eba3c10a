"""The generator in the trainer's process: batches that rows join and leave at any time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from pool_registry.language_models.completion import Grammar, Message
from trainer.errors import TrainingFailed
from trainer.learner.generator import SamplingParams
from trainer.learner.token_transcript import ChatTokens
from trainer.learner.transformers_generator import TransformersGenerator
from trainer.learner.vllm_generator import ColocatedGenerator

pytestmark = pytest.mark.medium


def make_prompts(chat: ChatTokens, count: int) -> list[list[int]]:
    from trainer.tasks.registry import open_source

    return [
        chat.encode_prompt([Message("user", task.query)]) for task in open_source("ledger,forge").tasks("test", count)
    ]


def decode_greedily(model: Any, chat: ChatTokens, prompt: list[int], limit: int) -> list[int]:
    """What transformers itself makes of one prompt alone."""
    import torch

    ids = torch.tensor([prompt])
    end, pad = chat.tokenizer.eos_token_id, chat.tokenizer.pad_token_id
    with torch.no_grad():
        made = model.eval().generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=limit,
            eos_token_id=end,
            pad_token_id=pad,
        )
    return made[0, len(prompt) :].tolist()


def use_generator(model: Any, chat: ChatTokens, use, max_batch: int = 256, temperature: float = 0.0):
    """What `use(generator)` returns, on a generator that is greedy where nothing is said."""

    async def run():
        generator = TransformersGenerator(model, chat.tokenizer, SamplingParams(temperature), max_batch)
        try:
            async with asyncio.timeout(120):
                return await use(generator), generator
        finally:
            generator.close()

    return asyncio.run(run())


def test_whoever_gets_a_row_reads_a_time_that_includes_it(model, chat, monkeypatch):
    train = model.train
    monkeypatch.setattr(model, "train", lambda mode=True: (time.sleep(0.3 if mode else 0), train(mode))[1])
    model.training = True  # so that the batch ends slowly, after its row was handed out

    async def use(generator):
        await generator.generate([5, 6, 7], 2)
        return generator.busy_s

    try:
        busy_s, _ = use_generator(model, chat, use)
    finally:
        train(False)
    assert busy_s > 0


def test_a_batch_makes_what_every_prompt_makes_alone(model, chat):
    prompts = make_prompts(chat, 6)
    limits = [1, 5, 9, 20, 33, 20]

    async def all_at_once(generator):
        return await asyncio.gather(*(generator.generate(p, n) for p, n in zip(prompts, limits, strict=True)))

    found, generator = use_generator(model, chat, all_at_once)
    alone = [decode_greedily(model, chat, prompt, limit) for prompt, limit in zip(prompts, limits, strict=True)]
    assert [each.ids for each in found] == alone and all(each.logprobs is None for each in found)
    assert generator.tokens == sum(map(len, alone)) and generator.busy_s > 0


@pytest.mark.parametrize("max_batch", [2, 256])
def test_every_row_keeps_to_its_own_grammar_also_when_batches_are_broken_off(model, chat, max_batch):
    prompts = make_prompts(chat, 6)
    words = ["alpha beta gamma " * 6, "one", "left right " * 9, "up down", "3", "x y z " * 4]
    grammars = [Grammar(f'start: "{text.strip()}"\n') for text in words]

    async def one_after_another(generator):
        async def late(index):
            await asyncio.sleep(0.03 * index)
            return await generator.generate(prompts[index], 200, grammars[index])

        return await asyncio.gather(*map(late, range(6)), generator.generate(prompts[0], 12))

    (*made, free), _ = use_generator(model, chat, one_after_another, max_batch)
    assert [chat.decode(row.ids) for row in made] == [text.strip() for text in words]
    assert free.ids == decode_greedily(model, chat, prompts[0], 12), "a row without a grammar is as it was"


def test_a_seed_gives_the_draw_of_use_in_whatever_batches_it_is_made(model, chat, tiny_base):
    from pool_registry.language_models.batched_model import LoadedModel, Sampling

    queries = [f"How much is {count} times {count + 7}?" for count in range(6)]
    prompts = [chat.encode_prompt([Message("user", query)]) for query in queries]
    limits, heat = [30, 12, 24, 25, 9, 30], 1.5

    async def one_after_another(generator):
        async def late(index):
            await asyncio.sleep(0.02 * index)
            return await generator.generate(prompts[index], limits[index], None, index)

        return await asyncio.gather(*map(late, range(6)))

    async def use(serving):
        return [
            await serving.generate([{"role": "user", "content": query}], limits[index], Sampling(heat, index))
            for index, query in enumerate(queries)
        ]

    broken_off, generator = use_generator(model, chat, one_after_another, 2, heat)
    together, _ = use_generator(model, chat, one_after_another, 256, heat)
    texts = [chat.decode(row.ids) for row in broken_off]
    assert generator.batches > 1 and texts == [chat.decode(row.ids) for row in together]
    assert len(set(texts)) == len(texts), "other seeds, other draws"
    in_use = asyncio.run(use(LoadedModel(tiny_base, "cpu")))
    assert [text for text, _ in in_use] == [text.strip() for text in texts]


def test_the_colocated_generator_makes_one_call_for_each_grammar():
    calls = []

    def generate(prompts: list[list[int]], grammar: Grammar | None) -> Any:
        calls.append((prompts, grammar))
        return [[1] for _ in prompts], None

    async def run():
        generator = ColocatedGenerator(generate)
        grammars = [Grammar("a"), None, Grammar("a"), Grammar("b")]
        await asyncio.gather(*(generator.generate([place], 5, grammar) for place, grammar in enumerate(grammars)))

    asyncio.run(run())
    assert calls == [([[0], [2]], Grammar("a")), ([[1]], None), ([[3]], Grammar("b"))]


@pytest.mark.parametrize("max_batch", [2, 256])
def test_rows_that_join_late_and_batches_that_are_broken_off_change_nothing(model, chat, max_batch):
    prompts = make_prompts(chat, 8)
    limits = [60, 12, 40, 25, 9, 30, 50, 3]

    async def one_after_another(generator):
        async def late(index):
            await asyncio.sleep(0.03 * index)
            return await generator.generate(prompts[index], limits[index])

        return await asyncio.gather(*(late(index) for index in range(8)))

    found, generator = use_generator(model, chat, one_after_another, max_batch)
    alone = [decode_greedily(model, chat, prompt, limit) for prompt, limit in zip(prompts, limits, strict=True)]
    assert [each.ids for each in found] == alone and generator.batches > 1


def test_a_row_that_has_ended_is_handed_over_while_others_go_on(model, chat):
    short, long = make_prompts(chat, 2)

    async def both(generator):
        waiting = asyncio.create_task(generator.generate(long, 150))
        first = await generator.generate(short, 2)
        still = not waiting.done()
        return first, still, await waiting

    (first, still, second), _ = use_generator(model, chat, both)
    assert still and len(first.ids) == 2 and second.ids == decode_greedily(model, chat, long, 150)


def test_who_gives_up_waiting_does_not_disturb_the_others(model, chat):
    prompts = make_prompts(chat, 3)

    async def cancelled(generator):
        tasks = [asyncio.create_task(generator.generate(prompt, 40)) for prompt in prompts]
        await asyncio.sleep(0.02)
        tasks[0].cancel()
        found = [await task for task in tasks[1:]]
        lonely = asyncio.create_task(generator.generate(prompts[0], 40))
        await asyncio.sleep(0)
        lonely.cancel()
        await asyncio.sleep(0.05)
        return [*found, await generator.generate(prompts[0], 5)]

    found, _ = use_generator(model, chat, cancelled)
    assert [each.ids for each in found[:2]] == [decode_greedily(model, chat, prompt, 40) for prompt in prompts[1:]]
    assert found[2].ids == decode_greedily(model, chat, prompts[0], 5)


@pytest.mark.parametrize(
    ("error", "code"),
    [(RuntimeError("CUDA out of memory. Tried"), "out_of_memory"), (ValueError("odd"), "generation_failed")],
)
def test_a_generator_that_fails_says_so_to_everybody_and_works_again(model, chat, monkeypatch, error, code):
    prompts = make_prompts(chat, 3)

    def broken(*_, **__):
        raise error

    async def fails(generator):
        with monkeypatch.context() as patch:
            patch.setattr(model, "generate", broken)
            found = await asyncio.gather(*(generator.generate(p, 5) for p in prompts), return_exceptions=True)
        return found, await generator.generate(prompts[0], 5)

    (found, after), _ = use_generator(model, chat, fails)
    assert [each.code for each in found] == [code] * 3
    assert after.ids == decode_greedily(model, chat, prompts[0], 5)


def test_the_colocated_generator_tells_everybody_that_it_failed():
    import threading

    gate = threading.Event()

    def broken(_: list[list[int]], _grammar: object) -> Any:
        gate.wait(10)
        raise TrainingFailed("vllm", "gone")

    async def run():
        generator = ColocatedGenerator(broken)
        first = asyncio.create_task(generator.generate([1], 5))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(generator.generate([2], 5))  # waits for the next batch
        await asyncio.sleep(0.05)
        gate.set()
        async with asyncio.timeout(10):
            return await asyncio.gather(first, second, return_exceptions=True)

    assert [each.code for each in asyncio.run(run())] == ["vllm", "vllm"]
