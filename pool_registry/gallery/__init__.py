"""The gallery: ready-made workers to add with one click. Its texts stand in assets/gallery/."""

from __future__ import annotations

from typing import Any

import yaml

from assets import asset


def read_gallery(name: str) -> Any:
    """Read one file of assets/gallery/."""
    return yaml.safe_load(asset(f"gallery/{name}.yaml").read_text(encoding="utf-8"))
