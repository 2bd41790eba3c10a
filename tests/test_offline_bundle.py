"""A bundle holds what another machine needs, and installs there without an index. Its packages are made here."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.offline_bundle import Target

pytestmark = pytest.mark.medium

ROOT = Path(__file__).resolve().parents[1]
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
PURE = "py3-none-any"


@pytest.fixture
def index(tmp_path):
    """A folder in place of the package index; `add` puts a wheel in, which holds one module."""
    folder = tmp_path / "index"
    folder.mkdir()

    def add(name: str, *requirements: str, tag: str = PURE, version: str = "1.0", size: int = 0) -> None:
        info = f"{name}-{version}.dist-info"
        needs = "".join(f"Requires-Dist: {line}\n" for line in requirements)
        files = {
            f"{name}.py": f"NAME = {name!r}\n" + "#" * size,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
        }
        rows = [f"{path},sha256={digest(text)},{len(text)}" for path, text in files.items()]
        files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,\n"])
        with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as wheel:
            for path, text in files.items():
                wheel.writestr(path, text)

    add.folder = folder
    return add


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def bundle(index, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts.offline_bundle", "--out", str(out), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index.folder), "PIP_CONFIG_FILE": os.devnull},
    )


def install(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(out / "install.py"), *arguments], capture_output=True, text=True)


def read_paths(out: Path) -> list[str]:
    return [file["path"] for file in json.loads((out / "bundle.json").read_text())["files"]]


@pytest.mark.slow
def test_a_machine_without_an_index_gets_everything(index, tmp_path):
    index("alpha", "beta>=1", f'gamma; python_version == "{RUNNING}"')
    index("beta", size=5000)
    index("gamma")
    out, model = tmp_path / "bundle", tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(os.urandom(7000))
    done = bundle(index, out, "--package", "alpha", "--model", str(model), "--part-mb", "0.002")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"python{RUNNING} bundle/install.py" in done.stdout
    assert max(path.stat().st_size for path in (out / "parts").iterdir()) == 2000
    for folder in (index.folder, model):  # the other machine has the bundle alone
        folder.rename(folder.with_name(f"{folder.name}-elsewhere"))

    done = install(out, "--venv", str(tmp_path / "new"))
    assert done.returncode == 0, done.stdout + done.stderr
    python = tmp_path / "new" / "bin" / "python"
    code = "import alpha, beta, gamma; print(alpha.NAME, beta.NAME, gamma.NAME)"
    assert subprocess.run([python, "-c", code], capture_output=True, text=True).stdout == "alpha beta gamma\n"
    assert str(out / "joined" / "model") in done.stdout
    weights = (tmp_path / "model-elsewhere" / "model.safetensors").read_bytes()
    assert (out / "joined" / "model" / "model.safetensors").read_bytes() == weights


def test_requirements_and_wheels_are_those_of_the_other_machine(index, tmp_path):
    index(
        "alpha",
        'old; python_version < "3.12"',
        'new; python_version >= "3.12"',
        'arm; platform_machine == "aarch64"',
        'intel; platform_machine == "x86_64"',
        'apple; sys_platform == "darwin"',
        "native",
    )
    for name in ("old", "new", "arm", "intel", "apple"):
        index(name)
    for tag in ("cp311-cp311-manylinux_2_17_aarch64", "cp312-cp312-manylinux_2_17_aarch64"):
        index("native", tag=tag)
    index("native", tag="cp312-cp312-manylinux_2_34_aarch64", version="2.0")  # its glibc is newer than the machine's
    out = tmp_path / "bundle"
    done = bundle(index, out, "--package", "alpha", "--python", "3.12", "--platform", "manylinux_2_28_aarch64")
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_paths(out) == [
        f"wheels/{name}.whl"
        for name in (
            f"alpha-1.0-{PURE}", f"arm-1.0-{PURE}", "native-1.0-cp312-cp312-manylinux_2_17_aarch64", f"new-1.0-{PURE}",
        )
    ]  # fmt: skip
    refused = install(out)
    assert refused.returncode == 1 and "this bundle is for" in refused.stderr


def test_parts_that_are_missing_or_damaged_are_named_at_once(index, tmp_path):
    index("alpha", size=5000)
    out = tmp_path / "bundle"
    assert bundle(index, out, "--package", "alpha", "--part-mb", "0.002").returncode == 0
    assert install(out, "--check").stdout == "every part is whole\n"
    first, second, _ = sorted((out / "parts").iterdir())
    first.unlink()
    second.write_bytes(b"x" * second.stat().st_size)
    refused = install(out, "--check")
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert f"{first.name} is missing" in refused.stderr and f"{second.name} is damaged" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--python", "three"), "no version such as 3.12"),
        (("--platform", "amiga"), "none that wheels have"),
        (("--package", "missing-package"), "pip ended with status"),
        (("--package", "alpha", "--model", "/no/such/model"), "config.json"),
    ],
)
def test_what_cannot_be_bundled_is_a_sentence(index, tmp_path, arguments, said):
    index("alpha")
    done = bundle(index, tmp_path / "bundle", *arguments)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "not empty" in bundle(index, tmp_path / "full", "--package", "alpha").stderr


@pytest.mark.parametrize(
    ("platform", "system", "machine", "tags"),
    [
        ("manylinux_2_17_x86_64", "Linux", "x86_64", ["manylinux_2_17_x86_64", "manylinux2014_x86_64"]),
        ("macosx_14_0_arm64", "Darwin", "arm64", ["macosx_14_0_arm64"]),
        ("win_amd64", "Windows", "amd64", ["win_amd64"]),
    ],
)
def test_platforms_are_understood(platform, system, machine, tags):
    target = Target("3.12", platform)
    assert (target.system, target.machine, target.tags()[:2]) == (system, machine, tags)
