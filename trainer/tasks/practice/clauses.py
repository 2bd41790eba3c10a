"""Questions as people put them, from what is asked for: "how many goals Nadia has scored" is asked as "How many goals
has Nadia scored?", "the points that Falcons has" as "How many points does Falcons have?"."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLACES = r"on|in|at|from|to|for|of|into|by|with|a|an|the"
_ASKING = re.compile(r"^(?:(?:on|in|at|from|to|for) )?(?:how|which|what|where|when|who|whose)\b", re.IGNORECASE)
_THERE = re.compile(r"^(how many .+?) there are\b(.*)$")
_DIRECT = re.compile(r"^(?:how many|who) ", re.IGNORECASE)
_QUESTION_WORDS = r"(?:(?:on|in|at|from|to|for) )?(?:how \w+(?: .+?)?|which .+?|what .+?|where|when)"
_NO_PLACE = r"(?<! of)(?<! in)(?<! on)(?<! for)(?<! at)(?<! into)"  # before a subject
_AUXILIARIES = ("is", "are", "was", "were", "can", "will", "must", "may", "should")
_NUMBER_OF = re.compile(r"^(?:the )?number of (?P<things>.+)$", re.IGNORECASE)
_PLURAL_THINGS = re.compile(r"^(?:the )?(?P<things>\w+[^s\Wui]s (?:of|that|in|on|which|who)\b.+)$", re.IGNORECASE)
_RELATIVE = re.compile(r" (?:that|which|who) ")
_PARTICIPLE = re.compile(r"^\s\w+(?:ed|en)\b|^\s(?:won|lost|been|done|paid|sold|made|had|got|left|run)\b")
_WHICH_THING = re.compile(r"^(?:which|what) (?!is\b|are\b)(.+)$", re.IGNORECASE)


def is_clause(text: str) -> bool:
    """Whether what is asked for begins with a question word: "where Emma stands"."""
    return bool(_ASKING.match(text))


def count_things(text: str, subjects: Sequence[str] = ()) -> str:
    """What is counted as a clause: "the number of copies of Emma that we own" is "how many copies of Emma we own", "the
    packs of tea in a box" is "how many packs of tea there are in a box"; "" for what is no number of things."""
    counted = _NUMBER_OF.match(text) or _PLURAL_THINGS.match(text)
    if counted is None:
        return ""
    things = _RELATIVE.sub(" ", counted["things"], count=1)
    names = "|".join(map(re.escape, filter(None, subjects)))
    bare = re.match(rf"^(?P<things>\w+ of (?:{names}))(?P<rest>(?: (?:in|on|at) .+)?)$", things) if names else None
    if bare is not None and counted["things"] == things:
        return f"how many {bare['things']} there are{bare['rest']}" if bare["rest"] else ""
    return f"how many {things}" if counted["things"] != things or re.search(r" (?:we|you|they|I) ", things) else ""


def ask_directly(clause: str, subjects: Sequence[str]) -> str:
    """The clause as a question without its mark, with the verb before one of the `subjects`; "" where its verb is not
    recognised."""
    if there := _THERE.match(clause):
        return f"{there[1]} are there{there[2]}"
    names = "|".join(re.escape(subject) for subject in sorted(subjects, key=len, reverse=True) if subject)
    anyone = rf"{names}{'|' if names else ''}we|you|they|it|people|the \w+"
    words = rf"(?P<words>{_QUESTION_WORDS}){_NO_PLACE}"
    pattern = rf"^{words} (?P<who>{anyone}) (?P<verb>(?!(?:{_PLACES}|we|you|they)\b)[a-z]+)(?P<rest>\b.*)$"
    parts = re.match(pattern, clause, re.IGNORECASE)
    if parts is None:
        return clause if _DIRECT.match(clause) else ""
    opening, who, verb, rest = parts["words"], parts["who"], parts["verb"], parts["rest"]
    if verb in _AUXILIARIES or (verb in ("has", "have") and _PARTICIPLE.match(rest)):
        return f"{opening} {verb} {who}{rest}"
    helper = "do" if who.casefold() in ("we", "you", "they", "people") else "does"
    base = verb if helper == "do" else to_base(verb)
    return f"{opening} {helper} {who} {base}{rest}" if base else ""


def to_base(verb: str) -> str:
    """The base of a verb in the third person, "stand" of "stands"; "" for another form."""
    if verb == "has":
        return "have"
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    if re.search(r"(?:s|x|z|ch|sh|o)es$", verb):
        return verb[:-2] if not verb.endswith("ses") else verb[:-1]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else ""


def name_thing(clause: str) -> str:
    """A clause as a thing that another question can hold: "which team Nadia is in" is "the team Nadia is in", "who
    supplies tape" is "whoever supplies tape"; "" where it cannot be one, as it is a number, a place or a time."""
    if clause.casefold().startswith("who "):
        return f"whoever {clause[4:]}"
    thing = _WHICH_THING.match(clause)
    return f"the {thing[1]}" if thing else ""
