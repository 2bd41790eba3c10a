"""The words that a follow-up question has beside what it is about, language by language. Another language is a row of
LANGUAGES; of a text in none of them nothing is read by such words.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from functools import cache
from typing import TypeAlias

LEAST_SHARE = 0.2  # of the different words of a question and its follow-up: a sentence has more, names of others fewer
_WORD = re.compile(r"[^\W\d_]+")

Phrases: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Language:
    """Lists of words in small letters; a phrase is a tuple of words."""

    name: str
    capital_nouns: bool  # then a capital says nothing of a word
    conjunctions: Phrases  # only join a question to the one before: "and"
    swaps: Phrases  # say that something takes the place of something else: "what about"
    openers: Phrases  # may stand before it, or begin a question of its own: "how much" in pounds
    closing: Phrases  # behind it: "please"
    asking: Phrases  # begin a question of its own: "what", "is"
    prepositions: Phrases
    definite: Phrases
    indefinite: Phrases
    times: Phrases  # can stand behind a question that says no time: "tomorrow"
    ordinals: Phrases  # in order, from the first
    last: Phrases
    endings: tuple[str, ...]  # of ordinals
    entries: Phrases  # behind an ordinal, for what is not named: the second "one"
    quantities: Phrases  # stand for the number before: "that"
    operations: Phrases  # behind a quantity: "that times 3"
    conversions: Phrases  # between a quantity and its new unit: "that in pounds"
    units: Phrases  # beside those of presentation/units.py and codes of three capitals
    pointers: Phrases  # stand for something that was named before; not what stands for nothing in "Is it cold?"

    @property
    def articles(self) -> Phrases:
        return self.definite + self.indefinite


def _list(text: str) -> Phrases:
    """Words with spaces between them; the words of a phrase are joined by underscores."""
    return tuple(tuple(phrase.split("_")) for phrase in text.split())


LANGUAGES = (
    Language(
        name="English",
        capital_nouns=False,
        conjunctions=_list("and but or so then ok okay yes no now also please"),
        swaps=_list("what_about how_about what_if_it_is what_if_it_was"),
        openers=_list("how_much how_many what which the_same same instead"),
        closing=_list("then instead please too though"),
        asking=_list(
            "what which who whose whom where when why how is are was were do does did can could will would should has "
            "have"
        ),
        prepositions=_list("in into on at for from to of with by as after before since until per about"),
        definite=_list("the"),
        indefinite=_list("a an"),
        times=_list(
            "today tonight tomorrow yesterday next_week next_month next_year last_week last_month last_year this_week "
            "this_month this_year monday tuesday wednesday thursday friday saturday sunday"
        ),
        ordinals=_list("first second third fourth fifth sixth seventh eighth ninth tenth"),
        last=_list("last"),
        endings=(),
        entries=_list("one"),
        quantities=_list("that this it"),
        operations=_list("times plus minus divided_by multiplied_by squared rounded"),
        conversions=_list("in into as to"),
        units=_list("pounds yen francs percent inches yards feet kilos"),
        pointers=_list(
            "its he she him his her hers they them their theirs those these that_one this_one which_one the_other_one"
        ),
    ),
    Language(
        name="German",
        capital_nouns=True,
        conjunctions=_list("und aber oder also dann ok okay ja nein jetzt auch bitte"),
        swaps=_list("was_ist_mit wie_ist_es_mit wie_steht_es_mit wie_sieht_es_aus_mit"),
        openers=_list("wie_viel wie_viele wieviel was welche welcher welches stattdessen"),
        closing=_list("dann stattdessen bitte auch denn"),
        asking=_list(
            "was welche welcher welches welchen wer wessen wem wen wo wohin woher wann warum wieso wie wieviel ist "
            "sind war waren hat haben kann können könnte wird werden gibt"
        ),
        prepositions=_list("in im an am auf bei für von vom nach zu zum zur mit bis seit ab vor pro um über aus"),
        definite=_list("der die das den dem des"),
        indefinite=_list("ein eine einen einem einer eines"),
        times=_list(
            "heute morgen übermorgen gestern nächste_woche nächsten_monat nächstes_jahr letzte_woche letzten_monat "
            "letztes_jahr diese_woche diesen_monat dieses_jahr montag dienstag mittwoch donnerstag freitag samstag "
            "sonntag"
        ),
        ordinals=_list("erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte"),
        last=_list("letzte"),
        endings=("n", "r", "s", "m"),
        entries=(),
        quantities=_list("das es"),
        operations=_list("mal plus minus geteilt_durch gerundet"),
        conversions=_list("in"),
        units=_list(
            "pfund euro dollar yen franken prozent meilen kilometer metern meter kilo kilogramm stunden minuten"
        ),
        pointers=_list("er sie ihn ihm ihr ihre ihren sein seine deren dessen diese dieser dieses jene jener"),
    ),
)


def find_language(texts: Collection[str]) -> Language | None:
    """The language most of whose words stand in the texts; None where that is none of LANGUAGES."""
    words = {word for text in texts for word in _WORD.findall(text.casefold())}
    best = max(LANGUAGES, key=lambda language: len(words & _list_words(language)))
    return best if words and len(words & _list_words(best)) >= LEAST_SHARE * len(words) else None


@cache
def _list_words(language: Language) -> frozenset[str]:
    lists = (getattr(language, field.name) for field in fields(language) if field.type == "Phrases")
    return frozenset(word for phrases in lists for phrase in phrases for word in phrase)
