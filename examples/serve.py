"""Serve a pool and its orchestrator as one OpenAI-compatible model, and ask it, in one script."""

import tempfile

from fastapi.testclient import TestClient

from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from studio.prepare import prepare_store

QUESTION = "How far is LHR from JFK?"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:  # your own data folder is prepare_store(None)
        store = prepare_store(folder)
        app = create_model_app(store, ServedModel(pool="starter", orchestrator="smollm2-reader"), loopback=True)
        with TestClient(app, base_url="http://127.0.0.1") as client:  # uvicorn.run(app) would open a port
            reply = client.post(
                "/v1/chat/completions",
                json={"model": "podium-starter", "messages": [{"role": "user", "content": QUESTION}]},
            )
        print(QUESTION)
        print("answer:", reply.json()["choices"][0]["message"]["content"])
        store.close()


if __name__ == "__main__":
    main()
