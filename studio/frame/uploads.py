"""Two routes for what must not travel as a command: files of a person's own, and a key for the keyring.

Files are streamed into the data folder's artifacts under safe names and never beyond a limit. A key goes
straight into the system's keyring: it is in no command, no log, no answer and no error.
"""

from __future__ import annotations

import json
import re
import secrets as randomness
import shutil
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse

from pool_registry import secrets
from pool_registry.errors import PoolError
from pool_registry.storage.data_folder import Home, find_home
from studio.access.permissions import needs

MAX_UPLOAD_BYTES = 50_000_000
MAX_FILES = 200  # in one folder
MAX_TOTAL_BYTES = 2_000_000_000  # of all uploads together
MIN_FREE_BYTES = 500_000_000  # that an upload leaves on the disk: the database must be able to grow
MAX_KEY_BYTES = 20_000
SUFFIXES = (".txt", ".md", ".pdf", ".csv", ".jsonl")
_FOLDER = re.compile(r"^[0-9a-f]{12}$")
_UNSAFE = re.compile(r"[^\w. -]+")


def upload_routes() -> APIRouter:
    """The routes, below /api; studio/access/request_guards.py refuses what another site's page asks for."""
    router = APIRouter(prefix="/api")

    @router.post("/documents")
    @needs("editor")
    async def upload(request: Request, name: str, folder: str = "") -> JSONResponse:
        """One file as the body; several go into one folder, by the name that the first answer gave."""
        home = find_home()
        check_room(home)
        place = _place(home, name, folder)
        draft = place.with_name(f".{randomness.token_hex(6)}")
        try:
            size = await _stream(request, draft)
            place = _keep(draft, place)
        finally:
            draft.unlink(missing_ok=True)
            if not any(place.parent.iterdir()):
                place.parent.rmdir()
        document = {"folder": place.parent.name, "file": str(place), "path": str(place.parent), "bytes": size}
        return JSONResponse(document)

    @router.post("/keyring")
    @needs("owner")
    async def keep(request: Request) -> JSONResponse:
        """Keep a key in the system's keyring under a name."""
        body = await _short_body(request)
        try:
            sent = json.loads(body)
            name, value = str(sent["name"]), sent["value"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise HTTPException(400, "send a name and a value") from None
        if not isinstance(value, str):
            raise HTTPException(400, "the value must be text")
        try:
            reference = secrets.keep(name, value)
        except PoolError as error:
            raise HTTPException(409, str(error)) from None
        return JSONResponse({"reference": reference})

    return router


def safe_name(name: str) -> str:
    """A file name that is only a name: no folders, no leading dot, no odd characters. HTTPException 415
    when its kind of file cannot be searched."""
    plain = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip(" .")
    stem, suffix = Path(plain).stem.strip(" ."), Path(plain).suffix.lower()
    if suffix not in SUFFIXES or not stem:
        raise HTTPException(415, f"choose files that end in {', '.join(SUFFIXES)}")
    return f"{stem[:100]}{suffix}"


def check_room(home: Home) -> None:
    """Raise HTTPException when the uploads have had their share of the disk, or the disk is nearly full."""
    root = home.artifacts / "documents"
    used = sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) if root.is_dir() else 0
    if used >= MAX_TOTAL_BYTES:
        limit = f"{MAX_TOTAL_BYTES // 1_000_000:,} MB"
        raise HTTPException(413, f"the uploads of this studio have reached {limit}; delete some below {root}")
    if shutil.disk_usage(home.root).free < MIN_FREE_BYTES:
        raise HTTPException(507, f"less than {MIN_FREE_BYTES // 1_000_000} MB are free on the disk of the data folder")


def _place(home: Home, name: str, folder: str) -> Path:
    """Choose where the file goes: a folder of its own, or the one that the person began to fill."""
    safe = safe_name(name)
    root = home.artifacts / "documents"
    if folder:
        if not _FOLDER.match(folder) or not (root / folder).is_dir():
            raise HTTPException(404, "there is no such folder of uploads; choose the files again")
        if sum(1 for _ in (root / folder).iterdir()) >= MAX_FILES:
            raise HTTPException(413, f"a folder may have {MAX_FILES} files")
    else:
        folder = randomness.token_hex(6)
        (root / folder).mkdir(parents=True)
    return root / folder / safe


def _keep(draft: Path, place: Path) -> Path:
    """Give an upload its name, or one beside it where that is taken: of two that come at once each is kept."""
    name, number = place, 1
    while True:
        try:
            name.touch(exist_ok=False)
        except FileExistsError:
            number += 1
            name = place.with_stem(f"{place.stem}-{number}")
        else:
            return draft.replace(name)


async def _stream(request: Request, draft: Path) -> int:
    """Write the body to `draft` as it comes; HTTPException 413 as soon as it is too large."""
    size = 0
    with draft.open("wb") as file:
        async for part in request.stream():
            size += len(part)
            if size > MAX_UPLOAD_BYTES:
                raise HTTPException(413, f"the file is larger than {MAX_UPLOAD_BYTES // 1_000_000} MB")
            file.write(part)
    if not size:
        raise HTTPException(400, "the file is empty")
    return size


async def _short_body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_KEY_BYTES:
            raise HTTPException(413, "this is too long for a key")
    return body
