"""The words of a curl line: as bash, cmd or PowerShell take them, and what curl does with each option."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from pool_registry.pasted.base import UnfitText, check_address
from pool_registry.processes.shell_words import list_words

CURL = re.compile(r"^[ \t]*(?:[$>#][ \t]+)?curl(?:\.exe)?[ \t\\^`]", re.MULTILINE)
_LINE_END = re.compile(r"(?<![ \t])[ \t]+[\\^`][ \t]*\n")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_OPERATORS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "2>", "2>&1", "|&", "<"})
# Options with a value that change nothing that a worker sends.
IGNORED_WITH_VALUE = frozenset(
    [
        "--output",
        "--write-out",
        "--max-time",
        "--connect-timeout",
        "--retry",
        "--retry-delay",
        "--limit-rate",
        "--max-redirs",
        "--trace",
        "--trace-ascii",
        "--stderr",
        "--dump-header",
        "--cookie-jar",
        "--http-version",
        "--resolve",
        "--keepalive-time",
        "-o",
        "-w",
        "-m",
        "-D",
        "-c",
    ]
)
IGNORED = frozenset(
    [
        "--silent",
        "--show-error",
        "--location",
        "--include",
        "--verbose",
        "--compressed",
        "--fail",
        "--fail-with-body",
        "--globoff",
        "--no-buffer",
        "--http1.1",
        "--http2",
        "--http3",
        "--http1.0",
        "--tlsv1.2",
        "--tlsv1.3",
        "--progress-bar",
        "--no-progress-meter",
        "--ipv4",
        "--ipv6",
        "--raw",
        "--remote-name",
        "--basic",
        "--path-as-is",
        "-s",
        "-S",
        "-L",
        "-i",
        "-v",
        "-f",
        "-g",
        "-N",
        "-0",
        "-#",
        "-4",
        "-6",
        "-O",
    ]
)
REFUSED = {
    "--form": "it sends a multipart form, which a worker of one address does not; import the API's OpenAPI document",
    "--form-string": "it sends a multipart form, which a worker of one address does not",
    "--upload-file": "it sends a file, which a worker does not",
    "--insecure": "it does not check certificates (-k); a worker always does. Leave -k out where the address has one",
    "--proxy": "it goes through a proxy, which a worker does not; leave it out where the address is reached without",
    "--digest": "it signs in by digest, which a worker cannot",
    "--ntlm": "it signs in by NTLM, which a worker cannot",
    "--aws-sigv4": "it signs its request for AWS, which a worker cannot",
    "--cert": "it shows a certificate of its own, which a worker cannot",
    "--key": "it shows a certificate of its own, which a worker cannot",
    "--unix-socket": "it goes to a socket of a machine; a worker needs an address",
    "--config": "it reads its options from a file; paste the options themselves",
}
LONG = {
    "-X": "--request", "-H": "--header", "-d": "--data", "-u": "--user", "-G": "--get", "-A": "--user-agent",
    "-b": "--cookie", "-e": "--referer", "-F": "--form", "-T": "--upload-file", "-k": "--insecure", "-x": "--proxy",
    "-I": "--head", "-E": "--cert", "-K": "--config",
}  # fmt: skip
DATA = frozenset({"--data", "--data-ascii", "--data-raw", "--data-binary", "--data-urlencode", "--json"})
TAKES_VALUE = (
    frozenset({"--request", "--header", "--user", "--user-agent", "--cookie", "--referer", "--url", "--url-query"})
    | DATA
)


@dataclass(slots=True)
class CurlRequest:
    """What a line sends: `data` are its pieces of a body with the option of each."""

    url: str = ""
    method: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    data: list[tuple[str, str]] = field(default_factory=list)
    query: list[str] = field(default_factory=list)
    user: str = ""
    in_query: bool = False  # --get

    @property
    def content_type(self) -> str:
        """What the headers say of the body's type; "" where they say nothing."""
        return next((value for name, value in self.headers.items() if name.lower() == "content-type"), "")

    def add_type(self, content_type: str) -> None:
        """Say the type of the body where no header does."""
        if not self.content_type:
            self.headers["Content-Type"] = content_type


def split_lines(text: str) -> list[str]:
    """The curl lines of a text, each with its continuation."""
    starts = [match.start() for match in CURL.finditer(text)]
    ends = [*starts[1:], len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def read_curl(line: str) -> CurlRequest:
    """Raises UnfitText for an option that changes the request in a way that a worker cannot."""
    request = CurlRequest()
    words = iter(_list_options(_split_words(line)))
    for option, value in words:
        if option in REFUSED:
            raise UnfitText(REFUSED[option])
        _take(request, option, value)
    if not request.url:
        raise UnfitText("it names no address")
    if "://" not in request.url:
        request.url = f"http://{request.url}"  # as curl does
    check_address(request.url)
    return request


def _split_words(line: str) -> list[str]:
    joined = _LINE_END.sub(" ", line)
    joined = _ANSI.sub(lambda match: shlex.quote(_read_ansi(match[1])), joined)
    words: list[str] = []
    try:
        for word in list_words(joined, "|<>;"):
            if word in _OPERATORS:  # what follows works on the answer
                break
            words.append(word)
    except ValueError as error:
        raise UnfitText(f"its quotation marks do not close ({error}); paste the whole line") from error
    return words[words.index("curl") + 1 :] if "curl" in words else words[1:]


def _read_ansi(text: str) -> str:
    r"""A text of $'...': \n, \u00e4 and \' stand for characters."""
    plain = text.replace("\\'", "'").replace('"', '\\"') if '\\"' not in text else text.replace("\\'", "'")
    try:
        return str(json.loads(f'"{plain}"', strict=False))
    except ValueError:
        return text.replace("\\'", "'").replace("\\n", "\n")


def _list_options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of an option and its value; an address has the option --url. Raises UnfitText."""
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if equals:
                waiting.append(value)
        elif word.startswith("-") and len(word) > 2:
            waiting += reversed(_split_options(word))
            continue
        elif word.startswith("-") and len(word) > 1:
            name = LONG.get(word, word)
        else:
            yield "--url", word
            continue
        if name in IGNORED:
            continue
        takes_value = name in TAKES_VALUE or name in IGNORED_WITH_VALUE
        if takes_value and not waiting:
            raise UnfitText(f"its option {name} has no value; paste the whole line")
        value = waiting.pop() if takes_value else ""
        if name in IGNORED_WITH_VALUE:
            continue
        if not takes_value and name not in REFUSED and name not in ("--get", "--head"):
            raise UnfitText(f"its option {name[:40]} is not known here; leave it out if the address answers without it")
        yield name, value


def _split_options(word: str) -> list[str]:
    """-sSL is -s -S -L, and -sXPOST is -s -X POST."""
    words: list[str] = []
    for place, letter in enumerate(word[1:], start=2):
        words.append(f"-{letter}")
        if LONG.get(words[-1], words[-1]) in TAKES_VALUE or words[-1] in IGNORED_WITH_VALUE:
            return [*words, *filter(None, [word[place:]])]
    return words


def _take(request: CurlRequest, option: str, value: str) -> None:
    """Put one option into the request. Raises UnfitText."""
    if option == "--url":
        if request.url:
            raise UnfitText("it names two addresses; paste one line for each")
        request.url = value
    elif option == "--request":
        request.method = value.upper()
    elif option == "--head":
        request.method = "HEAD"
    elif option == "--get":
        request.in_query = True
    elif option == "--header":
        name, colon, content = value.partition(":")
        if colon and content.strip():
            request.headers[name.strip()] = content.strip()
    elif option == "--user":
        request.user = value
    elif option == "--url-query":
        request.query.append(value)
    elif option in DATA:
        _take_data(request, option, value)
    else:
        request.headers[{"--user-agent": "User-Agent", "--cookie": "Cookie", "--referer": "Referer"}[option]] = value


def _take_data(request: CurlRequest, option: str, value: str) -> None:
    is_file = value.startswith("@") and option != "--data-raw"
    if is_file or (option == "--data-urlencode" and re.match(r"[\w.-]*@", value)):
        raise UnfitText(f"its body is in a file ({value[:60]}); paste the line with the file's text in place of it")
    request.data.append((option, value))
