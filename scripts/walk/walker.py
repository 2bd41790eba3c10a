"""A person at a page of the studio, whose clicks are counted, and what a person reads there."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator, Page

PATIENCE_MS = 240_000  # a reader plans for minutes on a busy machine


@dataclass(frozen=True, slots=True)
class Walk:
    """One goal: the clicks and the seconds that it took, and why it was not reached ("" where it was)."""

    goal: str
    clicks: int
    seconds: float
    result: str
    problem: str = ""


class Walker:
    """A person at the page, whose clicks are counted. Typing and pasting are no clicks. `service` is the address of an
    HTTP service of the person's own."""

    def __init__(self, page: Page, url: str, service: str) -> None:
        self.page, self.url, self.service = page, url, service
        self.clicks = 0

    def click(self, target: Locator) -> None:
        target.first.click()
        self.clicks += 1

    def press(self, name: str, within: str = "body") -> None:
        self.click(self.page.locator(within).get_by_role("button", name=name, exact=True))

    def open(self, path: str) -> None:
        """Open a page by its link in the navigation."""
        self.click(self.page.locator(f"#nav a[data-page='{path}']"))

    def start(self, path: str) -> None:
        """Open the studio, and a page by its link in the navigation."""
        self.page.goto(self.url)
        self.page.wait_for_selector(f"#nav a[data-page={path}]")
        self.open(path)

    def ask(self, question: str) -> str:
        """Write a question on the Run page, and run it; the answer."""
        self.page.wait_for_function("document.querySelector('#query textarea')?.value !== undefined")
        self.page.wait_for_function("!document.querySelector('#run')?.disabled")
        self.page.locator("#query textarea").fill(question)
        self.press("Run")
        return self.read_answer(question)

    def read_answer(self, question: str) -> str:
        """The answer of the run of a question, or how it ended without one."""
        head = self.page.locator(".run-summary-query").filter(has_text=question)
        head.first.wait_for(state="attached", timeout=PATIENCE_MS)  # hidden where the question stands above it
        end = self.page.locator("[data-testid=answer], .run-summary-reason")
        end.first.wait_for(timeout=PATIENCE_MS)
        return end.first.inner_text()

    def make_pool(self, name: str) -> None:
        """A new, empty pool, made on the Pool page."""
        self.start("pool")
        self.page.get_by_role("button", name="New pool").wait_for(timeout=PATIENCE_MS)
        self.press("New pool")
        self.page.locator(".page-drawer").get_by_label("Name", exact=True).fill(name)
        self.press("Create", ".page-drawer")
        self.page.wait_for_function(f"document.querySelector('[aria-label=Pool]')?.value === '{name}'")
