"""Rows of a pool's own log as the network reads them: questions, with the log of every candidate at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from orchestrator.choice.network import (
    CLS,
    SEP,
    SPECIAL,
    VECTOR,
    Logs,
    SuccessPredictor,
    TokenTable,
    join_segments,
    show_log,
)
from orchestrator.retrieval import sentence_vectors
from trainer.choice.corpus import tokenize_texts
from trainer.choice.own_figures import Outcomes
from trainer.choice.own_log import OwnLog, normalize_need


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A pool's log as tensors. Texts are rows of the table and of `vectors`; a worker's entries are padded."""

    table: TokenTable
    vectors: Tensor  # [texts, 384]
    need: Tensor  # [questions]: its text
    card: Tensor  # [workers]: its text
    is_tool: Tensor  # [workers]
    past: Tensor  # [workers, entries]: the texts of what each was given
    question: Tensor  # [workers, entries]: and which questions these are
    verdicts: Tensor  # [workers, entries]
    present: Tensor  # [workers, entries]


@dataclass(frozen=True, slots=True)
class OwnBatch:
    """Every candidate of some questions, a row each. `outcomes` is what is known of the rows `judged`."""

    segments: Tensor
    need: Tensor  # [questions]: its text
    past: Tensor  # [rows, entries]: texts
    in_log: Tensor  # [rows, entries]: the questions that these are
    logs: Logs  # without vectors, which would fill the memory
    cosines: Tensor
    judged: Tensor
    outcomes: Outcomes


def build_table(log: OwnLog, tokenizer: Any) -> OwnTable:
    """Tokenize and embed a log. Blocks for some 10 ms a text."""
    logged = [item.need for worker in log.workers for item in worker.outcomes]
    needs = list(dict.fromkeys([*(row.need for row in log.questions), *logged]))
    cards = list(dict.fromkeys(worker.card for worker in log.workers))
    rows = {text: len(SPECIAL) + place for place, text in enumerate(needs)}
    numbers = {normalize_need(row.need): place for place, row in enumerate(log.questions)}
    vectors = torch.zeros(len(SPECIAL) + len(needs) + len(cards), VECTOR)
    vectors[len(SPECIAL) : len(SPECIAL) + len(needs)] = torch.from_numpy(sentence_vectors.embed(needs)).float()
    shape = len(log.workers), max(len(worker.outcomes) for worker in log.workers)
    past, question = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    verdicts, present = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
    for place, worker in enumerate(log.workers):
        for entry, item in enumerate(worker.outcomes):
            past[place, entry], question[place, entry] = rows[item.need], numbers[normalize_need(item.need)]
            verdicts[place, entry], present[place, entry] = float(item.right), True
    return OwnTable(
        table=tokenize_texts(tokenizer, [*SPECIAL, *needs, *cards], torch.device("cpu")),
        vectors=vectors,
        need=torch.tensor([rows[row.need] for row in log.questions]),
        card=torch.tensor([len(SPECIAL) + len(needs) + cards.index(worker.card) for worker in log.workers]),
        is_tool=torch.tensor([worker.is_tool for worker in log.workers]),
        past=past,
        question=question,
        verdicts=verdicts,
        present=present,
    )


def make_batch(log: OwnLog, table: OwnTable, places: Sequence[int], shown: Tensor) -> OwnBatch:
    """The rows of these questions. `shown` [questions]: which ones may stand in a log; none stands in its own."""
    questions = [log.questions[place] for place in places]
    number = torch.tensor(places)
    row_question = torch.arange(len(places)).repeat_interleave(torch.tensor([len(row.candidates) for row in questions]))
    worker = torch.tensor([candidate for row in questions for candidate in row.candidates])
    past, in_log = table.past[worker], table.question[worker]
    present = table.present[worker] & shown[in_log] & (in_log != number[row_question].unsqueeze(1))
    cosines = (table.vectors[table.need[number]] @ table.vectors.T)[row_question].gather(1, past)
    cosines = torch.where(present, cosines, torch.full_like(cosines, -1.0))
    nothing = torch.zeros(len(worker), 0, VECTOR)
    likeness = torch.tensor([value for row in questions for value in row.likeness])
    logs = Logs(nothing, nothing, table.verdicts[worker], present, row_question, table.is_tool[worker], likeness)
    mark, end = torch.full((len(worker), 1), CLS), torch.full((len(worker), 1), SEP)
    need, card = table.need[number][row_question].unsqueeze(1), table.card[worker].unsqueeze(1)
    entries = show_log(cosines, past, logs.verdicts)
    pairs = [(row.right.get(place, 0.0), row.given.get(place, 0)) for row in questions for place in row.candidates]
    right, weight = torch.tensor([pair[0] for pair in pairs]), torch.tensor([float(pair[1]) for pair in pairs])
    judged = weight.nonzero().squeeze(1)
    return OwnBatch(
        segments=torch.cat([mark, need, end, card, end, entries], dim=1),
        need=table.need[number],
        past=past,
        in_log=in_log,
        logs=logs,
        cosines=cosines,
        judged=judged,
        outcomes=Outcomes(number[row_question][judged], right[judged], weight[judged]),
    )


def hide_questions(batch: OwnBatch, hidden: Tensor) -> OwnBatch:
    """The batch without these questions [questions] in the logs that its figures count. Where need and past are turned
    alike, a question that stands in a log has its verdicts learnt through the others."""
    present = batch.logs.present & ~hidden[batch.in_log]
    cosines = torch.where(present, batch.cosines, torch.full_like(batch.cosines, -1.0))
    return replace(batch, logs=batch.logs._replace(present=present), cosines=cosines)


def read_rows(predictor: SuccessPredictor, table: OwnTable, batch: OwnBatch) -> Tensor:
    """What the encoder makes of the rows whose outcome is known: the dear part."""
    with torch.inference_mode():
        reading = predictor.read(*join_segments(table.table, batch.segments[batch.judged]))
    return reading.clone()  # a tensor of inference mode takes no part in a training


def score_rows(predictor: SuccessPredictor, table: OwnTable, batch: OwnBatch, reading: Tensor) -> Tensor:
    """The logits of the rows whose outcome is known. Figures need those of the whole pool; its texts are turned once,
    and not for every log that they stand in."""
    turned = [
        (vectors[batch.need] @ vectors.T)[batch.logs.group].gather(1, batch.past)
        for vectors in predictor.figures.turn(table.vectors)
    ]
    figures = predictor.figures.count(batch.logs, batch.cosines, turned)[batch.judged]
    return predictor.judge(reading, figures)
