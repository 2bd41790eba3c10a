"""LoRA adapters that share one base model in memory.

An adapter is some per cent of its base, and to switch takes milliseconds, where loading a model takes seconds. The
adapter of a small model is merged into its weights, which makes a token a quarter faster, and a copy of them brings the
base back as it was; larger models add theirs in every layer. Adapters that would change more (trained biases,
initialisations that change the base) are refused.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count
from pathlib import Path
from typing import Any

from pool_registry.errors import WorkerFault
from pool_registry.language_models.adapter_fit import check_fit
from pool_registry.language_models.adapter_folder import ADAPTER_WEIGHTS, check_adapter

KEPT = 8  # adapters of one base in memory; the one that was not used for longest makes room
PLAIN_STARTS = (True, False, "gaussian")  # initialisations of LoRA weights that leave the base as it is
MAX_COPY_BYTES = 1_000_000_000  # of the base's weights that adapters change; adapters of larger ones are not merged
_UNKNOWN = "?"  # after layers came or went: say again which one is to generate

# Path and state of a file: another adapter may be saved under the same name.
Key = tuple[Path, int, int]


class Adapters:
    """The adapters of one model, which lies in `folder`. Not thread-safe: only the thread that generates may call."""

    def __init__(
        self, model: Any, kept: int = KEPT, max_copy_bytes: int = MAX_COPY_BYTES, folder: Path | None = None
    ) -> None:
        self._model, self._folder = model, folder
        self._kept = kept
        self._max_copy_bytes = max_copy_bytes
        self._tuned: Any = None  # peft's view of the model, once there is an adapter
        self._active: str | None = None  # the one that generates, None for the base
        self._names: OrderedDict[Key, str] = OrderedDict()  # the latest used last
        self._numbers = count()
        self._merged: list[tuple[Any, Any]] = []  # layers that hold the active adapter, each with its own weights

    @property
    def loaded(self) -> list[Path]:
        """Adapters in memory, the latest used last."""
        return [path for path, *_ in self._names]

    @property
    def active(self) -> str | None:
        """The name of the one that generates, None for the base. A file that changed is loaded under another name."""
        return self._active

    def use(self, adapter: Path | None) -> None:
        """Let the model generate with `adapter` from now on, without one for None. Raises WorkerFault when it
        cannot be used; the adapters before it stay as they are."""
        name = None if adapter is None else self._name_of(adapter)
        if name == self._active or self._tuned is None:
            return
        self._unmerge()
        if name is None:
            self._tuned.base_model.disable_adapter_layers()
        else:
            self._tuned.base_model.enable_adapter_layers()
            self._tuned.set_adapter(name, inference_mode=True)
            self._merge(name)
        self._active = name

    def _merge(self, name: str) -> None:
        """Add an adapter to the weights that it changes, and keep a copy of these."""
        layers = _list_layers(self._tuned, name)
        if sum(layer.get_base_layer().weight.nbytes for layer in layers) > self._max_copy_bytes:
            return
        self._merged = [(layer, layer.get_base_layer().weight.data.clone()) for layer in layers]
        self._tuned.base_model.merge_adapter([name])

    def _unmerge(self) -> None:
        """Bring the base's own weights back, to the bit: subtracting the adapter would leave rounding errors."""
        for layer, weights in self._merged:
            layer.get_base_layer().weight.data = weights
            layer.merged_adapters.clear()
        self._merged = []

    def _name_of(self, adapter: Path) -> str:
        """Load the adapter if needed; return peft's name for it."""
        key = _key(adapter)
        name = self._names.get(key) or self._load(adapter)
        self._names[key] = name
        self._names.move_to_end(key)
        while len(self._names) > self._kept:
            self._forget(self._names.popitem(last=False)[1])
        return name

    def _load(self, adapter: Path) -> str:
        from peft import PeftModel

        config = _read_config(adapter)
        if self._folder is not None:
            check_fit(adapter, self._folder)
        self._unmerge()
        self._active = _UNKNOWN
        name = f"adapter{next(self._numbers)}"
        try:
            if self._tuned is None:
                self._tuned = PeftModel(self._model, config, adapter_name=name)
            else:
                self._tuned.add_adapter(name, config)
            result = self._tuned.load_adapter(adapter, name, torch_device=str(self._model.device))
        except (ValueError, RuntimeError, KeyError, TypeError) as error:  # what peft says of one that does not fit
            self._forget(name)
            raise _misfit(adapter, str(error).splitlines()[0]) from error
        strange = [*result.missing_keys, *result.unexpected_keys]
        if strange:
            self._forget(name)
            raise _misfit(adapter, f"{len(strange)} of its weights have no place there, such as {strange[0]}")
        return name

    def _forget(self, name: str) -> None:
        """Remove an adapter from the model, also one that was loaded only in part."""
        self._unmerge()
        self._active = _UNKNOWN
        if self._tuned is not None and name in self._tuned.peft_config:
            self._tuned.delete_adapter(name)


def _list_layers(tuned: Any, name: str) -> list[Any]:
    """The layers that an adapter changes."""
    from peft.tuners.lora import LoraLayer

    layers = (module for module in tuned.modules() if isinstance(module, LoraLayer))
    return [layer for layer in layers if name in layer.lora_A or name in layer.lora_embedding_A]


def _key(adapter: Path) -> Key:
    check_adapter(adapter)
    state = (adapter / ADAPTER_WEIGHTS).stat()
    return adapter, state.st_mtime_ns, state.st_size


def _read_config(adapter: Path) -> Any:
    """Read an adapter's configuration. Raises WorkerFault when it cannot share its base."""
    from peft import LoraConfig, PeftConfig

    try:
        config = PeftConfig.from_pretrained(str(adapter))
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise WorkerFault("model_refused", f"{adapter} has no adapter_config.json to go by: {reason}") from error
    if not isinstance(config, LoraConfig):
        raise WorkerFault("model_refused", f"{adapter} is no LoRA adapter (its peft_type is {config.peft_type})")
    if config.bias != "none" or config.init_lora_weights not in PLAIN_STARTS:
        raise WorkerFault(
            "model_refused",
            f"{adapter} changes its base model's own weights (bias {config.bias!r}, init_lora_weights "
            f"{config.init_lora_weights!r}); merge it into a checkpoint of its own and give that as the model",
        )
    config.inference_mode = True
    return config


def _misfit(adapter: Path, reason: str) -> WorkerFault:
    return WorkerFault("model_refused", f"the adapter {adapter} does not fit this base model: {reason}")
