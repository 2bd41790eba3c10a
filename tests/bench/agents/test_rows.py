"""New rows take the place of those of their part and policy alone."""

from __future__ import annotations

import json

from bench.agents.ground import Judged
from bench.agents.rows import describe_gaps, replace_rows


def test_rows_of_other_parts_and_policies_stay(tmp_path):
    path = tmp_path / "agents.json"
    old = {"part": "who", "pools": "redrawn", "policy": "log", "right": 1}
    others = [{**old, "part": "whole"}, {**old, "pools": "fixed"}, {**old, "policy": "podium"}]
    replace_rows(path, [old, *others])
    replace_rows(path, [{**old, "right": 2}])
    assert json.loads(path.read_text()) == [*others, {**old, "right": 2}]


def test_the_gap_runs_from_the_best_single_expert_to_the_best_choice():
    pools = [(Judged(0.7, 2.0), Judged(0.5, 1.0), Judged(0.9, 1.0))] * 3
    row = describe_gaps(pools, lambda judged: judged.right)
    assert (row["right"], row["cost"]) == (0.7, 2.0)
    assert row["low"] == row["closed"] == row["high"] == 0.5
