"""The seed of a recipe decides in which order SFT learns its rows."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.medium


def test_the_seed_decides_the_order_of_the_rows_and_the_same_seed_draws_it_again(tiny_base, tmp_path):
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    from trainer.methods.sft.stage import draw_order_by_seed

    rows = [{"input_ids": [number + 5] * 4, "labels": [number + 5] * 4, "length": 4} for number in range(32)]

    def draw(seed: int) -> list[list[int]]:
        arguments = SFTConfig(
            str(tmp_path),
            data_seed=seed,
            use_cpu=True,
            bf16=False,
            report_to=[],
            train_sampling_strategy="batch_rebalance",
        )
        trainer = draw_order_by_seed(SFTTrainer)(
            model=AutoModelForCausalLM.from_pretrained(tiny_base),
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            processing_class=AutoTokenizer.from_pretrained(tiny_base),
        )
        sampler = trainer._get_train_sampler()
        epochs = []
        for epoch in range(2):
            sampler.set_epoch(epoch)
            epochs.append([number for batch in sampler for number in (batch if isinstance(batch, list) else [batch])])
        return epochs

    first, second = draw(0), draw(1)
    assert draw(1) == second and sorted(first[0]) == list(range(32))
    assert len({tuple(order) for order in (*first, *second)}) == 4
