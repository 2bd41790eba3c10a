"""Walks through a fresh studio as a new user and counts clicks and seconds.

    python -m scripts.walk [--out walk.json] [--pictures FOLDER] [--only GOAL]

A studio is started on a new data folder and driven in headless Chromium, without a key, a model server or a network;
the goals are in goals.py. A service of the person's own is a small one that this script starts on this machine. Seconds
are wall time: compare walks of one machine. A walk whose goal is not reached says why. Pictures show the end of each
walk at 1440 and 390 pixels, light and dark.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

from orchestrator.engine.process_identity import signal_process
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from scripts.running_studio import run_studio
from scripts.walk.goals import GOALS
from scripts.walk.walker import Walk, Walker
from studio.model_server.server_record import list_servers, stop_server
from trainer.jobs.queue import JobStore

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WIDTHS, SCHEMES = (1440, 390), ("light", "dark")


def take_walk(goal: str, page: Page, url: str, service: str) -> Walk:
    """Walk to one goal and measure it."""
    walker = Walker(page, url, service)
    started = time.perf_counter()
    try:
        result, problem = GOALS[goal](walker), ""
    except (Error, AssertionError) as error:
        result, problem = "", str(error).splitlines()[0]
    return Walk(goal, walker.clicks, round(time.perf_counter() - started, 1), result[:200], problem)


def take_pictures(page: Page, goal: str, folder: Path) -> None:
    """What stands at the end of a walk, in four windows."""
    folder.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.screenshot(path=folder / f"{goal.replace(' ', '-')}-{width}-{scheme}.png")


class Stock(BaseHTTPRequestHandler):
    """A service that says how much there is of an item."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"item": "tea", "stock": 12}')

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def run_service() -> Iterator[str]:
    """The address of a service on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stock)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@contextmanager
def run_prepared_studio(home: Path) -> Iterator[str]:
    """A studio on its own data folder, which was prepared as `make setup` does; yields its address."""
    subprocess.run([sys.executable, "-m", "studio", "prepare", "--home", str(home)], check=True, capture_output=True)
    try:
        with run_studio(home) as url:
            yield url
    finally:
        end_what_is_left(home)


def end_what_is_left(home: Path) -> None:
    """End the jobs and the servers that a walk has left: they outlive the studio."""
    for server in list_servers(find_home(str(home))):
        stop_server(find_home(str(home)), server.port)
    store = open_store(find_home(str(home)))
    for row in JobStore(store.engine, store.home).all():
        if row.active:
            signal_process(row.owner, signal.SIGKILL)
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, help="write the walks as JSON here")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of the end of each walk")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--only", choices=list(GOALS), help="one goal alone")
    options = parser.parse_args()
    goals = [options.only] if options.only else list(GOALS)
    walks = []
    with (
        tempfile.TemporaryDirectory() as folder,
        run_prepared_studio(Path(folder) / "home") as url,
        run_service() as service,
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=options.chromium, args=FLAGS)
        for goal in goals:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            walk = take_walk(goal, page, url, service)
            walks.append(walk)
            print(
                f"{walk.goal:40} {walk.clicks:3} clicks {walk.seconds:7.1f} s  {walk.problem or walk.result}",
                flush=True,
            )
            if options.pictures:
                take_pictures(page, goal, options.pictures)
            page.close()
        browser.close()
    if options.out:
        options.out.write_text(json.dumps([asdict(walk) for walk in walks], indent=1) + "\n")


if __name__ == "__main__":
    main()
