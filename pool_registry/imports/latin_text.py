"""Names of other scripts in Latin letters, so that what a worker is called still says what it does.

Alphabets are written by tables, syllables by their names in Unicode. Ideographs cannot be written so; then there is
nothing, and a name is made of other words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

_SYLLABLES = ("HIRAGANA LETTER", "KATAKANA LETTER", "HANGUL SYLLABLE")


def _pair(letters: str, latin: str) -> Mapping[str, str]:
    return dict(zip(letters, latin.replace("-", " ").split(" "), strict=True))


_LETTERS: Mapping[str, str] = {
    **_pair("ßæœøłđðþıħ", "ss ae oe o l d d th i h"),
    **_pair(
        "абвгдежзийклмнопрстуфхцчшщъыьэюя", "a b v g d e zh z i y k l m n o p r s t u f kh ts ch sh shch  y  e yu ya"
    ),
    **_pair("ёіїєґўђјљњћџѓќѕ", "e i yi ye g u dj j lj nj c dz g k dz"),
    **_pair("αβγδεζηθικλμνξοπρσςτυφχψω", "a v g d e z i th i k l m n x o p r s s t y f ch ps o"),
    **_pair("אבגדהוזחטיכךלמםנןסעפףצץקרשת", "a b g d h v z kh t y k k l m m n n s a p f ts ts k r sh t"),
    **_pair("ابتثجحخدذرزسشصضطظعغفقكلمنهويىةءآ", "a b t th j h kh d dh r z s sh s d t z a gh f q k l m n h w y a a  a"),
    **_pair("پچژگکی", "p ch zh g k y"),
}


def to_latin(text: str) -> str:
    """`text` with every letter that can be written in Latin ones so; others stay. Small and large letters count alike
    outside of ASCII."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else _spell(char) for char in unicodedata.normalize("NFC", text))


def _spell(char: str) -> str:
    small = char.lower()
    if small in _LETTERS:
        return _LETTERS[small]
    plain = "".join(part for part in unicodedata.normalize("NFKD", small) if not unicodedata.combining(part))
    if plain.isascii() and plain:
        return plain
    if plain in _LETTERS:
        return _LETTERS[plain]
    return _spell_syllable(char)


def _spell_syllable(char: str) -> str:
    """A sign of kana or Hangul by the end of its name: HIRAGANA LETTER KA is ka."""
    name = unicodedata.name(char, "")
    return name.rpartition(" ")[2].lower() if name.startswith(_SYLLABLES) else char
