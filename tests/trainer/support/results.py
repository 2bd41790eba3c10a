"""Made-up result rows for tests of what is computed from them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from trainer.results.rows import ResultRow


def row(task: int = 0, correct: bool = True, **changes: Any) -> ResultRow:
    """One row; what a test does not care about is plain."""
    plain = {
        "orchestrator": "mine",
        "source": "suite",
        "family": "ledger",
        "level": 1,
        "split": "test",
        "index": task,
        "query": f"query {task}",
        "episode": f"{changes.get('orchestrator', 'mine')}-{task}-{changes.get('sample', 0)}",
        "correct": correct,
        "outcome": "answered",
        "turns": 1,
        "turn_errors": 0,
        "steps": 2,
        "depth": 2,
        "width": 1,
        "statuses": {"OK": 2},
        "failed_calls": 0,
        "wall_s": 1.0,
        "serial_s": 1.0,
        "tokens_in": 10,
        "tokens_out": 5,
        "cost": 0.0,
        "workers": {"sql": 1, "calculator": 1},
    }
    return ResultRow.model_validate(plain | changes)


def rows_of(scores: list[list[bool]], **changes: Any) -> list[ResultRow]:
    """Rows of one orchestrator: for each task whether each of its samples was right."""
    return [
        row(task, right, sample=sample, **changes)
        for task, samples in enumerate(scores)
        for sample, right in enumerate(samples)
    ]


def some_scores(most_samples: int = 4) -> st.SearchStrategy[list[list[bool]]]:
    """Tasks with the same number of samples each."""
    return st.integers(1, most_samples).flatmap(
        lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=12)
    )


@st.composite
def any_rows(draw: st.DrawFn) -> list[ResultRow]:
    """Rows with figures of every kind, of one orchestrator in one condition."""
    found = []
    for task, samples in enumerate(draw(some_scores())):
        for sample, right in enumerate(samples):
            wall = draw(st.floats(0.001, 100))
            ok, failed = draw(st.integers(0, 5)), draw(st.integers(0, 3))
            share = st.none() | st.floats(0, 1)
            found.append(
                row(
                    task,
                    right,
                    sample=sample,
                    wall_s=wall,
                    serial_s=wall * draw(st.floats(0.1, 8)),
                    at=draw(st.floats(0, 1000)),
                    cost=draw(st.floats(0, 1)),
                    tokens_in=draw(st.integers(0, 5000)),
                    turns=draw(st.integers(1, 4)),
                    statuses={"OK": ok, "EXEC_ERR": failed},
                    failed_calls=failed,
                    steps=ok + failed,
                    workers={"sql": ok, "python": failed},
                    oracle_steps=3,
                    oracle_depth=2,
                    matched_steps=draw(st.integers(0, 3)),
                    access_precision=draw(share),
                    access_recall=draw(share),
                )
            )
    return found
