"""The Train page: a recipe, what it needs, and the jobs. Drawn by assets/web/train/page.js.

Commands go to TrainDesk; what a job does comes over its own stream (train_api.py).
"""

from __future__ import annotations

from studio.frame.web_page import web_page
from studio.pages.train.commands import TrainDesk
from studio.runtime import Runtime


def build(runtime: Runtime) -> None:
    """The page's one component, and its commands."""
    web_page("train", TrainDesk(runtime).handle)
