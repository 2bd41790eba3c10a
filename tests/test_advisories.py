"""Known vulnerabilities: what the list says of a version, a list that is too old, and reading advisories."""

from __future__ import annotations

import json
import zipfile
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from scripts import advisories
from scripts.advisories import Advisory, AdvisoryList, check_lock, list_rows, pair_events, read_list
from scripts.supply_chain import name_locked, read_lock

DAY = date(2026, 11, 1)
NAME, VERSION = name_locked(next(iter(read_lock()))[0])


def make_list(*found: Advisory) -> AdvisoryList:
    return AdvisoryList(DAY, {NAME: found})


def make_advisory(first: str, fixed: str) -> Advisory:
    return Advisory("PYSEC-2026-1", ("CVE-2026-1",), ((first, fixed),), ())


def write_osv(name: str = NAME) -> dict[str, object]:
    events = [{"introduced": "2.0.0"}, {"fixed": "2.0.7"}, {"introduced": "0"}, {"fixed": "1.26.18"}]
    ranges = [{"type": "ECOSYSTEM", "events": events}, {"type": "GIT", "events": [{"introduced": "0"}]}]
    affected = [{"package": {"ecosystem": "PyPI", "name": name}, "ranges": ranges, "versions": ["2.0.1"]}]
    return {"id": "PYSEC-1", "aliases": ["CVE-1"], "modified": "2026-10-30T10:00:00Z", "affected": affected}


def test_a_locked_version_with_a_known_vulnerability_ends_the_release(monkeypatch):
    code, lines = check_lock(make_list(make_advisory("0", "")), 30, DAY)
    assert code == advisories.VULNERABLE and f"{NAME} {VERSION}: PYSEC-2026-1 (CVE-2026-1)" in lines[0]
    monkeypatch.setattr(advisories, "ACCEPTED", {"PYSEC-2026-1": "only its command line, which is not called"})
    assert check_lock(make_list(make_advisory("0", "")), 30, DAY)[0] == advisories.PASSED


def test_a_mended_version_passes():
    code, (line,) = check_lock(make_list(make_advisory("0", VERSION)), 30, DAY)
    assert code == advisories.PASSED and "none of 1 known vulnerabilities of 2026-11-01" in line


def test_a_list_that_is_missing_or_too_old_does_not_count_as_passed():
    for known in (None, make_list()):
        code, (line,) = check_lock(known, 30, DAY + timedelta(days=31))
        assert code == advisories.UNCHECKED
        assert line.startswith("NOT CHECKED for known vulnerabilities") and "make advisories" in line
    assert check_lock(make_list(), 30, DAY + timedelta(days=30))[0] == advisories.PASSED


def test_what_an_old_list_knows_is_said_all_the_same():
    assert check_lock(make_list(make_advisory("0", "")), 30, DAY + timedelta(days=400))[0] == advisories.VULNERABLE


@pytest.mark.parametrize(
    ("release", "affected"), [("0.1", True), ("1.26.18", False), ("2.0.0", True), ("2.0.6", True), ("2.0.7", False)]
)
def test_the_ranges_of_osv_are_read_as_they_are_meant(release, affected):
    ((name, row),) = list_rows(write_osv())
    assert name == NAME and row[3] == [], "single versions say nothing more"
    assert Advisory(row[0], tuple(row[1]), tuple(map(tuple, row[2])), ()).affects(Version(release)) == affected


def test_where_only_the_last_affected_version_is_known_single_versions_are_kept():
    document = write_osv()
    document["affected"][0]["ranges"][0]["events"] = [{"introduced": "0"}, {"last_affected": "2.0.1"}]
    ((_, row),) = list_rows(document)
    assert row[2:] == [[], ["2.0.1"]]


@given(st.lists(st.tuples(st.sampled_from(["introduced", "fixed", "limit"]), st.integers(0, 9).map(str))))
def test_any_events_give_pairs(events):
    assert all(first for first, _ in pair_events({"events": [{kind: release} for kind, release in events]}))


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_the_list_is_written_anew_from_a_folder_or_an_archive(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(advisories, "LIST", tmp_path / "advisories.json")
    (folder := tmp_path / "vulns").mkdir()
    withdrawn = {**write_osv(), "withdrawn": "2026-10-31T00:00:00Z"}
    for name, document in {"a": write_osv(), "b": withdrawn, "c": write_osv("not-locked-here")}.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    source = folder
    if kind == "zip":
        source = tmp_path / "all.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for file in folder.iterdir():
                archive.write(file, file.name)
    assert advisories.main(["refresh", str(source)]) == 0
    known = read_list(tmp_path / "advisories.json")
    assert known.day == date(2026, 10, 30) and list(known.packages) == [NAME]
    assert [advisory.id for advisory in known.packages[NAME]] == ["PYSEC-1"]


def test_a_source_without_an_advisory_is_refused_and_the_list_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(advisories, "LIST", tmp_path / "advisories.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(SystemExit, match="holds no advisory"):
        advisories.main(["refresh", str(tmp_path)])
    assert not (tmp_path / "advisories.json").exists()


def test_the_list_that_ships_can_be_read_and_says_whose_it_is():
    known = read_list(advisories.LIST)
    assert known is not None and sum(map(len, known.packages.values())) > 100
    assert json.loads(advisories.LIST.read_text())["source"] == advisories.CREDIT
    assert list(advisories.find_affected(known)) == []
