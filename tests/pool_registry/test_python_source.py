"""Sources are parsed right while other threads parse, too."""

import ast
import gc
import sys
import threading
from pathlib import Path

import pytest

import pool_registry.workers.calculator as calculator
from pool_registry.python_source import parse_expression, parse_module


def test_threads_that_parse_at_once_each_get_their_tree():
    """With `ast.parse` in its place about one parse in ten ends in a SystemError here, under Python 3.11."""
    source = Path(calculator.__file__).read_text(encoding="utf-8")
    expected = ast.dump(ast.parse(source))
    trees: list[str] = []

    def parse_often(depth: int) -> None:
        if depth:  # threads at different depths count differently
            parse_often(depth - 1)
            return
        for _ in range(40):
            _Slow().make_cycle()
            trees.append(ast.dump(parse_module(source)))

    threads = [threading.Thread(target=parse_often, args=(count * 9,)) for count in range(3)]
    limits, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(5, 2, 2)
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*limits)
        sys.setswitchinterval(interval)
    assert trees == [expected] * 120


class _Slow:
    """Garbage whose finalizer runs long enough for another thread to take over."""

    def make_cycle(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        for _ in range(200):
            pass


def test_what_is_no_python_is_refused_at_once():
    with pytest.raises(SyntaxError):
        parse_module("def (")
    with pytest.raises(SyntaxError):
        parse_expression("a = 1")
