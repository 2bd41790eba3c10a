"""This Space: recorded runs that replay and, where space.json says so, the orchestrator itself, live.

Start it with `python app.py`. Everything it shows comes from this folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from html import escape
from pathlib import Path
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read by Gradio when it is imported
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import gradio as gr

HERE = Path(__file__).resolve().parent
SPACE: dict[str, Any] = json.loads((HERE / "space.json").read_text(encoding="utf-8"))
PARALLEL = 4  # visitors whose runs are under way at the same time; others wait in Gradio's queue
HEAD = (
    f"<style>{(HERE / 'web/page.css').read_text(encoding='utf-8')}</style>"
    f"<script>{(HERE / 'web/page.js').read_text(encoding='utf-8')}</script>"
)
MOUNT = """
const root = element.querySelector('.space-root');
let page = null;
const show = () => {
  if (!window.PodiumReplay) return setTimeout(show, 30);
  const data = JSON.parse(props.value);
  if (data.live) page?.take(data.live);
  else if (data.traces) page = window.PodiumReplay.mount(root, data);
  else window.PodiumReplay.head(root, data.info);
};
watch('value', show);
show();
"""  # one script for both parts: what they show is in their values


def build() -> gr.Blocks:
    """Build the page."""
    traces = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "traces").glob("*.json"))]
    demo: gr.Blocks
    with gr.Blocks(title=SPACE["info"]["title"]) as demo:
        _part({"info": SPACE["info"]})
        composer = Composer(SPACE, traces) if SPACE["visitors"] != "replay" else None
        view = _part({"info": SPACE["info"], "traces": traces})
        if composer is not None:
            composer.connect(view)
    return demo


def _part(shown: dict[str, Any]) -> gr.HTML:
    """One part of the page that web/page.js draws; its value is text, and never part of a template."""
    root = '<div class="space-root"></div>'
    return gr.HTML(json.dumps(shown), html_template=root, js_on_load=MOUNT, apply_default_css=False, padding=False)


class Composer:
    """Query, keys and buttons of a live Space."""

    def __init__(self, space: dict[str, Any], traces: list[dict[str, Any]]) -> None:
        from live import LiveRunner  # type: ignore[import-not-found]  # beside this file, in live Spaces only

        self.runner = LiveRunner(space, HERE)
        self.names = [key["name"] for key in space["keys"]] if space["visitors"] == "own_key" else []
        first = next((trace["view"]["episode"]["query"] for trace in traces if trace.get("listed")), "")
        with gr.Column(elem_classes="space-ask"):
            self.query = gr.Textbox(label="Query", value=first, lines=2, max_lines=8, elem_id="query")
            self.keys = [_key_box(key) for key in space["keys"]] if self.names else []
            with gr.Row():
                self.run = gr.Button("Run", variant="primary", scale=0, min_width=140, elem_id="ask")
                self.stop = gr.Button("Stop", scale=0, min_width=100, elem_id="halt")
            self.problem = gr.HTML("", elem_id="problem")

    def connect(self, view: gr.HTML) -> None:
        async def ask(query: str, *keys: str) -> AsyncIterator[tuple[Any, Any]]:
            given = {name: key for name, key in zip(self.names, keys, strict=True) if key and key.strip()}
            try:
                async for document in self.runner.run(query or "", given):
                    yield json.dumps({"live": document}), ""
            except self.runner.errors as error:
                yield gr.skip(), f'<p role="alert"><b>This was not run.</b> {escape(str(error))}</p>'

        started = self.run.click(
            ask, [self.query, *self.keys], [view, self.problem], concurrency_limit=PARALLEL, show_progress="hidden"
        )
        self.stop.click(None, cancels=[started])


def _key_box(key: dict[str, Any]) -> gr.Textbox:
    info = f"For {', '.join(key['workers'])}. Used for your runs alone, and kept nowhere."
    return gr.Textbox(label=f"Your {key['name']}", info=info, type="password", max_lines=1)


if __name__ == "__main__":
    build().queue(max_size=40).launch(
        head=HEAD,
        theme=gr.themes.Base(primary_hue="indigo", neutral_hue="slate"),
        footer_links=[],
        show_error=False,
        run_history=False,
        enable_monitoring=False,
        ssr_mode=False,
    )
