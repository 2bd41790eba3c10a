"""Two people publish to one repository at once: one of them is refused, and changes nothing of what the other does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pool_registry.storage.data_folder import Home, find_home
from studio.publish.publication_record import PublicationRecord, claim_record, list_records
from studio.publish.request import InvalidPublication, Publication
from tests.trust.trials import count_trials

AT_ONCE = 8


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return find_home(tmp_path)


def ask(title: str) -> Publication:
    return Publication(pool="starter", orchestrator="starter-grpo", repo="tiny", title=title)


def test_a_refused_publication_does_not_replace_the_one_that_runs(home):
    record = claim_record(home, ask("theirs"))
    with pytest.raises(InvalidPublication, match="being published already"):
        claim_record(home, ask("yours"))
    assert record.request.title == "theirs" and record.state().state == "running"
    record.update(state="done", owner="")
    assert claim_record(home, ask("yours")) == record and record.request.title == "yours"


def test_of_many_who_publish_to_a_new_repository_at_once_one_does(home):
    claimed: list[PublicationRecord] = []
    refused: list[InvalidPublication] = []

    def claim(number: int) -> None:
        try:
            claimed.append(claim_record(home, ask(str(number))))
        except InvalidPublication as error:
            refused.append(error)

    run_at_once([lambda number=number: claim(number) for number in range(AT_ONCE)])
    count_trials(AT_ONCE, len(claimed) - 1)
    assert len(claimed) == 1 and len(refused) == AT_ONCE - 1 and len(list_records(home)) == 1


def test_changes_of_a_publications_state_at_once_are_all_in_it(home):
    record = claim_record(home, ask("mine"))
    fields = ("message", "stage", "model", "model_revision", "space", "space_revision")
    run_at_once([lambda name=name: record.update(**{name: name}) for name in fields])
    state = record.state()
    assert [getattr(state, name) for name in fields] == list(fields)


def run_at_once(acts: list) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
