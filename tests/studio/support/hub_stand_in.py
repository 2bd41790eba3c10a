"""A Hub on this machine that the official client talks to over HTTP: repositories, LFS, commits, Spaces.

It keeps every byte that arrives and every state that a repository has been in, so that tests can say what was
never sent and what nobody could ever see.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.studio.support.rentals_stand_in import Rentals

TOKEN = "hf_standintokenstandintokenstandin01"
USER = "alice"
_REPO = re.compile(r"/api/(model|space|dataset)s/([^/]+/[^/]+)(/.*)?$")
_FILE = re.compile(r"/(?:(spaces|datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)$")


@dataclass
class Repo:
    private: bool
    sdk: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    heads: list[str] = field(default_factory=lambda: ["0" * 40])
    at: dict[str, dict[str, bytes]] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    hardware: str = "cpu-basic"
    gated: bool = False

    @property
    def head(self) -> str:
        return self.heads[-1]


class Hub:
    """What the stand-in holds. `states` is (kind, repository, private, its files) after every change."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.lfs: dict[str, bytes] = {}
        self.bodies: list[bytes] = []
        self.requests: list[str] = []
        self.states: list[tuple[str, str, bool, frozenset[str]]] = []
        self.fail: Callable[[str, str], int | None] = lambda method, path: None
        self.lock = threading.RLock()
        self.rentals = Rentals(self.repos, USER)

    def space(self, name: str) -> Repo:
        return self.repos["space", f"{USER}/{name}"]

    def model(self, name: str) -> Repo:
        return self.repos["model", f"{USER}/{name}"]

    def note(self) -> None:
        for (kind, name), repo in self.repos.items():
            self.states.append((kind, name, repo.private, frozenset(repo.files)))


@contextlib.contextmanager
def hub_stand_in() -> Iterator[tuple[str, Hub]]:
    """A running stand-in: its address and what it holds."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", hub
    finally:
        server.shutdown()
        server.server_close()


def client_environment(address: str, home: str, token: str = TOKEN) -> dict[str, str]:
    """The variables that lead the official client here. Xet has a protocol of its own; LFS carries large files."""
    return {
        "HF_ENDPOINT": address,
        "HF_HOME": home,
        "HF_TOKEN": token,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_OFFLINE": "0",
    }


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        return

    def _answer(self, code: int, document: Any = None, raw: bytes | None = None, **headers: str) -> None:
        body = raw if raw is not None else b"" if document is None else json.dumps(document).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().strip(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the client was killed
            body = self._body()
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            with self.hub.lock:
                self.hub.bodies.append(body)
                self.hub.requests.append(f"{self.command} {path}")
                failure = self.hub.fail(self.command, path)
                if failure:
                    return self._answer(failure, {"error": f"the stand-in fails with {failure}"})
                self._route(path, body)
                self.hub.note()
        return None

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _handle

    def _route(self, path: str, body: bytes) -> None:
        asked = re.match(_REPO, path)
        known = self.headers.get("authorization") == f"Bearer {TOKEN}"
        if path == "/api/validate-yaml":
            return self._answer(200, {"errors": [], "warnings": []})
        if path.startswith(("/_lfs/", "/_verify/")):
            return self._large_file(path, body)
        if path.startswith("/api/") and not known:
            return self._answer(401, {"error": "Invalid username or password."})
        if path == "/api/whoami-v2":
            return self._answer(200, {"type": "user", "name": USER, "fullname": "Alice", "orgs": []})
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path.endswith("/info/lfs/objects/batch"):
            return self._batch(json.loads(body))
        if asked:
            return self._repo(asked[1], asked[2], asked[3] or "", body)
        if path.startswith(("/api/jobs/", "/api/buckets/", "/buckets/")):
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            reply = self.hub.rentals.reply(self.command, path, query, body)
            return self._answer(reply.status, reply.document, reply.raw, **reply.headers)
        if found := re.match(_FILE, path):
            return self._resolve(found)
        return self._answer(404, {"error": f"not in the stand-in: {self.command} {path}"})

    @property
    def _base(self) -> str:
        return f"http://{self.headers['host']}"

    def _create(self, asked: dict[str, Any]) -> None:
        kind, name = asked.get("type", "model"), f"{asked.get('organization') or USER}/{asked['name']}"
        url = f"{self._base}/{'' if kind == 'model' else f'{kind}s/'}{name}"
        if (kind, name) in self.hub.repos:
            return self._answer(409, {"error": "You already created this repo", "url": url})
        private = bool(asked.get("private")) or asked.get("visibility") == "private"
        self.hub.repos[kind, name] = Repo(private, asked.get("sdk"), {".gitattributes": b""})
        return self._answer(200, {"url": url, "name": name, "id": name})

    def _repo(self, kind: str, name: str, rest: str, body: bytes) -> None:
        repo = self.hub.repos.get((kind, name))
        if repo is None:
            return self._answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        if rest.startswith("/preupload/"):
            return self._answer(200, {"files": [_preupload(repo, each) for each in json.loads(body)["files"]]})
        if rest.startswith("/commit/"):
            return self._commit(repo, name, body)
        if rest.startswith("/tree/"):
            files = [{"type": "file", "path": path, "size": len(data), "oid": _git_oid(data)}
                     for path, data in repo.files.items()]  # fmt: skip
            return self._answer(200, files)
        if rest == "/settings":
            repo.private = json.loads(body).get("visibility") == "private"
            return self._answer(200, {})
        if rest == "/secrets":
            asked = json.loads(body)
            repo.secrets[asked["key"]] = asked["value"]
            return self._answer(200, {})
        if rest == "/hardware":
            repo.hardware = json.loads(body)["flavor"]
        if rest in ("/hardware", "/runtime"):
            stage = "RUNNING" if "app.py" in repo.files else "NO_APP_FILE"
            hardware = {"current": repo.hardware, "requested": repo.hardware}
            return self._answer(200, {"stage": stage, "hardware": hardware, "storage": None, "gcTimeout": 172800})
        if rest == "" or rest.startswith("/revision/"):
            return self._answer(200, {
                "id": name, "_id": "x", "modelId": name, "sha": repo.head, "private": repo.private, "tags": [],
                "siblings": [{"rfilename": path} for path in repo.files], "downloads": 0, "likes": 0,
                "createdAt": "2026-11-21T00:00:00.000Z", "sdk": repo.sdk, "gated": repo.gated,
            })  # fmt: skip
        return self._answer(404, {"error": f"not in the stand-in: {rest}"})

    def _commit(self, repo: Repo, name: str, body: bytes) -> None:
        """All or nothing: the files change together."""
        lines = [json.loads(line) for line in body.decode().splitlines() if line.strip()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header.get("parentCommit") not in (None, repo.head):
            return self._answer(412, {"error": "A commit has happened since. Please refresh and try again."})
        files = dict(repo.files)
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.lfs:
                    return self._answer(400, {"error": "LFS pointer pointed to a file that does not exist"})
                files[value["path"]] = self.hub.lfs[value["oid"]]
            elif line["key"] == "deletedFile":
                files.pop(value["path"], None)
        head = hashlib.sha1(body + repo.head.encode()).hexdigest()
        repo.files = files
        repo.heads.append(head)
        repo.at[head] = files
        url = f"{self._base}/{name}/commit/{head}"
        return self._answer(200, {"success": True, "commitOid": head, "commitUrl": url, "hookOutput": ""})

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = []
        for each in asked["objects"]:
            found = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in self.hub.lfs:
                upload = {"href": f"{self._base}/_lfs/{each['oid']}", "header": {}}
                verify = {"href": f"{self._base}/_verify/{each['oid']}", "header": {}}
                found["actions"] = {"upload": upload, "verify": verify}
            objects.append(found)
        return self._answer(200, {"transfer": "basic", "objects": objects})

    def _large_file(self, path: str, body: bytes) -> None:
        oid = path.rpartition("/")[2]
        if path.startswith("/_lfs/"):
            if hashlib.sha256(body).hexdigest() != oid:
                return self._answer(400, {"error": "these bytes have another hash"})
            self.hub.lfs[oid] = body
        return self._answer(200, {})

    def _resolve(self, found: re.Match[str]) -> None:
        repo = self.hub.repos.get(((found[1] or "models")[:-1], found[2]))
        known = self.headers.get("authorization") == f"Bearer {TOKEN}"
        if repo is None or (repo.private and not known):
            return self._answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        revision = repo.head if found[3] == "main" else found[3]
        data = repo.at.get(revision, {}).get(found[4])
        if data is None:
            return self._answer(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound")
        return self._answer(200, raw=data, ETag=f'"{_git_oid(data)}"', X_Repo_Commit=revision)


def _preupload(repo: Repo, asked: dict[str, Any]) -> dict[str, Any]:
    """Large and binary files go through LFS, as at the Hub; what is there already is told by its hash."""
    path = asked["path"]
    large = asked["size"] > 10_000_000 or path.endswith((".safetensors", ".bin", ".png"))
    there = repo.files.get(path)
    oid = None if there is None else hashlib.sha256(there).hexdigest() if large else _git_oid(there)
    return {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid}


def _git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
