"""Draws are pinned: a task, a condition or a made-up copy is the same today as when its checkpoint was trained.

The digests are those of the day on which the wordings moved out of the code. They change with what is drawn and not
with the names of classes. Where a new edition of a data package (holidays, airportsdata, periodictable) changes a
task's answer, its family's digests may change; nothing else is a reason.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from podium_lessons.sources import HELD_OUT_FAMILIES, TRAIN_FAMILIES
from pool_registry.starter import starter_pool
from trainer.demonstrations.renamed_copies import make_variants
from trainer.demonstrations.transcripts import Demonstration
from trainer.tasks import SUITES, find_task
from trainer.tasks.pool_conditions import CONDITIONS, apply_condition
from trainer.tasks.suite import SPLITS

TASKS = 20  # of every family, level and split
CELLS = [(family, level) for family in (*TRAIN_FAMILIES, *HELD_OUT_FAMILIES) for level in SUITES[family].levels]
POOL_SEEDS = range(5)
TASK_DIGESTS: dict[tuple[str, int], str] = {
    ("ledger", 1): "69d09c715784892e65ec451776889173",
    ("ledger", 2): "fec558dfee377a4f06aec39ab9836146",
    ("ledger", 3): "cc089d244ee11d1c368351872b26dc0e",
    ("ledger", 4): "b275655b9a31735671c8ad99f192d844",
    ("atlas", 1): "c41f8ad637283547ecbbfe5fe76decba",
    ("atlas", 2): "234fc30cdd73e53d31cdcdf7bad1f7c6",
    ("atlas", 3): "5f486a47c9e6b963d1422b28fc2001b4",
    ("atlas", 4): "0441b5a38fa68a37d6d42789b79d8d68",
    ("forge", 1): "06c5ed52f420c166ba6b485bc32f41cf",
    ("forge", 2): "e93a9d89a2a1bd79b806d62a7b313f6f",
    ("forge", 3): "6fb0ecfa3b0459d68f060becad432ef1",
    ("forge", 4): "c5c4190e8124b447be0f6c73493bb591",
    ("itinerary", 1): "e62c4ebc602b7a150a630488ef8218cd",
    ("itinerary", 2): "79b9112b99fccba688bb0b1b37d89ea4",
    ("itinerary", 3): "b0c98aa5cdca3e130497fc1a47ffacfc",
    ("itinerary", 4): "e656001f4460981322edf100080376d8",
    ("workshop", 1): "d61a8f81411f672795db8cbe04bd6707",
    ("workshop", 2): "13d42b7fbe9ea6d9569320bc107340c2",
    ("workshop", 3): "caaf71235d73cc413da2bf627caea83a",
    ("dossier", 1): "1f54461c2586d119f720878e01430f4f",
    ("dossier", 2): "253229ee3eec94d0bb926080cb9ce55f",
    ("dossier", 3): "d2772fbe5a306d37df3e47a4bb52b9a8",
}
POOL_DIGESTS: dict[str, str] = {
    "seen": "5b81a14a11f302deca197d0ad64807b6",
    "memory": "5b81a14a11f302deca197d0ad64807b6",
    "renamed": "26bf21effff54a431dca35baf1d0ddba",
    "distractors": "451e87c3c2e3e0d3de74b98fd1fc68e7",
    "missing": "a3d8028a0deb8df1f4778eb5c11d4abd",
    "flaky": "137715a4b796a6ac7515dc1150e6acc2",
    "priced": "186aa5978fb3b889f18b9aab3c9dbdd0",
    "redescribed": "610874b244b6004f52a8e2cab5aabcae",
    "without:sql,units": "95f6cbdcb6406db7565ea81ace4df476",
}
COPY_DIGESTS: dict[int, str] = {
    0: "257132555e5c5eb671ccb8f7fe3aa053",
    1: "2e95be841f774c0e009b97d3c7c7e73f",
    2: "79074f124c26b525cb0bc70c0190e90e",
}


def digest(rows: list[object]) -> str:
    """The first half of the SHA-256 of a JSON document."""
    text = json.dumps(rows, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def task_row(task) -> list[object]:
    ref, verifier, turn = task.ref, task.verifier, task.oracle_turn
    return [
        [ref.family, ref.level, ref.split, ref.index, ref.version],
        task.query,
        [verifier.kind, verifier.expected, getattr(verifier, "tolerance", None)],
        [[step.id, step.worker, step.arguments, step.access] for step in turn.steps],
        turn.answer,
    ]


def pool_row(pool, renaming) -> list[object]:
    workers = [
        [spec.name, spec.kind, spec.description, spec.config, spec.price_call, spec.timeout_s, spec.fallback]
        for spec in pool.workers
    ]
    return [pool.name, workers, dict(renaming)]


def plain_demonstration(task) -> Demonstration:
    plan = json.dumps([[step.worker, step.arguments] for step in task.oracle_turn.steps])
    return Demonstration(
        messages=[{"role": "user", "content": task.query}, {"role": "assistant", "content": plan, "learn": True}],
        query=task.query,
    )


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_tasks_are_drawn_as_ever(family, level):
    tasks = [find_task(family, level, split, index) for split in SPLITS for index in range(TASKS)]
    assert digest([task_row(task) for task in tasks]) == TASK_DIGESTS[family, level]


def test_every_pinned_cell_is_drawn():
    assert set(CELLS) == set(TASK_DIGESTS) and len(CELLS) * len(SPLITS) * TASKS == 1320
    assert set(POOL_DIGESTS) == {*CONDITIONS, "without:sql,units"}


@pytest.mark.parametrize("condition", [*CONDITIONS, "without:sql,units"])
def test_conditions_change_the_pool_as_ever(condition):
    rows = [pool_row(*apply_condition(condition, starter_pool(), seed)) for seed in POOL_SEEDS]
    assert digest(rows) == POOL_DIGESTS[condition]


@pytest.mark.parametrize("seed", range(3))
def test_made_up_copies_are_drawn_as_ever(seed):
    tasks = [find_task(family, level, "train", index) for family, level in CELLS for index in range(8)]
    copies = make_variants([plain_demonstration(task) for task in tasks], 2, seed)
    assert len(copies) > 100
    assert digest([[copy.query, *(row.content for row in copy.messages)] for copy in copies]) == COPY_DIGESTS[seed]
