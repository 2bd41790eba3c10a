"""What may be installed: upper bounds, a lock file with hashes, known licences, and no code that starts with Python."""

from __future__ import annotations

import json
import re
import subprocess
import sysconfig
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import supply_chain

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Whoever redistributes Podium has nothing to do for these; LGPL and MPL packages are used as they are.
FREE = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python|MPL|Mozilla|Unlicense|Public Domain|CNRI|Zlib|LGPL|0BSD|HPND|CC0")


def test_every_dependency_has_an_upper_bound():
    extras = PROJECT["optional-dependencies"].values()
    requirements = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    assert [line for line in requirements if "<" not in line and "==" not in line] == []


def test_the_lock_file_holds_every_dependency_in_a_version_that_fits_with_its_hashes():
    locked = {canonicalize_name(line.name): (line, hashes) for line, hashes in supply_chain.read_lock()}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"], *supply_chain.ALONE]
    for line in wanted:
        requirement = Requirement(line)
        if requirement.name == "torch":  # an index decides which build fits the machine
            assert "torch" not in locked
            continue
        (version,) = locked[canonicalize_name(requirement.name)][0].specifier
        assert version.operator == "==" and requirement.specifier.contains(version.version), line
    assert [name for name, (_, hashes) in locked.items() if not hashes] == []


@pytest.mark.parametrize(("switches", "is_locked"), [([], True), (["LOCKED="], False)])
def test_setup_installs_the_lock_file_by_its_hashes_unless_a_switch_asks_for_the_newest(switches, is_locked):
    command = ["make", "--dry-run", "--always-make", "setup", *switches]
    steps = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert ("--require-hashes -r requirements.lock" in steps) == is_locked


def test_the_lock_file_names_no_index():
    """It is installed from whatever index a machine is configured with."""
    text = supply_chain.LOCK.read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ file", text)
    assert not re.search(r"^(nvidia-|triton|cuda-)", text, re.MULTILINE)


def test_a_bill_that_lacks_a_locked_package_or_its_hashes_is_no_bill_of_a_release():
    parts = []
    for line, hashes in supply_chain.read_lock():
        name, version = supply_chain.name_locked(line)
        if line.marker is None or line.marker.evaluate():
            parts.append({"name": name, "version": version, "properties": [{"value": mark} for mark in hashes]})
    assert len(parts) > 100 and supply_chain.list_missing_files({"components": parts}) == []
    (sentence,) = supply_chain.list_missing_files({"components": parts[1:]})
    assert parts[0]["name"] in sentence and "make setup" in sentence
    other = [{**parts[0], "version": "0.0.1"}, *parts[1:]]
    unhashed = [{**parts[0], "properties": []}, *parts[1:]]
    assert all(supply_chain.list_missing_files({"components": each}) for each in (other, unhashed))


def test_the_bill_gives_hashes_to_the_locked_version_only():
    locked = {supply_chain.name_locked(line): set(hashes) for line, hashes in supply_chain.read_lock()}
    bill = supply_chain.build_bill(supply_chain.list_installed())
    for part in bill["components"]:
        assert {mark["value"] for mark in part["properties"]} == locked.get((part["name"], part["version"]), set())


def test_the_bill_is_valid_cyclonedx():
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    bill = supply_chain.build_bill(supply_chain.list_installed())
    assert validator.validate_str(json.dumps(bill)) is None
    del bill["components"][0]["name"]
    assert "'name' is a required property" in str(validator.validate_str(json.dumps(bill)))


def test_nothing_unknown_runs_when_python_starts():
    assert supply_chain.list_strange_starts(Path(sysconfig.get_paths()["purelib"])) == []


@pytest.mark.parametrize(
    ("name", "text", "strange"),
    [
        ("litellm_init.pth", "import os; os.system('id')\n", True),
        ("distutils-precedence.pth", "import os; os.system('id')\n", True),
        ("sitecustomize.py", "", True),
        ("_virtualenv.pth", "import _virtualenv\n", False),
        ("paths.pth", "/somewhere/else\n", False),
    ],
)
def test_a_file_that_starts_with_python_is_known_by_name_and_content(tmp_path, name, text, strange):
    (tmp_path / name).write_text(text)
    assert bool(supply_chain.list_strange_starts(tmp_path)) == strange


def test_what_podium_requires_has_a_licence_that_asks_for_nothing():
    names = [Requirement(line).name for line in PROJECT["dependencies"]]
    licences = {name: supply_chain.find_licence(distribution(name)) for name in names}
    assert {name: text for name, text in licences.items() if not FREE.search(text)} == {}


def test_the_bill_of_materials_names_every_package_and_what_it_requires():
    bill = supply_chain.build_bill(supply_chain.list_installed())
    components = {part["name"]: part for part in bill["components"]}
    references = {part["bom-ref"] for part in components.values()}
    assert bill["bomFormat"] == "CycloneDX" and len(components) == len(references) > 100
    httpx = components["httpx"]
    assert httpx["purl"] == f"pkg:pypi/httpx@{httpx['version']}" and httpx["licenses"] and httpx["properties"]
    requires = {line["ref"]: line["dependsOn"] for line in bill["dependencies"]}
    assert components["httpcore"]["bom-ref"] in requires[httpx["bom-ref"]]
    assert {target for targets in requires.values() for target in targets} <= references
