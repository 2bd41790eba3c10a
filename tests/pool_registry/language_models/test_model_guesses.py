"""What people give as a model or an adapter, and is none here: each is told what it is and where it belongs."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from pool_registry.errors import WorkerFault
from pool_registry.language_models.adapter_fit import check_fit, describe_base
from pool_registry.language_models.adapter_folder import check_adapter
from pool_registry.language_models.model_files import is_available


def write_weights(file: Path, shapes: dict[str, list[int]], dtype: str = "F32") -> None:
    """A safetensors file with these shapes, and no numbers."""
    file.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps(
        {name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    )
    file.write_bytes(struct.pack("<Q", len(head)) + head.encode())


def write_adapter(folder: Path, base: str = "", **shapes: list[int]) -> Path:
    write_weights(folder / "adapter_model.safetensors", {f"base_model.model.{n}.weight": s for n, s in shapes.items()})
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": base}))
    return folder


def write_model(folder: Path, layers: int = 2, width: int = 64, dtype: str = "F32") -> Path:
    shapes = {f"model.layers.{number}.q_proj.weight": [width, width] for number in range(layers)}
    write_weights(folder / "model.safetensors", shapes, dtype)
    (folder / "config.json").write_text("{}")
    return folder


def write_lora(folder: Path, layers: int = 2, width: int = 64, base: str = "") -> Path:
    parts = {f"model.layers.{number}.q_proj.lora_A": [4, width] for number in range(layers)}
    parts |= {f"model.layers.{number}.q_proj.lora_B": [width, 4] for number in range(layers)}
    return write_adapter(folder, base, **parts)


def refusal(reference: object) -> str:
    with pytest.raises(WorkerFault) as caught:
        is_available(str(reference))
    return str(caught.value)


@pytest.mark.parametrize("name", ["model.gguf", "model.bin"])
def test_a_gguf_file_belongs_to_llama_cpp_or_ollama(tmp_path, name):
    (tmp_path / name).write_bytes(b"GGUF\x03\x00")
    assert "GGUF is read by llama.cpp or Ollama" in refusal(tmp_path / name)
    assert "add it as a chat worker" in refusal(tmp_path / name)


def test_a_folder_of_gguf_files_does_too_and_so_does_a_file_that_is_not_there(tmp_path):
    (tmp_path / "q4.gguf").write_bytes(b"GGUF")
    assert "GGUF is read by" in refusal(tmp_path)
    assert "GGUF is read by" in refusal("/nowhere/model-Q4_K_M.GGUF")


def test_weights_that_are_packed_for_mlx_belong_to_its_server(tmp_path):
    folder = write_model(tmp_path / "model")
    packing = {"group_size": 64, "bits": 4}
    (folder / "config.json").write_text(json.dumps({"quantization": packing, "quantization_config": packing}))
    assert "is packed for MLX: serve it with mlx_lm.server and add it as a chat worker" in refusal(folder)
    (folder / "config.json").write_text(
        json.dumps({"quantization": {}, "quantization_config": {"quant_method": "fp8"}})
    )
    assert is_available(str(folder))


def test_an_adapter_belongs_under_adapter_and_a_model_under_model(tmp_path):
    adapter = write_lora(tmp_path / "lora", base="org/some-model")
    assert "put it under adapter, and its base model, org/some-model, under model" in refusal(adapter)
    with pytest.raises(WorkerFault, match="whole model, no adapter: put it under model"):
        check_adapter(write_model(tmp_path / "model"))


@pytest.mark.parametrize("name", ["qwen3:0.6b", "llama3.2:latest", "hf.co/org/model:Q4_K_M", "user/model:7b"])
def test_ollamas_names_are_known(name):
    assert "Ollama's name" in refusal(name) and "http://127.0.0.1:11434/v1" in refusal(name)


@pytest.mark.parametrize(
    ("reference", "advice"),
    [
        ("Qwen/Qwen3-0.6B", "write hub:Qwen/Qwen3-0.6B"),
        ("http://127.0.0.1:8080/v1", "as a chat worker"),
        ("starter:smollm3", "use starter:tiny, starter:smollm2 or hub:owner/name"),
        ("/nowhere/at/all", "holds no config.json; give the folder of a checkpoint"),
        ("nonsense", "holds no config.json; give the folder of a checkpoint"),
    ],
)
def test_other_references_say_what_to_write(reference, advice):
    assert advice in refusal(reference)


def test_a_file_of_weights_belongs_in_its_folder(tmp_path):
    file = write_model(tmp_path) / "model.safetensors"
    assert "give the folder that holds it" in refusal(file)


def test_an_adapter_of_the_same_shapes_fits(tmp_path):
    check_fit(write_lora(tmp_path / "lora"), write_model(tmp_path / "model"))


@pytest.mark.parametrize(
    ("layers", "width", "why"),
    [(2, 32, "q_proj has 64 inputs here, and 32 there"), (3, 64, "it changes model.layers.2.q_proj, which this model")],
)
def test_an_adapter_of_another_base_is_refused_with_the_name_of_its_own(tmp_path, layers, width, why):
    adapter = write_lora(tmp_path / "lora", layers, width, base="org/other")
    with pytest.raises(WorkerFault, match="was made for another model") as caught:
        check_fit(adapter, write_model(tmp_path / "model"))
    assert why in str(caught.value) and "give org/other as the model" in str(caught.value)


def test_packed_weights_and_other_names_are_left_to_the_loader(tmp_path):
    check_fit(write_lora(tmp_path / "lora", width=32), write_model(tmp_path / "packed", dtype="U8"))
    other = write_adapter(tmp_path / "other", **{"some.other.lora_A": [4, 8]})
    check_fit(other, write_model(tmp_path / "model"))


def test_a_damaged_file_is_refused_in_words(tmp_path):
    adapter = write_lora(tmp_path / "lora")
    (adapter / "adapter_model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(WorkerFault, match="no whole safetensors file"):
        check_fit(adapter, write_model(tmp_path / "model"))


@pytest.mark.parametrize(
    ("base", "model", "asks"),
    [
        ("org/small", "hub:org/small", False),
        ("org/small", "/models/small", False),
        ("starter:smollm2", "starter:smollm2", False),
        ("", "/models/small", False),
        ("org/large", "/models/small", True),
    ],
)
def test_a_base_of_another_name_is_asked_about(tmp_path, base, model, asks):
    question = describe_base(write_lora(tmp_path, base=base), model)
    assert bool(question) == asks and (not asks or f"trained on {base}; is {model} the same model?" in question)
