"""How often an answer is right that the shipped reader's own figure calls likely (orchestrator/answer_chance.py).

    python bench/doubt.py collect TRACES.jsonl      # every question with five plans and with one; goes on where it was
    python bench/doubt.py read TRACES.jsonl         # the evidence of these runs -> bench/results/doubt.json
    python bench/doubt.py fit                       # coefficients -> assets/answer_chance.json
    python bench/doubt.py measure [--svg FILE]      # on the pools that were held out: table and reliability plot

The questions are two thirds of those on the hand-written pools in bench/data, in turn by pool. Every second pool is for
fitting, the others are held out. An answer to a question that the pool cannot answer is wrong; refusals and runs
without an answer have no figure and are left out. Intervals are Wilson's, 95 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from assets import asset
from bench.generalization import DEADLINE_S, find_pool, load_pools
from orchestrator.answer_chance import FILE, HALF, MAX_TROUBLES, Calibration, Coefficients, Evidence, read_evidence
from orchestrator.engine.episode import replay
from orchestrator.engine.events import Event, dump_event, load_event
from orchestrator.policies.registry import orchestrator_factory
from orchestrator.reader.refusal import is_refusal
from pool_registry.calls.live_pool import live_pool
from pool_registry.language_models.completion import Draw
from trainer.evaluation.trials import run_task
from trainer.tasks.task import Task

KINDS = ("own", "fresh", "blind", "object")
CHECKPOINT = "smollm2-reader"
PLANS = {"several": f"{CHECKPOINT}+samples=5", "one": CHECKPOINT}
RESULTS = Path(__file__).parent / "results" / "doubt.json"
PENALTY = 0.5  # on the squared coefficients: few questions, few figures
NEWTON_STEPS = 50
ALLOWED_WRONG = 0.1
BINS = ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 1.01))


@dataclass(frozen=True, slots=True)
class Row:
    """One run: `part` is fit or held_out, `plans` one or several."""

    part: str
    pool: str
    index: int
    plans: str
    right: bool
    evidence: Evidence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("collect", "read", "fit", "measure"))
    parser.add_argument("traces", type=Path, nargs="?")
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    if options.action in ("collect", "read") and options.traces is None:
        parser.error(f"{options.action} needs the file of the traces")
    match options.action:
        case "collect":
            options.traces.touch()
            done = {(row["pool"], row["index"], row["orchestrator"]) for row in read_lines(options.traces)}
            asyncio.run(collect_traces(options.traces, list_tasks(), done))
        case "read":
            rows = [asdict(row) for row in read_rows(options.traces)]
            RESULTS.write_text("[\n " + ",\n ".join(json.dumps(row) for row in rows) + "\n]\n")
        case "fit":
            document = {"checkpoints": {CHECKPOINT: fit_calibration(load_rows()).model_dump()}}
            asset(FILE).write_text(json.dumps(document, indent=1) + "\n")
        case "measure":
            print(measure_rows(load_rows(), options.svg))


def list_tasks() -> list[Task]:
    """Two thirds of every pool's questions, easy and hard in turn, a pool after the other."""
    pools: dict[str, list[Task]] = {}
    for kind in KINDS:
        for task in load_pools(kind)(10_000):
            pools.setdefault(task.ref.family, []).append(task)
    columns = [[task for place, task in enumerate(tasks) if place % 3 != 2] for tasks in pools.values()]
    mixed = [tasks[::2] + tasks[1::2] for tasks in columns]
    return [task for tasks in zip_longest(*mixed) for task in tasks if task is not None]


class EventList:
    """A sink that keeps the events of one episode."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def append(self, _: str, event: Event) -> None:
        """Keep an event as its document."""
        self.events.append(json.loads(dump_event(event)))


async def collect_traces(file: Path, tasks: Sequence[Task], done: Collection[tuple[str, int, str]]) -> None:
    """Run what is not done yet, one at a time."""
    for task in tasks:
        pool = find_pool(task)
        limits = pool.limits.model_copy(update={"deadline_s": DEADLINE_S})
        async with live_pool(pool.model_copy(update={"limits": limits})) as live:
            for name in PLANS.values():
                slot = {"pool": task.ref.family, "index": task.ref.index, "orchestrator": name}
                if tuple(slot.values()) in done:
                    continue
                sink, started = EventList(), time.perf_counter()
                await run_task(task, orchestrator_factory(name, live)(None, Draw()), live, sink)
                row = {**slot, "seconds": round(time.perf_counter() - started, 1), "events": sink.events}
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def read_rows(file: Path) -> list[Row]:
    """The evidence of every run that has an answer."""
    names = [task.ref.family for kind in KINDS for task in load_pools(kind)(1)]
    pools = list(dict.fromkeys(names))
    kinds = {orchestrator: plans for plans, orchestrator in PLANS.items()}
    rows = []
    for line in read_lines(file):
        episode = replay("e", [load_event(json.dumps(event)) for event in line["events"]])
        if episode.answer is None or is_refusal(episode.answer) or episode.graded is None:
            continue
        turns = [done.turn for done in episode.rounds if done.turn is not None]
        failed = sum(run.failed for run in episode.steps.values())
        part = "held_out" if pools.index(line["pool"]) % 2 else "fit"
        evidence = read_evidence(turns, failed, episode.out_of_depth)
        rows.append(
            Row(part, line["pool"], line["index"], kinds[line["orchestrator"]], episode.graded.correct, evidence)
        )
    return rows


def load_rows() -> list[Row]:
    """The rows of bench/results/doubt.json."""
    return [Row(**{**row, "evidence": Evidence(**row["evidence"])}) for row in json.loads(RESULTS.read_text())]


def fit_calibration(rows: Sequence[Row]) -> Calibration:
    """The coefficients and thresholds of the rows for fitting."""
    fitted = [row for row in rows if row.part == "fit"]
    one = [row for row in fitted if row.evidence.share is None]
    several = [row for row in fitted if row.evidence.share is not None]
    functions = fit_coefficients(one, has_share=False), fit_coefficients(several, has_share=True)
    likely = [choose_threshold(part, function) for part, function in zip((one, several), functions, strict=True)]
    return Calibration(one=functions[0], several=functions[1], likely_one=likely[0], likely_several=likely[1])


def fit_coefficients(rows: Sequence[Row], *, has_share: bool) -> Coefficients:
    """Newton's method on the penalized log-likelihood. A coefficient with the wrong sign is noise: it becomes zero and
    the others are fitted again."""
    signs = {"share": 1, "troubles": -1, "distance": -1} if has_share else {"troubles": -1, "distance": -1}
    names = list(signs)
    while True:
        beta = fit_logistic([[_read_feature(row.evidence, name) for name in names] for row in rows], rows)
        wrong = [name for name, value in zip(names, beta[1:], strict=True) if value * signs[name] < 0]
        if not wrong:
            break
        names.remove(wrong[0])
    values = dict(zip(names, (round(float(value), 4) for value in beta[1:]), strict=True))
    return Coefficients(
        intercept=round(float(beta[0]), 4), **{"troubles": 0.0, "distance": 0.0, "share": 0.0, **values}
    )


def _read_feature(evidence: Evidence, name: str) -> float:
    features = {"share": evidence.share or 0.0, "distance": evidence.distance}
    return features.get(name, float(min(evidence.troubles, MAX_TROUBLES)))


def fit_logistic(features: Sequence[Sequence[float]], rows: Sequence[Row]) -> Any:
    """The intercept and the coefficients."""
    columns = np.array([[1.0, *line] for line in features])
    target = np.array([float(row.right) for row in rows])
    penalty = np.diag([0.0, *[PENALTY] * (columns.shape[1] - 1)])
    beta = np.zeros(columns.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-columns @ beta))
        gradient = columns.T @ (target - p) - penalty @ beta
        hessian = (columns * (p * (1 - p))[:, None]).T @ columns + penalty + 1e-9 * np.eye(len(beta))
        beta = beta + np.linalg.solve(hessian, gradient)
    return beta


def choose_threshold(rows: Sequence[Row], function: Coefficients) -> float:
    """The least chance above which at most one answer in ten is wrong; 1 where there is none."""
    ranked = sorted(((function.estimate(row.evidence), row.right) for row in rows), reverse=True)
    best = 1.0
    for chance in {chance for chance, _ in ranked if chance >= HALF}:
        above = [right for other, right in ranked if other >= chance]
        if above.count(False) <= ALLOWED_WRONG * len(above):
            best = min(best, chance)
    return float(np.floor(best * 1e4) / 1e4)


def measure_rows(rows: Sequence[Row], svg: Path | None) -> str:
    """The table of both parts; the plot of the held-out one is written where a file is named."""
    calibration = Calibration.model_validate(json.loads(asset(FILE).read_text())["checkpoints"][CHECKPOINT])

    def estimate(row: Row) -> float:
        return calibration.estimate(row.evidence)

    def is_likely(row: Row) -> bool:
        return calibration.is_likely(row.evidence)

    head = "pools", "plans", "answers", "right", "likely", "of these right", "unsure", "of these right", "Brier (base)"
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for part in ("fit", "held_out"):
        for plans in PLANS:
            mine = [row for row in rows if (row.part, row.plans) == (part, plans)]
            lines.append(write_line(part, plans, mine, estimate, is_likely))
    held_out = [row for row in rows if row.part == "held_out"]
    lines += ["", "| held out: figure | answers | mean figure | right |", "|---|---|---|---|"]
    bins = [group for low, high in BINS if (group := [row for row in held_out if low <= estimate(row) < high])]
    points = [(float(np.mean([estimate(row) for row in group])), [row.right for row in group]) for group in bins]
    for mean, right in points:
        lines.append(f"| about {mean:.2f} | {len(right)} | {mean:.2f} | {write_share(right)} |")
    if svg is not None:
        svg.write_text(draw_plot(points))
    return "\n".join(lines)


def write_line(
    part: str, plans: str, rows: Sequence[Row], estimate: Callable[[Row], float], is_likely: Callable[[Row], bool]
) -> str:
    """One line of the table."""
    right = [row.right for row in rows]
    likely = [row.right for row in rows if is_likely(row)]
    unsure = [row.right for row in rows if estimate(row) < HALF]
    brier = np.mean([(estimate(row) - row.right) ** 2 for row in rows])
    rate = np.mean(right)
    cells = [part.replace("_", " "), plans, len(rows), sum(right), len(likely), write_share(likely), len(unsure),
             write_share(unsure), f"{brier:.3f} ({rate * (1 - rate):.3f})"]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def write_share(right: Sequence[bool]) -> str:
    if not right:
        return "none"
    low, high = measure_interval(sum(right), len(right))
    return f"{sum(right)} of {len(right)}, {sum(right) / len(right):.2f} [{low:.2f}, {high:.2f}]"


def measure_interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's interval of a share, 95 %."""
    z, share = 1.96, right / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * float(np.sqrt(share * (1 - share) / count + z * z / (4 * count * count)))
    return max(0.0, middle - half), min(1.0, middle + half)


def draw_plot(points: Sequence[tuple[float, Sequence[bool]]]) -> str:
    """The reliability plot: mean figure of a bin across, share of right answers up, with intervals."""
    size, margin = 300, 40

    def place(x: float, y: float) -> tuple[float, float]:
        return round(margin + x * size, 1), round(10 + (1 - y) * size, 1)

    marks = []
    for mean, right in points:
        low, high = measure_interval(sum(right), len(right))
        (x, y), (_, bottom), (_, top) = (place(mean, v) for v in (sum(right) / len(right), low, high))
        marks.append(f'<path d="M{x} {bottom}V{top}" stroke="#2f6f5e" stroke-width="2"/>')
        marks.append(f'<circle cx="{x}" cy="{y}" r="5" fill="#2f6f5e"/>')
        marks.append(f'<text x="{x + 8}" y="{y + 4}">{len(right)}</text>')
    ticks = []
    for value in (0.0, 0.5, 1.0):
        (x, y), (left, _) = place(value, 0), place(0, 0)
        ticks.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{value:g}</text>')
        ticks.append(f'<text x="{left - 8}" y="{place(0, value)[1] + 4}" text-anchor="end">{value:g}</text>')
    (x0, y0), (x1, y1) = place(0, 0), place(1, 1)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 380 370" font-family="sans-serif" font-size="12">'
        '<title>Share of right answers by the figure above them, held-out pools</title>'
        '<rect width="380" height="370" fill="white"/>'
        f'<path d="M{x0} {y1}V{y0}H{x1}" fill="none" stroke="#444"/>'
        f'<path d="M{x0} {y0}L{x1} {y1}" stroke="#999" stroke-dasharray="4 4"/>'
        f'{"".join(ticks)}{"".join(marks)}'
        '<text x="190" y="360" text-anchor="middle">figure above the answer</text>'
        '<text x="10" y="90" text-anchor="middle" transform="rotate(-90 10 90)">share that is right</text></svg>\n'
    )  # fmt: skip


if __name__ == "__main__":
    main()
