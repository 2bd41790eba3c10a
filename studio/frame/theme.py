"""The studio's look: Gradio's theme with our fonts and colours, and the head of every page."""

from __future__ import annotations

import gradio as gr

from studio.frame.navigation import stylesheets

FONT = ["Inter Variable", "ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "sans-serif"]
MONO = ["JetBrains Mono Variable", "ui-monospace", "SFMono-Regular", "Menlo", "monospace"]

# The class is set before anything is drawn, so that a dark page never flashes white.
DARK_MODE = """
(() => {
  const choice = localStorage.getItem('podium-theme');
  const dark = choice ? choice === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const apply = () => document.body && document.body.classList.toggle('dark', dark);
  apply();
  document.addEventListener('DOMContentLoaded', apply);
  window.podiumToggleTheme = () => {
    const now = document.body.classList.toggle('dark');
    localStorage.setItem('podium-theme', now ? 'dark' : 'light');
  };
})();
"""

# The tab has the name of the page. Gradio puts this script in late and may draw the names twice: look for a minute.
NAME_TAB = """
(() => {
  const until = Date.now() + 60000;
  const look = () => {
    const link = document.querySelector('#nav nav [aria-current]');
    if (link && document.title === 'Podium') document.title = `${link.textContent.trim()} · Podium`;
    if (Date.now() < until) setTimeout(look, 100);
  };
  look();
})();
"""

# A page that the pointer rests on is fetched before the click, in browsers that can. The rules are the browser's JSON.
FETCH_AHEAD = """
<script type="speculationrules">
{"prefetch": [{"where": {"selector_matches": "#nav nav a:not([aria-current])"}, "eagerness": "moderate"}]}
</script>"""

# Keys that every page has, and the palette that one of them opens.
KEYS = """
<link rel="stylesheet" href="/podium/web/search/search.css">
<script type="module" src="/podium/web/search/keys.js"></script>"""

# The page in the reader's language.
LANGUAGE = """
<script type="module" src="/podium/web/languages/language.js"></script>"""

# Who is logged in, and the way out.
LOGGED_IN = """
<link rel="stylesheet" href="/podium/web/login/account.css">
<script type="module" src="/podium/web/login/logged_in.js"></script>"""


def head(*, login: bool) -> str:
    """What goes into the head of every page; with `login` also who is logged in."""
    base = [f"/podium/web/lib/{name}.css" for name in ("tokens", "app", "components")]
    links = "\n".join(f'<link rel="stylesheet" href="{address}">' for address in [*base, *stylesheets()])
    font = "/podium/fonts/inter-latin-wght-normal.woff2"
    return f"""
<link rel="icon" type="image/svg+xml" href="/podium/web/logo.svg">
<link rel="preload" as="font" type="font/woff2" crossorigin href="{font}">
{links}
<script>{DARK_MODE}</script>
<script>{NAME_TAB}</script>{FETCH_AHEAD}{LANGUAGE}{KEYS}
{LOGGED_IN if login else ""}"""


def theme() -> gr.themes.Base:
    """Build the theme: indigo on slate, bordered inputs, text that is dark enough to read (WCAG AA)."""
    return gr.themes.Base(
        primary_hue="indigo",
        secondary_hue="slate",
        neutral_hue="slate",
        radius_size="md",
        text_size="md",
        spacing_size="md",
        font=FONT,
        font_mono=MONO,
    ).set(
        body_background_fill="#f6f7fb",
        body_background_fill_dark="#0a0f1c",
        body_text_color_subdued="#55617a",
        body_text_color_subdued_dark="#9aa8c0",
        block_background_fill="#ffffff",
        block_background_fill_dark="#111827",
        block_border_color="#e3e7f0",
        block_border_color_dark="#1f2a40",
        block_info_text_color="#55617a",
        block_info_text_color_dark="#9aa8c0",
        block_label_text_weight="550",
        block_title_text_weight="550",
        block_radius="12px",
        block_shadow="none",
        block_shadow_dark="none",
        border_color_primary="#e3e7f0",
        border_color_primary_dark="#1f2a40",
        input_background_fill="#ffffff",
        input_background_fill_dark="#0d1424",
        input_border_color="#ccd3e2",
        input_border_color_dark="#2b3852",
        input_border_width="1px",
        input_radius="9px",
        input_placeholder_color="#6b7790",
        input_placeholder_color_dark="#8492ab",
        button_border_width="1px",
        button_large_radius="9px",
        button_medium_radius="9px",
        button_small_radius="8px",
        button_large_text_weight="600",
        button_medium_text_weight="600",
        button_primary_background_fill="#4f46e5",
        button_primary_background_fill_dark="#4f46e5",
        button_primary_background_fill_hover="#4338ca",
        button_primary_background_fill_hover_dark="#5855eb",
        button_primary_text_color="#ffffff",
        button_secondary_background_fill="#ffffff",
        button_secondary_background_fill_dark="#172033",
        button_secondary_background_fill_hover="#f1f3f9",
        button_secondary_background_fill_hover_dark="#1e2a42",
        button_secondary_border_color="#d3d9e6",
        button_secondary_border_color_dark="#2b3852",
        button_cancel_background_fill="#ffffff",
        button_cancel_background_fill_dark="#172033",
        button_cancel_text_color="#b42318",
        button_cancel_text_color_dark="#fda29b",
        button_cancel_border_color="#d3d9e6",
        button_cancel_border_color_dark="#2b3852",
    )
