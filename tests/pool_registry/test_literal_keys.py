"""Keys that are written out are refused wherever they can hide, and what is no key is left alone."""

from __future__ import annotations

import time

import pytest

from pool_registry.errors import InvalidPool
from pool_registry.gallery.templates import templates
from pool_registry.literal_keys import find_literal_keys, move_literal_keys
from pool_registry.pool import Pool, check_pool, export_pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.pool_store import PoolStore
from pool_registry.storage.upgrade import open_engine
from pool_registry.worker import WorkerSpec

KEY = "sk-" + "a1b2c3d4" * 5
CHAT = {"base_url": "https://models.example.com/v1", "model": "m"}
HTTP = {"url": "https://api.example.com/x", "method": "GET"}
MCP = {"server": {"name": "s", "command": "npx"}, "tool": "t", "parameters": {"type": "object"}}


def spec(kind: str, config: dict[str, object], **changes: object) -> WorkerSpec:
    return WorkerSpec.model_validate({"name": "w", "kind": kind, "description": "d", "config": config, **changes})


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("chat", {**CHAT, "extra": {"api_key": "abcdefghij1234567890"}}),
        ("chat", {**CHAT, "extra": {"nested": [{"x": KEY}]}}),
        ("chat", {**CHAT, "base_url": "https://models.example.com/v1?key=AIzaabcdefghij1234567890"}),
        ("chat", {**CHAT, "role": f"Use the key {KEY} for it."}),
        ("http", {**HTTP, "url": "https://api.example.com/x?api_key=abcdefghij1234567890"}),
        ("http", {**HTTP, "headers": {"X-Foo": "sk-abcdef123456"}}),
        ("http", {**HTTP, "headers": {"X-Foo": "Bearer hf_abcdef123456"}}),
        ("mcp", {**MCP, "server": {**MCP["server"], "args": ["--api-key=abcdefghij1234567890"]}}),
        ("mcp", {**MCP, "server": {**MCP["server"], "args": [KEY]}}),
    ],
)
def test_a_key_that_is_written_out_is_refused_and_not_repeated(kind, config):
    with pytest.raises(InvalidPool) as refused:
        check_pool(Pool(name="p", workers=(spec(kind, config),)))
    text = str(refused.value)
    assert "never stored" in text and "workers.0.config" in text
    assert "abcdefghij1234567890" not in text and KEY not in text and "abcdef123456" not in text


def test_a_key_in_a_description_is_refused():
    with pytest.raises(InvalidPool, match="description"):
        check_pool(Pool(name="p", workers=(spec("calculator", {}, description=f"Its key is {KEY}"),)))


def test_an_argument_that_is_called_key_holds_none_unless_it_looks_like_one():
    example = {"key": "compartment-925-north", "token": "abcdefghij1234567890"}
    assert not list(find_literal_keys({"example": example, "sample": {"auth": example}}, "config"))
    assert not list(find_literal_keys({"names": {"key": "compartment_number"}}, "config"))  # a parameter renamed
    assert not list(find_literal_keys({"spellings": {"key holder": "key_holder"}}, "config"))  # words for a value
    assert list(find_literal_keys({"spellings": {"holder": KEY}}, "config"))
    assert list(find_literal_keys({"example": {"key": KEY}}, "config"))
    assert list(find_literal_keys({"headers": example}, "config"))


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("chat", {**CHAT, "api_key": "env:OPENAI_API_KEY", "max_tokens": 4096, "token_limit": "max_completion_tokens"}),
        ("chat", {**CHAT, "extra": {"max_completion_tokens": 100, "stop": ["<|end|>"], "top_k": 5}}),
        ("http", {**HTTP, "url": "https://api.example.com/{key}?token={token}&q=keyboard"}),
        ("http", {**HTTP, "headers": {"Authorization": "Bearer env:NAME", "X-Key": "keyring:OTHER"}}),
        ("sql", {"database": "env:DATABASE_URL", "schema_hint": "tokens(id, secret_name), api_keys(id, owner)"}),
    ],
)
def test_references_placeholders_and_words_are_no_keys(kind, config):
    check_pool(Pool(name="p", workers=(spec(kind, config),)))


def test_the_starter_pool_holds_no_key():
    assert not [found for worker in starter_pool().workers for found in find_literal_keys(worker.config)]


def test_a_setting_that_is_a_key_moves_and_leaves_its_reference():
    kept: dict[str, str] = {}

    def keep(name: str, key: str) -> str:
        kept[name] = key
        return f"keyring:{name}"

    config = {
        "api_key": KEY,
        "headers": {"Authorization": f"Bearer {KEY}", "Accept": "text/plain"},
        "tokens": [{"token": "env:SET"}],
        "url": f"https://example.com/?key={KEY}",
        "max_tokens": 5,
    }
    moved = move_literal_keys(config, "my-pool_asker", keep)
    assert kept == {"MY_POOL_ASKER_API_KEY": KEY, "MY_POOL_ASKER_HEADERS_AUTHORIZATION": KEY}
    assert moved == {
        **config,
        "api_key": "keyring:MY_POOL_ASKER_API_KEY",
        "headers": {"Authorization": "Bearer keyring:MY_POOL_ASKER_HEADERS_AUTHORIZATION", "Accept": "text/plain"},
    }
    assert [where for where, _ in find_literal_keys(moved)] == ["url"], "a key within a URL cannot move"


HEX = "9f86d081884c7d659a2feaa0c55ad015"
PLANTED = [
    {"note": "xai-" + "Ab3d" * 15},
    {"note": "use gsk_" + "Ab3d" * 13},
    {"note": "glpat-" + "Ab3d" * 5},
    {"note": "sk_live_" + "Ab3d" * 6},
    {"note": "SG." + "Ab3d" * 5 + "." + "Ab3d" * 10},
    {"note": "npm_" + "Ab3d" * 9},
    {"note": "123456789:" + "Ab3d5" * 7},
    {"note": "AccountKey=" + "Ab3d" * 10 + "=="},
    {"note": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4"},
    {"url": "https://hooks.slack.com/services/T01AB2CD3/B01AB2CD3/" + "Ab3d" * 6},
    {"url": f"https://x.example.com/a?sig={HEX}"},
    {"url": f"https://x.example.com/a?code={HEX}"},
    {"url": f"https://x.example.com/a?units=m&appid={HEX}"},
    {"query": {"appid": HEX}},
    {"headers": {"X-Foo": HEX}},
    {"headers": {"X-Foo": f"Custom {HEX}"}},
    {"role": "sk-ab\u200bcd" + "Ab3d" * 10},
    {"role": "hf_\u2060" + "Ab3d" * 9},
    {"role": "Log in first, the password is hunter2go now."},
    {"role": "Password: 'Tr0ub4dor&3'"},
    {"role": "api key = 12345abcde"},
    {"role": "password: letmein99"},
    {"role": "El contrase\u00f1a es s0mbrero-azul; le mot de passe est ch4peau-bleu"},
    {"description": f"Its key is {KEY}"},
    {"url": f"https://weather-api.example.com/{HEX}/now"},
]
HARMLESS = [
    {"role": "The password is case-sensitive, and a secret is never shown. Ask for the API key: 'key'."},
    {"url": "https://x.example.com/a?code=DE&sig=yes"},
    {"url": f"https://x.example.com/pages/{HEX}"},
    {"headers": {"Accept": "application/vnd.github.v3+json", "User-Agent": "podium/0.2 (contact@example.com)"}},
    {"headers": {"X-Version": "2023-06-01", "X-Feature": "computer-use-2024-10-22"}},
    {"headers": {"X-Tenant": "123e4567-e89b-12d3-a456-426614174000"}},
    {"headers": {"Anthropic-Beta": "max-tokens-3-5-sonnet-2024-07-15"}},
    {"url": f"https://x.example.com/a?hash={HEX}"},
    {"note": "eyJust a word. eyJ"},
    {"query": {"appid": "my-app"}},
    {"role": "password: env:DB_PASSWORD1"},
    {"headers": {"X-Note": "Authorization: OAuth2.0"}},
    {"role": "Authorization: OAuth2.0. The access token is RS256-signed, and the password is base64-encoded."},
    {"role": "The client secret is sha256-hashed. Authorization: AWS4-HMAC-SHA256"},
    {"url": f"https://www.notion.so/Guide-{HEX}"},
    {"url": f"https://d111111abcdef8.cloudfront.net/{HEX}/weather"},
    {"url": f"https://res.example.com/v1312461204/{HEX}/a"},
    {"description": f"The password is hunter2go. https://api.example.com/v1/{HEX}"},
    {"parameters": {"properties": {"key": {"type": "string", "description": "API key: 12345abcde"}}}},
]


@pytest.mark.parametrize("config", PLANTED, ids=range(len(PLANTED)))
def test_keys_of_more_providers_and_places_are_seen(config):
    assert list(find_literal_keys(config, "config"))


@pytest.mark.parametrize("config", HARMLESS, ids=range(len(HARMLESS)))
def test_what_only_looks_a_little_like_a_key_is_left_alone(config):
    assert not list(find_literal_keys(config, "config"))


def test_a_pool_that_was_saved_before_a_rule_came_can_still_be_edited(tmp_path, monkeypatch):
    pools = PoolStore(open_engine(find_home(tmp_path)))
    held = spec("http", {**HTTP, "headers": {"X-Foo": HEX}})
    with monkeypatch.context() as patched:
        patched.setattr("pool_registry.pool._list_own_problems", lambda _: ())
        pools.save(Pool(name="old", workers=(held,)))
    added = spec("calculator", {}, name="sums")
    base = pools.latest("old").pool.hash
    pools.edit("old", lambda pool: pool.with_worker(added))
    saved = pools.edit("old", lambda pool: pool.model_copy(update={"description": "d"}), base).stored.pool
    assert saved.workers == (held, added)
    with pytest.raises(InvalidPool, match="X-Foo"):
        pools.edit("old", lambda pool: pool.with_worker(spec("http", dict(held.config), description="e"), "w"))
    with pytest.raises(InvalidPool, match="X-Foo"):
        export_pool(saved)


def test_no_worker_of_the_gallery_holds_a_key():
    for template in templates().values():
        document = template.model_dump(mode="json")
        assert not list(find_literal_keys(document, "config")), document


PIECES = ["eyJ-", "password:", "password ", "secret=a1", "SG.", "\u200b", "https://a?sig="]


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_text_is_looked_through_in_linear_time(piece):
    def measure(count: int) -> float:
        text = piece * (count // len(piece))
        start = time.process_time()
        list(find_literal_keys({"role": text}, "config"))
        return time.process_time() - start

    measure(1000)
    assert measure(400_000) < 20 * max(measure(50_000), 0.02)
