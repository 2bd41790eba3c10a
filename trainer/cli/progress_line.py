"""Progress on stderr: one line that changes on a terminal, else a plain line every few seconds."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

PLAIN_S = 2.0
TERMINAL_S = 0.1
CLEAR = "\r\x1b[K"  # to the start of the line, and clear it


class ProgressLine:
    """Shows the newest line, and no more than a person can read. `close` shows the last one that was held back."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._pause_s = TERMINAL_S if self._is_terminal else PLAIN_S
        self._next = 0.0
        self._shown = self._newest = ""

    def show(self, line: str) -> None:
        """Show a line in the place of the last one, or beneath it."""
        self._newest = line
        if line != self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._pause_s
            self._write()

    def say(self, sentence: str) -> None:
        """Print a sentence that stays."""
        self._stream.write(f"{CLEAR if self._is_terminal else ''}{sentence}\n")
        self._stream.flush()

    def close(self) -> None:
        """Show the newest line, and leave it on the screen."""
        if self._newest != self._shown:
            self._write()
        if self._is_terminal and self._shown:
            self._stream.write("\n")
            self._stream.flush()
        self._shown = self._newest = ""

    def _write(self) -> None:
        self._shown = self._newest
        # A longer line would go on in the next one, where it could not be cleared.
        fitting = self._shown[: shutil.get_terminal_size().columns - 1]
        self._stream.write(f"{CLEAR}{fitting}" if self._is_terminal else f"{self._shown}\n")
        self._stream.flush()
