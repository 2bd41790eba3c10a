"""Who writes the final answer of a run, as the Run page offers it where a pool names a finalizer."""

from __future__ import annotations

from typing import Any

import gradio as gr

from pool_registry.pool import NO_FINALIZER, Pool

PLANS_OWN = "plan"
WRITTEN = "finalizer"


def draw_finalizer_choice() -> gr.Dropdown:
    """Draw the choice, which is not there until a pool with a finalizer is chosen."""
    return gr.Dropdown(label="Final answer", choices=[], elem_id="run-finalizer", min_width=180, visible=False)


def show_finalizer_choice(pool: Pool, on: bool = True) -> Any:
    """What the choice shows for a pool."""
    name = pool.limits.finalizer
    choices = [(f"by {name}", WRITTEN), ("the plan's own", PLANS_OWN)]
    return gr.update(choices=choices, value=WRITTEN if on else PLANS_OWN, visible=name != NO_FINALIZER)


def read_finalizer_choice(value: str | None) -> bool:
    """Whether the pool's finalizer may write the final answer of a run."""
    return value != PLANS_OWN
