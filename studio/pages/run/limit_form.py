"""The limits of one run on the Run page: workers that it may not call, what it may cost, and who may see what."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradio as gr

from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits, build_run_limits, parse_seen_by, write_seen_by
from pool_registry.errors import InvalidRunLimits
from pool_registry.pool import Pool
from studio.pages.run.finalizer_choice import draw_finalizer_choice

HOW_SEEN = "crm = analyst; 2 = bob, cy"


class LimitForm(NamedTuple):
    """The components of the form, in the order of `read_limits`; the panel that they stand in is no input."""

    without: gr.Dropdown
    max_cost: gr.Textbox
    seen_by: gr.Textbox
    panel: gr.Accordion


def draw_limits(panel: gr.Accordion) -> tuple[LimitForm, gr.Dropdown]:
    """Draw the form in the panel of a run's options, and beside its fields who writes the final answer."""
    with gr.Row(elem_id="run-limit-fields"):
        without = gr.Dropdown(
            label="Without these workers", choices=[], multiselect=True, elem_id="run-without", min_width=180
        )
        max_cost = gr.Textbox(label="Most US dollars", placeholder="no cap", elem_id="run-max-cost", min_width=90)
        seen_by = gr.Textbox(
            label="Outputs seen by these alone", placeholder=HOW_SEEN, elem_id="run-seen-by", min_width=200
        )
        finalizer = draw_finalizer_choice()
    return LimitForm(without, max_cost, seen_by, panel), finalizer


def show_limits(pool: Pool, limits: RunLimits = NO_RUN_LIMITS, opened: bool = False) -> tuple[Any, Any, Any, Any]:
    """What the form shows for a pool, with the limits of a recorded run where there are some. It is open with those, or
    where something else in it is set."""
    names = [spec.name for spec in pool.enabled]
    kept = [name for name in limits.without_workers if name in names]
    cost = "" if limits.max_cost is None else f"{limits.max_cost:g}"
    return (
        gr.update(choices=names, value=kept),
        gr.update(value=cost),
        gr.update(value=write_seen_by(limits)),
        gr.update(open=bool(limits) or opened),
    )


def read_limits(without: list[str] | None, max_cost: str | None, seen_by: str | None) -> RunLimits:
    """The limits as they were typed. Raises InvalidRunLimits."""
    texts = [text for text in (seen_by or "").split(";") if text.strip()]
    return build_run_limits(without or (), _read_dollars(max_cost or ""), parse_seen_by(texts))


def _read_dollars(text: str) -> float | None:
    plain = text.strip().removeprefix("$").strip()
    if not plain:
        return None
    try:
        return float(plain)
    except ValueError as error:
        sentence = f"{text.strip()[:40]!r} is no number of US dollars; write one such as 0.02, or leave it empty"
        raise InvalidRunLimits("max_cost", sentence) from error
