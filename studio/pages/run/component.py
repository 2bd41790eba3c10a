"""The live view of one episode as a Gradio component: its value is the episode's id, nothing more.

Everything that moves comes over the episode's own event stream; see assets/web/run/run_view.js.
"""

from __future__ import annotations

import gradio as gr

TEMPLATE = '<div class="run-view-root"></div>'
SCRIPT = """
const root = element.querySelector('.run-view-root');
import('/podium/web/run/run_view.js').then((module) => {
  const view = module.mount(root, {
    onState: (running) => document.body.classList.toggle('is-running', running),
    onStarted: (id) => { props.value = id; },
  });
  import('/podium/web/run/composer.js').then((composer) => composer.attach(view));
  const follow = () => { if (props.value) view.show(props.value); };
  watch('value', follow);
  follow();
});
"""


def run_view(elem_id: str) -> gr.HTML:
    """Make the component; set its value to an episode id to show that episode."""
    return gr.HTML(value="", html_template=TEMPLATE, js_on_load=SCRIPT, apply_default_css=False, elem_id=elem_id)
