"""The table of what GRPO pays which episode, as bench/rewards.py prints it from episodes that really ran."""

from __future__ import annotations

import asyncio

from bench.rewards import measure_cases, write_table


def test_the_table_shows_who_is_paid_and_who_is_not():
    rows = asyncio.run(measure_cases())
    table = {(row["group"], row["case"]): row["advantage"] for row in rows}
    mixed = [value for (group, _), value in table.items() if group == "one of each"]
    assert mixed[0] > mixed[1] > 0.8 and mixed[2] == mixed[3] < -0.8
    assert {value for (group, _), value in table.items() if group == "all wrong"} == {0}
    assert -0.1 < table["all right", "right plan, one step more"] < 0
    lines = write_table(rows).splitlines()
    assert len(lines) == 2 + len(rows)
    assert '| all wrong | instant wrong "0" | - | 0.20 | +1.49 | +0.00 |' in lines
