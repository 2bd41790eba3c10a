"""How words are written: gaps filled, capitals set, names spelt out and made of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MAX_NAME = 40
_VOWELS = frozenset("aeiou")
_CONSONANTS = ("uni", "use", "usu", "eu", "one", "once", "ura")  # spoken with a consonant


def fill_text(template: str, texts: Mapping[str, str]) -> str:
    """A template with its gaps filled; {Phrase} is {phrase} with a capital letter, and "a" before a gap becomes "an"
    where the text asks for it. A gap without a text stays."""
    for key, text in texts.items():
        if text[:1].lower() in _VOWELS and not text.lower().startswith(_CONSONANTS):
            template = template.replace(f" a {{{key}}}", f" an {text}").replace(f"A {{{key}}}", f"An {text}")
        template = template.replace(f"{{{key}}}", text)
        if f"{{{key.capitalize()}}}" in template:
            template = template.replace(f"{{{key.capitalize()}}}", capitalize(text))
    return template


def capitalize(text: str) -> str:
    """A text with a capital letter."""
    return text[:1].upper() + text[1:]


def spell_out(name: str) -> str:
    """The name of an entity or field as words."""
    return name.replace("_", " ")


def to_name(text: str) -> str:
    """A text as the name of a worker or parameter."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text.casefold())
    name = "_".join(part for part in name.split("_") if part)
    return (name if name[:1].isalpha() else f"x_{name}")[:MAX_NAME].rstrip("_")


# How an enum may spell a choice, of its name and its phrase.
SPELLINGS: tuple[Callable[[str, str], str], ...] = (
    lambda name, _: name,
    lambda name, _: name,
    lambda _, phrase: phrase,
    lambda _, phrase: to_name(phrase),
    lambda name, _: name.upper(),
    lambda name, _: name.replace("_", "-"),
    lambda name, _: "".join(part.capitalize() if place else part for place, part in enumerate(name.split("_"))),
)
