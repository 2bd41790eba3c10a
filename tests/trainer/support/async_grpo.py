"""Stand-ins of what TRL's AsyncGRPOTrainer needs beside itself: a vLLM server with adapters, and a Hopper GPU."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.serve import serve
from trainer.learner.token_transcript import ChatTokens

LOG_P = -0.5
LORA = {"lora_config": {"max_loras": 8, "max_lora_rank": 16}, "parallel_config": {"data_parallel_size": 1}}


class Server(ThreadingHTTPServer):
    """What is asked of a vLLM server: it gives the turns in turn. `models` are those that were asked for, `adapters`
    the ones that it was given."""

    def __init__(self, chat: ChatTokens) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.turns = [chat.encode_turn(json.dumps({"answer": text})) for text in ("right", "wrong")]
        self.models: list[str] = []
        self.adapters: list[str] = []
        self.info: dict[str, Any] = {"vllm_config": LORA}
        self.broken = False
        self.dies_at: int | None = None  # the number of the adapter after which it answers nothing

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Requests(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._send(200, self.server.info if self.path.startswith("/server_info") else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.path == "/v1/load_lora_adapter":
            whole = (Path(body["lora_path"]) / "adapter_config.json").is_file()
            known = body["lora_name"] in self.server.adapters
            self.server.adapters.append(body["lora_name"])
            self.server.broken |= len(self.server.adapters) == self.server.dies_at
            self._send(200 if whole and not known else 400, {})
        elif self.path == "/v1/completions":
            self.server.models.append(body["model"])
            ids = self.server.turns[len(self.server.models) % len(self.server.turns)]
            choice = {"token_ids": ids, "logprobs": {"token_logprobs": [LOG_P] * len(ids)}}
            self._send(500 if self.server.broken else 200, {"choices": [choice]})
        else:
            self._send(200, {})

    def _send(self, status: int, reply: dict[str, Any]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *_: object) -> None:
        pass


def open_server(chat: ChatTokens) -> AbstractContextManager[Server]:
    return serve(Server(chat))


def stand_in_for_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the trainer run on a CPU: a few lines of torch in place of the kernel that comes from the Hub."""
    kernels = ModuleType("kernels")
    kernel = SimpleNamespace(flash_attn_varlen_func=attend)
    monkeypatch.setattr(kernels, "get_kernel", lambda *_, **__: kernel, raising=False)
    monkeypatch.setitem(sys.modules, "kernels", kernels)
    card = "trl.experimental.async_grpo.async_grpo_trainer.get_peak_flops_per_device"
    monkeypatch.setattr(card, lambda *_: None)  # it asks CUDA for the name of the card


def attend(
    query: Any,
    key: Any,
    value: Any,
    starts_q: Any,
    starts_k: Any,
    *_: Any,
    softmax_scale: float,
    causal: bool,
    **__: Any,
) -> Any:
    """Attention of each segment to its path, which ends with the segment: [tokens, heads, head size]."""
    import torch

    assert causal
    outputs, copies = [], query.shape[1] // key.shape[1]
    segments = zip(pairwise(starts_q.tolist()), pairwise(starts_k.tolist()), strict=True)
    for (q0, q1), (k0, k1) in segments:
        q, k, v = (part.transpose(0, 1) for part in (query[q0:q1], key[k0:k1], value[k0:k1]))
        k, v = k.repeat_interleave(copies, 0), v.repeat_interleave(copies, 0)
        seen = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool).tril(k1 - k0 - (q1 - q0))
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=softmax_scale)
        outputs.append(out.transpose(0, 1))
    return torch.cat(outputs)
