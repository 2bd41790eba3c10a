"""Install what lies beside this file, without any network: `python3 install.py`.

Made by scripts/offline_bundle.py. Parts are checked, joined into `joined/`, and installed into a new environment.
Running it again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from hashlib import file_digest
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
JOINED = HERE / "joined"
SPACE = 4  # an environment takes about this many times its wheels
MB = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=Path("podium-env"), help="folder of the new environment")
    parser.add_argument("--check", action="store_true", help="only check that every part arrived whole")
    options = parser.parse_args()
    bundle = json.loads((HERE / "bundle.json").read_text(encoding="utf-8"))
    check_parts(bundle["files"])
    if options.check:
        say("every part is whole")
        return
    check_machine(bundle)
    check_space(bundle["files"], options.venv.absolute().parent)
    for file in bundle["files"]:
        join_parts(file)
    install(bundle, options.venv.absolute())


def check_parts(files: list[dict[str, Any]]) -> None:
    """Name everything that is missing or damaged at once, so that one more copy is enough."""
    bad = []
    for part in (part for file in files for part in file["parts"]):
        path = HERE / "parts" / part["name"]
        if not path.is_file():
            bad.append(f"{part['name']} is missing")
        elif path.stat().st_size != part["bytes"] or hash_file(path) != part["sha256"]:
            bad.append(f"{part['name']} is damaged")
    if bad:
        fail("copy these again into parts/:\n  " + "\n  ".join(bad))


def check_machine(bundle: dict[str, Any]) -> None:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running != bundle["python"]:
        fail(
            f"this bundle is for Python {bundle['python']}, and this is {running}: run it with python{bundle['python']}"
        )
    here = platform.machine().lower()
    if platform.system() != bundle["system"] or here != bundle["machine"].lower():
        fail(f"this bundle is for {bundle['system']} on {bundle['machine']}, and this is {platform.system()} on {here}")


def check_space(files: list[dict[str, Any]], folder: Path) -> None:
    size = sum(part["bytes"] for file in files for part in file["parts"])
    free = shutil.disk_usage(folder).free
    if free < SPACE * size:
        fail(
            f"about {SPACE * size / MB:,.0f} MB are needed and {free / MB:,.0f} MB are free: "
            "free some space, or choose another disk with --venv"
        )


def join_parts(file: dict[str, Any]) -> None:
    """Join the parts of a file, unless they were joined before."""
    path = JOINED / file["path"]
    if path.is_file() and hash_file(path) == file["sha256"]:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        for part in file["parts"]:
            stream.write((HERE / "parts" / part["name"]).read_bytes())
    if hash_file(path) != file["sha256"]:
        fail(f"{path} is not what was bundled: is the disk full or broken?")


def hash_file(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def install(bundle: dict[str, Any], folder: Path) -> None:
    say(f"making the environment {folder}")
    run(sys.executable, "-m", "venv", str(folder))
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]
    wheels = ["--find-links", str(JOINED / "wheels")]
    say("installing")
    run(*pip, *wheels, *bundle["requirements"])
    if bundle["alone"]:
        run(*pip, *wheels, "--no-deps", *bundle["alone"])
    say(f"installed. Start the studio with: {scripts / 'podium'}")
    if (JOINED / "model").is_dir():
        say(f"The base model, for a recipe's model.base: {JOINED / 'model'}")


def run(*command: str) -> None:
    # Settings of pip's on this machine could name places that cannot be reached.
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    code = subprocess.run(command, env={**os.environ, **settings}, check=False).returncode
    if code:
        fail(f"{' '.join(command[:4])} ended with status {code}; the lines above say why")


def say(line: str) -> None:
    print(line, flush=True)


def fail(sentence: str) -> NoReturn:
    raise SystemExit(f"install: {sentence}")


if __name__ == "__main__":
    main()
