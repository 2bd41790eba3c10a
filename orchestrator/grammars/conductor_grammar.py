"""The grammar of one turn in dialect `conductor`: three lists of equal length."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.grammars.json_rules import JsonRules, join_choices
from pool_registry.language_models.completion import Grammar


def conductor_grammar(workers: int, first_id: int, earlier_ids: Sequence[int], max_steps: int) -> Grammar | None:
    """The grammar of a turn of one to `max_steps` steps on so many workers, without thinking before it; None where no
    step can be written. Where there are earlier steps, the lists may be empty."""
    if workers < 1 or max_steps < 1:
        return None
    rules = JsonRules()
    rules.define("WORKER", f"/{'|'.join(map(str, range(workers)))}/")
    quotes = [(*earlier_ids, *range(first_id, first_id + index)) for index in range(max_steps)]
    texts = [rules.add_string(seen) for seen in quotes]
    views = [rules.add_access(seen) for seen in quotes]
    counts = range(0 if earlier_ids else 1, max_steps + 1)
    turns = [_join_lists(["WORKER"] * count, texts[:count], views[:count]) for count in counts]
    return Grammar(rules.write(join_choices(turns)))


def _join_lists(workers: Sequence[str], texts: Sequence[str], views: Sequence[str]) -> str:
    columns = [' ", " '.join(column) for column in (workers, texts, views)]
    return '"workers = [" {} "]\\nsubtasks = [" {} "]\\naccess = [" {} "]"'.format(*columns)
