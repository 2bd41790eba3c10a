"""Tasks with exact answers. registry.py is the one place to register a family or another source."""

from trainer.tasks.registry import (
    SUITES,
    find_task,
    held_out_families,
    is_held_out,
    recognize,
    suite_named,
    train_families,
)

__all__ = ["SUITES", "find_task", "held_out_families", "is_held_out", "recognize", "suite_named", "train_families"]
