"""Who owns an episode, a job or a server: a process, told apart from every other one on every host.

A process is its pid, its start in kernel ticks since the boot, the boot, the pid namespace (a container has its own)
and the host. None of them moves when the clock is set. Besides, a process that has opened a data folder holds a lock on
a file of its own there, which the kernel gives back when it ends: so a process of another container or host on the same
folder can be asked about, though it cannot be seen. Where neither is possible, a process counts as alive: to wrongly
end what runs elsewhere costs more than to wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

FOLDER = "processes"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MACHINE_ID = Path("/etc/machine-id")
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """`ticks` are the kernel's, since `boot`; elsewhere than on Linux the time of its start."""

    pid: int
    ticks: str
    boot: str
    namespace: str
    host: str

    def __str__(self) -> str:
        return ":".join((str(self.pid), self.ticks, self.boot, self.namespace, self.host))

    @property
    def here(self) -> bool:
        """Whether it would be a process that this one can see."""
        return (self.boot, self.namespace, self.host) == _describe_place()

    @property
    def lock_name(self) -> str:
        return f"{self.pid}-{hashlib.sha256(str(self).encode()).hexdigest()[:16]}.lock"


def this_process() -> str:
    """This process, as it stands in rows and records."""
    return _identify(os.getpid())


def process_of(pid: int) -> str:
    """A running process that this one can see. Raises psutil.Error when there is none."""
    state = _read_state(pid)
    if state is None:
        raise psutil.NoSuchProcess(pid)
    return str(ProcessIdentity(pid, state[0], *_describe_place()))


@cache
def _identify(pid: int) -> str:  # by pid: a fork is another process
    return process_of(pid)


def is_alive(owner: str, home: Path) -> bool:
    """Whether the process `owner` still runs, as far as can be told from here; `home` is the data folder it has open.

    A process of another host or container counts as alive while it holds its lock, or when nothing can be known.
    """
    identity = parse_identity(owner)
    if identity is None:
        return _is_alive_by_clock(owner)
    held = _is_lock_held(home / FOLDER / identity.lock_name)
    if held:
        return True
    if identity.here and _sees_itself():
        return _runs_here(identity)
    rebooted = identity.host == _describe_place()[2] and identity.boot != _describe_place()[0]
    return held is None and not rebooted


def find_pid(owner: str) -> int | None:
    """The pid of a running process that this one can see; None for any other."""
    identity = parse_identity(owner)
    if identity is None:
        return int(owner.partition(":")[0]) if _is_alive_by_clock(owner) else None
    return identity.pid if identity.here and _sees_itself() and _runs_here(identity) else None


def signal_process(owner: str, number: signal.Signals) -> bool:
    """Send a signal to the process `owner`; False when it is gone, or is another host's or container's."""
    pid = find_pid(owner)
    if pid is None:
        return False
    if not hasattr(os, "pidfd_open"):
        os.kill(pid, number)
        return True
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if find_pid(owner) is None:  # it ended, and its number was given to another in between
                return False
            signal.pidfd_send_signal(handle, number)
            return True
        finally:
            os.close(handle)
    return False


def parse_identity(owner: str) -> ProcessIdentity | None:
    """Read what `str(ProcessIdentity)` wrote; None for anything else."""
    parts = owner.split(":", 4)
    if len(parts) != 5 or not parts[0].isdecimal():
        return None
    return ProcessIdentity(int(parts[0]), *parts[1:])


class FolderHold:
    """The lock of this process in a data folder. It is given up when the process ends, or when nobody refers to it."""

    def __init__(self, home: Path) -> None:
        identity = parse_identity(this_process())
        assert identity is not None, "this process writes its own identity"
        folder = home / FOLDER
        folder.mkdir(exist_ok=True)
        self._file = os.open(folder / identity.lock_name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._give_up = weakref.finalize(self, os.close, self._file)
        with suppress(OSError):  # a file system without locks: the process is known by its start alone
            fcntl.flock(self._file, fcntl.LOCK_EX)  # waits for those who ask whether it is held: no time at all

    def forget(self) -> None:
        """Close the file of a parent process in a fork of it: the lock stays the parent's."""
        self._give_up()


_holds: weakref.WeakValueDictionary[Path, FolderHold] = weakref.WeakValueDictionary()


def hold_folder(home: Path) -> FolderHold:
    """Hold this process's lock in a data folder for as long as the result is referred to. Old locks are removed."""
    hold = _holds.get(home)
    if hold is None:
        hold = _holds[home] = FolderHold(home)
        for path in (home / FOLDER).glob("*.lock"):
            if _is_lock_held(path) is False:
                path.unlink(missing_ok=True)
    return hold


def _forget_holds() -> None:
    for hold in list(_holds.values()):
        hold.forget()
    _holds.clear()


os.register_at_fork(after_in_child=_forget_holds)


def _is_lock_held(path: Path) -> bool | None:
    """Whether some process holds the lock of this file; None when there is no file, or no answer."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    else:
        return False
    finally:
        os.close(file)


def _runs_here(identity: ProcessIdentity) -> bool:
    state = _read_state(identity.pid)
    return state is not None and state[0] == identity.ticks and state[1] not in "ZX"


def _read_state(pid: int) -> tuple[str, str] | None:
    """When a process started, in ticks since the boot, and its state's letter; None when there is none."""
    if not sys.platform.startswith("linux"):
        try:
            process = psutil.Process(pid)
            return f"{process.create_time():.2f}", "Z" if process.status() == psutil.STATUS_ZOMBIE else "R"
        except psutil.Error:
            return None
    try:
        # The name in brackets may hold anything, brackets too.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[19], fields[0]


def _describe_place() -> tuple[str, str, str]:
    """The boot, the pid namespace and the host of this process."""
    return _read_place(os.getpid())


@cache
def _read_place(_: int) -> tuple[str, str, str]:  # by pid: a fork may be in another namespace
    boot = namespace = machine = ""
    with suppress(OSError):
        boot = BOOT_ID.read_text().strip()
    with suppress(OSError):
        namespace = str((PROC / "self/ns/pid").stat().st_ino)
    with suppress(OSError):
        machine = MACHINE_ID.read_text().strip()[:12]
    return boot, namespace, f"{os.uname().nodename}/{machine}"


def _sees_itself() -> bool:
    """Whether /proc shows this process's own namespace: in a container it may be that of the host."""
    if not sys.platform.startswith("linux"):
        return True
    try:
        return str((PROC / "self").readlink()) == str(os.getpid())
    except OSError:
        return False


def _is_alive_by_clock(owner: str) -> bool:
    """What Podium 0.1 wrote: pid and start by the clock."""
    pid, _, started = owner.partition(":")
    try:
        process = psutil.Process(int(pid))
        return f"{process.create_time():.2f}" == started and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False
