"""The part of the Hub that rents machines: jobs, their log, their hardware, and buckets.

A job's command is really run, in a folder that stands for the machine, with a `uv` that uses this environment; or a
test says what it does instead. Either way, the bucket is a folder that the machine sees mounted.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HARDWARE = {"cpu-basic": ("CPU Basic", 167), "l4x1": ("Nvidia L4 x1", 13333)}
FINAL = ("COMPLETED", "CANCELED", "ERROR")
_JOB = re.compile(r"/api/jobs/([^/]+)(?:/([^/]+)(/\w+)?)?$")
_BUCKET = re.compile(r"/api/buckets/([^/]+/[^/]+)(/.*)?$")
_WRITTEN = re.compile(r"/buckets/([^/]+/[^/]+)/resolve/(.+)$")
UV = """#!/bin/bash
while [ "$1" != python ]; do shift; done
shift
exec "$PODIUM_TEST_PYTHON" "$@"
"""


@dataclass
class Reply:
    status: int = 200
    document: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Machine:
    """One rented machine; `stage` is as the Hub tells it."""

    id: str
    spec: dict[str, Any]
    stage: str = "RUNNING"
    message: str | None = None
    log: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    def document(self, user: str) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return {
            "id": self.id, "createdAt": now, "owner": {"id": "1", "name": user, "type": "user"}, "labels":
            self.spec.get("labels"), "flavor": self.spec["flavor"], "status": {"stage": self.stage, "message":
            self.message}, "durations": {"runningSecs": 1}, "command": self.spec["command"],
        }  # fmt: skip


class Rentals:
    """Jobs and buckets. `work` is what a machine does; without it, the command of the job is run below `disk`."""

    def __init__(self, repos: dict[tuple[str, str], Any], user: str) -> None:
        self.repos, self.user = repos, user
        self.machines: list[Machine] = []
        self.buckets: dict[str, dict[str, bytes]] = {}
        self.disk: Path | None = None
        self.work: Callable[[Machine], None] = lambda machine: None
        self.credit = True
        self.public = False

    def reply(self, method: str, path: str, query: dict[str, list[str]], body: bytes) -> Reply:
        if path == "/api/jobs/hardware":
            return Reply(document=[_hardware(name, *row) for name, row in HARDWARE.items()])
        if match := _JOB.match(path):
            return self._job(method, match[2], match[3], query, body)
        if match := _BUCKET.match(path):
            return self._bucket(method, match[1], match[2] or "")
        if match := _WRITTEN.match(path):
            content = self._files(match[1]).get(match[2])
            return Reply(404, {"error": "Entry not found"}) if content is None else Reply(raw=content)
        return Reply(404, {"error": f"not in the stand-in: {method} {path}"})

    def _job(self, method: str, key: str | None, action: str | None, query: dict[str, list[str]], body: bytes) -> Reply:
        if key is None:
            return self._rent(json.loads(body)) if method == "POST" else Reply(document=self._list(query))
        machine = next((machine for machine in self.machines if machine.id == key), None)
        if machine is None:
            return Reply(404, {"error": "Job not found"})
        if action == "/cancel":
            self.end(machine, "CANCELED")
        if action == "/logs":
            time.sleep(0.05)  # a client that follows reconnects at once
            return Reply(raw=_events(machine.log), headers={"content_type": "text/event-stream"})
        return Reply(document=machine.document(self.user))

    def _list(self, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        labels = dict(label.split("=", 1) for label in query.get("label", []))
        rows = [machine for machine in self.machines if labels.items() <= machine.spec["labels"].items()]
        return [machine.document(self.user) for machine in rows]

    def _rent(self, spec: dict[str, Any]) -> Reply:
        if not self.credit:
            return Reply(402, {"error": "Pre-paid credit balance is insufficient"})
        machine = Machine(f"{len(self.machines) + 1:024x}", spec)
        self.machines.append(machine)
        if self.disk is not None:
            threading.Thread(target=self._run, args=(machine, self.disk / machine.id), daemon=True).start()
        else:
            self.work(machine)
        return Reply(document=machine.document(self.user))

    def end(self, machine: Machine, stage: str, message: str | None = None) -> None:
        """End a machine, as the Hub does when it is cancelled or its time is over."""
        if machine.stage not in FINAL:
            machine.stage, machine.message = stage, message
            if machine.process is not None:
                os.killpg(machine.process.pid, signal.SIGKILL)

    def write(self, machine: Machine, path: str, content: bytes) -> None:
        """Write a file into the folder of a machine's job."""
        self.buckets[self._bucket_of(machine)][f"{machine.spec['labels']['podium']}/{path}"] = content

    @staticmethod
    def _bucket_of(machine: Machine) -> str:
        return next(str(volume["source"]) for volume in machine.spec["volumes"] if volume["type"] == "bucket")

    def _bucket(self, method: str, name: str, rest: str) -> Reply:
        if method == "POST" and not rest:
            self.buckets.setdefault(name, {})
            return Reply(document={"url": f"https://huggingface.co/buckets/{name}"})
        if name not in self.buckets:
            return Reply(404, {"error": "Bucket not found"}, headers={"X_Error_Code": "RepoNotFound"})
        if not rest:
            visibility = {"private": not self.public, "visibility": "public" if self.public else "private"}
            return Reply(document={"id": name, **visibility, "createdAt": "2026-11-21T00:00:00.000Z", "size": 0,
                                   "totalFiles": 0})  # fmt: skip
        prefix = rest.removeprefix("/tree").strip("/")
        rows = [
            {"type": "file", "path": path, "size": len(content), "xetHash": str(hash(content))}
            for path, content in sorted(self._files(name).items())
            if path.startswith(prefix)
        ]
        return Reply(document=rows)

    def _files(self, bucket: str) -> dict[str, bytes]:
        """What is in a bucket: what tests have put there, and what the machines have written to the mounted folder."""
        files = dict(self.buckets.get(bucket, {}))
        folder = self.disk / "bucket" if self.disk is not None else None
        if folder is not None and bucket in self.buckets:
            files |= {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        return files

    def _run(self, machine: Machine, root: Path) -> None:
        """Run a job's command in a folder that stands for the machine's `/podium`."""
        root.mkdir(parents=True)
        bucket = root.parent / "bucket"
        bucket.mkdir(exist_ok=True)
        (root / "written").symlink_to(bucket)
        volume = next(volume for volume in machine.spec["volumes"] if volume["type"] == "dataset")
        for path, content in self.repos["dataset", volume["source"]].at[volume["revision"]].items():
            (root / "sent" / path).parent.mkdir(parents=True, exist_ok=True)
            (root / "sent" / path).write_bytes(content)
        (root / "bin").mkdir()
        (root / "bin" / "uv").write_text(UV)
        (root / "bin" / "uv").chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PODIUM", "HF_", "PYTHONP"))}
        environment = {
            **kept,
            **machine.spec.get("secrets", {}),
            "PODIUM_TEST_PYTHON": sys.executable,
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(root / "work" / "podium"),
        }
        command = [word.replace("/podium/", f"{root}/") for word in machine.spec["command"]]
        machine.process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        assert machine.process.stdout is not None
        machine.log.extend(line.rstrip("\n") for line in machine.process.stdout)
        status = machine.process.wait()
        if machine.stage not in FINAL:
            machine.stage = "ERROR" if status else "COMPLETED"


def _hardware(name: str, title: str, price: int) -> dict[str, Any]:
    accelerator = {"type": "gpu", "model": "L4", "quantity": "1", "vram": "24 GB", "manufacturer": "Nvidia"}
    return {
        "name": name, "prettyName": title, "cpu": "8 vCPU", "ram": "30 GB", "unitCostMicroUSD": price,
        "unitCostUSD": price / 1e6, "unitLabel": "minute", "accelerator": accelerator if "l4" in name else None,
    }  # fmt: skip


def _events(lines: list[str]) -> bytes:
    stamp = "2026-11-21T00:00:00.000Z"
    return "".join(f"data: {json.dumps({'data': line, 'timestamp': stamp})}\n\n" for line in lines).encode()
