"""Who owns a job or an episode: not mistaken when the clock is set, across containers, hosts and reboots."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.engine import process_identity
from orchestrator.engine.process_identity import (
    ProcessIdentity,
    hold_folder,
    is_alive,
    parse_identity,
    process_of,
    signal_process,
    this_process,
)

HOLDER = textwrap.dedent("""
    import os, sys, time
    from pathlib import Path
    from orchestrator.engine.process_identity import hold_folder, this_process
    hold = hold_folder(Path(sys.argv[1]))
    print(this_process(), flush=True)
    if "fork" in sys.argv and os.fork() == 0:
        os.setsid()
        time.sleep(60)
    sys.stdin.read()
""")


def me(**changes: object) -> ProcessIdentity:
    identity = parse_identity(this_process())
    assert identity is not None
    return replace(identity, **changes)  # type: ignore[arg-type]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process with the data folder open, and who it is."""
    with hold_in_process(tmp_path) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def hold_in_process(home: Path, *options: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOLDER, str(home), *options], stdin=pipe, stdout=pipe, text=True)


def test_a_clock_that_is_set_ends_nobody(tmp_path, monkeypatch):
    """An NTP step, or a virtual machine that wakes up, moves every start time that is told by the clock."""
    owner = this_process()
    told = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: told(self) + 2.0)
    process_identity._identify.cache_clear()
    assert is_alive(owner, tmp_path) and this_process() == owner == process_of(os.getpid())


def test_a_reused_pid_another_boot_and_nonsense_are_dead(tmp_path):
    assert is_alive(str(me()), tmp_path)
    assert not is_alive(str(me(ticks="1")), tmp_path)
    assert not is_alive(str(me(boot="the boot before")), tmp_path)
    assert not is_alive(str(me(pid=2**22 + 1)), tmp_path)
    for nonsense in ("", "x", "1:2:3:4", "a:b:c:d:e", f"{os.getpid()}:1.00"):
        assert not is_alive(nonsense, tmp_path)


def test_a_zombie_is_dead(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    owner = process_of(process.pid)
    assert process.stdout is not None
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(owner, tmp_path)
    process.wait()


def test_what_cannot_be_known_counts_as_alive_and_is_never_signalled(tmp_path, monkeypatch):
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: sent.append(pid))
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda handle, _: sent.append(handle))
    for stranger in (me(host="elsewhere/1", boot="another"), me(namespace="1")):
        assert is_alive(str(stranger), tmp_path)
        assert not signal_process(str(stranger), signal.SIGTERM)
    assert not sent


def test_the_lock_tells_of_a_process_that_cannot_be_seen(tmp_path, holder, monkeypatch):
    process, owner = holder
    monkeypatch.setattr(process_identity, "_describe_place", lambda: ("b", "n", "another host"))
    assert is_alive(owner, tmp_path)
    process.kill()
    process.wait()
    assert not is_alive(owner, tmp_path)


@pytest.mark.medium
def test_a_child_that_outlives_its_parent_does_not_keep_its_lock(tmp_path, monkeypatch):
    process = hold_in_process(tmp_path, "fork")
    assert process.stdout is not None
    owner = process.stdout.readline().strip()
    (child,) = wait_for_children(process.pid)
    process.kill()
    process.wait()
    monkeypatch.setattr(process_identity, "_describe_place", lambda: ("b", "n", "another host"))
    try:
        deadline = time.monotonic() + 30  # a child that was only just forked gives the lock up at its first step
        while is_alive(owner, tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert child.is_running() and not is_alive(owner, tmp_path)
    finally:
        child.kill()


def wait_for_children(pid: int) -> list[psutil.Process]:
    while not (children := psutil.Process(pid).children()):
        pass
    return children


def test_old_locks_go_and_held_ones_stay(tmp_path, holder):
    _, owner = holder
    identity = parse_identity(owner)
    assert identity is not None
    (tmp_path / "processes" / "1-old.lock").touch()
    hold = hold_folder(tmp_path)
    names = {path.name for path in (tmp_path / "processes").iterdir()}
    assert names == {identity.lock_name, me().lock_name} and hold_folder(tmp_path) is hold


def test_a_signal_reaches_the_process_and_no_other_after_it(tmp_path, holder):
    process, owner = holder
    assert signal_process(owner, signal.SIGTERM)
    process.wait()
    assert not signal_process(owner, signal.SIGTERM)


CONTAINER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home
    from trainer.jobs.queue import JobStore
    store = open_store(find_home(sys.argv[1]))
    jobs = JobStore(store.engine, store.home)
    print(store.traces.mark_interrupted(), jobs.find_running() is not None, jobs.start_next())
""")


def can_unshare() -> bool:
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode
    )


@pytest.mark.medium
@pytest.mark.skipif(not can_unshare(), reason="this account cannot make a pid namespace")
@pytest.mark.parametrize("mount_proc", [["--mount-proc"], []])
def test_a_container_on_the_same_folder_ends_no_job_and_starts_none(tmp_path, mount_proc):
    from orchestrator.engine.events import EpisodeStarted
    from orchestrator.traces.store import open_store
    from pool_registry.storage.data_folder import find_home
    from trainer.jobs.queue import JobStore
    from trainer.recipe import parse_recipe

    store = open_store(find_home(tmp_path))
    jobs = JobStore(store.engine, store.home)
    recipe = parse_recipe("{name: j, evaluate: {orchestrators: [oracle], source: forge, levels: [1], count: 1}}")
    assert jobs.claim(jobs.submit(recipe).id)
    jobs.submit(recipe)
    store.traces.append("mine", EpisodeStarted("q", "p", "h", "o", {}, "2026-01-01T00:00:00+00:00"))
    store.traces.flush()
    command = ["unshare", "--pid", "--fork", *mount_proc, sys.executable, "-c", CONTAINER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["0", "True", "None"]
    assert store.traces.row("mine").state == "running" and jobs.find_running() is not None
    store.close()
