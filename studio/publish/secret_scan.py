"""The last check before anything is sent: no file of a bundle may hold a secret.

The scan looks for the values of all known secrets (references of the pool, environment variables named like secrets,
the Hub's token), plain and encoded, and for the patterns of well-known keys. After one match nothing is sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pool_registry import literal_keys
from pool_registry.errors import SecretNotFound
from pool_registry.pool import Pool
from pool_registry.secrets import MIN_CHARS, REFERENCE, SECRET_NAME, resolve, secret_encodings
from studio.publish.bundle import Bundle, Entry
from studio.publish.request import PublishError

# What a file is searched for: shapes of keys, and query parameters of URLs that are called like a secret.
SHAPES: Mapping[str, re.Pattern[bytes]] = {
    **{name: re.compile(shape.pattern.encode()) for name, shape in literal_keys.SHAPES.items()},
    "a key in a URL": re.compile(
        rb"[a-z]{2,8}://[^\s\"'<>]{1,300}[?&][\w.-]{0,30}(?:key|token|secret|passw|credential)[\w.-]{0,30}="
        rb"(?!env:|keyring:|[{%<$])[^&\s\"'<>]{8,}",
        re.IGNORECASE,
    ),
}
BINARY = (
    ".safetensors",
    ".woff2",
    ".png",
)  # arbitrary bytes can match a pattern by chance; only known values are searched
DOCUMENTS = (".json", ".jsonl", ".md", ".yaml", ".txt")  # what people and models write; the rest is code that ships
OVERLAP = 4096
BASE_URL = re.compile(r'"base_url"\s*:\s*"[^"]{0,2000}"')  # its path may name an account, but no key
# Characters that are not seen, as UTF-8 and as JSON escapes them: within a key they would hide its shape.
UNSEEN = re.compile(
    rb"\xc2\xad|\xe2\x80[\x8b-\x8f]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf|\\{1,4}u(?:00ad|200[b-f]|206[0-4]|feff)", re.I
)
# Variables that hold a secret though nothing in their name says so: addresses of databases.
CONNECTION_NAME = re.compile(r"(^|_)(CONN|CONNECTION|DSN)(_|$)")
HARMLESS = re.compile(r"(^|_)(MAX|MIN|NUM|COUNT|LIMIT|LENGTH|SIZE|TOKENIZERS|PUBLIC)(_|$)")


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """A secret in a file: the path and what it is, never its value."""

    path: str
    what: str


def check_bundles(bundles: Iterable[Bundle], secrets: Mapping[str, str]) -> None:
    """Raise PublishError naming every file that holds a secret. `secrets` is {what it is: value}."""
    findings = [finding for bundle in bundles for entry in bundle.entries for finding in scan_entry(entry, secrets)]
    if findings:
        places = "; ".join(f"{finding.path} holds {finding.what}" for finding in findings[:8])
        more = f" and {len(findings) - 8} more" if len(findings) > 8 else ""
        raise PublishError(
            f"nothing is published: {places}{more}. Take it out of the pool, the recipe or the chosen runs, "
            "then publish again (and renew the key if others may have seen it)"
        )


def scan_entry(entry: Entry, secrets: Mapping[str, str]) -> list[SecretFinding]:
    """Find the secrets in one file and in its path."""
    forms = [(what, form) for what, value in secrets.items() for form in secret_encodings(value)]
    shapes = {} if entry.path.endswith(BINARY) else SHAPES
    matches: set[str] = {what for what, form in forms if form in entry.path.encode()}
    for piece in entry.chunks(OVERLAP):
        matches |= {what for what, form in forms if form in piece}
        if shapes:
            piece = UNSEEN.sub(b"", piece)
            matches |= {what for what, form in forms if form in piece}
        matches |= {name for name, shape in shapes.items() if shape.search(piece)}
        if entry.path.endswith(DOCUMENTS):
            matches |= set(_find_in_document(piece.decode(errors="replace")))
    return [SecretFinding(entry.path, what) for what in sorted(matches)]


def _find_in_document(text: str) -> Iterator[str]:
    """What a text of people and models spells out: a password, or a key in a URL."""
    text = text.replace('\\"', '"')  # of JSON within JSON
    if what := literal_keys.find_in_text(text):
        yield what.removeprefix("this holds ")
    if literal_keys.holds_key_in_path(BASE_URL.sub("", text)):
        yield "what looks like a key in a URL's path"


def collect_secrets(pools: Iterable[Pool], token: str | None = None) -> dict[str, str]:
    """Collect every secret that this process can read, as {what it is: value}: what references of pools name, and
    variables that are called like a secret."""
    references = sorted({reference for pool in pools for reference in pool_references(pool)})
    secrets = {f"the value of {reference}": value for reference, value in _resolve_all(references)}
    for name, value in os.environ.items():
        if (
            (SECRET_NAME.search(name) or CONNECTION_NAME.search(name))
            and not HARMLESS.search(name)
            and _is_secret(value)
        ):
            secrets.setdefault(f"the value of env:{name}", value.strip())
    if token:
        secrets["your Hugging Face token"] = token
    return secrets


def pool_references(pool: Pool) -> list[str]:
    """Every secret reference in a pool's workers, disabled ones included."""
    return sorted(set(_references_in([spec.config for spec in pool.workers])))


def _references_in(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _references_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _references_in(item)
    elif isinstance(value, str) and REFERENCE.match(word := value.rpartition(" ")[2]):
        yield word


def _resolve_all(references: Iterable[str]) -> Iterator[tuple[str, str]]:
    for reference in references:
        try:
            value = resolve(reference).get_secret_value()
        except SecretNotFound:
            continue  # not set on this machine, so no file can hold it
        if len(value) >= MIN_CHARS:
            yield reference, value


def _is_secret(value: str) -> bool:
    """Whether a value may be a secret: long enough, and no path (SSL_CERT_FILE and the like name files)."""
    value = value.strip()
    return len(value) >= 12 and value.isprintable() and not Path(value).exists() and not value.isdigit()
