"""How far a judge agrees with a person: what is measured once, kept in the data folder, and shown beside figures.

A measurement belongs to what the judge does, its kind and configuration: a judge with another model or prompt has none,
one under another name keeps its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pool_registry.atomic_write import write_atomically
from pool_registry.errors import writing_to
from pool_registry.storage.data_folder import find_home
from trainer.results.rows import JudgeKey, ResultRow
from trainer.results.statistics import bootstrap_mean

log = logging.getLogger(__name__)


class Agreement(BaseModel):
    """The verdicts of a judge against a person's on the same answers.

    `false_yes` counts answers that it alone found right, `false_no` those that the person alone did. `unclear` counts
    replies that were neither YES nor NO; they stand for NO. `low` and `high` bound the share that agrees with 95 %.
    `kappa` is Cohen's (1960): 1 is full agreement, 0 what chance would give; None where nothing else was possible.
    """

    model_config = ConfigDict(frozen=True)

    judge: JudgeKey
    verdicts: int
    agreeing: int
    false_yes: int
    false_no: int
    unclear: int
    share: float
    low: float
    high: float
    kappa: float | None


def count_agreement(judge: JudgeKey, pairs: Sequence[tuple[bool, bool]], unclear: int = 0) -> Agreement:
    """Count (person, judge) pairs of whether an answer is right."""
    agreeing = sum(person == verdict for person, verdict in pairs)
    estimate = bootstrap_mean([float(person == verdict) for person, verdict in pairs])
    return Agreement(
        judge=judge,
        verdicts=len(pairs),
        agreeing=agreeing,
        false_yes=sum(verdict and not person for person, verdict in pairs),
        false_no=sum(person and not verdict for person, verdict in pairs),
        unclear=unclear,
        share=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        kappa=compute_kappa(pairs),
    )


def compute_kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Compute Cohen's kappa of pairs of verdicts; None where both always say the same one thing, or there are none."""
    if not pairs:
        return None
    total = len(pairs)
    first, second = (sum(pair[side] for pair in pairs) / total for side in (0, 1))
    observed = sum(one == other for one, other in pairs) / total
    by_chance = first * second + (1 - first) * (1 - second)
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def save_agreement(agreement: Agreement) -> None:
    """Keep a measurement in place of an earlier one of the same judge. Raises UnwritablePath."""
    file = _find_file(agreement.judge)
    with writing_to(file, "--home"):
        file.parent.mkdir(exist_ok=True)
        write_atomically(file, agreement.model_dump_json())


def load_agreement(judge: JudgeKey) -> Agreement | None:
    """Load what was measured of a judge; None where nothing was."""
    file = _find_file(judge)
    try:
        return Agreement.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        log.warning("%s holds no measurement of a judge; measure it again", file)
        return None


def list_judges(rows: Iterable[ResultRow]) -> list[JudgeKey]:
    """List the judges that figures of these rows rest on, in the order of their names."""
    return sorted({row.judge for row in rows if row.judge is not None}, key=lambda judge: (judge.name, judge.work))


def describe_judges(judges: Iterable[JudgeKey], whose: str = "your") -> list[str]:
    """Write a sentence for each judge: how far it agrees with a person, or that nobody has measured it."""
    return [describe_agreement(judge, load_agreement(judge), whose) for judge in judges]


def describe_agreement(judge: JudgeKey, agreement: Agreement | None, whose: str = "your") -> str:
    """Write how far a judge agrees with the person `whose` verdicts they are."""
    if agreement is None:
        return f"Judge {judge.name}: not measured against {whose} verdicts yet."
    kappa = "" if agreement.kappa is None else f"; Cohen's kappa {agreement.kappa:.2f}"
    unclear = f"; {agreement.unclear} replies were no verdict" if agreement.unclear else ""
    return (
        f"Judge {judge.name} agrees with {agreement.agreeing} of {agreement.verdicts} of {whose} verdicts "
        f"(95 %: {agreement.low * 100:.0f} to {agreement.high * 100:.0f} %{kappa}; false yes {agreement.false_yes}, "
        f"false no {agreement.false_no}{unclear})."
    )


def _find_file(judge: JudgeKey) -> Path:
    return find_home().root / "judges" / f"{judge.work}.json"
