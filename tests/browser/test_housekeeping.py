"""Deleting and renaming in the pages: what depends on a thing is said, and a deletion can be undone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from orchestrator.traces.store import Store, open_store
from pool_registry.storage.data_folder import find_home
from studio.publish.publication_record import claim_record
from studio.publish.request import parse_publication
from tests.browser.support.jobs import write_job
from trainer.jobs.queue import JobStore
from trainer.recipe import load_recipe


@pytest.fixture
def store(studio) -> Iterator[Store]:
    opened = open_store(find_home(studio.home))
    yield opened
    opened.close()


def test_a_job_is_renamed_deleted_and_put_back(page, studio_url, store):
    job = write_job(store)
    page.goto(f"{studio_url}/train?job={job}")
    page.get_by_role("button", name="Rename or delete").click()
    drawer = page.locator(".page-drawer")
    expect(drawer).to_contain_text("can no longer be run or compared")
    drawer.get_by_label("Name").fill("Second try")
    drawer.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", name="Second try")).to_be_visible()
    page.get_by_role("tab", name="Checkpoints").click()
    first = page.locator(".train-job-table tbody tr").first
    expect(first).to_contain_text("Second try at step")
    step = first.locator("b").first.inner_text()
    first.get_by_role("button", name="Delete").click()
    drawer.get_by_role("button", name="Delete").click()
    expect(page.locator(".train-job-table").first).not_to_contain_text(step)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".train-job-table").first).to_contain_text(step)
    page.get_by_role("button", name="Rename or delete").click()
    drawer.get_by_role("button", name="Delete").click()
    expect(page.locator(f".train-job[data-job='{job}']")).to_have_count(0)
    page.get_by_role("button", name="Deleted", exact=True).click()
    drawer.locator("li", has_text=job).get_by_role("button", name="Put back").click()
    expect(page.get_by_role("heading", name="Second try")).to_be_visible()


def test_an_evaluation_and_a_publication_are_deleted_in_their_pages(page, studio_url, store):
    jobs = JobStore(store.engine, store.home)
    job = jobs.submit(load_recipe("evaluate-baselines"), here=True).id
    jobs.finish(job, "failed", message="stopped by a test")
    page.goto(f"{studio_url}/compare?tab=suite")
    page.get_by_role("button", name=f"Rename or delete {job}").click()
    drawer = page.locator(".page-drawer")
    expect(drawer.get_by_label("Name")).to_have_value(job)
    drawer.get_by_role("button", name="Delete").click()
    expect(page.locator(f".compare-job-job[data-job='{job}']")).to_have_count(0)
    request = {"pool": "starter", "orchestrator": "starter-grpo", "repo": "to-forget"}
    record = claim_record(store.home, parse_publication(request))
    record.update(state="failed", message="stopped by a test")
    page.goto(f"{studio_url}/publish")
    card = page.locator(f"[data-publication='{record.key}']")
    card.get_by_role("button", name="Delete the record").click()
    drawer.get_by_role("button", name="Delete").click()
    expect(card).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(card).to_be_visible()
