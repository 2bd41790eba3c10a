"""Decodes text: UTF-8, what begins with a mark of UTF-16 or UTF-32, else the older encoding that fits the text best."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from charset_normalizer import from_bytes

from trainer.errors import UnusableTasks
from trainer.tasks.sources.files.kinds import CONTROL, refuse_other_kinds

# UTF-32 first: its mark begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Those that are guessed, with the name that a person knows; of several that give the same text, the first is named.
OLDER_ENCODINGS = {
    "cp1252": "Windows-1252",
    "cp1250": "Windows-1250",
    "cp1251": "Windows-1251",
    "cp1253": "Windows-1253",
    "cp1254": "Windows-1254",
    "cp1255": "Windows-1255",
    "cp1256": "Windows-1256",
    "koi8_r": "KOI8-R",
    "shift_jis": "Shift-JIS",
    "euc_jp": "EUC-JP",
    "gb18030": "GB 18030",
    "big5": "Big5",
    "euc_kr": "EUC-KR",
}
UTF8 = "UTF-8"
SAMPLE_BYTES = 1_000_000  # what an encoding is guessed from
_CONTROL = re.compile(CONTROL)
_OTHER = re.compile(r"[^\x00-\x7f]")
_WRONG = re.compile("[\udc80-\udcff]")  # how bytes that are no UTF-8 are decoded


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A text and the encoding that it was in. Bytes of damaged UTF-8 stand in it as lone surrogates."""

    text: str
    encoding: str


def decode_text(data: bytes, name: str, encoding: str = "") -> DecodedText:
    """The text of bytes, in `encoding` where one is named. Raises UnusableTasks saying what to do."""
    mark = next((codec for start, codec in MARKS if data.startswith(start)), "")
    if encoding or mark:
        return _decode_as(data, name, encoding or mark)
    refuse_other_kinds(data, name)
    try:
        return DecodedText(data.decode(), UTF8)
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        return DecodedText(text, UTF8) if _is_damaged(text) else _guess(data, name)


def check_text(decoded: DecodedText, name: str) -> None:
    """Raise UnusableTasks, with the line, where a text is damaged or holds what no text does."""
    text = decoded.text
    if match := _WRONG.search(text) or re.search("\ufffd", text):
        line = _find_line(text, match.start())
        raise UnusableTasks(f"{name} is damaged on line {line}: it is not text in UTF-8 there; mend it and save it so")
    if match := _CONTROL.search(text):
        line = _find_line(text, match.start())
        raise UnusableTasks(f"{name} holds the control character {match.group()!r} on line {line}: take it out")


def read_text_file(file: Path) -> str:
    """The text of a file. Raises UnusableTasks saying what it seems to be instead."""
    decoded = decode_text(read_bytes(file), str(file))
    check_text(decoded, str(file))
    return decoded.text


def read_bytes(file: Path) -> bytes:
    """The bytes of a file. Raises UnusableTasks where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UnusableTasks(f"{file} cannot be read: {error.strerror}; give the path of a file of tasks") from error


def _decode_as(data: bytes, name: str, encoding: str) -> DecodedText:
    try:
        "".encode(encoding)  # refuses codecs that are not for text
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        place = getattr(error, "start", 0)
        line = data.count(b"\n", 0, place) + 1
        raise UnusableTasks(
            f"{name} is not text in {encoding} (line {line}): name the encoding that it is in"
        ) from error
    except (LookupError, ValueError) as error:
        raise UnusableTasks(
            f"there is no encoding {encoding!r}: name one such as utf-8, utf-16, cp1252 or shift_jis"
        ) from error
    codec = codecs.lookup(encoding).name.replace("-", "_")
    return DecodedText(text, OLDER_ENCODINGS.get(codec, codec.removesuffix("_sig").replace("_", "-").upper()))


def _is_damaged(text: str) -> bool:
    """Whether a text is UTF-8 with a few bad bytes: of what is not ASCII, more is right than wrong."""
    return len(_OTHER.findall(text)) > 2 * len(_WRONG.findall(text))


def _guess(data: bytes, name: str) -> DecodedText:
    best = from_bytes(data[:SAMPLE_BYTES].rpartition(b"\n")[0] or data, cp_isolation=list(OLDER_ENCODINGS)).best()
    fitting = best.could_be_from_charset if best else []
    for encoding in OLDER_ENCODINGS:
        if encoding in fitting:
            return _decode_as(data, name, encoding)
    raise UnusableTasks(f"the encoding of {name} is not clear: save it as UTF-8, or name its encoding, such as cp1252")


def _find_line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
