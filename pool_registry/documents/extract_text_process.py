"""Reads a fetched document in a process of its own, which is killed when it takes too long.

A page can be made to keep its parser busy for a minute, and a thread that parses cannot be stopped: it would go on
burning a core after the call had timed out. The process costs about a tenth of a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Literal

from pool_registry.documents.extract_text import Readable
from pool_registry.errors import WorkerFault
from pool_registry.processes.child_process import start

READ_S = 15.0  # a thousand times what pages take
MAX_REPLY_BYTES = 64 * 2**20
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pool_registry.documents.extract_text import serve; serve()"
)
# What reads strangers' bytes needs nothing of what the studio knows.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")


async def read_document(
    kind: Literal["html", "pdf"], raw: bytes, charset: str = "", within_s: float = READ_S
) -> Readable:
    """Extract a document's text. Raises WorkerFault, with `document_too_complex` after `within_s`."""
    env = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    child = await start([sys.executable, "-I", "-c", _PROGRAM, str(_ROOT)], env)
    head = json.dumps({"kind": kind, "charset": charset}).encode()
    try:
        async with asyncio.timeout(within_s):
            child.stdin.write(head + b"\n" + raw)
            child.stdin.write_eof()
            reply = await child.stdout.read(MAX_REPLY_BYTES)
            while part := await child.stdout.read(MAX_REPLY_BYTES):
                reply += part
        if not reply:  # out of memory, perhaps
            raise WorkerFault("document_unreadable", f"the process that read the document {await child.ending()}")
        return _readable(reply)
    except TimeoutError:
        sentence = f"the document cannot be read within {within_s:g} s: it is built to be hard to read, or broken"
        raise WorkerFault("document_too_complex", sentence) from None
    finally:
        await child.kill()


def _readable(reply: bytes) -> Readable:
    document = json.loads(reply)
    if "code" in document:
        raise WorkerFault(document["code"], document["message"])
    return Readable(document["title"], document["text"])
