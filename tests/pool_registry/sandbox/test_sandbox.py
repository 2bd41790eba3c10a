"""Code that a model wrote can compute and nothing else. Attacked on every level; one that a machine lacks is left out.

All snippets of a level share one fork server, as in use: what one of them does must not reach the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from pool_registry.actions import Action, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import WorkerFault
from pool_registry.pool import Pool
from pool_registry.sandbox import runner, snippet
from pool_registry.sandbox.levels import Level
from pool_registry.sandbox.runner import Sandbox, SandboxResult
from pool_registry.worker import WorkerSpec
from tests.machine import needs
from tests.trust.trials import count_trials

SCRATCH = f"/tmp/podium-{uuid4().hex}"  # not there, whatever else lies in the machine's /tmp
LEVELS = [level for level in Level if sys.platform.startswith("linux") and asyncio.run(runner._attack(level)) is None]
pytestmark = [pytest.mark.medium, needs(bool(LEVELS), "sandbox")]


class Jail:
    """A sandbox on an event loop of its own."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.loop = asyncio.Runner()
        self.sandbox = Sandbox(level=level, cpu_s=20)

    def run(self, code: str, timeout_s: float = 30) -> SandboxResult:
        return self.do(asyncio.wait_for(self.sandbox.run(code), timeout_s))

    def do(self, work: Any) -> Any:
        async def done() -> Any:
            return await work

        return self.loop.run(done())

    def children(self) -> list[psutil.Process]:
        """The processes behind the fork server: none when no call runs."""
        top = psutil.Process(self.do(self.sandbox._server()).process.pid)
        servers = 2 if self.level is Level.FULL else 0  # bubblewrap's own first process, and the server in it
        return [top, *top.children(recursive=True)][1 + servers :]

    def settles(self) -> bool:
        """Whether everything that calls started is gone within ten seconds."""
        for _ in range(200):
            if not self.children():
                return True
            time.sleep(0.05)
        return False


@pytest.fixture(
    scope="module",
    params=[pytest.param(level, marks=needs(level in LEVELS, f"sandbox of {level}"), id=level.name) for level in Level],
)
def jail(request) -> Iterator[Jail]:
    jail = Jail(request.param)
    yield jail
    jail.do(jail.sandbox.close())
    jail.loop.close()


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("import math\nmath.lcm(212, 285, 246)", 2477220),
        ("import statistics, decimal, fractions, datetime, itertools, collections, re\nstatistics.mean([1, 2, 3])", 2),
        ("import threading\nl = []\nt = threading.Thread(target=lambda: l.append(5)); t.start(); t.join()\nl", [5]),
        ("import sqlite3\nsqlite3.connect(':memory:').execute('select 6 * 7').fetchone()[0]", 42),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nP(3).x", 3),
        ("{1: object}", "{1: <class 'object'>}"),
        ("", None),
    ],
)
def test_ordinary_code_runs(jail, code, value):
    assert jail.run(code).value == value


def test_what_is_printed_comes_back_with_errors_and_their_line(jail):
    assert jail.run("print('hi')\nprint(2)").stdout == "hi\n2\n"
    assert jail.run("x = 1\n1/0").error == ("exception", "ZeroDivisionError: division by zero (line 2)")
    assert jail.run("x =").error[0] == "syntax"


# Each ends in an error; in braces stand things outside that must stay as they are.
ATTACKS = {
    # reading
    "read passwd": "open('/etc/passwd').read()",
    "read shadow": "open('/etc/shadow').read()",
    "read a secret": "open({secret!r}).read()",
    "read the project": "open({project!r}).read()",
    "read by descriptor": "import os\nos.open('passwd', 0, dir_fd=os.open('/etc', os.O_PATH))",
    "list home": "__import__('os').listdir({home!r})",
    "list the root": "__import__('os').listdir('/')",
    "environment": "__import__('os').environ['PODIUM_PLANTED']",
    "environment by ctypes": "import ctypes\nf = ctypes.CDLL(None).getenv\nf.restype = ctypes.c_char_p\n"
    "assert f(b'PODIUM_PLANTED'), 'nothing there'",
    "proc 1 environ": "open('/proc/1/environ').read()",
    "own environ": "open('/proc/self/environ').read()",
    "proc of the host": "open('/proc/{pid}/environ').read()",
    "maps of the host": "open('/proc/{pid}/maps').read()",
    "memory of the host": "open('/proc/{pid}/mem', 'rb').read(1)",
    "root of another process": "__import__('os').listdir('/proc/1/root')",
    "descriptors by proc": "__import__('os').listdir('/proc/self/fd')",
    "descriptors of the host": "__import__('os').listdir('/proc/{pid}/fd')",
    "disks": "open('/dev/sda', 'rb').read(1)",
    "kernel memory": "open('/dev/mem', 'rb').read(1)",
    "terminal": "open('/dev/tty', 'w').write('x')",
    "import the host's packages": "import pydantic",
    # writing
    "write outside": "open('/var/tmp/podium-escape', 'w').write('x')",
    "write the system": "open('/usr/podium-escape', 'w').write('x')",
    "write shared memory": "open('/dev/shm/podium-escape', 'w').write('x')",
    "write beside the secret": "open({secret!r} + '2', 'w').write('x')",
    "make a folder": "__import__('os').mkdir('/var/tmp/podium-escape')",
    "change the launcher": "open(__import__('pool_registry.sandbox.launcher').sandbox.launcher.__file__, 'w')",
    "chmod": "__import__('os').chmod({secret!r}, 0o777)",
    "truncate": "__import__('os').truncate({secret!r}, 0)",
    "utime": "__import__('os').utime({secret!r}, (0, 0))",
    "setxattr": "__import__('os').setxattr({secret!r}, 'user.x', b'1')",
    "remove": "__import__('os').remove({secret!r})",
    "rename": "__import__('os').rename({secret!r}, '/tmp/mine')",
    "symlink": "__import__('os').symlink({secret!r}, '/tmp/link') or open('/tmp/link').read()",
    "symlink to a folder": "import os\nos.symlink('/etc', '/tmp/etc')\nopen('/tmp/etc/passwd').read()",
    "hard link": "__import__('os').link({secret!r}, '/tmp/link') or open('/tmp/link').read()",
    "device file": "__import__('os').mknod('/tmp/disk', 0o60666, 0x800)",
    "leave the root": "import os\nos.chdir('/tmp/../..')\nopen('etc/passwd').read()",
    # network
    "tcp": "__import__('socket').create_connection(('127.0.0.1', {port}), 1)",
    "tcp 6": "__import__('socket').socket(10, 1).connect(('::1', {port}))",
    "udp": "__import__('socket').socket(2, 2).sendto(b'x', ('127.0.0.1', 53))",
    "listen": "__import__('socket').create_server(('127.0.0.1', 0))",
    "raw socket": "__import__('socket').socket(2, 3, 1)",
    "packet socket": "__import__('socket').socket(17, 3)",
    "netlink": "__import__('socket').socket(16, 3)",
    "vsock": "__import__('socket').socket(40, 1)",
    "unix socket": "__import__('socket').socket(1, 1).connect({unix!r})",
    "abstract socket": "__import__('socket').socket(1, 1).connect('\\0podium-test-{pid}')",
    "socket pair": "__import__('socket').socketpair()",
    "resolve a name": "__import__('socket').getaddrinfo('example.org', 80)",
    # processes and signals
    "fork": "__import__('os').fork()",
    "vfork": "__import__('ctypes').CDLL(None, use_errno=True).vfork() == -1 and 1 / 0",
    "subprocess": "__import__('subprocess').run(['id'])",
    "multiprocessing": "import multiprocessing\np = multiprocessing.Process(target=print)\np.start()",
    "exec": "__import__('os').execv('/bin/sh', ['sh'])",
    "posix_spawn": "__import__('os').posix_spawn('/bin/true', ['true'], {{}})",
    "double fork": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork()\n    time.sleep(60)",
    "setsid": "__import__('os').setsid()",
    "kill the host": "__import__('os').kill({pid}, 9)",
    "kill the parent": "import os\nos.kill(os.getppid(), 9)",
    "kill everything": "__import__('os').kill(-1, 9)",
    "kill the group": "__import__('os').killpg(0, 9)",
    "kill oneself": "__import__('signal').raise_signal(9)",
    "pidfd": "__import__('os').pidfd_open({pid})",
    "signals through a descriptor": "import fcntl, os\nfcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, {pid})",
    "move the host to one core": "__import__('os').sched_setaffinity({pid}, [0])",
    "slow down the host": "__import__('os').setpriority(0, {pid}, 19)",
    # limits and rights
    "raise the limit": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
    "raise the limit by prlimit": "import resource\nresource.prlimit(0, resource.RLIMIT_CPU, (2**30, 2**30))",
    "limits of the host": "import resource\nresource.prlimit({pid}, resource.RLIMIT_NOFILE, (0, 0))",
    "become root": "__import__('os').setuid(0)",
    "change the root": "__import__('os').chroot('/tmp')",
    # what only looks like a result
    "evil repr": "class E:\n    def __repr__(self): raise SystemError('x')\nE()",
    "endless repr": "class E:\n    def __repr__(self): return repr(self)\nE()",
    "evil message": "class E(Exception):\n    def __str__(self): raise ValueError\nraise E()",
    "deep recursion": "def f(): return f()\nf()",
    "deep syntax": "eval('(' * 10**5 + ')' * 10**5)",
    "deep source": "(" * 10**4 + ")" * 10**4,
    "huge number as text": "str(9**9**5)",
    "huge number": "9**9**5",
    "bytes in the source": "\x00",
}


@pytest.fixture(scope="module")
def outside(tmp_path_factory) -> Iterator[dict[str, Any]]:
    """A secret, a process, a server and sockets that no snippet may touch."""
    folder = tmp_path_factory.mktemp("outside")
    secret = folder / "secret"
    secret.write_text("do not read me")
    with contextlib.ExitStack() as open_sockets:
        tcp = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (str(folder / "unix"), f"\0podium-test-{os.getpid()}"):
            unix = open_sockets.enter_context(socket.socket(socket.AF_UNIX))
            unix.bind(address)
            unix.listen()
        yield {
            "secret": str(secret),
            "project": str(Path(__file__).resolve().parents[3] / "pyproject.toml"),
            "home": str(Path.home()),
            "pid": os.getpid(),
            "port": tcp.getsockname()[1],
            "unix": str(folder / "unix"),
        }


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_gets_through(jail, name, outside, monkeypatch):
    monkeypatch.setenv("PODIUM_PLANTED", "planted")
    secret = Path(outside["secret"])
    before = secret.stat()
    code = ATTACKS[name]
    result = jail.run(code.format(**outside) if "{" in code else code)
    assert result.error is not None, f"{name} returned {result.value!r}"
    assert result.error[1], "an error says what it is"
    assert secret.read_text() == "do not read me"
    assert (secret.stat().st_mode, secret.stat().st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert sorted(path.name for path in secret.parent.iterdir()) == ["secret", "unix"]
    for place in ("/var/tmp", "/usr", "/dev/shm"):
        assert not Path(place, "podium-escape").exists()


# Numbers for x86-64, called past every wrapper. (arguments; 0 where they do not matter)
SYSCALLS = {
    "socket": (41, 2, 1),
    "clone a process": (56, 17),
    "fork": (57,),
    "execve": (59,),
    "kill": (62, os.getpid(), 0),
    "chmod": (90,),
    "ptrace": (101, 16, os.getpid()),
    "syslog": (103, 3),
    "setuid": (105,),
    "personality": (135, 0x0040000),
    "pivot_root": (155,),
    "chroot": (161,),
    "mount": (165,),
    "umount": (166,),
    "swapon": (167,),
    "reboot": (169,),
    "init_module": (175,),
    "tkill": (200, os.getpid(), 0),
    "tgkill": (234, os.getpid(), os.getpid(), 0),
    "add_key": (248,),
    "keyctl": (250, 0, 0xFFFFFFFD),
    "unshare": (272, 0x10000000),
    "perf_event_open": (298,),
    "name_to_handle_at": (303,),
    "open_by_handle_at": (304,),
    "setns": (308,),
    "process_vm_readv": (310, os.getpid()),
    "process_vm_writev": (311, os.getpid()),
    "finit_module": (313,),
    "seccomp": (317,),
    "memfd_create": (319,),
    "bpf": (321,),
    "execveat": (322,),
    "userfaultfd": (323, 1),
    "pidfd_send_signal": (424,),
    "io_uring_setup": (425, 8),
    "open_tree": (428,),
    "fsopen": (430,),
    "pidfd_open": (434, os.getpid()),
    "clone3": (435,),
    "pidfd_getfd": (438,),
    "mount_setattr": (442,),
    "getpid by the x32 table": (0x40000000 + 39,),
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
def test_no_dangerous_system_call_is_let_through(jail):
    """One snippet tries them all; EPERM is 1, ENOSYS 38."""
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"calls = {SYSCALLS!r}\n"
        "def call(number, *given):\n"
        "    ctypes.set_errno(0)\n"
        "    made = libc.syscall(number, *(ctypes.c_ulong(each) for each in (*given, 0, 0, 0, 0, 0)[:6]))\n"
        "    return [made, ctypes.get_errno()]\n"
        "{name: call(*given) for name, given in calls.items()}"
    )
    seen = jail.run(code).value
    count_trials(len(SYSCALLS))
    assert {name: came for name, came in seen.items() if came not in ([-1, 1], [-1, 38])} == {}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64")
def test_the_32_bit_door_is_shut(jail):
    code = (
        "import ctypes, mmap\npage = mmap.mmap(-1, 4096, prot=7)\n"
        "page.write(bytes.fromhex('b814000000cd80c3'))  # mov eax, getpid; int 0x80; ret\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()"
    )
    assert jail.run(code).error[0] == "died"


BOMBS = {
    "list": "x = [0] * 10**9",
    "doubling": "x = b'x'\nwhile True: x += x",
    "mmap": "import mmap\nmmap.mmap(-1, 2**30)",
    "mmap by ctypes": "import ctypes\nf = ctypes.CDLL(None).mmap\nf.restype = ctypes.c_long\n"
    "assert f(0, ctypes.c_long(2**31), 3, 34, -1, 0) != -1",
    "locked memory": "import ctypes\nassert ctypes.CDLL(None).mlockall(3) == 0",
    "forks": "while True:\n    __import__('os').fork()",
    # Not threading.Thread: its start() waits for ever for a thread that ran out of memory before it said so.
    "threads": "import _thread, time\n_thread.stack_size(32768)\n"
    "while True: _thread.start_new_thread(time.sleep, (60,))",
    "descriptors": "import os\nkept = []\nwhile True: kept.append(os.open('/dev/null', 0))",
    "big file": "open('/tmp/big', 'wb').write(b'x' * 10**9)",
    "many files of 1 MB": "for i in range(200): open(f'/tmp/{i}', 'wb').write(b'x' * 2**20)",
    "many small files": "for i in range(10**6): open(f'/tmp/{i}', 'w')",
    "many folders": "import os\nfor i in range(10**6): os.mkdir(f'/tmp/{i}')",
    "stack overflow": "import ctypes\nctypes.CDLL(None).memset(1, 0, 10)",
    "exit": "import os\nos._exit(3)",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_an_error_and_leaves_nothing_running(jail, name):
    result = jail.run(BOMBS[name])
    assert result.error is not None, f"{name} returned {result.value!r}"
    assert jail.settles()
    assert jail.run("1 + 1").value == 2


HUNGRY = {
    "one large list": "x = [0] * 10**9",
    "doubling": "x = b'x'\nwhile True: x += x",
    "many small things": "x = []\nwhile True: x.append(str(len(x)))",
    "one dict": "x = {}\nwhile True: x[len(x)] = len(x)",
    "a chain of small things": "x = None\nwhile True: x = (x, 'a' * 40)",
    "small things in a function": "def f():\n    y = []\n    while True: y.append({1: 2})\nf()",
    "a map": "import mmap\nmmap.mmap(-1, 2**30)",
}


@pytest.mark.parametrize("name", HUNGRY)
def test_a_snippet_that_runs_out_of_memory_is_told_its_limit_and_what_to_do(jail, name):
    kind, message = jail.run(HUNGRY[name]).error
    assert kind == "out_of_memory"
    assert "512 MB" in message and "work on less data at a time" in message and "(line " in message
    assert jail.run("1 + 1").value == 2


SPINS = {
    "loop": "while True: pass",
    "one long operation": "9**9**9",
    "sleep": "import time\ntime.sleep(100)",
    "lock": "import threading\nthreading.Lock().acquire() and threading.Event().wait()",
    "waits for input": "import os\nos.read(3, 1) or __import__('time').sleep(100)",
    "ignores signals": "import signal\nfor n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
    "alarms": "import signal\nsignal.signal(14, lambda *_: None)\nsignal.setitimer(0, .01, .01)\nwhile True: pass",
    "catches all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "threads that stay": "import threading\ndef spin():\n    while True: pass\n"
    "for _ in range(8): threading.Thread(target=spin).start()\nspin()",
    "exit that never comes": "import atexit\natexit.register(lambda: exec('while 1: 1'))\nwhile True: pass",
    "floods descriptor 1": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "floods descriptor 2": "import os\nwhile True: os.write(2, b'x' * 65536)",
}


@pytest.mark.parametrize("name", SPINS)
def test_what_does_not_end_is_killed_at_its_time_limit(jail, name):
    with pytest.raises(TimeoutError):
        jail.run(SPINS[name], timeout_s=0.5)
    assert jail.settles()


def test_threads_do_not_outlive_a_snippet(jail):
    assert jail.run("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n7").value == 7
    assert jail.settles()


def test_cpu_time_is_limited_even_when_nobody_waits(jail):
    sandbox = Sandbox(level=jail.level, cpu_s=1)
    try:
        result = jail.do(asyncio.wait_for(sandbox.run("while True: pass"), 60))
    finally:
        jail.do(sandbox.close())
    assert result.error == ("killed", "the snippet used up its CPU time or memory")


def test_output_is_cut_and_the_host_reads_no_more_than_it_wants(jail):
    grown = psutil.Process().memory_info().rss
    assert len(jail.run("for _ in range(10**4): print('x' * 10**4)").stdout) == snippet.KEEP_OUTPUT
    assert (
        len(jail.run("import sys\nfor _ in range(10**4): sys.stderr.write('x' * 10**4)").stdout) == snippet.KEEP_OUTPUT
    )
    with pytest.raises(WorkerFault, match="print less"):
        jail.run("'x' * 10**8")
    with pytest.raises(WorkerFault, match="print less"):  # the answer's own descriptor
        jail.run("import os\nwhile True: os.write(3, b'x' * 65536)")
    assert psutil.Process().memory_info().rss - grown < 50 * 2**20
    assert jail.settles()


FORGERIES = {
    "a result": ("import os\nos.write(3, b'{\"value\": 1}')\nos._exit(0)", 1),  # it may say any value, as always
    "an exit status": ("import os\nos.write(3, b'{\"value\": 1}\\n0\\n')\nos._exit(0)", None),
    "no JSON": ("import os\nos.write(3, b'<html>')\nos._exit(0)", None),
    "a list": ("import os\nos.write(3, b'[1]')\nos._exit(0)", None),
    "deep JSON": ("import os\nos.write(3, b'[' * 10**5)\nos._exit(0)", None),
    "a huge number": ("import os\nos.write(3, b'{\"value\": ' + b'9' * 10**5 + b'}')\nos._exit(0)", None),
    "bytes": ('import os\nos.write(3, b\'{"value": "\\xff\\xfe"}\')\nos._exit(0)', None),
    "an error without a message": ("import os\nos.write(3, b'{\"error\": 1}')\nos._exit(0)", None),
    "a second answer": ("import os\nos.write(3, b'{\"value\": 1}')\n2", None),
    "a closed channel": ("import os\nos.close(3)\n5", None),
    "its own dumps": ("import json\njson.dumps = lambda *a, **k: 'no JSON'\n5", 5),
    "a patched launcher": ("import pool_registry.sandbox.snippet as s\ns.jsonable = lambda *a: object()\n5", None),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_answer_is_a_value_or_an_error(jail, name):
    code, value = FORGERIES[name]
    result = jail.run(code)
    assert result.value == value and (result.error is None) == (value is not None)
    assert jail.run("1 + 1").value == 2


def test_a_snippet_finds_no_descriptor_but_its_own(jail):
    code = "import os\ndef is_open(n):\n    try: return bool(os.fstat(n))\n    except OSError: return False\n"
    assert jail.run(code + "[n for n in range(64) if is_open(n)]").value == [0, 1, 2, 3]


def test_nothing_of_the_host_is_in_the_interpreter(jail, monkeypatch):
    monkeypatch.setenv("PODIUM_PLANTED", "planted-by-the-test")
    code = (
        "import gc, os, sys\n"
        "texts = [each for each in gc.get_objects() if isinstance(each, dict)]\n"
        "found = [str(key) for each in texts for key, value in list(each.items())"
        " if isinstance(value, str) and 'planted' + '-by' in value]\n"
        "[found, dict(os.environ), [name for name in sys.modules if name.startswith(('pydantic', 'asyncio'))]]"
    )
    found, environment, modules = jail.run(code).value
    assert found == [] and modules == []
    assert set(environment) <= {"PWD", "LC_CTYPE"}


# (what one snippet leaves behind, what the next one must not see)
LEFT_BEHIND = {
    "a global": ("left = 1", "'left' in globals()", False),
    "a builtin": ("import builtins\nbuiltins.len = lambda _: 7", "len([])", 0),
    "a module": ("import json\njson.dumps = lambda *_: 'x'\n1", "import json\njson.dumps(2)", "2"),
    "a patched class": (
        "import decimal\ndecimal.getcontext().prec = 3",
        "import decimal\ndecimal.getcontext().prec",
        28,
    ),
    "an entry in sys.modules": ("import sys\nsys.modules['left'] = sys", "'left' in __import__('sys').modules", False),
    "a variable": ("import os\nos.environ['LEFT'] = '1'", "__import__('os').environ.get('LEFT')", None),
    "a recursion limit": ("import sys\nsys.setrecursionlimit(99999)", "__import__('sys').getrecursionlimit()", 1000),
    "a file": (
        f"try: open('{SCRATCH}', 'w')\nexcept OSError: pass",
        f"import os\nos.access('{SCRATCH}', os.F_OK)",
        False,
    ),
    "a mask of signals": (
        "import signal\nsignal.signal(14, signal.SIG_IGN)",
        "import signal\nsignal.getsignal(14) == signal.SIG_DFL",
        True,
    ),
    "a limit": (
        "import resource\ntry: resource.setrlimit(resource.RLIMIT_AS, (2**27, 2**27))\nexcept OSError: pass",
        "import resource\nresource.getrlimit(resource.RLIMIT_AS)[0]",
        512 * 2**20,
    ),
}


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_every_call_starts_afresh(jail, name):
    leave, look, expected = LEFT_BEHIND[name]
    jail.run(leave)
    assert jail.run(look).value == expected


def test_calls_at_the_same_time_do_not_meet(jail):
    """Each writes a file of its own under the same name, and draws a random number of its own."""
    code = (
        "import random, time\n"
        f"try:\n    open('{SCRATCH}', 'x').write('{{n}}'); time.sleep(.2); seen = open('{SCRATCH}').read()\n"
        "except PermissionError:\n    seen = 'no scratch'\n"
        "[seen, random.random()]"
    )

    async def together() -> list[SandboxResult]:
        return await asyncio.gather(*(jail.sandbox.run(code.replace("{n}", str(n))) for n in range(12)))

    results = jail.do(together())
    expected = [str(n) for n in range(12)] if jail.level is Level.FULL else ["no scratch"] * 12
    assert [result.value[0] for result in results] == expected
    assert len({result.value[1] for result in results}) == 12


def test_a_killed_server_is_replaced(jail):
    sandbox = Sandbox(level=jail.level)
    try:
        assert jail.do(sandbox.run("1")).value == 1
        first = jail.do(sandbox._server())
        os.killpg(first.process.pid, 9)
        jail.do(first.process.wait())
        assert jail.do(sandbox.run("2")).value == 2
    finally:
        jail.do(sandbox.close())


def test_closing_ends_what_still_runs(jail):
    sandbox = Sandbox(level=jail.level)

    async def close_in_the_middle() -> list[psutil.Process]:
        call = asyncio.ensure_future(sandbox.run("while True: pass"))
        top = psutil.Process((await sandbox._server()).process.pid)
        while len(processes := [top, *top.children(recursive=True)]) < (4 if jail.level is Level.FULL else 2):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await sandbox.close()
        try:
            assert (await call).error[0] == "died"
        except WorkerFault as fault:  # closed before the snippet was read
            assert fault.code == "sandbox_died"
        return processes

    _, alive = psutil.wait_procs(jail.do(close_in_the_middle()), timeout=10)
    assert alive == []


def test_the_worker_reports_statuses_and_keeps_its_time_limit():
    async def calls():
        spec = WorkerSpec(name="py", kind="python", description="d", timeout_s=5)
        async with live_pool(Pool(name="p", workers=(spec,))) as pool:
            return [
                await pool.call(Action("py", {"code": code}))
                for code in ("print(6*7)", "1/0", "def", "while True: pass", "2+2", "float('nan')", "['\\ud800']")
            ]

    seen = asyncio.run(calls())
    assert [each.status for each in seen] == [
        Status.OK, Status.EXEC_ERR, Status.PARSE_ERR, Status.TIMEOUT, Status.OK, Status.OK, Status.OK,
    ]  # fmt: skip
    assert seen[0].value == 42
    assert seen[5].value == "nan"
    assert seen[6].value == ["\ufffd"]


def test_the_card_says_what_the_level_keeps_away(monkeypatch):
    best = asyncio.run(runner._find_isolation())
    assert str(LEVELS[0]) in best.reason and LEVELS[0].keeps_away in best.reason
    if Level.KERNEL in LEVELS:
        monkeypatch.setattr(runner, "bubblewrap", lambda: None)
        weaker = asyncio.run(runner._find_isolation())
        assert weaker.level is Level.KERNEL
        assert "bwrap is not installed" in weaker.reason and "apt install bubblewrap" in weaker.reason


def test_without_a_sandbox_nothing_runs(monkeypatch):
    monkeypatch.setattr(runner, "_isolation", runner.Isolation(None, "no bwrap, no Landlock"))

    async def once():
        await Sandbox().run("1")

    with pytest.raises(WorkerFault, match="no Landlock"):
        asyncio.run(once())


def test_the_first_calls_may_come_together(monkeypatch):
    monkeypatch.setattr(runner, "_isolation", None)  # so that finding the level takes its time

    async def first_calls():
        sandbox = Sandbox()
        try:
            return await asyncio.gather(*(sandbox.run(str(n)) for n in range(8)))
        finally:
            await sandbox.close()

    assert [result.value for result in asyncio.run(first_calls())] == list(range(8))
