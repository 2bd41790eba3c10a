"""Marks what may tell who somebody is: e-mail addresses, phone numbers, bank accounts, cards, names, streets, keys.

Patterns, so it is a help and no proof: an account or a card counts where its check digits are right, and a name only
where the words before it say that one follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pool_registry.literal_keys import SHAPES

MAX_CHARS = 20_000  # of a text that is searched
MAX_ACCOUNT = 50  # 34 letters and digits, with spaces between them
NAME = r"(?-i:[^\W\d_a-z][\w'’-]+(?: [^\W\d_a-z][\w'’-]+)?)"  # one or two words with a capital letter
STREET = r"street|st\.|road|rd\.|avenue|ave\.|lane|drive|boulevard|square|court|terrace"
BY_WORDS, KEY = "the words before it say so", "it has the shape of a key"


@dataclass(frozen=True, slots=True)
class PersonalMark:
    """A piece of a text that may tell who somebody is: what it is, the piece, and why it is taken for one."""

    kind: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of personal data. The group `it` of the expression is the piece; `trim` cuts it to what is one, to ""
    where it only looks so."""

    kind: str
    why: str
    expression: re.Pattern[str]
    trim: Callable[[str], str] = str.strip


def trim_account(text: str) -> str:
    """The IBAN at the beginning of a text: its check digits are right (ISO 13616: the number is 1 modulo 97)."""
    text = text[:MAX_ACCOUNT]
    while text:
        letters = text.replace(" ", "")
        if 15 <= len(letters) <= 34 and int("".join(str(int(c, 36)) for c in letters[4:] + letters[:4])) % 97 == 1:
            break
        text = text.rpartition(" ")[0]
    return text


def trim_card(text: str) -> str:
    """The number of a payment card: its check digit is right (Luhn, ISO/IEC 7812)."""
    digits = [int(letter) for letter in reversed(text) if letter.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[1::2]]
    return text if (sum(digits[::2]) + sum(doubled)) % 10 == 0 else ""


def trim_phone(text: str) -> str:
    """A telephone number: it has 8 to 15 digits (E.164)."""
    return text.strip() if 8 <= sum(letter.isdigit() for letter in text) <= 15 else ""


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


EMAIL = _compile(r"(?P<it>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})")
ACCOUNT = re.compile(r"\b(?P<it>[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8})\b")
CARD = _compile(r"(?<![\w.-])(?P<it>\d(?:[ -]?\d){12,18})(?![\w.-])")
# +49 30 1234567, (030) 1234567, 0049 30 1234567, 030 1234567
PHONE = _compile(
    r"(?<![\w.])(?P<it>(?:\+\d{1,3}[ ./-]?|\(0\d{1,5}\) ?|00\d{2}[ ./-]?|0\d{1,5}[ /-])[\d ()/.-]{4,18}\d)(?!\w)"
)
SPOKEN_PHONE = _compile(
    r"\b(?:phone|telephone|mobile|cell|call me (?:at|on|under)|tel\.?)\b[^\d+]{0,20}(?P<it>\+?\d[\d ()/.-]{5,18}\d)"
)
SPOKEN_NAME = _compile(rf"\b(?:my name is|my name's|i am called|call me|i am|i'm|yours,?|regards,?)\s+(?P<it>{NAME})")
CALLER = _compile(rf"\bthis is (?P<it>{NAME}) (?:calling|speaking|from|here|again)\b")
STREET_LAST = _compile(rf"\b(?P<it>\d{{1,5}}[a-z]? (?:[\w'-]{{2,30}} ){{1,4}}(?:{STREET}))(?!\w)")
STREET_FIRST = _compile(r"\b(?P<it>[\w-]{2,30}(?:straße|strasse|gasse|weg|platz|allee) \d{1,4}[a-z]?)\b")
BIRTH = _compile(
    r"\b(?:born(?: on)?|date of birth|birthday is|dob)\b[: ]{1,3}(?P<it>[\w.,/-]{1,20}(?: [\w.,/-]{1,20}){0,2}\d{2,4})"
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern("an e-mail address", "it has an @ and a domain", EMAIL),
    Pattern("a bank account", "the check digits of an IBAN are right", ACCOUNT, trim_account),
    Pattern("a payment card", "its check digit is right", CARD, trim_card),
    Pattern("a phone number", "it is written like one", PHONE, trim_phone),
    Pattern("a phone number", BY_WORDS, SPOKEN_PHONE, trim_phone),
    Pattern("a name", BY_WORDS, SPOKEN_NAME),
    Pattern("a name", "the words around it say so", CALLER),
    Pattern("an address", "a house number and a word for a street", STREET_LAST),
    Pattern("an address", "a word for a street and a house number", STREET_FIRST),
    Pattern("a date of birth", BY_WORDS, BIRTH),
    *(Pattern(kind, KEY, re.compile(f"(?P<it>{shape.pattern})")) for kind, shape in SHAPES.items()),
)


def find_personal_data(texts: Iterable[str]) -> tuple[PersonalMark, ...]:
    """The marks in these texts, each piece once."""
    marks: dict[str, PersonalMark] = {}
    for mark in (mark for text in texts for mark in _search(text[:MAX_CHARS])):
        marks.setdefault(mark.text, mark)
    return tuple(marks.values())


def _search(text: str) -> Iterator[PersonalMark]:
    for pattern in PATTERNS:
        for match in pattern.expression.finditer(text):
            if piece := pattern.trim(match["it"]):
                yield PersonalMark(pattern.kind, piece, pattern.why)
