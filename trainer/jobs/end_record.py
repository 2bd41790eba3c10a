"""How the process of a job ended, in a file that has its room on the disk before the job needs it.

The job's row says how a job ended. Where it cannot be written, above all on a full disk, this file is: it is made with
its whole size when the process begins and is overwritten in place. Who finds the process gone (queue.py) reads it. (A
file system that copies on every write can refuse even that; then the room that is left on the disk is looked at.)
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError

from orchestrator.engine.process_identity import parse_identity, this_process
from pool_registry.atomic_write import write_atomically

SIZE = 4096  # bytes
MAX_MESSAGE = 1500  # characters
VMSTAT = Path("/proc/vmstat")
MEMORY_EVENTS = Path("/sys/fs/cgroup/memory.events")  # of this container, where it is one
RESUME = "Resume goes on from the last complete checkpoint"


class EndRecord(BaseModel):
    """What is known of a process of a job. `state` is "" until it has ended by its own account; `signal` is the one
    that asked it to end, 0 for none; `memory_kills` counts processes that the kernel had ended for lack of memory when
    this one began."""

    owner: str
    memory_kills: int | None = None
    signal: int = 0
    state: str = ""
    code: str = ""
    message: str = ""


def reserve_end(path: Path) -> None:
    """Make the file for this process. Raises OSError where the disk has no room for it."""
    record = EndRecord(owner=this_process(), memory_kills=count_memory_kills())
    write_atomically(path, _dump(record))


def write_end(path: Path, state: str, code: str, message: str) -> None:
    """Write how this process ended, without asking the disk for room. Does nothing where the file is not there."""
    _change(path, {"state": state, "code": code, "message": message[:MAX_MESSAGE]})


def write_signal(path: Path, number: int) -> None:
    """Write which signal asked this process to end."""
    _change(path, {"signal": number})


def read_end(path: Path, owner: str) -> EndRecord | None:
    """What the process `owner` wrote; None where it is another one's, or nothing that can be read."""
    try:
        record = EndRecord.model_validate_json(path.read_bytes().rstrip(b" \n"))
    except (OSError, ValidationError):
        return None
    return record if record.owner == owner else None


def explain_end(record: EndRecord | None, owner: str) -> str:
    """Why a process that left no word is gone, as far as the machine can tell."""
    if _has_rebooted(owner):
        return f"the machine was started anew while it ran. {RESUME}"
    if record is None:
        return f"its process was killed: by a person, or because the machine ran out of memory. {RESUME}"
    kills = count_memory_kills()
    if record.memory_kills is not None and kills is not None and kills > record.memory_kills:
        return f"its process was killed (signal 9): the machine ran out of memory while it ran. {RESUME}"
    if record.signal:
        return f"it was asked to end (signal {record.signal}) and was killed before it had saved. {RESUME}"
    if kills is None:
        return f"its process was killed: by a person, or because the machine ran out of memory. {RESUME}"
    return (
        "its process was killed (signal 9) by a person or a program, or it crashed: the log may say more. The kernel "
        f"ended nothing for lack of memory. {RESUME}"
    )


def count_memory_kills() -> int | None:
    """How many processes the kernel has ended here for lack of memory since it started; None where it does not say."""
    counts = [_read_count(VMSTAT), _read_count(MEMORY_EVENTS)]
    there = [count for count in counts if count is not None]
    return sum(there) if there else None


def _read_count(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return None


def _has_rebooted(owner: str) -> bool:
    process, here = parse_identity(owner), parse_identity(this_process())
    return process is not None and here is not None and process.host == here.host and process.boot != here.boot


def _change(path: Path, values: dict[str, object]) -> None:
    record = read_end(path, this_process())
    if record is None:
        return
    handle = os.open(path, os.O_WRONLY)  # not truncated: its blocks stay its own
    try:
        os.pwrite(handle, _dump(record.model_copy(update=values)), 0)
        os.fsync(handle)
    finally:
        os.close(handle)


def _dump(record: EndRecord) -> bytes:
    return record.model_dump_json().encode()[:SIZE].ljust(SIZE)
