"""A program that holds a task set of verifiers and rewards answers, in the Python that has that package."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pool_registry.actions import JsonValue, clean_text
from trainer.errors import UnusableTasks

PROGRAM = Path(__file__).with_name("program.py")
PYTHON = "PODIUM_VERIFIERS_PYTHON"  # the environment variable that names another Python than this one
INSTALL = (
    "python -m venv ~/verifiers && ~/verifiers/bin/pip install 'verifiers>=0.4,<0.5' TASKSET && "
    f"export {PYTHON}=~/verifiers/bin/python"
)
START_S = 300.0  # a task set may load its data first
REWARD_S = 30.0
MAX_TASKS = 100_000
KEPT_CHARS = 300

Json = dict[str, Any]


class RewardProcess:
    """The program, started when it is first needed and again after an answer that took longer than `REWARD_S`. It ends
    by itself when this process does."""

    def __init__(self, taskset: str, settings: Mapping[str, JsonValue]) -> None:
        self.taskset, self.settings = taskset, dict(settings)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._errors: IO[str] | None = None

    def __reduce__(self) -> tuple[type[RewardProcess], tuple[str, Json]]:
        return RewardProcess, (self.taskset, self.settings)  # tasks travel to other machines; programs do not

    def list_tasks(self) -> list[Json]:
        """Every task as the program describes it. Raises UnusableTasks saying what to do."""
        with self._lock:
            return self._start()

    def reward(self, index: int, answer: str) -> float:
        """The reward of an answer to task `index`. Raises UnusableTasks when the task set fails, TimeoutError."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._process is not None and self._process.stdin is not None, "it was started with pipes"
            with contextlib.suppress(BrokenPipeError):  # it has just ended: `_read` says so
                self._process.stdin.write(json.dumps({"index": index, "answer": answer}) + "\n")
                self._process.stdin.flush()
            return float(self._read(REWARD_S)["reward"])

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> list[Json]:
        self.close()
        python = os.environ.get(PYTHON, sys.executable)
        command = [python, "-P", str(PROGRAM), self.taskset, json.dumps(self.settings), str(MAX_TASKS)]
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  while it runs
        try:
            self._process = subprocess.Popen(  # noqa: S603  no shell
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, encoding="utf-8"
            )
        except OSError as error:
            raise UnusableTasks(f"{python} ({PYTHON}) cannot be started: {error.strerror}") from error
        self._lines = queue.Queue()
        threading.Thread(target=_forward, args=(self._process.stdout, self._lines), daemon=True).start()
        tasks = []
        while "end" not in (row := self._read(START_S)):
            tasks.append(row)
        return tasks

    def _read(self, timeout_s: float) -> Json:
        """The next line of the program. Raises TimeoutError, after which the program is started anew."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            self.close()
            raise TimeoutError(f"the task set {self.taskset} gave no answer within {timeout_s:g} s") from None
        if not line:
            self.close()  # it has ended, and may not be known to have: the next answer starts it anew
            raise UnusableTasks(f"the task set {self.taskset} ended: {self._last_words()}")
        row: Json = json.loads(line)
        if "error" in row:
            raise UnusableTasks(f"the task set {self.taskset} failed: {_explain(row['error'])}")
        return row

    def _last_words(self) -> str:
        if self._errors is None:
            return "it said nothing"
        with contextlib.suppress(ValueError, OSError):
            self._errors.seek(0)
            lines = clean_text(self._errors.read()).strip().splitlines()
            return lines[-1][:KEPT_CHARS] if lines else "it said nothing"
        return "it said nothing"


def _forward(stdout: IO[str] | None, lines: queue.Queue[str]) -> None:
    """Put every line of the program into a queue; "" at the end."""
    assert stdout is not None, "it was started with pipes"
    for line in stdout:
        lines.put(line)
    lines.put("")


def _explain(error: str) -> str:
    """What the program said of its failure, and how to mend it where a package is missing."""
    text = " ".join(clean_text(error).split())[:KEPT_CHARS].rstrip(".")
    return f"{text}. Install it: {INSTALL}" if text.startswith("ModuleNotFoundError") else text
