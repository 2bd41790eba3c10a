"""Make the environment .venv-neighbours: `make neighbours`.

It holds the packages of the dependency group `neighbours`, and finds everything else where Podium is installed.
verifiers asks for an older MCP SDK than Podium, so that one environment cannot hold both.
"""

from __future__ import annotations

import subprocess
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-neighbours"
BORROWED = "borrowed.pth"


def main() -> None:
    group = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]["neighbours"]
    venv.create(FOLDER, with_pip=True, clear=True)
    python = FOLDER / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip())
    # Behind its own packages on the path: what the group brings wins.
    (own / BORROWED).write_text(f"{sysconfig.get_paths()['purelib']}\n")
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *group]
    if subprocess.run(command, cwd=ROOT).returncode:
        raise SystemExit("make neighbours: the packages cannot be installed; the lines above say why. Run it again.")
    print("make neighbours: ready. The MCP SDK is older there than Podium asks for, as pip says; that is meant.")


if __name__ == "__main__":
    main()
