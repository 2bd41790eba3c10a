"""The types that the pages' JavaScript is checked against are those of the documents."""

from __future__ import annotations

from scripts.write_types import FILE, build_types


def test_the_written_types_are_those_of_the_documents():
    assert FILE.read_text(encoding="utf-8") == build_types(), "run: python -m scripts.write_types"


def test_names_unions_choices_and_tuples_become_typescript():
    text = build_types()
    assert "export interface EpisodeView {" in text and "  graph: Graph;" in text
    assert "  from: number;\n  to: number;" in text, "aliases, not Python's names"
    assert "  interval: [number, number] | null;" in text
    assert "  series: Record<string, (number | null)[]>;" in text
    assert 'export type UserRole = "viewer" | "editor" | "owner";' in text, "a choice of words is no empty interface"
