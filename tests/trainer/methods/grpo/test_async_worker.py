"""TRL's AsyncGRPOTrainer with our engine as its rollout worker: a stand-in of the server, weights sent nowhere.

The trainer's attention is a kernel for Hopper GPUs that comes from the Hub; a few lines of torch stand in for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode_loop import NoSink
from orchestrator.engine.events import TaskRef
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.worker import WorkerSpec
from tests.trainer.support.async_grpo import LOG_P, open_server, stand_in_for_hopper
from tests.trainer.support.waiting import until
from trainer.errors import TrainingFailed
from trainer.learner.generator import SamplingParams
from trainer.learner.token_transcript import ChatTokens
from trainer.learner.vllm_generator import ServerGenerator
from trainer.methods.grpo.curriculum import Curriculum
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollouts import EpisodeFormat, RolloutEngine
from trainer.methods.grpo.section import CurriculumSettings, RewardSettings
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText

pytestmark = pytest.mark.medium
SIZE = 4


@pytest.fixture(scope="module")
def chat(tiny_base):
    from transformers import AutoTokenizer

    return ChatTokens(AutoTokenizer.from_pretrained(tiny_base, padding_side="left"))


@contextmanager
def open_worker(chat: ChatTokens, **options: Any):
    """A worker with its server, and the runner of its pool."""
    from trainer.methods.grpo.async_worker import AsyncWorker

    spec = WorkerSpec(name="sums", kind="calculator", description="arithmetic")
    task = Task(TaskRef("own", 1, "train", 0), "q", ExactText("right"))
    episode_format = EpisodeFormat(find_dialect("plan"), "query", 64, 900, 1)
    with open_server(chat) as server, asyncio.Runner() as runner:

        async def open_engine() -> RolloutEngine:
            pool = open_live_pool(Pool(name="p", workers=(spec,), limits=Limits()))
            terms = load_rewards([RewardSettings(term="accuracy")])
            return RolloutEngine("learner", pool, chat, episode_format, terms, NoSink())

        engine = runner.run(open_engine())
        generator = ServerGenerator(server.url, "base", SamplingParams())
        curriculum = Curriculum([task], CurriculumSettings(), 0)
        worker = AsyncWorker(runner, engine, curriculum, generator, **{"groups": 2, "size": SIZE, **options})
        try:
            yield worker, server
        finally:
            worker.stop()
            runner.run(engine.close())


def test_samples_carry_what_the_trainer_computes_the_loss_from(chat):
    with open_worker(chat, mixed_only=False, adapter="trl-policy") as (worker, server):
        worker.update_model_version(1)
        worker.start()
        samples = [worker.rollout_buffer.get(timeout=30) for _ in range(2 * SIZE)]
        worker.update_model_version(2)
        versions = {worker.rollout_buffer.get(timeout=30).model_version for _ in range(10 * SIZE)}
        figures = worker.metrics_queue.get(timeout=5)
    for sample in samples:
        learnt = sample.input_ids[sample.completion_mask == 1].tolist()
        assert learnt in server.turns and sample.model_version == 1
        assert len(sample.input_ids) == len(sample.completion_mask) == len(sample.old_log_probs)
        assert sample.old_log_probs.tolist() == [LOG_P if mine else 0.0 for mine in sample.completion_mask]
        right = learnt == server.turns[0]
        assert sample.metrics["rewards/accuracy"] == right
        assert sample.advantage == 0 or (sample.advantage > 0) == right
    assert any(sample.advantage for sample in samples)
    assert max(versions) == 2 and {"trl-policy-v1", "trl-policy-v2"} <= set(server.models)
    assert 0 <= figures["rollout/correct"] <= 1 and figures["groups/left_out_total"] == 0


def test_groups_of_one_outcome_are_left_out(chat):
    with open_worker(chat) as (worker, server):
        server.turns[1] = server.turns[0]
        worker.start()
        figures = [worker.metrics_queue.get(timeout=30) for _ in range(3)]
        assert [row["groups/left_out_total"] for row in figures] == [1, 1, 1] and worker.rollout_buffer.empty()


def test_a_full_queue_holds_the_episodes_up_and_is_no_fault(chat):
    with open_worker(chat, mixed_only=False, most_samples=3) as (worker, server):
        worker.start()
        until(lambda: len(server.models) == 2 * SIZE)  # of each of the two groups that run at a time
        time.sleep(0.5)
        assert len(server.models) == 2 * SIZE and worker.rollout_buffer.full()
        worker.check_health(0.4)


def test_a_server_that_fails_is_told_to_the_trainer_with_the_next_action(chat):
    with open_worker(chat) as (worker, server):
        server.broken = True
        worker.start()
        with pytest.raises(TrainingFailed, match=r"did not generate.*then resume"):
            until(lambda: worker.check_health(60))


def test_silence_is_told_to_the_trainer(chat):
    with open_worker(chat) as (worker, _):
        time.sleep(0.02)
        with pytest.raises(TrainingFailed, match="no group of episodes has ended"):
            worker.check_health(0.01)


class NoTransfer:
    """Sends no weights; counts how often it was to."""

    sent = 0

    def init_weight_transfer(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def destroy(self) -> None: ...
    def send_weights(self, iterator: Any) -> None:
        self.sent += sum(1 for _ in iterator) > 0


@pytest.mark.slow
def test_the_trainer_learns_from_the_worker_and_stops_it(chat, tiny_base: Path, tmp_path, monkeypatch):
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

    stand_in_for_hopper(monkeypatch)
    torch.set_num_threads(1)
    with open_worker(chat) as (worker, _):
        arguments = AsyncGRPOConfig(
            output_dir=str(tmp_path),
            max_steps=3,
            per_device_train_batch_size=SIZE,
            num_generations=SIZE,
            max_staleness=2,
            token_budget=-1,
            learning_rate=0.01,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        transfer = NoTransfer()
        trainer = AsyncGRPOTrainer(
            model=str(tiny_base),
            args=arguments,
            train_dataset=Dataset.from_list([{"prompt": "unused"}]),
            processing_class=chat.tokenizer,
            peft_config=LoraConfig(r=2, target_modules=["q_proj"]),
            rollout_worker=worker,
            weight_transfer=transfer,
        )
        weights = {name: weight for name, weight in trainer.model.named_parameters() if weight.requires_grad}
        before = {name: weight.detach().clone() for name, weight in weights.items()}
        trainer.train()
        rows = [row for row in trainer.state.log_history if "loss" in row]
        assert [row["step"] for row in rows] == [1, 2, 3] and transfer.sent == 4  # before the first step, after each
        assert all(row["grad_norm"] > 0 and 0 < row["rollout/correct"] < 1 for row in rows)
        assert {"reward", "rewards/accuracy", "ratio", "sample/staleness_max"} <= set(rows[-1])
        assert weights and all((weight != before[name]).any() for name, weight in weights.items())
        assert not any(thread.name == "rollouts" for thread in threading.enumerate())
