"""Tasks with exact answers. registry.py is the one place to register a family or another source."""

from trainer.tasks.registry import (
    SUITES,
    find_task,
    get_suite,
    is_held_out,
    list_held_out_families,
    list_train_families,
    recognize_task,
)

__all__ = [
    "SUITES",
    "find_task",
    "get_suite",
    "is_held_out",
    "list_held_out_families",
    "list_train_families",
    "recognize_task",
]
