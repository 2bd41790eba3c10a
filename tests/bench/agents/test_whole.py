"""A learned policy's row on whole tasks is what its episodes came to."""

from __future__ import annotations

import asyncio

from bench.agents.whole import describe, make_scene, play_scene


def test_a_learned_policy_reads_the_drawn_record_and_its_row_holds_its_episodes():
    policy = "router+who=log"
    scene = make_scene(0, 0, "route", 6)
    record = scene.draw_record(10)
    names = [expert.name for expert in scene.ground.experts]
    assert {len(record.outcomes(name)) for name in names} == {10 * len(scene.ground.topics)}
    pools = [asyncio.run(play_scene(scene, ("best", "single", policy), 10))]
    row = describe(pools, "route", policy, 1, 10)
    right = sum(play.observed.right for play in pools[0][policy]) / 6
    assert row["right"] == round(right, 4) and row["outcomes"] == 10 and row["episodes"] == 6
