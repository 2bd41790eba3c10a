"""The program inside the sandbox: locks itself in, then runs one snippet from stdin.

Standard library only, started as `python -I -S launcher.py JSON`. It applies resource limits, drops all
capabilities, a Landlock rule set (which files may be read) and a seccomp allow-list (no network, no
processes, no signals, no metadata changes), in that order; any failure ends it before a line of the
snippet is read. The result is one JSON object on what was stdout; everything it says is untrusted.
"""

from __future__ import annotations

import ast
import ctypes
import io
import json
import os
import resource
import struct
import sys
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
KEEP_OUTPUT = 64 * 1024
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
# (audit architecture, clone, clone3, prlimit64, fcntl)
NUMBERS = {"x86_64": (0xC000003E, 56, 435, 302, 72), "aarch64": (0xC00000B7, 220, 435, 261, 25)}
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15  # let the kernel send signals in our name
CLONE_THREAD = 0x10000
EPERM, ENOSYS = 1, 38

# Landlock access rights by the ABI that introduced them (linux/landlock.h).
READ = (1 << 2) | (1 << 3)  # files, directories
RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
WRITE = sum(1 << bit for bit in (1, 4, 5, 7, 8, 14))  # write, remove, make dir/file, truncate
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446


def main() -> None:
    """Lock in, read the snippet, run it, say what came of it."""
    options = json.loads(sys.argv[1])
    answer, nowhere = os.dup(1), os.open(os.devnull, os.O_RDWR)
    lock_in(options)
    os.write(answer, b"ready\n")
    code = sys.stdin.buffer.read().decode("utf-8", "replace")
    for stream in (0, 1, 2):  # what writes past sys.stdout must not mix with the answer, nor fill a pipe
        os.dup2(nowhere, stream)
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump(run(code), out)
    os._exit(0)


def lock_in(options: dict[str, Any]) -> None:
    """Every layer, or an OSError before anything of the snippet is read."""
    check(LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "pdeathsig")
    limit_resources(options["memory_bytes"], options["cpu_s"], options["threads"])
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    drop_capabilities()
    landlock(options["readable"], options["writable"])
    seccomp(os.uname().machine)


def limit_resources(memory_bytes: int, cpu_s: int, threads: int | None) -> None:
    """`threads` counts those of the user, so it is given only where the sandbox has users of its own."""
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: 32 * 2**20,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    if threads is not None:
        limits[resource.RLIMIT_NPROC] = threads
    for name, value in limits.items():
        resource.setrlimit(name, (value, value))


def drop_capabilities() -> None:
    """capset to nothing, so that even root inside is nobody."""
    header = struct.pack("=Ii", 0x20080522, 0)
    check(LIBC.capset(header, b"\0" * 24), "capset")


def landlock(readable: list[str], writable: list[str]) -> None:
    """Only these trees can be read or written. Kernels without Landlock raise OSError."""
    abi = check(LIBC.syscall(CREATE_RULESET, None, 0, 1), "landlock")
    rights = RIGHTS_BY_ABI[min(abi, 5)]
    attributes = struct.pack("=Q", rights)
    if abi >= 4:
        attributes += struct.pack("=Q", 0b11)  # no bind, no connect
    if abi >= 6:
        attributes += struct.pack("=Q", 0b11)  # no abstract sockets, no signals outside
    ruleset = check(LIBC.syscall(CREATE_RULESET, attributes, len(attributes), 0), "ruleset")
    for path in readable:
        allow(ruleset, path, READ & rights)
    for path in writable:
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


def seccomp(machine: str) -> None:
    """Install the allow-list. An unknown machine raises KeyError: then there is no sandbox."""
    program = bpf(machine)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    check(LIBC.prctl(PR_SET_SECCOMP, 2, header, 0, 0), "seccomp")


def bpf(machine: str) -> bytes:
    """The filter as packed `struct sock_filter`s (offsets into `struct seccomp_data`)."""
    arch, clone, clone3, prlimit, fcntl = NUMBERS[machine]
    load, jump_equal, jump_set, give = 0x20, 0x15, 0x45, 0x06
    accept, refuse, kill = 0x7FFF0000, 0x00050000 | EPERM, 0x80000000

    def op(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, true, false, value)

    parts = [op(load, 4), op(jump_equal, arch, 1, 0), op(give, kill), op(load, 0)]
    parts += [op(jump_equal, fcntl, 0, 6), op(load, 24)]
    parts += [op(jump_equal, F_SETOWN, 3, 0), op(jump_equal, F_SETSIG, 2, 0)]
    parts += [op(jump_equal, F_SETOWN_EX, 1, 0), op(give, accept), op(give, refuse)]
    for number in map(int, ALLOWED[machine].split()):
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


class Kept(io.StringIO):
    """Standard output of the snippet: the first KEEP_OUTPUT characters are kept."""

    cut = False

    def write(self, text: str) -> int:
        room = KEEP_OUTPUT - self.tell()
        self.cut = self.cut or len(text) > room
        super().write(text[: max(room, 0)])
        return len(text)


def run(code: str) -> dict[str, Any]:
    """The snippet's last expression, what it printed, or how it failed."""
    printed = Kept()
    try:
        body, last = split(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return {"error": "syntax", "message": f"{type(error).__name__}: {error}"}
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    real = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = printed
    try:
        exec(body, space)
        value = None if last is None else eval(last, space)
        shown = jsonable(value, printed.getvalue())
    except SystemExit:
        shown = None
    except BaseException as error:
        return {"error": "exception", "message": told(error), "stdout": printed.getvalue()}
    finally:
        sys.stdout, sys.stderr = real
    return {"value": shown, "stdout": printed.getvalue(), "cut": printed.cut}


def split(code: str) -> tuple[Any, Any]:
    """The statements, and the last one apart when it is an expression."""
    tree = ast.parse(code, "<snippet>")
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        expression = tree.body.pop()
        assert isinstance(expression, ast.Expr), "just asked"
        last = compile(ast.Expression(expression.value), "<snippet>", "eval", dont_inherit=True)
    return compile(tree, "<snippet>", "exec", dont_inherit=True), last


def jsonable(value: Any, printed: str) -> Any:
    """The value if JSON can hold it, otherwise nothing where something was printed, or its text."""
    if value is None:
        return None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None if printed.strip() else str(value)[:KEEP_OUTPUT]
    return value


def told(error: BaseException) -> str:
    """The exception in one line, with the snippet's own line number."""
    line, place = 0, error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_filename == "<snippet>":
            line = place.tb_lineno
        place = place.tb_next
    where = f" (line {line})" if line else ""
    try:
        said = f"{type(error).__name__}: {error}"
    except BaseException:  # the snippet's own __str__
        said = type(error).__name__
    return said[:2000] + where


if __name__ == "__main__":
    main()
