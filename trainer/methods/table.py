"""The table of methods, in the order in which the stages of a job run. Other packages add rows (docs/extend.md)."""

from __future__ import annotations

from typing import Any

from pool_registry.extensions.extension_table import ExtensionTable
from trainer.methods.base import Method
from trainer.methods.dpo.method import DPO
from trainer.methods.grpo.method import GRPO
from trainer.methods.sft.method import SFT

ROWS: tuple[Method[Any], ...] = (SFT, DPO, GRPO)
METHODS: ExtensionTable[Method[Any]] = ExtensionTable("podium.methods", Method, ROWS)  # type: ignore[type-abstract]
