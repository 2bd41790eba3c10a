"""Forty secrets as people and services write them, and forty texts that only look like one.

None of them opens anything: each is put together from words and digits of this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MIXED = "q7Rw2Xk9Lm4Tz8Vb1Nc6Hd3Jf5Gs0PyAeUiQo"  # drawn once, as keys are
HEX = "9f86d081884c7d659a2feaa0c55ad015"
COMMIT = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpM"


@dataclass(frozen=True, slots=True)
class Planted:
    """A setting of a worker's configuration. `secret` is the part of it that nobody may see, "" for a harmless one."""

    name: str
    config: Mapping[str, object]
    secret: str = ""

    @property
    def is_text(self) -> bool:
        """Whether it stands in a text or a URL, which a model might repeat as it is."""
        return isinstance(self.config.get("role", self.config.get("url")), str)


def in_role(name: str, text: str, secret: str = "") -> Planted:
    return Planted(name, {"role": text}, secret)


def in_url(name: str, url: str, secret: str = "") -> Planted:
    return Planted(name, {"url": url}, secret)


def in_header(name: str, header: str, value: str, secret: str = "") -> Planted:
    return Planted(name, {"headers": {header: value}}, secret)


def _of_provider(name: str, key: str) -> Planted:
    return in_role(name, f"Use {key} for it.", key)


SECRETS = (
    _of_provider("OpenAI", "sk-proj-" + MIXED),
    _of_provider("Anthropic", "sk-ant-api03-" + MIXED),
    _of_provider("Hugging Face", "hf_" + MIXED[:34]),
    _of_provider("xAI", "xai-" + MIXED + MIXED),
    _of_provider("Groq", "gsk_" + MIXED + MIXED[:14]),
    _of_provider("GitHub", "ghp_" + MIXED[:36]),
    _of_provider("GitLab", "glpat-" + MIXED[:20]),
    _of_provider("AWS", "AKIA" + "Q7RW2XK9LM4TZ8VB"),
    _of_provider("Google", "AIza" + MIXED[:35]),
    _of_provider("Slack", "xoxb-" + "123456789012-" + MIXED[:24]),
    _of_provider("Stripe", "sk_live_" + MIXED[:24]),
    _of_provider("SendGrid", "SG." + MIXED[:22] + "." + MIXED),
    _of_provider("npm", "npm_" + MIXED[:36]),
    _of_provider("Telegram", "123456789:" + MIXED[:35]),
    _of_provider("Discord", "MTk4NjIyNDgzNDcxOTI1MjQ4." + "Cl2FMQ." + MIXED[:27]),
    _of_provider("Perplexity", "pplx-" + MIXED),
    _of_provider("NVIDIA", "nvapi-" + MIXED),
    _of_provider("Databricks", "dapi" + HEX),
    _of_provider("a JWT", JWT),
    in_role("a private key", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + MIXED, MIXED),
    in_role("a zero-width space inside", "Use sk-q7Rw\u200b" + MIXED, MIXED),
    in_role("a word joiner inside", "Use gsk_\u2060" + MIXED + MIXED[:14], MIXED),
    in_role("password is", "Log in first: the password is hunter2go now.", "hunter2go"),
    in_role("Password: in quotes", "Password: 'Tr0ub4dor&3'", "Tr0ub4dor&3"),
    in_role("in German", "Das Passwort lautet Fr0sch-im-Teich.", "Fr0sch-im-Teich"),
    in_role("api key =", "api key = 12345abcde", "12345abcde"),
    in_role("AWS's secret key", "AWS_SECRET_ACCESS_KEY=" + MIXED, MIXED),
    in_role("a header in a text", "Send Authorization: Bearer " + HEX, HEX),
    in_url("?sig=", f"https://x.example.com/a?sv=2024&sig={HEX}", HEX),
    in_url("?code=", f"https://x.example.com/a?code={HEX}", HEX),
    in_url("?appid=", f"https://x.example.com/a?units=m&appid={HEX}", HEX),
    in_url("?api_key=", "https://x.example.com/a?api_key=abcd1234", "abcd1234"),
    in_url("hex after a version", f"https://api.example.com/v6/{HEX}/latest/EUR", HEX),
    in_url("hex after the host", f"https://api.example.com/{HEX}/weather", HEX),
    in_url("a key in a webhook", f"https://hooks.example.com/webhooks/{MIXED[:30]}", MIXED[:30]),
    in_url("a password before the host", "https://ann:hunter22go@x.example.com/a", "hunter22go"),
    in_header("hex in a header", "X-Foo", HEX, HEX),
    in_header("a word and hex in a header", "X-Foo", f"Custom {HEX}", HEX),
    in_header("Authorization", "Authorization", "Bearer abcd1234efgh", "abcd1234efgh"),
    Planted("a query field", {"query": {"appid": HEX}}, HEX),
)
HARMLESS = (
    in_role("words about passwords", "The password is case-sensitive, and a secret is never shown."),
    in_role("an API key that is asked for", "Ask for the API key: 'key'. The key is on the label."),
    in_role("a reference", "password: env:DB_PASSWORD1"),
    in_role("a placeholder", "The API key is {api_key2}"),
    in_role("a commit", f"Fixed in {COMMIT}."),
    in_role("a short commit", "Fixed in da39a3e, see b0e845a5."),
    in_role("a SHA-256", "sha256:" + HEX + HEX),
    in_role("an MD5", f"Its MD5 is {HEX}"),
    in_role("a UUID", "The tenant is 123e4567-e89b-12d3-a456-426614174000."),
    in_role("an ISBN", "ISBN 978-3-16-148410-0 and 9783161484100"),
    in_role("a DOI", "doi:10.1145/3292500.3330701"),
    in_role("an arXiv number", "arXiv:2402.13764v2"),
    in_role("an IBAN", "DE89 3704 0044 0532 0130 00"),
    in_role("a telephone number", "Call +49 30 901820 or 555-0123-4567."),
    in_role("a model", "claude-3-5-sonnet-20241022 or gpt-4o-mini-2024-07-18"),
    in_role("a time", "2026-11-29T13:45:00.123456+00:00"),
    in_role("a token count", "Use at most 4096 tokens; max_tokens=4096"),
    in_role("a version", "transformers==5.23.0, podium/0.2.1"),
    in_role("a gene", "NM_001301717.2 and ENSG00000139618"),
    in_role("a file", "report_2024_q3_final_version_2.xlsx"),
    in_role("a variable", "fw_rule_2024_of_the_second_router and key-value-store-number-12"),
    in_role("words with the letters of prefixes", "sk-learn, hf_hub, xai-methods, gsk_notes, the sk-8 board"),
    in_role("half a token", "eyJust a word. eyJ"),
    in_role("an order", "Order SG.2024.17 of key account 77-A"),
    in_url("a page", f"https://x.example.com/pages/{HEX}"),
    in_url("a commit on GitHub", f"https://github.com/o/r/commit/{COMMIT}"),
    in_url("a raw file", f"https://raw.example.com/o/r/{COMMIT}/README.md"),
    in_url("a spreadsheet", f"https://docs.example.com/spreadsheets/d/{MIXED}/edit"),
    in_url("a UUID in a path", "https://x.example.com/v1/123e4567-e89b-12d3-a456-426614174000"),
    in_url("an account of a company", f"https://api.example.com/client/v4/accounts/{HEX}/ai"),
    in_url("?hash=", f"https://x.example.com/a?hash={HEX}"),
    in_url("?code=DE", "https://x.example.com/a?code=DE&sig=yes"),
    in_url("placeholders", "https://api.example.com/v1/{key}?token={token}&q=keyboard"),
    in_url("a port", "https://x.example.com:8443/api/v1/search?q=key"),
    in_header("a media type", "Accept", "application/vnd.github.v3+json"),
    in_header("a browser", "User-Agent", "podium/0.2 (contact@example.com)"),
    in_header("a day as a version", "X-Version", "2023-06-01"),
    in_header("a UUID in a header", "X-Tenant", "123e4567-e89b-12d3-a456-426614174000"),
    in_header("a feature", "Anthropic-Beta", "max-tokens-3-5-sonnet-2024-07-15"),
    Planted("base_url of an account", {"base_url": f"https://gateway.example.com/v1/{HEX}/team/openai"}),
)
