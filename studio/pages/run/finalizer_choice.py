"""Who writes the final answer of a run, as the Run page offers it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from pool_registry.pool import NO_FINALIZER, Pool

PLANS_OWN = "plan"
WRITTEN = "finalizer"


def draw_finalizer_choice() -> gr.Dropdown:
    """Draw the choice; a pool brings what there is to choose."""
    return gr.Dropdown(label="Final answer", choices=[], elem_id="run-finalizer", min_width=180)


def show_finalizer_choice(pool: Pool, on: bool = True) -> Any:
    """What the choice shows for a pool."""
    name = pool.limits.finalizer
    written = "in words" if name == NO_FINALIZER else f"by {name}"
    choices = [(written, WRITTEN), ("the plan's own", PLANS_OWN)]
    return gr.update(choices=choices, value=WRITTEN if on else PLANS_OWN)


def read_finalizer_choice(value: str | None) -> bool:
    """Whether another one than the plan's own may stand as the final answer of a run."""
    return value != PLANS_OWN
