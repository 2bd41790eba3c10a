"""Memory that tensors free is used again without asking the system for it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from pool_registry.language_models import freed_memory
from tests.machine import needs

# Ten blocks of some size, one after the other, and how many pages had to be fetched for all but the first.
COUNT_FAULTS = """
import ctypes, resource, sys
from pool_registry.language_models.freed_memory import keep_freed_memory

def fill_block():
    ctypes.memset(block := libc.malloc(size), 1, size)
    libc.free(block)

size = int(sys.argv[2])
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
if sys.argv[1] == "keep":
    assert keep_freed_memory()
fill_block()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(9):
    fill_block()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_faults(word: str, size: int) -> int:
    # With a threshold glibc does not raise it by itself after the first block
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}
    command = [sys.executable, "-c", COUNT_FAULTS, word, str(size)]
    return int(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=environment).stdout)


@pytest.mark.medium
@needs(platform.libc_ver()[0] == "glibc", "glibc")
def test_a_block_that_is_freed_is_not_fetched_again():
    size = 24 << 20
    usual, kept = count_faults("usual", size), count_faults("keep", size)
    assert usual > 1000 and kept < usual / 50


@pytest.mark.medium
@needs(platform.libc_ver()[0] == "glibc", "glibc")
def test_a_large_block_goes_back_at_once():
    assert count_faults("keep", 2 * freed_memory.MOST_KEPT) > 1000


def test_where_the_c_library_is_another_one_nothing_changes(monkeypatch):
    class Other:
        """A library without glibc's functions."""

        def __getattr__(self, name):
            raise AttributeError(name)

    freed_memory.keep_freed_memory.cache_clear()
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda _: Other())
    assert freed_memory.keep_freed_memory() is False
    freed_memory.keep_freed_memory.cache_clear()
