"""Which locked packages have a known vulnerability, by a list that needs no network.

    python -m scripts.advisories check [--days 30]   # the lock file, and the torch that is installed, against the list
    python -m scripts.advisories refresh [SOURCE]    # writes the list anew: make advisories [FROM=SOURCE]

`scripts/advisories.json` has the day of its newest advisory and, for each locked package, what is known of it:
[id, [other names], [[first affected version, first that is not, or ""], ...], [single versions]]. SOURCE is a folder or
a zip archive with one advisory in OSV's form a file, such as a clone of PyPA's advisory database, which pip-audit
reads, too. Without SOURCE OSV's archive is downloaded, where the network allows it.

`check` exits with 1 where an advisory meets a locked version that `ACCEPTED` does not name, and with 2 where the list
is missing or older than `--days`: then nothing counts as checked.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from scripts.supply_chain import name_locked, read_lock

LIST = Path(__file__).with_name("advisories.json")
ARCHIVE = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip"
CREDIT = "PyPA Advisory Database, CC BY 4.0"
DAYS = 30  # the oldest list that counts
UNLOCKED = ("torch",)  # installed, but an index decides which build
# Advisories that do not concern what Podium does with a package: {id: why}.
ACCEPTED: Mapping[str, str] = {}
PASSED, VULNERABLE, UNCHECKED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Advisory:
    """One known vulnerability of a package. `ranges` are (first affected, first not affected or "") versions."""

    id: str
    aliases: tuple[str, ...]
    ranges: tuple[tuple[str, str], ...]
    versions: tuple[str, ...]

    def affects(self, release: Version) -> bool:
        inside = any(
            Version(first) <= release and (not fixed or release < Version(fixed)) for first, fixed in self.ranges
        )
        return inside or any(Version(single) == release for single in self.versions)


@dataclass(frozen=True, slots=True)
class AdvisoryList:
    """What was known on a day: {package: advisories}."""

    day: date
    packages: Mapping[str, Sequence[Advisory]]

    def age(self, today: date) -> int:
        return (today - self.day).days


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check")
    check.add_argument("--days", type=int, default=DAYS, help="how old the list may be")
    refresh = commands.add_parser("refresh")
    refresh.add_argument("source", nargs="?", type=Path, help="a folder or a zip archive; default: OSV's is downloaded")
    options = parser.parse_args(arguments)
    if options.command == "refresh":
        print(refresh_list(options.source) if options.source else download_list())
        return PASSED
    code, lines = check_lock(read_list(LIST), options.days, datetime.now(UTC).date())
    print("\n".join(lines))
    return code


def check_lock(known: AdvisoryList | None, days: int, today: date) -> tuple[int, list[str]]:
    """The exit code, and what to say, for the packages of requirements.lock."""
    if known is None:
        return UNCHECKED, [f"NOT CHECKED for known vulnerabilities: {LIST.name} is missing. {_advise()}"]
    hits = list(find_affected(known))
    lines = [f"{name} {release}: {advisory.id} ({', '.join(advisory.aliases)})" for name, release, advisory in hits]
    count = sum(len(advisories) for advisories in known.packages.values())
    if hits:
        return VULNERABLE, [*lines, "lock a version that is mended, or name the advisory and why in ACCEPTED"]
    if (age := known.age(today)) > days:
        what = f"the list of {known.day} is {age} days old, {days} are the most"
        return UNCHECKED, [f"NOT CHECKED for known vulnerabilities: {what}. {_advise()}"]
    return PASSED, [f"none of {count} known vulnerabilities of {known.day} is in a locked version"]


def find_affected(known: AdvisoryList) -> Iterator[tuple[str, str, Advisory]]:
    """The packages with an advisory that meets their version and is not accepted."""
    for name, release in list_versions():
        for advisory in known.packages.get(name, ()):
            if advisory.affects(Version(release)) and advisory.id not in ACCEPTED:
                yield name, release, advisory


def list_versions() -> Iterator[tuple[str, str]]:
    """Each locked package and its version, and what is installed without a lock."""
    yield from (name_locked(line) for line, _ in read_lock())
    for name in UNLOCKED:
        try:
            yield name, version(name).partition("+")[0]  # without the name of its build
        except PackageNotFoundError:
            continue


def read_list(file: Path) -> AdvisoryList | None:
    """The list in a file; None where there is none."""
    if not file.exists():
        return None
    document = json.loads(file.read_text(encoding="utf-8"))
    packages = {
        name: [Advisory(mark, tuple(aliases), tuple(map(tuple, ranges)), tuple(versions))
               for mark, aliases, ranges, versions in rows]
        for name, rows in document["packages"].items()
    }  # fmt: skip
    return AdvisoryList(date.fromisoformat(document["day"]), packages)


def download_list() -> str:
    """Write the list anew from OSV's archive; returns a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "all.zip"
        try:
            urllib.request.urlretrieve(ARCHIVE, file)
        except OSError as error:
            sys.exit(f"{ARCHIVE} could not be downloaded ({error}). Fetch it elsewhere: make advisories FROM=all.zip")
        return refresh_list(file)


def refresh_list(source: Path) -> str:
    """Write the list anew from advisories in OSV's form; returns a sentence. The day is that of the newest of them."""
    names = {name_locked(line)[0] for line, _ in read_lock()} | set(UNLOCKED)
    packages: dict[str, list[list[Any]]] = {}
    newest = ""
    for document in read_source(source):
        newest = max(newest, str(document.get("modified", ""))[:10])
        for name, row in list_rows(document):
            if name in names and not document.get("withdrawn"):
                packages.setdefault(name, []).append(row)
    if not newest:
        sys.exit(f"{source} holds no advisory in OSV's form; see: python -m scripts.advisories --help")
    rows = [f' "{name}": {json.dumps(sorted(packages[name]))}' for name in sorted(packages)]
    head = f'{{"day": "{newest}", "source": "{CREDIT}", "packages": {{\n'
    LIST.write_text(head + ",\n".join(rows) + "\n}}\n", encoding="utf-8")
    count = sum(map(len, packages.values()))
    return f"{LIST.name}: {count} advisories of {len(packages)} packages, the newest of {newest}"


def read_source(source: Path) -> Iterator[dict[str, Any]]:
    """Each advisory in a zip archive or a folder, JSON or YAML."""
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.suffix in (".json", ".yaml") and path.is_file())
        texts = (path.read_bytes() for path in files)
    else:
        archive = zipfile.ZipFile(source)
        texts = (archive.read(name) for name in archive.namelist() if name.endswith((".json", ".yaml")))
    for text in texts:
        document = json.loads(text) if text[:1] == b"{" else yaml.load(text, Loader=_Loader)
        if isinstance(document, dict) and "affected" in document:
            yield document


def list_rows(document: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """(package, row of the list) for each package of PyPI that an advisory affects. A git range says nothing here."""
    for part in document["affected"]:
        if part["package"]["ecosystem"] != "PyPI":
            continue
        spans = [span for span in part.get("ranges", ()) if span["type"] == "ECOSYSTEM"]
        # Single versions matter only where no range says the same, or one does not say where it ends.
        exact = bool(spans) and not any("last_affected" in event for span in spans for event in span["events"])
        ranges = [pair for span in spans for pair in pair_events(span)] if exact else []
        singles = [] if exact else list(filter(_is_version, map(str, part.get("versions", ()))))
        row = [document["id"], sorted(document.get("aliases", ())), ranges, singles]
        yield canonicalize_name(part["package"]["name"]), row


def pair_events(span: Mapping[str, Any]) -> Iterator[list[str]]:
    """[first affected, first not affected] for each stretch of a range; "" for an open end."""
    first = ""
    for event in span["events"]:
        if "introduced" in event:
            if first:
                yield [first, ""]
            first = str(event["introduced"])
        elif "fixed" in event and first:
            yield [first, str(event["fixed"])]
            first = ""
    if first:
        yield [first, ""]


def _is_version(text: str) -> bool:
    try:
        return bool(Version(text))
    except InvalidVersion:
        return False


def _advise() -> str:
    return "A new one: make advisories, or FROM=FOLDER_OR_ZIP where there is no network"


class _Loader(yaml.CSafeLoader):
    """Leaves days as texts."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, shape) for tag, shape in rows if tag.endswith((":null", ":bool"))]
    for letter, rows in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}

if __name__ == "__main__":
    sys.exit(main())
