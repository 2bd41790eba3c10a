"""Records what the official clients send to a served pool, as the fixtures of tests/studio/model_server.

    python scripts/client_requests/record.py --python VENV/bin/python --node FOLDER

VENV holds openai, langchain-openai, pydantic-ai-slim[openai] and litellm, FOLDER a node_modules with openai. Each
program of this folder talks to a served pool through a recorder, and names the feature in the path of its base URL.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from studio.prepare import prepare_store
from tests.studio.support.edge_model import edge_model
from tests.studio.support.served import edge_pool, serving

HERE = Path(__file__).parent
FIXTURES = HERE.parent.parent / "tests" / "studio" / "model_server" / "client_requests"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="a Python with the clients installed")
    parser.add_argument("--node", required=True, help="a folder with node_modules/openai")
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder, edge_model() as model:
        store = prepare_store(folder)
        store.pools.save(edge_pool(model.url))
        store.close()
        with serving(Path(folder), "--pool", "edge", "--orchestrator", "direct:agent") as url:
            recorder = Recorder(url)
            node = Path(chosen.node) / "client.mjs"
            node.write_text((HERE / "node_client.mjs").read_text())
            for command in ([chosen.python, str(HERE / "python_clients.py")], ["node", str(node)]):
                subprocess.run([*command, recorder.url], check=True)
            recorder.write()


class Recorder:
    """A proxy that keeps the requests of each client and feature: its paths are /CLIENT/FEATURE/v1/..."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.kept: dict[tuple[str, str], list[dict[str, object]]] = {}
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                recorder.forward(self, self.rfile.read(int(self.headers.get("content-length") or 0)))

            def do_GET(self) -> None:
                recorder.forward(self, b"")

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def forward(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        _, client, feature, path = request.path.split("/", 3)
        answer = httpx.request(
            request.command,
            f"{self.target}/{path}",
            content=body,
            headers={"content-type": "application/json"},
            timeout=120,
        )
        kept: dict[str, object] = {"method": request.command, "path": f"/{path}"}
        if body:
            kept["body"] = json.loads(body)
        if "json" in answer.headers["content-type"]:
            kept["answer"] = _find_ids(answer.json())
        else:
            kept["answer"] = _find_ids(
                [json.loads(line[6:]) for line in answer.text.splitlines() if line[:7] == "data: {"]
            )
        self.kept.setdefault((client, feature), []).append(kept)
        if answer.status_code >= 400:
            print(client, feature, answer.status_code, answer.text[:500])
        request.send_response(answer.status_code)
        request.send_header("content-type", answer.headers["content-type"])
        request.send_header("content-length", str(len(answer.content)))
        request.end_headers()
        request.wfile.write(answer.content)

    def write(self) -> None:
        FIXTURES.mkdir(exist_ok=True)
        for (client, feature), requests in self.kept.items():
            document = {"client": client, "feature": feature, "requests": requests}
            (FIXTURES / f"{client}-{feature}.json").write_text(
                json.dumps(document, indent=1, ensure_ascii=False) + "\n"
            )
            print(client, feature, len(requests))


def _find_ids(answer: object) -> list[str]:
    """The ids in an answer that a later request may name: of responses, and of calls."""
    if isinstance(answer, dict):
        own = [value for name, value in answer.items() if name in ("id", "call_id") and isinstance(value, str)]
        ids = [name for name in own if name.startswith(("call_", "resp_"))]
        return list(dict.fromkeys([*ids, *(name for value in answer.values() for name in _find_ids(value))]))
    if isinstance(answer, list):
        return list(dict.fromkeys(name for value in answer for name in _find_ids(value)))
    return []


if __name__ == "__main__":
    main()
