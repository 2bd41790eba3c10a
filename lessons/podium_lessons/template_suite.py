"""A suite whose queries are texts with named gaps, kept in data/tasks/NAME.yaml."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar

from podium_lessons.lesson_data import FamilyData, load_lesson_data
from podium_lessons.wordings import Template, Wordings, make_templates, match_templates
from trainer.errors import UnusableTasks
from trainer.tasks.suite import Suite

QueryKind: TypeAlias = tuple[int, str]  # the level, and what is asked where a level asks for different things


class TemplateQuery(Protocol):
    """The parameters of a query that a template was filled with."""

    @property
    def level(self) -> int: ...

    @property
    def template(self) -> int:
        """The number of the template among the wordings of its kind."""


Q = TypeVar("Q", bound=TemplateQuery)


class TemplateSuite(Suite[Q]):
    """A family with its texts in a data file, in a list for each kind of query."""

    @property
    @abstractmethod
    def gap_patterns(self) -> Mapping[str, str]:
        """The regular expression of what each gap may hold."""

    def load_data(self) -> FamilyData:
        """The content of this family's file."""
        return load_lesson_data(self.name, FamilyData)

    @cached_property
    def wordings(self) -> dict[QueryKind, Wordings[Template]]:
        """The templates of each kind of query. Raises UnusableTasks for a malformed file."""
        return build_templates(self.name, self.load_data(), self.gap_patterns)

    def kind_of(self, parameters: Q) -> QueryKind:
        """The kind of query that these parameters make."""
        return parameters.level, ""

    def template_of(self, parameters: Q) -> Template:
        """The template that these parameters are put into."""
        return self.wordings[self.kind_of(parameters)][parameters.template]

    def match(self, query: str) -> tuple[QueryKind, int, dict[str, str]] | None:
        """The kind of query, the number of its template and what its gaps hold; None for other queries."""
        return match_templates(self.wordings, query)

    def level_of(self, parameters: Q) -> int:
        return parameters.level

    def uses_new_words(self, parameters: Q) -> bool:
        return self.wordings[self.kind_of(parameters)].is_held_out(parameters.template)


def build_templates(
    name: str, data: FamilyData, gap_patterns: Mapping[str, str]
) -> dict[QueryKind, Wordings[Template]]:
    """The templates of the file called `name`. Raises UnusableTasks for a text with an unknown gap."""
    for place, query in enumerate(data.queries):
        for number, text in enumerate(query.texts):
            unknown = Template.gaps_in(text) - gap_patterns.keys()
            if unknown:
                raise UnusableTasks(
                    f"data/tasks/{name}.yaml: queries.{place}.texts.{number} has the gap {{{min(unknown)}}}; "
                    f"there are: {', '.join(gap_patterns)}"
                )
    return {(query.level, query.asks): make_templates(query.texts, gap_patterns) for query in data.queries}
