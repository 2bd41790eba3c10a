"""Keeps the memory that tensors have freed, for the next ones.

glibc fetches each large block from the system and gives it back when it is freed. Between the two the kernel clears
every page that is touched, and for a small model on a CPU this can cost more than its arithmetic. How much depends on
the state of the kernel (`python bench/speed/cpu_decoding.py`). Larger blocks than MOST_KEPT still go back at once: what
no new block fits into would add up.
"""

from __future__ import annotations

import ctypes
from functools import cache

# Of mallopt (malloc.h)
TRIM_THRESHOLD, MAP_THRESHOLD = -1, -3
KEPT_BYTES = 2**31 - 1  # at the end of the heap; mallopt takes an int
MOST_KEPT = 2**25  # bytes of a block: the most that glibc takes


@cache
def keep_freed_memory() -> bool:
    """Let this process keep what it frees. Returns False where the C library is not glibc: all stays as it is."""
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  only glibc has it
    except (OSError, AttributeError, TypeError):
        return False
    return bool(libc.mallopt(MAP_THRESHOLD, MOST_KEPT) and libc.mallopt(TRIM_THRESHOLD, KEPT_BYTES))
