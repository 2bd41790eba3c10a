"""People who edit one pool through studios, each again and again, and what they were told."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

POOL, COMMON, NOBODY = "shared", "common", "0.0"
PATIENCE_S = 300.0  # for a studio that starts again
SHARES = 5  # every so many edits one is of the worker that all edit, and one adds a task


def describe_common(tag: str, seen: str) -> str:
    """A description of the common worker, which names the edit that it replaces."""
    return f"{tag} after {seen}"


def read_tags(description: str) -> tuple[str, str]:
    """The tag of an edit of the common worker, and that of the edit that it replaced."""
    tag, _, seen = description.partition(" after ")
    return tag, seen


@dataclass
class Ledger:
    """What was acknowledged: the last number of each saver's own worker, tags of the common one, queries of tasks.
    `refused` counts edits that were refused with both shown."""

    own: dict[int, set[int]] = field(default_factory=dict)
    common: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    refused: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def acknowledged(self) -> int:
        return sum(map(len, self.own.values())) + len(self.common) + len(self.tasks)


@dataclass
class Saver:
    """One person with one tab. `find_url` is the address of their studio, which may be another one after a crash."""

    number: int
    find_url: Callable[[], str]
    ledger: Ledger
    seen: dict[str, Any] = field(default_factory=dict)

    def save(self, edits: int) -> None:
        """Make so many edits, most of them from a version that others have edited since."""
        self.seen = self.show()
        for number in range(1, edits + 1):
            act = {1: self.edit_common, 0: self.add_task}.get(number % SHARES, self.edit_own)
            try:
                act(number)
            except (OSError, http.client.HTTPException):  # nobody knows whether it was saved
                self.seen = self.show()

    def edit_own(self, number: int) -> None:
        reply = self.send_worker(f"w{self.number}", str(number))
        assert reply["ok"], reply
        with self.ledger.lock:
            self.ledger.own.setdefault(self.number, set()).add(number)

    def edit_common(self, number: int) -> None:
        tag = f"{self.number}.{number}"
        before = next(row["description"] for row in self.seen["workers"] if row["name"] == COMMON)
        sent = describe_common(tag, read_tags(before)[0])
        reply = self.send_worker(COMMON, sent)
        with self.ledger.lock:
            if reply["ok"]:
                self.ledger.common.add(tag)
                return
            self.ledger.refused += 1
        (line,) = reply["conflict"]["lines"]
        assert line["yours"] == sent and line["theirs"] != before, "it shows both"
        self.seen = self.show()

    def add_task(self, number: int) -> None:
        query = f"Question {number} of saver {self.number}?"
        task = {"query": query, "answer": "1", "verifier": "", "split": "train", "plan": ""}
        reply = self.send("train/save_task", {"pool": POOL, "task": task})
        assert reply["ok"], reply
        with self.ledger.lock:
            self.ledger.tasks.add(query)

    def send_worker(self, name: str, description: str) -> dict[str, Any]:
        worker = {"name": name, "kind": "calculator", "description": description, "config": {}}
        fields = {"pool": POOL, "worker": worker, "replacing": name, "based_on": self.seen["based_on"]}
        reply = self.send("pool/save_worker", fields)
        if reply["ok"]:
            self.seen = reply["state"]["pool"]
        return reply

    def show(self) -> dict[str, Any]:
        """The pool as it is now; waits for a studio that starts again."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                pool: dict[str, Any] = self.send("pool/show", {"pool": POOL})["state"]["pool"]
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < end, "the studio does not come back"
                time.sleep(0.2)
            else:
                return pool

    def send(self, command: str, fields: dict[str, Any]) -> dict[str, Any]:
        headers = {"content-type": "application/json"}
        address = f"{self.find_url()}/api/pages/{command}"
        request = urllib.request.Request(address, json.dumps(fields).encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            document: dict[str, Any] = json.load(response)
        return document
