"""Every loader, run on folders that hold code: none of it runs."""

from __future__ import annotations

import asyncio
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.checkpoints import Checkpoint, seal
from orchestrator.errors import OrchestratorError
from pool_registry.errors import WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.language_models.completion import Message
from pool_registry.language_models.model_files import TINY, model_path
from pool_registry.worker import WorkerSpec
from studio.export.checkpoint import export_checkpoint
from tests.trust.trials import count_trials

pytestmark = pytest.mark.medium


class Bomb:
    """Leaves a file where it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> object:
        return Path.touch, (self.place,)


def hold_pickle(folder: Path, mark: Path) -> None:
    for weights in folder.glob("*.safetensors"):
        name = "adapter_model.bin" if weights.name.startswith("adapter") else "pytorch_model.bin"
        (folder / name).write_bytes(pickle.dumps(Bomb(mark)))
        weights.unlink()


def hold_own_code(folder: Path, mark: Path) -> None:
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    classes = (
        '"auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil", "AutoTokenizer": "evil.Evil"}'
    )
    for config in (*folder.glob("config.json"), *folder.glob("tokenizer_config.json")):
        config.write_text(config.read_text().replace("{", "{" + classes + ",", 1))
    for config in folder.glob("adapter_config.json"):
        text = '"megatron_config": {"a": 1}, "megatron_core": "evil"'
        config.write_text(config.read_text().replace("{", "{" + text + ",", 1))


HOSTILE: dict[str, Callable[[Path, Path], None]] = {"pickle": hold_pickle, "own code": hold_own_code}


def ask_model(folder: Path, config: dict[str, str]) -> None:
    spec = WorkerSpec(name="m", kind="local_model", description="d", config={**config, "role": "", "max_tokens": 1})
    asyncio.run(open_worker(spec).complete([Message("user", "?")]))  # type: ignore[attr-defined]


def learn_from(folder: Path, **settings: str) -> None:
    from trainer.learner.load_and_save import load_learner
    from trainer.recipe_sections import ModelSettings

    load_learner(ModelSettings.model_validate({"base": TINY, **settings}), 0)


MODELS: dict[str, Callable[[Path, Path], object]] = {
    "local model": lambda folder, _: ask_model(folder, {"model": str(folder)}),
    "training, from a base": lambda folder, _: learn_from(folder, base=str(folder)),
    "training, from a checkpoint": lambda folder, _: learn_from(folder, start=str(folder)),
}
ADAPTERS: dict[str, Callable[[Path, Path], object]] = {
    "local model": lambda folder, _: ask_model(folder, {"model": TINY, "adapter": str(folder)}),
    "training": lambda folder, _: learn_from(folder, start=str(folder)),
    "export": lambda folder, out: export_checkpoint(str(folder), "merged", out),
}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("loader", MODELS)
def test_no_loader_runs_what_a_model_holds(tmp_path, hostile, loader):
    folder = Path(shutil.copytree(model_path(TINY), tmp_path / "model"))
    try_loader(tmp_path, folder, "full", HOSTILE[hostile], MODELS[loader])


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("loader", ADAPTERS)
def test_no_loader_runs_what_an_adapter_holds(tmp_path, hostile, loader):
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"]}')
    (folder / "adapter_model.safetensors").write_bytes(b"")
    try_loader(tmp_path, folder, "adapter", HOSTILE[hostile], ADAPTERS[loader])


def try_loader(
    tmp_path: Path, folder: Path, kind: str, harm: Callable[[Path, Path], None], load: Callable[[Path, Path], object]
) -> None:
    """Harm a checkpoint, sealed again as if it had been saved so, and load it."""
    mark = tmp_path / "code ran"
    harm(folder, mark)
    manifest = {"name": "c", "kind": kind, "base": TINY, "stage": "sft"}
    seal(folder, Checkpoint.model_validate(manifest))
    count_trials()
    with pytest.raises((WorkerFault, OrchestratorError)) as refused:
        load(folder, tmp_path / "out")
    assert not mark.exists() and str(refused.value)
