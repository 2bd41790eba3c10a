"""New rows take the place of those of their part alone."""

from __future__ import annotations

import json

from bench.agents.ground import Judged
from bench.agents.rows import describe_gaps, replace_rows


def test_rows_of_other_parts_stay(tmp_path):
    path = tmp_path / "agents.json"
    replace_rows(path, [{"part": "who", "pools": "redrawn", "right": 1}, {"part": "whole", "pools": "redrawn"}])
    replace_rows(path, [{"part": "who", "pools": "fixed"}])
    replace_rows(path, [{"part": "who", "pools": "redrawn", "right": 2}])
    rows = json.loads(path.read_text())
    assert [(row["part"], row["pools"], row.get("right")) for row in rows] == [
        ("whole", "redrawn", None),
        ("who", "fixed", None),
        ("who", "redrawn", 2),
    ]


def test_the_gap_runs_from_the_best_single_expert_to_the_best_choice():
    pools = [(Judged(0.7, 2.0), Judged(0.5, 1.0), Judged(0.9, 1.0))] * 3
    row = describe_gaps(pools, lambda judged: judged.right)
    assert (row["right"], row["cost"]) == (0.7, 2.0)
    assert row["low"] == row["closed"] == row["high"] == 0.5
