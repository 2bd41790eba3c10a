"""The predictor's network: what it reads in training is what it reads at work, and untrained it says one half."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.medium


class LetterTokenizer:
    """A token for each letter."""

    def __call__(self, texts, **_):
        return {"input_ids": [[ord(letter) for letter in text] for text in texts]}


class MeanEncoder:
    """An encoder whose states are its tokens."""

    def __call__(self, input_ids, attention_mask):
        return SimpleNamespace(last_hidden_state=input_ids.unsqueeze(2).expand(-1, -1, 384) / 100.0)


def make_logs(entries: int):
    import torch

    from orchestrator.choice.network import Logs

    unit = torch.nn.functional.normalize(torch.arange(1.0, 385.0), dim=0)
    asked = unit.expand(2, entries, 384) * torch.linspace(0.1, 0.9, entries).view(1, -1, 1)
    return Logs(
        need=unit.expand(2, 384),
        past=asked,
        verdicts=torch.arange(entries).expand(2, entries) % 2 * 1.0,
        present=torch.tensor([[True] * entries, [False] * entries]),
        group=torch.zeros(2, dtype=torch.long),
        is_tool=torch.tensor([False, True]),
        likeness=torch.tensor([0.0, 0.5]),
    )


def test_segments_are_joined_without_gaps():
    import torch

    from orchestrator.choice.network import NOTHING, TokenTable, join_segments

    table = TokenTable(torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]]), torch.tensor([2, 1, 3]))
    tokens, mask = join_segments(table, torch.tensor([[0, NOTHING, 2], [1, NOTHING, NOTHING]]))
    assert tokens.tolist() == [[1, 2, 4, 5, 6], [3, 0, 0, 0, 0]]
    assert mask.sum(1).tolist() == [5, 1]


def test_the_most_similar_entries_are_read_first_and_a_worker_without_a_log_reads_none():
    import torch

    from orchestrator.choice.network import SHOWN, join_segments, measure_cosines
    from orchestrator.choice.predictor import write_segments

    logs = make_logs(10)
    texts = ["need", *(f"q{entry}" for entry in range(10))]
    places = torch.arange(10).expand(2, 10)
    table, segments = write_segments(LetterTokenizer(), texts, ["card", "tool"], places, measure_cosines(logs), logs)
    tokens, mask = join_segments(table, segments)
    first, second = ("".join(chr(token) for token in row[kept]) for row, kept in zip(tokens, mask, strict=True))
    assert first.startswith("[CLS]need[SEP]card[SEP]rightq9[SEP]wrongq8[SEP]rightq7")
    assert first.count("right") + first.count("wrong") == SHOWN and "q1" not in first
    assert second == "[CLS]need[SEP]tool[SEP]"


@pytest.mark.parametrize("entries", [1, 12])
def test_an_untrained_predictor_says_one_half_for_everybody(entries):
    import torch

    from orchestrator.choice.network import FIGURES, SuccessPredictor, measure_cosines

    logs = make_logs(entries)
    predictor = SuccessPredictor(None)
    predictor.encoder = MeanEncoder()
    cosines = measure_cosines(logs)
    tokens, mask = torch.ones(2, 5, dtype=torch.long), torch.ones(2, 5, dtype=torch.bool)
    assert torch.sigmoid(predictor(tokens, mask, logs, cosines)).tolist() == [0.5, 0.5]
    assert predictor.figures(logs, cosines).shape == (2, FIGURES)
