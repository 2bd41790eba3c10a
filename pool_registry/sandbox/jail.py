"""What a process inside the sandbox gives up before it reads a line of a snippet.

Standard library only. Resource limits, a scratch folder of its own, no capabilities, a Landlock rule set
(which files may be read) and a seccomp allow-list (no network, no processes, no signals, no metadata
changes), in that order; any failure raises OSError.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from dataclasses import dataclass
from functools import partial

LIBC = ctypes.CDLL(None, use_errno=True)
SCRATCH, SCRATCH_FILES = "/tmp", 4096  # noqa: S108  a mount of our own
CLONE_NEWNS, NO_SUID_DEV_EXEC = 0x20000, 0b1110
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 38, 22
SIGKILL = 9

# What CPython needs to compute, print, import and read; everything else is refused with EPERM.
ALLOWED = {
    "x86_64": (
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 18 19 20 21 22 23 24 25 26 27 28 32 33 35 36 37 38 "
        "39 60 63 74 77 79 82 83 84 87 89 96 97 98 99 100 102 104 107 108 110 131 158 186 202 204 "
        "217 218 219 228 229 230 231 232 233 257 258 262 263 264 267 269 270 271 273 281 290 291 292 "
        "293 316 318 324 332 334 439 449"
    ),
    "aarch64": (
        "17 19 20 21 22 23 24 34 35 38 46 48 56 57 59 61 62 63 64 65 66 67 68 72 73 78 79 80 82 "
        "93 94 96 98 99 101 102 103 113 114 115 123 124 128 132 134 135 139 153 160 163 165 169 172 "
        "173 174 175 176 177 178 179 214 215 216 222 226 227 232 233 276 278 283 291 293 439 449"
    ),
}
# What more an event loop needs, which wakes itself through a pair of sockets: sends and receives on those it has. No
# socket can be made, and these two calls pass no files on.
WAKING = {"x86_64": "44 45", "aarch64": "206 207"}
# What more a permission for the network allows: sockets of the internet alone, none of this machine's files.
NETWORK = {
    "x86_64": "42 44 45 46 47 48 49 51 52 53 54 55 299 307",
    "aarch64": "199 200 203 204 205 206 207 208 209 210 211 212 243 269",
}
SOCKET = {"x86_64": 41, "aarch64": 198}
FAMILIES = (2, 10)  # AF_INET, AF_INET6
# (audit architecture, clone, clone3, prlimit64, fcntl)
NUMBERS = {"x86_64": (0xC000003E, 56, 435, 302, 72), "aarch64": (0xC00000B7, 220, 435, 261, 25)}
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15  # let the kernel send signals in our name
CLONE_THREAD = 0x10000
EPERM, ENOSYS = 1, 38

# Landlock access rights by the ABI that introduced them (linux/landlock.h).
LIST = 1 << 3
READ = (1 << 2) | LIST  # files, directories
RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
WRITE = sum(1 << bit for bit in (1, 4, 5, 7, 8, 14))  # write, remove, make dir/file, truncate
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446


@dataclass(frozen=True, slots=True)
class Bars:
    """What a snippet may use. `scratch_bytes` is 0 where it gets no folder to write into; `threads` counts
    all of the user's, so it has room for what runs outside where the sandbox has no users of its own. A limit of 0
    on time or threads is none. Of `listable` folders the names can be read, and nothing else. `waking` lets other
    threads wake an event loop."""

    memory_bytes: int
    cpu_s: int
    threads: int
    scratch_bytes: int
    readable: tuple[str, ...]
    writable: tuple[str, ...] = ()
    listable: tuple[str, ...] = ()
    network: bool = False
    waking: bool = False
    open_files: int = 64
    file_bytes: int = 32 * 2**20


def lock_in(bars: Bars) -> None:
    """Apply every layer, before anything of the snippet is read. Raises OSError when one fails."""
    die_with_parent()
    if bars.scratch_bytes:
        own_scratch(bars.scratch_bytes)
    limit_resources(bars)
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    drop_capabilities()
    landlock(bars, (SCRATCH,) if bars.scratch_bytes else ())
    seccomp(os.uname().machine, bars.network, bars.waking)


def die_with_parent() -> None:
    check(LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "pdeathsig")


def own_scratch(size: int) -> None:
    """Mount an empty folder in memory that only this process sees, and that ends with it."""
    check(LIBC.unshare(CLONE_NEWNS), "unshare")
    options = f"size={size},nr_inodes={SCRATCH_FILES},mode=700".encode()
    check(LIBC.mount(b"scratch", SCRATCH.encode(), b"tmpfs", NO_SUID_DEV_EXEC, options), "scratch")
    os.chdir(SCRATCH)


def limit_resources(bars: Bars) -> None:
    limits = {
        resource.RLIMIT_AS: bars.memory_bytes,
        resource.RLIMIT_CPU: bars.cpu_s or resource.RLIM_INFINITY,
        resource.RLIMIT_FSIZE: bars.file_bytes,
        resource.RLIMIT_NOFILE: bars.open_files,
        resource.RLIMIT_NPROC: bars.threads or resource.RLIM_INFINITY,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for name, value in limits.items():
        if value != resource.RLIM_INFINITY:
            resource.setrlimit(name, (value, value))


def drop_capabilities() -> None:
    """Drop all capabilities, so that even root inside has no rights."""
    header = struct.pack("=Ii", 0x20080522, 0)
    check(LIBC.capset(header, b"\0" * 24), "capset")


def landlock(bars: Bars, scratch: tuple[str, ...]) -> None:
    """Allow reading and writing these trees only. Raises OSError on kernels without Landlock."""
    abi = check(LIBC.syscall(CREATE_RULESET, None, 0, 1), "landlock")
    rights = RIGHTS_BY_ABI[min(abi, 5)]
    attributes = struct.pack("=Q", rights)
    if abi >= 4:
        attributes += struct.pack("=Q", 0 if bars.network else 0b11)  # no bind, no connect
    if abi >= 6:
        attributes += struct.pack("=Q", 0b11)  # no abstract sockets, no signals outside
    ruleset = check(LIBC.syscall(CREATE_RULESET, attributes, len(attributes), 0), "ruleset")
    for path in bars.readable:
        allow(ruleset, path, READ & rights)
    for path in bars.listable:
        allow(ruleset, path, LIST & rights)
    for path in (*bars.writable, *scratch):
        allow(ruleset, path, (READ | WRITE) & rights)
    check(LIBC.syscall(RESTRICT_SELF, ruleset, 0), "restrict_self")
    os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= (1 << 1) | (1 << 2) | (1 << 14)  # a file takes file rights only
    check(LIBC.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0), f"rule {path}")
    os.close(place)


def seccomp(machine: str, network: bool = False, waking: bool = False) -> None:
    """Install the allow-list. An unknown machine raises KeyError: then there is no sandbox."""
    _install(bpf(machine, network, waking))


def refuse_calls(machine: str, numbers: tuple[int, ...]) -> None:
    """Refuse these system calls with EPERM, and allow all others. Raises KeyError on an unknown machine."""
    load, jump_equal, give = 0x20, 0x15, 0x06
    op = partial(struct.pack, "=HBBI")  # code, jump if true, jump if not, value
    parts = [op(load, 0, 0, 4), op(jump_equal, 1, 0, NUMBERS[machine][0]), op(give, 0, 0, 0x80000000)]
    parts.append(op(load, 0, 0, 0))
    for number in numbers:
        parts += [op(jump_equal, 0, 1, number), op(give, 0, 0, 0x00050000 | EPERM)]
    _install(b"".join([*parts, op(give, 0, 0, 0x7FFF0000)]))


def _install(program: bytes) -> None:
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    check(LIBC.prctl(PR_SET_SECCOMP, 2, header, 0, 0), "seccomp")


def bpf(machine: str, network: bool = False, waking: bool = False) -> bytes:
    """Build the filter as packed `struct sock_filter`s (offsets into `struct seccomp_data`)."""
    arch, clone, clone3, prlimit, fcntl = NUMBERS[machine]
    load, jump_equal, jump_set, give = 0x20, 0x15, 0x45, 0x06
    accept, refuse, kill = 0x7FFF0000, 0x00050000 | EPERM, 0x80000000

    def op(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, true, false, value)

    parts = [op(load, 4), op(jump_equal, arch, 1, 0), op(give, kill), op(load, 0)]
    parts += [op(jump_equal, fcntl, 0, 6), op(load, 24)]
    parts += [op(jump_equal, F_SETOWN, 3, 0), op(jump_equal, F_SETSIG, 2, 0)]
    parts += [op(jump_equal, F_SETOWN_EX, 1, 0), op(give, accept), op(give, refuse)]
    if network:
        parts += [op(jump_equal, SOCKET[machine], 0, 2 + len(FAMILIES)), op(load, 16)]
        parts += [op(jump_equal, family, len(FAMILIES) - place) for place, family in enumerate(FAMILIES)]
        parts += [op(give, refuse), op(give, accept)]
    more = NETWORK[machine] if network else WAKING[machine] if waking else ""
    for number in map(int, f"{ALLOWED[machine]} {more}".split()):
        parts += [op(jump_equal, number, 0, 1), op(give, accept)]
    # glibc falls back from clone3 to clone, whose flags can be looked at: threads yes, processes no.
    parts += [op(jump_equal, clone3, 0, 1), op(give, 0x00050000 | ENOSYS)]
    parts += [op(jump_equal, clone, 0, 4), op(load, 16), op(jump_set, CLONE_THREAD, 0, 1)]
    parts += [op(give, accept), op(give, refuse)]
    # prlimit may read limits (new_limit is NULL), never set them.
    parts += [op(jump_equal, prlimit, 0, 5), op(load, 32), op(jump_equal, 0, 0, 3), op(load, 36)]
    parts += [op(jump_equal, 0, 0, 1), op(give, accept), op(give, refuse)]
    return b"".join(parts)


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
