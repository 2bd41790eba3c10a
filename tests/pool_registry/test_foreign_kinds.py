"""Kinds of other packages: an entry point is all that it takes, and a bad one breaks nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.medium

ROOT = Path(__file__).parents[2]
TOY = '''
"""Kind `reverse`: turns a text around."""

from pathlib import Path

from pydantic import BaseModel

from pool_registry.worker import Reply, Worker, one_string


class Settings(BaseModel):
    upper: bool
    log: Path | None = None


class Reverse(Worker[Settings]):
    label = "Reverse"
    summary = "Turns a text around."
    icon = "M4 4h16"
    template = {"line": "Backwards.", "spec": {"timeout_s": 5}}
    Config = Settings
    sample = {"text": "abc"}

    @property
    def parameters(self):
        return one_string("text", "What to turn around.")

    async def call(self, call):
        text = call.text("text")[::-1]
        return Reply(text.upper() if self.config.upper else text)
'''
RUN = """
import asyncio
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Turn, Step
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.gallery.templates import templates
from pool_registry.gallery.worker_from_template import find_missing, make_worker
from pool_registry.kinds import KINDS, icon_of, kind_of
from pool_registry.pool import Pool, check_pool
from pool_registry.worker import WorkerSpec
from studio.pages.pool.documents import describe_kind
from pool_registry.portable_pool import stays_because, travellers

def worker(kind, **config):
    return WorkerSpec(name="w", kind=kind, description="d", config=config)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages: one good kind, and bad ones around it."""
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "toy_reverse", "reverse = toy_reverse:Reverse", module=TOY)
    install(folder, "toy_broken", "broken = toy_broken:Nothing", module="raise RuntimeError('no such luck')")
    install(folder, "toy_clash", "chat = toy_reverse:Reverse")
    install(folder, "toy_second", "reverse = toy_reverse:Reverse")
    install(folder, "toy_wrong", "wrong = toy_reverse:Settings")
    return folder


def install(site: Path, package: str, entry: str, module: str = "") -> None:
    """Lay down what pip leaves of a wheel: a module and its metadata."""
    if module:
        (site / f"{package}.py").write_text(module)
    metadata = site / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[podium.workers]\n{entry}\n")


def run(site: Path, code: str) -> str:
    """The output of a script that finds the packages of `site`."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(site), str(ROOT))),
        "PODIUM_HOME": str(site / "home"),
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN + code], capture_output=True, text=True, cwd=site, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_kind_of_another_package_is_validated_run_and_offered(site):
    run(site, """
spec = worker("reverse", upper=True)
pool = Pool(name="p", workers=(spec,))
check_pool(pool)
try:
    check_pool(Pool(name="p", workers=(worker("reverse", upper="perhaps"),)))
    raise AssertionError("it was not validated")
except InvalidPool as error:
    assert error.problems[0][0] == "workers.0.config.upper", error.problems

async def answer():
    plan = Turn((Step(1, "w", {"text": "muidop"}),), "$1")
    async with live_pool(pool) as live:
        return (await run_episode(EpisodeSpec("q"), OraclePolicy(plan), live)).answer

assert asyncio.run(answer()) == "PODIUM"
template = templates()["reverse"]
assert (template.title, template.line, template.shown_icon) == ("Reverse", "Backwards.", "M4 4h16")
assert template.group == "tools"
assert find_missing(template, {}) == [("upper", "this is missing")]
added = make_worker(template, {"upper": True}, pool)
assert (added.name, added.description, added.timeout_s) == ("reverse", "Turns a text around.", 5)
assert describe_kind("reverse").json_schema["properties"]["upper"] == {"title": "Upper", "type": "boolean"}
assert icon_of("reverse") == "M4 4h16" and icon_of("nobody") == ""
""")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("broken", "'broken' (podium.workers) of toy_broken 1.0 cannot be loaded: RuntimeError: no such luck"),
        ("chat", "'chat' (podium.workers) of toy_clash 1.0 takes the name of a built-in one"),
        ("reverse", "'reverse' (podium.workers) of toy_second 1.0 takes a name that toy_reverse 1.0 has taken"),
        ("wrong", "'wrong' (podium.workers) of toy_wrong 1.0 gives a"),
    ],
)
def test_a_bad_entry_point_is_named_with_its_package_and_breaks_no_other(site, name, sentence):
    output = run(site, f"""
assert KINDS["reverse"].label == "Reverse" and KINDS["chat"].label == "Chat model"
assert [name for name in KINDS if KINDS.package_of(name).startswith("toy_")] == ["reverse"]
try:
    print(kind_of(worker({name!r})))
except InvalidPool as error:
    print(error)
""")  # fmt: skip
    assert sentence in output


def test_the_doctor_lists_what_packages_add_and_what_was_left_out(site):
    output = run(site, """
from studio.cli.doctor import _check_extensions
print(*_check_extensions(), sep="\\n")
""")  # fmt: skip
    assert "+ reverse            podium.workers of toy_reverse 1.0" in output
    assert "! wrong " in output and "of toy_wrong 1.0 gives a" in output


def test_its_package_is_pinned_where_it_is_published_unless_it_came_from_a_folder(site):
    publish = """
going = travellers(Pool(name="p", workers=(worker("reverse", upper=True),)))
print(going.distributions, going.modules, going.stays)
print(stays_because(worker("reverse", upper=True, log="/tmp/log")))
"""
    output = run(site, publish)
    assert "('toy_reverse',) () ()" in output and "it needs a file or folder of this machine" in output
    (site / "toy_reverse-1.0.dist-info" / "direct_url.json").write_text(
        '{"url": "file:///home/me/toy", "dir_info": {}}'
    )
    assert "() () (('w', 'its kind comes from toy_reverse, which was installed from a folder" in run(site, publish)
