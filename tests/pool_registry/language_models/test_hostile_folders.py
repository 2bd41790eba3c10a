"""A model's folder that could run code is refused with the reason before any library reads it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from pool_registry.errors import WorkerFault
from pool_registry.language_models.adapter_folder import check_adapter
from pool_registry.language_models.model_files import model_path
from tests.trust.trials import count_trials

ROOT = Path(__file__).parents[3]
INDEX = "model.safetensors.index.json"


def shards(*names: object) -> str:
    return json.dumps({"weight_map": {f"layer.{number}": name for number, name in enumerate(names)}})


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"config.json": '{"auto_map": {"AutoModel": "evil.Model"}}', "model.safetensors": ""}, "auto_map"),
        ({"config.json": '{"\\u0061uto\\u005fmap": {}}', "model.safetensors": ""}, "auto_map"),
        ({"config.json": '{"text_config": [{"auto_map": 1}]}', "model.safetensors": ""}, "auto_map"),
        (
            {"config.json": "{}", "tokenizer_config.json": '{"auto_map": {}}', "model.safetensors": ""},
            "tokenizer_config",
        ),
        ({"config.json": "{}", "pytorch_model.bin": "pickle", "other.safetensors": ""}, "no model.safetensors"),
        ({"config.json": "{}", "pytorch_model.bin": "pickle"}, "no model.safetensors"),
        ({"config.json": "{}", INDEX: shards("pytorch_model.bin"), "pytorch_model.bin": ""}, "pytorch_model.bin"),
        ({"config.json": "{}", INDEX: shards("a.safetensors", "../b.safetensors"), "a.safetensors": ""}, "../b"),
        ({"config.json": "{}", INDEX: shards("missing.safetensors")}, "missing"),
        ({"config.json": "{}", INDEX: shards(7)}, "'7'"),
        ({"config.json": "{}", INDEX: "[]"}, "None"),
        ({"config.json": "[" * 100_000, "model.safetensors": ""}, "no JSON"),
        ({"config.json": "\x00", "model.safetensors": ""}, "no JSON"),
    ],
)
def test_a_hostile_folder_is_refused_before_anything_is_read(tmp_path, files, reason):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(WorkerFault, match=re.escape(reason)) as refused:
        model_path(str(tmp_path))
    assert refused.value.code == "model_refused"


@pytest.mark.parametrize(
    "files",
    [
        {"model.safetensors": ""},
        {"model.safetensors": "", "pytorch_model.bin": "is not read"},
        {INDEX: shards("model-00001-of-00002.safetensors", "b.safetensors"), "b.safetensors": "",
         "model-00001-of-00002.safetensors": ""},
    ],
)  # fmt: skip
def test_a_folder_of_safetensors_is_taken(tmp_path, files):
    for name, text in {"config.json": "{}", **files}.items():
        (tmp_path / name).write_text(text)
    assert model_path(str(tmp_path)) == tmp_path


# What each loader must be told, and what must not be called at all.
SAFE = {"use_safetensors=True", "trust_remote_code=False"}
FLAGS = {
    "tokenizer.from_pretrained": {"trust_remote_code=False"},
    "peftmodel.from_pretrained": {"use_safetensors=True"},
    "peftconfig.from_pretrained": set(),
    "np.load": {"allow_pickle=False"},
}
# What the processes of one job send to each other through Ray, which pickles all arguments itself. No file is read.
MESSAGES = {("trainer/cluster/episodes.py", "pickle.loads"), ("trainer/cluster/node.py", "pickle.loads")}
FORBIDDEN = re.compile(r"(torch|pickle|cloudpickle|dill|joblib|marshal|shelve)\.(load|loads|open)|yaml\.unsafe_load")


def list_loaders(path: Path) -> list[tuple[str, set[str]]]:
    """The calls in a file that read weights, tokenizers or pickles, each with its arguments as text."""
    loaders = []
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call):
            name = ast.unparse(call.func)
            if name.endswith((".from_pretrained", ".load", ".loads", ".unsafe_load")):
                loaders.append((name, {ast.unparse(argument) for argument in call.keywords}))
    return loaders


@pytest.mark.medium
def test_every_loader_takes_safetensors_alone_and_no_remote_code():
    """Each call that loads weights or a tokenizer says so itself; the small model's own package is a GGUF file."""
    loose, count = [], 0
    for room in ("pool_registry", "orchestrator", "trainer", "studio", "scripts", "bench", "examples"):
        for path in (ROOT / room).rglob("*.py"):
            for name, arguments in list_loaders(path):
                owner, _, method = name.lower().rpartition(".")
                short = f"{owner.replace('auto', '').replace('_', '')}.{method}"
                flags = FLAGS.get(short, SAFE if short.endswith(".from_pretrained") else set())
                if "**place" in arguments:
                    flags = flags - {"use_safetensors=True"}
                count += bool(flags)
                if (path.relative_to(ROOT).as_posix(), name) in MESSAGES:
                    continue
                if FORBIDDEN.fullmatch(name) or flags - arguments:
                    loose.append((path.name, name, sorted(flags - arguments)))
    count_trials(count)
    assert loose == [] and count >= 12


@pytest.mark.parametrize("text", ["torch.load(f)", "AutoModel.from_pretrained(f)", "AutoTokenizer.from_pretrained(f)"])
def test_a_loader_that_is_not_told_would_be_noticed(tmp_path, text):
    (tmp_path / "loader.py").write_text(text)
    ((name, arguments),) = list_loaders(tmp_path / "loader.py")
    assert not arguments and (FORBIDDEN.fullmatch(name) or name.endswith("from_pretrained"))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"adapter_config.json": "{}", "adapter_model.bin": "pickle"}, "no adapter_model.safetensors"),
        ({"adapter_config.json": "[", "adapter_model.safetensors": ""}, "no JSON"),
        ({"adapter_model.safetensors": ""}, "no adapter_config.json"),
        ({"adapter_config.json": '{"megatron_config": {"a": 1}}', "adapter_model.safetensors": ""}, "megatron_config"),
    ],
)
def test_a_hostile_adapter_is_refused_before_anything_is_read(tmp_path, files, reason):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(WorkerFault, match=re.escape(reason)) as refused:
        check_adapter(tmp_path)
    assert refused.value.code == "model_refused"
