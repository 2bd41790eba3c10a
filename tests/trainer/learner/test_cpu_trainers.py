"""What our trainers for CPUs skip changes nothing: the same losses, gradients and figures as TRL's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.medium

# torch and TRL are imported inside functions: collecting the tests must not load them.
if TYPE_CHECKING:
    from trl import GRPOTrainer, SFTTrainer

ROWS = [
    {"input_ids": [10, 11, 12, 13, 14, 15, 16], "labels": [-100, -100, -100, -100, 14, 15, 16]},
    {"input_ids": [20, 21, 22, 23], "labels": [-100, 21, 22, 23]},
    {"input_ids": [30, 31, 32, 33, 34], "labels": [-100, -100, -100, -100, 34]},
    {"input_ids": [40, 41, 42], "labels": [-100, 41, -100]},
]

SETTINGS: dict[str, Any] = {
    "max_steps": 3,
    "learning_rate": 1e-2,
    "logging_steps": 1,
    "save_strategy": "no",
    "use_cpu": True,
    "report_to": [],
    "disable_tqdm": True,
    "seed": 3,
    "bf16": False,
    "gradient_checkpointing": False,
}


def learner(base: Path, lora: bool) -> Any:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base)
    if not lora:
        return model
    return get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))


def trained(kind: type[SFTTrainer], base: Path, out: Path, lora: bool, **more: Any) -> list[dict[str, float]]:
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import SFTConfig

    settings = SFTConfig(
        output_dir=str(out),
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_length=16,
        **SETTINGS,
        **more,
    )
    rows = Dataset.from_list(ROWS)
    tokenizer = AutoTokenizer.from_pretrained(base)
    trainer = kind(model=learner(base, lora), args=settings, train_dataset=rows, processing_class=tokenizer)
    trainer.train()
    return [row for row in trainer.state.log_history if "loss" in row]


@pytest.mark.parametrize("lora", [False, True])
def test_the_same_training_as_trls_own(tiny_base: Path, tmp_path: Path, lora: bool) -> None:
    from trl import SFTTrainer

    from trainer.methods.sft.cpu_trainer import CpuSftTrainer

    theirs = trained(SFTTrainer, tiny_base, tmp_path / "theirs", lora)
    ours = trained(CpuSftTrainer, tiny_base, tmp_path / "ours", lora)
    assert theirs[0]["loss"] > theirs[-1]["loss"] > 0  # it learns, so that later steps compare gradients, too
    for one, other in zip(theirs, ours, strict=True):
        for key in ("loss", "grad_norm", "entropy", "mean_token_accuracy", "num_tokens"):
            assert other[key] == pytest.approx(one[key], rel=2e-3), key


# Prompts and completions of unlike lengths; an observation (mask 0) inside one of them.
EPISODES = [
    ([10, 11, 12], [13, 14, 15, 16], [1, 1, 1, 1]),
    ([10, 11, 12], [17, 18], [1, 1]),
    ([20, 21, 22, 23, 24, 25], [26, 27, 28, 29, 30, 31, 32], [1, 1, 0, 0, 0, 1, 1]),
    ([20, 21, 22, 23, 24, 25], [33], [1]),
]
REWARDS = [1.0, 0.0, 0.25, 0.75]


def reinforced(
    kind: type[GRPOTrainer], base: Path, out: Path, lora: bool, episodes: Any = EPISODES, held: Any = (), **more: Any
) -> list[dict[str, float]]:
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig

    settings = GRPOConfig(
        output_dir=str(out),
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=8,
        **SETTINGS,
        **more,
    )

    def rollout(_prompts: list[Any], trainer: Any) -> dict[str, Any]:
        prompts, completions, masks = (list(each) for each in zip(*episodes, strict=True))
        trainer.held = {tuple(completion): held for completion in completions}
        told = {"prompt_ids": prompts, "completion_ids": completions, "env_mask": masks}
        return {**told, "logprobs": None, "score": REWARDS}

    trainer = kind(
        model=learner(base, lora),
        args=settings,
        reward_funcs=[lambda **columns: columns["score"]],
        train_dataset=Dataset.from_list([{"prompt": "a"}] * 2),
        processing_class=AutoTokenizer.from_pretrained(base),
        rollout_func=rollout,
    )
    trainer.train()
    return [row for row in trainer.state.log_history if "loss" in row]


@pytest.mark.parametrize(
    ("lora", "more"),
    [
        (False, {"beta": 0.05, "temperature": 0.7}),
        (True, {"beta": 0.05}),
        (False, {"num_iterations": 2, "loss_type": "grpo"}),
    ],
)
def test_the_same_reinforcement_as_trls_own(
    tiny_base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lora: bool,
    more: dict[str, Any],
) -> None:
    from trl import GRPOTrainer

    from trainer.methods.grpo import cpu_trainer

    theirs = reinforced(GRPOTrainer, tiny_base, tmp_path / "theirs", lora, **more)
    monkeypatch.setattr(cpu_trainer, "PASS_TOKENS", 20)  # several passes for these few rows
    ours = reinforced(cpu_trainer.CpuGrpoTrainer, tiny_base, tmp_path / "ours", lora, **more)
    assert all(row["grad_norm"] > 1e-3 for row in theirs) and len({row["loss"] for row in theirs}) == 3  # it learns
    for one, other in zip(theirs, ours, strict=True):
        for key in ("loss", "grad_norm", "entropy", *(["kl"] if "beta" in more else [])):
            assert other[key] == pytest.approx(one[key], rel=2e-3, abs=1e-5), key


def test_what_a_grammar_left_no_choice_about_is_not_learnt(tiny_base: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    from pool_registry.language_models.completion import Grammar
    from trainer.learner.held_tokens import HeldTokens
    from trainer.methods.grpo.cpu_trainer import CpuGrpoTrainer

    tokenizer = AutoTokenizer.from_pretrained(tiny_base)
    texts = ("a", "b", "a", "b")
    written = [[*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id] for text in texts]
    episodes = [([10, 11, 12], ids, [1] * len(ids)) for ids in written]
    held = [HeldTokens(0, 0, len(written[0]), Grammar('start: "a" | "b"\n'))]
    rows = reinforced(CpuGrpoTrainer, tiny_base, tmp_path / "free", False, episodes, held)
    assert 0 < rows[0]["entropy"] < 0.7, "a choice between two tokens, and none about the end"
    assert rows[0]["grad_norm"] > 1e-3
    forced = [([10, 11, 12], written[0], [1] * len(written[0]))] * 4
    held = [HeldTokens(0, 0, len(written[0]), Grammar('start: "a"\n'))]
    rows = reinforced(CpuGrpoTrainer, tiny_base, tmp_path / "forced", False, forced, held)
    assert rows[0]["entropy"] == rows[0]["grad_norm"] == 0


@given(st.lists(st.integers(1, 900), min_size=1, max_size=40))
def test_passes_hold_every_row_once_and_keep_to_their_size(lengths: list[int]) -> None:
    import torch

    from trainer.methods.grpo import cpu_trainer

    passes = cpu_trainer._plan_passes(torch.tensor(lengths))
    assert sorted(row for rows in passes for row in rows.tolist()) == list(range(len(lengths)))
    for rows in passes:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= cpu_trainer.PASS_TOKENS


@pytest.mark.parametrize(("key", "value"), [("final_logit_softcapping", 30.0), ("vocab_size", 151_936)])
def test_other_heads_are_left_to_trl(tiny_base: Path, key: str, value: float) -> None:
    from transformers import AutoModelForCausalLM
    from trl import GRPOTrainer, SFTTrainer

    from trainer.methods.grpo.cpu_trainer import CpuGrpoTrainer, choose_grpo_trainer
    from trainer.methods.sft.cpu_trainer import CpuSftTrainer, choose_sft_trainer

    model = AutoModelForCausalLM.from_pretrained(tiny_base)
    assert choose_sft_trainer(model) is CpuSftTrainer and choose_grpo_trainer(model) is CpuGrpoTrainer
    setattr(model.config, key, value)
    assert choose_sft_trainer(model) is SFTTrainer and choose_grpo_trainer(model) is GRPOTrainer


SHARED = [
    {"input_ids": [9, *range(10, 80), *own], "labels": [*[-100] * 71, *marks]}
    for own, marks in [
        ([81, 82, 83], [-100, 82, 83]),
        ([81, 84, 85, 86], [-100, -100, 85, -100]),
        ([90, 91], [-100, 91]),
        ([82, 83, 84, 85, 86], [-100, 83, -100, 85, 86]),
    ]
]


def test_rows_with_one_opening_train_as_rows_of_their_own(tiny_base: Path) -> None:
    import torch

    from trainer.learner.cpu_kernels import find_trees, speed_up_adapters, tree_attention
    from trainer.learner.shared_openings import collate_trees

    model = learner(tiny_base, lora=True)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)  # zero at first: the gradient of A would be zero as well

    def collect_gradients() -> dict[str, torch.Tensor]:
        found = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
        model.zero_grad()
        return found

    total = 0.0
    for row in SHARED:
        loss = model(torch.tensor([row["input_ids"]]), labels=torch.tensor([row["labels"]])).loss
        count = sum(label != -100 for label in row["labels"])
        (loss * count).backward()
        total += loss.item() * count
    expected = collect_gradients()

    packed = collate_trees(SHARED)
    config = model.config.get_text_config()
    speed_up_adapters(model.train())
    with tree_attention(config):
        logits = model(
            packed["input_ids"],
            attention_mask=torch.zeros(1, 1, 1, 1),
            position_ids=packed["position_ids"],
            trees=find_trees(packed["spans"]),
        ).logits
    loss = torch.nn.functional.cross_entropy(logits[0, :-1], packed["labels"][0, 1:], reduction="sum")
    loss.backward()
    assert packed["input_ids"].numel() < 90
    assert loss.item() == pytest.approx(total, rel=1e-5)
    for name, gradient in collect_gradients().items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-5)


def train_shared(base: Path, out: Path, resume: Path | None = None) -> Any:
    import torch
    from datasets import Dataset
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
    from trl import SFTConfig

    from trainer.methods.sft.cpu_trainer import choose_sft_trainer

    set_seed(5)
    frozen = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    model = get_peft_model(frozen, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    other = [{**row, "input_ids": [7, *row["input_ids"][1:]]} for row in SHARED]
    settings = {**SETTINGS, "max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    trainer = choose_sft_trainer(model)(
        model=model,
        args=SFTConfig(output_dir=str(out), per_device_train_batch_size=4, max_length=128, **settings),
        train_dataset=Dataset.from_list([*SHARED, *other]),
        processing_class=AutoTokenizer.from_pretrained(base),
    )
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return trainer


def test_a_bfloat16_model_resumes_where_it_stopped_and_its_adapter_is_an_ordinary_one(
    tiny_base: Path, tmp_path: Path
) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    through = train_shared(tiny_base, tmp_path / "through")
    assert through.state.log_history[0]["num_tokens"] < 90  # four rows of 73 to 76 tokens, one opening
    resumed = train_shared(tiny_base, tmp_path / "resumed", resume=tmp_path / "through" / "checkpoint-2")
    losses = [[row["loss"] for row in done.state.log_history if "loss" in row] for done in (through, resumed)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0][-1] < losses[0][0]

    base = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.bfloat16)
    loaded = PeftModel.from_pretrained(base, tmp_path / "through" / "checkpoint-4")
    trained_weights = dict(through.model.named_parameters())
    adapter = {name: weight for name, weight in loaded.named_parameters() if "lora" in name}
    assert {weight.dtype for weight in adapter.values()} == {torch.float32}
    for name, weight in adapter.items():
        assert torch.equal(weight, trained_weights[name]), name
    ids = torch.tensor([SHARED[0]["input_ids"]])
    torch.testing.assert_close(loaded.eval()(ids).logits, through.model.eval()(ids).logits)
