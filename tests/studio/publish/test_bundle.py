"""What a publication is made of: which workers and code travel, what is scanned for, which paths a bundle takes."""

from __future__ import annotations

import ast
import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.checkpoints import MANIFEST, find_checkpoint, read_checkpoint
from podium_lessons.worlds.source import open_worlds
from pool_registry.kinds import KINDS
from pool_registry.pool import Pool
from pool_registry.portable_pool import stays_because, travellers
from pool_registry.worker import WorkerSpec
from studio.episode_documents.static_page import script, static_page
from studio.export.engine_files import ALLOWED, ENGINE, NEEDS_DATABASE, engine_sources, requirements
from studio.publish.bundle import LISTING, Entry, make_bundle, write_folder
from studio.publish.model_repo import Weights, checkpoint_entries, without_paths
from studio.publish.request import InvalidPublication, Publication, PublishError, parse_publication
from studio.publish.secret_scan import check_bundles, collect_secrets, scan_entry
from studio.publish.space_repo import SPACE_APP

KEY = "sk-canary/4711+env=secret&x"
ASKED = Publication(pool="starter", orchestrator="starter-grpo", repo="tiny")


def spec(name: str, kind: str, **config: object) -> WorkerSpec:
    return WorkerSpec(name=name, kind=kind, description="d", config=config)


@pytest.mark.parametrize(
    ("worker", "stays"),
    [
        (spec("w", "chat", base_url="https://api.example.com/v1", model="m"), ""),
        (spec("w", "chat", base_url="http://127.0.0.1:8000/v1", model="m"), "on this machine"),
        (spec("w", "chat", base_url="http://2130706433/v1", model="m"), "on this machine"),
        (spec("w", "chat", base_url="https://gpu-box/v1", model="m"), "its network"),
        (spec("w", "chat", base_url="https://models.corp/v1", model="m"), "its network"),
        (spec("w", "chat", model="m"), "on this machine"),
        (spec("w", "http", url="http://192.168.1.4/x"), "its network"),
        (spec("w", "space", space="owner/name"), ""),
        (spec("w", "local_model", model="hub:owner/name"), ""),
        (spec("w", "local_model", model="/models/mine"), "folder of this machine"),
        (spec("w", "local_model", model="hub:owner/name", adapter="/adapters/mine"), "folder of this machine"),
        (spec("w", "mcp", server={"name": "s", "transport": "stdio", "command": "npx"}, tool="t"), "program"),
        (spec("w", "mcp", server={"name": "s", "transport": "http", "url": "https://mcp.example.com"}, tool="t"), ""),
        (spec("w", "sql", database="starter:ledger"), ""),
        (spec("w", "sql", database="/data/mine.db"), "database"),
        (spec("w", "documents", path="/home/me/letters"), "files on this machine"),
        (spec("w", "search", corpus="/home/me/corpus.jsonl"), "corpus"),
        (spec("w", "function", target="/home/me/f.py:f"), "Python file"),
        (spec("w", "flaky", inner={"name": "i", "kind": "documents", "description": "d", "config": {"path": "/x"}}),
         "files on this machine"),
        (spec("w", "calculator"), ""),
    ],
)  # fmt: skip
def test_a_worker_travels_unless_it_needs_this_machine(worker, stays):
    reason = stays_because(worker)
    assert (stays in reason and reason) if stays else reason == ""


def test_what_cannot_be_read_stays():
    assert "not valid" in stays_because(spec("w", "chat", nonsense=1))
    assert "no kind 'nobody'" in stays_because(spec("w", "nobody"))


def test_what_travels_has_env_secrets_no_private_reach_and_no_fallback_that_stays():
    chat = {"base_url": "https://a.example.com/v1", "model": "m", "allow_private": True}
    workers = (
        spec("one", "chat", **chat, api_key="keyring:my.key").model_copy(update={"fallback": "near"}),
        spec("two", "chat", **chat, api_key="env:my_key"),
        spec("three", "http", url="https://b.example.com", headers={"Authorization": "Bearer env:my_key"}),
        spec("near", "chat", base_url="http://127.0.0.1:1/v1", model="m"),
    )
    going = travellers(Pool(name="p", workers=workers))
    assert [each.name for each in going.pool.workers] == ["one", "two", "three"]
    assert {(each.name, each.reference, each.workers) for each in going.secrets} == {
        ("my_key", "keyring:my.key", ("one",)), ("my_key_2", "env:my_key", ("two", "three")),
    }  # fmt: skip
    one, two, three = going.pool.workers
    assert one.config["api_key"] == "env:my_key" and two.config["api_key"] == "env:my_key_2"
    assert three.config["headers"] == {"Authorization": "Bearer env:my_key_2"}
    assert not one.config["allow_private"] and one.fallback == ""
    assert [name for name, _ in going.stays] == ["near"]


def test_the_tools_of_generated_tasks_stay():
    (task,) = open_worlds().tasks("train", 1)
    assert task.pool is not None
    tools = [spec for spec in task.pool.workers if spec.kind == "world"]
    assert tools and all("podium-lessons, which was installed from a folder" in stays_because(spec) for spec in tools)


def test_the_code_that_travels_is_complete_by_its_own_imports():
    """Every import at the top of a file that travels is another such file, a pinned package or the standard library."""
    travelling = [kind for kind in KINDS.values() if not kind.distribution]
    files = engine_sources([*ENGINE, *(kind.module for kind in travelling)])
    for path, file in files.items():
        assert path.endswith(".py") and not path.startswith(("trainer/", "tests/"))
        for node in ast.parse(file.read_text()).body:
            names = [node.module] if isinstance(node, ast.ImportFrom) else (
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])  # fmt: skip
            for name in names:
                if name and name.partition(".")[0] in ("pool_registry", "orchestrator", "studio", "assets"):
                    place = name.replace(".", "/")
                    assert f"{place}.py" in files or f"{place}/__init__.py" in files, f"{path} wants {name}"
                    assert name not in NEEDS_DATABASE
    assert not any("migrations" in path or "store" in path for path in files)


def test_requirements_are_pinned_and_as_few_as_the_pool_needs():
    few = requirements([*ENGINE, "pool_registry.workers.calculator"])
    assert all("==" in pin and "+" not in pin for pin in few)
    assert not any(pin.startswith(("torch", "transformers", "gradio", "sqlmodel", "mcp")) for pin in few)
    assert any(pin.startswith("torch==") for pin in requirements([*ENGINE, "pool_registry.workers.local_model"]))


@pytest.mark.parametrize("text", [
    KEY, base64.b64encode(KEY.encode()).decode(), "user:" + KEY, KEY.encode().hex(),
    base64.b64encode(b"user:" + KEY.encode()).decode(),
])  # fmt: skip
def test_a_secret_is_found_however_it_is_written_and_never_repeated(text):
    found = make_bundle("space", [Entry("traces/a.json", json.dumps({"x": f"a {text} b"}).encode(), "a run")], [])
    with pytest.raises(PublishError, match=r"traces/a\.json holds the value of env:K") as raised:
        check_bundles([found], {"the value of env:K": KEY})
    assert KEY not in str(raised.value) and text not in str(raised.value)


def test_a_secret_across_two_pieces_of_a_large_file_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("studio.publish.bundle.CHUNK", 5000)
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"\0" * 4990 + KEY.encode() + b"\0" * 20_000)
    assert [each.what for each in scan_entry(Entry("model.safetensors", file, "w"), {"k": KEY})] == ["k"]
    assert b"".join(Entry("x", file, "w").chunks()) == file.read_bytes()


@pytest.mark.parametrize("text", [
    "hf_" + "a" * 34, "sk-proj-" + "b" * 40, "AKIA" + "A1B2" * 4, "-----BEGIN RSA PRIVATE KEY-----", "ghp_" + "c" * 36,
    "postgresql://me:hunter22@db.example.com/x", "xai-" + "d4" * 24, "gsk_" + "e5" * 26,
    "https://x.example.com/a?api_key=12345678",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
    "hf_aaaa\u200b" + "a" * 30, r"hf_aaaa\u2060" + "a" * 30,
])  # fmt: skip
def test_keys_are_known_by_their_shape(text):
    assert scan_entry(Entry("recipe.yaml", f"x: {text} y".encode(), "r"), {})


def test_the_value_of_a_connection_that_the_environment_holds_is_found(monkeypatch):
    monkeypatch.setenv("REPORTS_CONN_STR", "host=db user=me pw=Sesame99x")
    secrets = collect_secrets([Pool(name="p")])
    findings = scan_entry(Entry("pool.json", b'{"role": "host=db user=me pw=Sesame99x"}', "p"), secrets)
    assert "the value of env:REPORTS_CONN_STR" in [finding.what for finding in findings]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../b", "a//b", "./a", ""])
def test_a_path_that_leaves_the_repository_is_refused(path):
    with pytest.raises(PublishError):
        make_bundle("space", [Entry(path, b"x", "x")], [])


def test_a_link_is_never_followed_into_a_bundle(tmp_path):
    link = tmp_path / "model.safetensors"
    link.symlink_to("/etc/hostname")
    with pytest.raises(PublishError, match="not a plain file"):
        make_bundle("model", [Entry("model.safetensors", link, "w")], [])


def test_a_published_checkpoint_is_one_and_names_no_folder_of_this_machine(tmp_path):
    folder, checkpoint = find_checkpoint("starter-grpo")
    recipe = {**checkpoint.recipe, "tasks": {"file": "/home/me/tasks.jsonl", "more": ["~/x", "ledger"]}}
    weights = Weights(folder, checkpoint.model_copy(update={"recipe": recipe}))
    found = make_bundle("model", checkpoint_entries(weights, ASKED), [])
    found.write(tmp_path)
    again = read_checkpoint(tmp_path, verify=True)
    assert again.recipe["tasks"] == {
        "file": "[a file of the author's machine]", "more": ["[a file of the author's machine]", "ledger"],
    }  # fmt: skip
    assert {entry.path for entry in found.entries} >= {"model.safetensors", "tokenizer.json", MANIFEST}
    (manifest,) = (entry for entry in found.entries if entry.path == MANIFEST)
    assert json.loads(manifest.content)["pool"]["specs"][0]["name"] == "calculator", "others can bind it to their pools"
    assert b"/home/" not in b"".join(data for entry in found.entries for data in entry.chunks())


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_document_without_paths_stays_as_it_is(document):
    def has_path(value: object) -> bool:
        if isinstance(value, dict):
            return any(map(has_path, value.values()))
        if isinstance(value, list):
            return any(map(has_path, value))
        return isinstance(value, str) and (value.startswith(("/", "~", "\\\\")) or value[1:3] == ":\\")

    if not has_path(document):
        assert without_paths(document) == document


def test_a_dry_run_replaces_its_own_folder_and_no_other(tmp_path):
    found = make_bundle("space", [Entry("a.txt", b"1", "x")], [])
    write_folder([found], tmp_path / "out")
    write_folder([make_bundle("space", [Entry("b.txt", b"2", "x")], [])], tmp_path / "out")
    assert {path.name for path in (tmp_path / "out/space").iterdir()} == {"b.txt", LISTING}
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    with pytest.raises(PublishError, match="choose another folder"):
        write_folder([found], mine)
    assert (mine / "letter.txt").read_text() == "dear"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(("values", "field"), [
    ({"repo": "a b"}, "repo"), ({"repo": "a/b/c"}, "repo"), ({"repo": "-a"}, "repo"), ({"repo": "a--b"}, "repo"),
    ({"token": "hf_plain_token_value"}, "token"), ({"hardware": "zero-a10g"}, "hardware"),
    ({"licence": "My Own"}, "licence"),
    ({"visitors": "everything"}, "visitors"), ({"static": True, "visitors": "secrets"}, ""),
    ({"nonsense": 1}, "nonsense"),
])  # fmt: skip
def test_a_bad_request_is_told_by_field(values, field):
    with pytest.raises(InvalidPublication) as raised:
        parse_publication({"pool": "starter", "orchestrator": "oracle", "repo": "tiny", **values})
    assert field in {where for where, _ in raised.value.problems}
    assert "hf_plain_token_value" not in str(raised.value)


@given(st.text(max_size=80))
def test_no_text_of_a_run_ends_the_script_that_holds_it(text):
    page = static_page({"title": text, "about": text, "live": False}, [{"view": {"episode": {"query": text}}}])
    inside = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    assert json.loads(inside)["info"]["about"] == text
    assert page.count("</script>") == 3


def test_the_inlined_script_holds_every_module_and_no_import():
    text = script()
    assert "import " not in [line[:7] for line in text.splitlines()] and "fetch(" in text
    assert all(
        f'M["{name}"]' in text
        for name in ("web/lib/dom.js", "web/run/graph.js", "web/run/run_view.js", "space/replay.js")
    )


def test_what_the_app_of_a_live_space_imports_travels_with_it():
    files = engine_sources(ENGINE)
    for name in ("app.py", "live.py"):
        for node in ast.walk(ast.parse((SPACE_APP / name).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in ALLOWED:
                place = node.module.replace(".", "/")
                assert f"{place}.py" in files or f"{place}/__init__.py" in files
