"""A whole GRPO job in the dialect tool_calls, on a base with a chat template in the manner of Qwen3's."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.checkpoints import complete_steps, read_checkpoint
from orchestrator.dialects import find_dialect
from orchestrator.prompt import build_messages
from orchestrator.traces.store import Store, open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from trainer.job_process import run_job
from trainer.jobs.job_folder import read_lines
from trainer.jobs.queue import JobStore
from trainer.learner.generator import GeneratedTokens
from trainer.methods.grpo.rollouts import Rollout, RolloutGroup
from trainer.recipe import Recipe

pytestmark = pytest.mark.slow
STEPS, GROUP, ROUNDS = 2, 2, 3
# Functions in the system prompt, outputs in a row inside one turn of the user, and empty thoughts before the last
# answer alone, which are gone once something follows it.
TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' + (messages[0].content + '\\n\\n' if messages[0].role == 'system' else '') }}
{{- '# Tools\\n\\nYou may call one or more functions.\\n\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + tool | tojson }}{%- endfor %}
{{- '\\n</tools>\\n\\nReturn <tool_call>\\n{"name": ..., "arguments": ...}\\n</tool_call>.<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + ('<think>\\n\\n</think>\\n\\n' if loop.last else '') }}
{{- message.content + '<|im_end|>\\n' }}
{%- elif not (message.role == 'system' and loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
CALLS = "\n".join(
    f'<tool_call>\n{{"name": "calculator", "arguments": {{"expression": "{expression}", "access": []}}}}\n</tool_call>'
    for expression in ("6 * 7", "6 / 0")
)
POOL = Pool(name="sums", workers=(WorkerSpec(name="calculator", kind="calculator", description="Computes."),))


class ScriptedGenerator:
    """In the place of the model's sampling: two calls, then the right answer in every other episode."""

    def __init__(self, _model: Any, tokenizer: Any, *_: Any) -> None:
        self._tokenizer = tokenizer
        self._episodes = 0
        self.busy_s, self.tokens = 0.0, 0

    async def generate(self, ids: Sequence[int], _limit: int, *_: object) -> GeneratedTokens:
        text = CALLS
        if "<tool_response>" in self._tokenizer.decode(ids):
            self._episodes += 1
            text = "42" if self._episodes % 2 else "41"
        written = [*self._tokenizer(text, add_special_tokens=False)["input_ids"], self._tokenizer.eos_token_id]
        self.busy_s, self.tokens = self.busy_s + 0.001, self.tokens + len(written)
        return GeneratedTokens(written)

    def close(self) -> None:
        return


@pytest.fixture
def base(tiny_base, tmp_path) -> Path:
    """The tiny model with Qwen3's tokens around a turn and its manner of calling functions."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = shutil.copytree(tiny_base, tmp_path / "base")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"], "eos_token": "<|im_end|>"})
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer))
    model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = open_store(find_home())
    opened.pools.save(POOL)
    yield opened
    opened.close()


def write_recipe(base: Path, tasks: Path) -> Recipe:
    lines = [{"query": f"What is 6 * 7, asked {k} times?", "answer": 42, "split": "train"} for k in range(4)]
    tasks.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    rollouts = {"prompts": 2, "group": GROUP, "max_rounds": ROUNDS, "max_length": 16_000}
    return Recipe.model_validate(
        {
            "pool": POOL.name,
            "model": {"base": str(base), "dialect": "tool_calls", "turn_tokens": 200},
            "tasks": {"source": f"file:{tasks}"},
            "grpo": {
                "steps": STEPS,
                "micro_batch": 2,
                "rollouts": rollouts,
                "rewards": [{"term": "accuracy"}],
                "saving": {"every": 50, "check_tasks": 0},
            },
            "threads": 1,
        }
    )


def test_a_job_learns_from_calls_that_its_template_writes(base, store, tmp_path, monkeypatch):
    from trainer.methods.grpo import stage

    batches: list[list[RolloutGroup]] = []

    def make_columns(groups: list[RolloutGroup], names: list[str]) -> dict[str, Any]:
        batches.append(groups)
        return plain_columns(groups, names)

    plain_columns = stage.make_columns
    monkeypatch.setattr(stage, "make_columns", make_columns)
    monkeypatch.setattr(stage, "TransformersGenerator", ScriptedGenerator)
    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(write_recipe(base, tmp_path / "tasks.jsonl"), here=True).id
    run_job(key, store, jobs)
    folder = jobs.folder(key)
    assert (jobs.get(key).state, jobs.get(key).message) == ("done", ""), folder.log.read_text()[-3000:]

    rows = read_lines(folder.metrics)
    assert [row["step"] for row in rows if "loss" in row] == [1, STEPS]
    assert [row["rollout/correct"] for row in rows if "rollout/correct" in row] == [0.5] * STEPS
    ((step, saved),) = complete_steps(folder.checkpoints)
    assert (step, read_checkpoint(saved, verify=True).dialect) == (STEPS, "tool_calls")
    assert_weights_moved(base, saved)

    rollouts = [rollout for groups in batches for group in groups for rollout in group.rollouts]
    assert len(rollouts) == STEPS * 2 * GROUP
    for rollout in rollouts:
        assert_transcript_is_the_template(rollout, base, store)


def assert_transcript_is_the_template(rollout: Rollout, base: Path, store: Store) -> None:
    """What TRL trains on is what the template makes of the conversation, and only the model's turns are targets."""
    from transformers import AutoTokenizer

    tokenizer, dialect = AutoTokenizer.from_pretrained(base), find_dialect("tool_calls")
    episode = store.traces.episode(rollout.sample.episode.id)

    async def write_conversation() -> tuple[list[Any], Any]:
        async with live_pool(POOL) as pool:
            messages = build_messages(episode, pool, dialect, ROUNDS)
            return [message.write_plain() for message in messages], dialect.tools(pool)

    messages, tools = asyncio.run(write_conversation())
    answer = rollout.sample.episode.answer
    roles = [message["role"] for message in messages[: 2 + 4]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert "OK: 42" in messages[3]["content"] and "EXEC_ERR" in messages[4]["content"]
    # With something behind it the answer is no last turn, before which Qwen3 puts empty thoughts.
    shown = tokenizer.apply_chat_template(
        [*messages[:6], {"role": "user", "content": "~"}], tools=tools, tokenize=False
    )
    text, marked = tokenizer.decode(rollout.transcript.ids), rollout.transcript
    assert text == shown.removesuffix("\n<|im_start|>user\n~<|im_end|>\n")
    assert "<think>" not in text and text.count("<tool_response>") == 2
    written = [token for token, own in zip(marked.completion, marked.mask, strict=True) if own]
    assert tokenizer.decode(written) == f"{CALLS}<|im_end|>{answer}<|im_end|>"


def assert_weights_moved(base: Path, saved: Path) -> None:
    import torch
    from safetensors.torch import load_file

    before, after = load_file(base / "model.safetensors"), load_file(saved / "model.safetensors")
    assert set(before) == set(after)
    assert sum(not torch.equal(before[name], after[name]) for name in before) > len(before) / 2
