"""Code that a model wrote can compute and nothing else. Attacked on every level this machine offers."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from pool_registry.actions import Action, Status
from pool_registry.errors import WorkerFault
from pool_registry.live import live_pool
from pool_registry.pool import Pool
from pool_registry.sandbox import launcher, runner
from pool_registry.sandbox.runner import Level, Sandbox, SandboxResult
from pool_registry.worker import WorkerSpec
from tests.machine import needs

LEVELS = [level for level in Level if sys.platform.startswith("linux") and asyncio.run(runner._attack(level)) is None]
pytestmark = needs(bool(LEVELS), "sandbox")


def run(code: str, level: Level, timeout_s: float = 10) -> SandboxResult:
    async def once() -> SandboxResult:
        sandbox = Sandbox(level=level, spares=0, cpu_s=20)
        try:
            return await asyncio.wait_for(sandbox.run(code), timeout_s)
        finally:
            await sandbox.close()

    return asyncio.run(once())


@pytest.fixture(params=LEVELS, ids=lambda level: level.name)
def level(request) -> Level:
    return request.param


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("import math\nmath.lcm(212, 285, 246)", 2477220),
        (
            "import statistics, decimal, fractions, datetime, itertools, collections, re\nstatistics.mean([1, 2, 3])",
            2,
        ),
        ("import threading\nl = []\nt = threading.Thread(target=lambda: l.append(5)); t.start(); t.join()\nl", [5]),
        ("{1: object}", "{1: <class 'object'>}"),
    ],
)
def test_ordinary_code_runs(level, code, value):
    assert run(code, level).value == value


def test_what_is_printed_comes_back_with_errors_and_their_line(level):
    assert run("print('hi')\nprint(2)", level).stdout == "hi\n2\n"
    assert run("x = 1\n1/0", level).error == ("exception", "ZeroDivisionError: division by zero (line 2)")
    assert run("x =", level).error[0] == "syntax"


ATTACKS = {
    "read passwd": "open('/etc/passwd').read()",
    "read a secret": "open({secret!r}).read()",
    "list home": "__import__('os').listdir({home!r})",
    "environment": "__import__('os').environ['PODIUM_PLANTED']",
    "proc environ": "open('/proc/1/environ').read()",
    "write outside": "open('/var/tmp/podium-escape', 'w').write('x')",
    "write beside the secret": "open({secret!r} + '2', 'w').write('x')",
    "chmod": "__import__('os').chmod({secret!r}, 0o777)",
    "truncate": "__import__('os').truncate({secret!r}, 0)",
    "utime": "__import__('os').utime({secret!r}, (0, 0))",
    "symlink": "__import__('os').symlink({secret!r}, '/tmp/link') or open('/tmp/link').read()",
    "tcp": "__import__('socket').create_connection(('127.0.0.1', 22), 1)",
    "udp": "__import__('socket').socket(2, 2).sendto(b'x', ('127.0.0.1', 53))",
    "unix socket": "__import__('socket').socket(1, 1).connect('/run/x')",
    "fork": "__import__('os').fork()",
    "subprocess": "__import__('subprocess').run(['id'])",
    "exec": "__import__('os').execv('/bin/sh', ['sh'])",
    "kill": "__import__('os').kill({pid}, 9)",
    "ptrace by ctypes": "x = __import__('ctypes').CDLL(None).ptrace(16, {pid}, 0, 0)\nassert x == 0, 'refused'",
    "unshare": "x = __import__('ctypes').CDLL(None).unshare(0x10000000)\nassert x == 0, 'refused'",
    "mount": "x = __import__('ctypes').CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, 0)\nassert x == 0, 'refused'",
    "raise the limit": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_gets_through(level, name, tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("do not read me")
    monkeypatch.setenv("PODIUM_PLANTED", "planted")
    code = ATTACKS[name].format(secret=str(secret), home=str(Path.home()), pid=os.getpid())
    result = run(code, level)
    assert result.error is not None, f"{name} returned {result.value!r}"
    assert secret.read_text() == "do not read me"
    assert not Path("/var/tmp/podium-escape").exists()


def test_bombs_end_in_an_error_and_leave_nothing_running(level):
    before = set(psutil.pids())
    assert run("x = [0] * 10**9", level).error is not None
    assert run("while True:\n    __import__('os').fork()", level).error is not None
    assert len(run("for _ in range(10**4): print('x' * 10**4)", level).stdout) == launcher.KEEP_OUTPUT
    with pytest.raises(TimeoutError):  # past sys.stdout nothing arrives, so that nothing fills a pipe
        run("import os\nwhile True: os.write(1, b'x' * 65536)", level, timeout_s=1)
    assert run("open('/tmp/big', 'wb').write(b'x' * 10**9)", level).error is not None
    with pytest.raises(TimeoutError):
        run("while True: pass", level, timeout_s=1)
    time.sleep(0.5)
    mine = [pid for pid in set(psutil.pids()) - before if psutil.pid_exists(pid) and "launcher" in _command(pid)]
    assert mine == []


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


def test_the_worker_reports_statuses_and_keeps_its_time_limit():
    async def calls():
        spec = WorkerSpec(name="py", kind="python", description="d", timeout_s=1)
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return [
                await pool.call(Action("py", {"code": code}))
                for code in ("print(6*7)", "1/0", "def", "while True: pass", "2+2")
            ]

    seen = asyncio.run(calls())
    assert [each.status for each in seen] == [
        Status.OK, Status.EXEC_ERR, Status.PARSE_ERR, Status.TIMEOUT, Status.OK,
    ]  # fmt: skip
    assert seen[0].value == 42 and seen[3].latency_s < 3


def test_without_a_sandbox_nothing_runs(monkeypatch):
    monkeypatch.setattr(runner, "_isolation", runner.Isolation(None, "no bwrap, no Landlock"))

    async def once():
        await Sandbox().run("1")

    with pytest.raises(WorkerFault, match="no Landlock"):
        asyncio.run(once())
