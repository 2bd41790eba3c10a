"""The Space's repository: app, page, recorded runs, and for live Spaces the engine and the pool that travels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from assets import asset
from pool_registry.kinds import KINDS
from pool_registry.pool import export_pool
from studio.episode_documents.static_page import script, static_page, stylesheet
from studio.publish.bundle import Bundle, Entry, as_json, bundle
from studio.publish.cards import shown_name, space_card
from studio.publish.engine_files import ENGINE, pinned, requirements, travelling
from studio.publish.model_repo import Weights, checkpoint_entries
from studio.publish.portable_pool import Travellers
from studio.publish.request import Publication, PublishError
from studio.publish.traces import UNKNOWN_ID, check_size

LOCAL_MODEL = KINDS["local_model"].module  # what runs a checkpoint


@dataclass(frozen=True, slots=True)
class ModelLink:
    """Where the Space finds its checkpoint: a repository and the revision that it was made for."""

    repo: str
    revision: str = ""


def space_bundle(
    asked: Publication,
    going: Travellers,
    version: int,
    traces: list[dict[str, Any]],
    weights: Weights | None,
    link: ModelLink | None,
) -> Bundle:
    """The Space. Without `link` a checkpoint travels inside it. Raises PublishError when it would be empty."""
    live = asked.visitors != "replay"
    if not live and not traces:
        raise PublishError(
            f"there is no recorded run of {shown_name(asked.orchestrator)} on {asked.pool} to replay; run some first: "
            f'podium run --pool {asked.pool} --orchestrator {asked.orchestrator} "your query"'
        )
    if live and not going.pool.workers:
        raise PublishError(
            f"no worker of {asked.pool} can leave this machine; let visitors replay recorded runs instead"
        )
    info = {
        "title": asked.heading,
        "about": asked.about,
        "orchestrator": shown_name(asked.orchestrator),
        "pool": f"{going.pool.name} version {version}",
        "live": live,
        "links": [{"label": "Model", "href": f"https://huggingface.co/{link.repo}"}]
        if link and "/" in link.repo
        else [],
    }
    card = space_card(
        asked, going.pool, version, going.stays, sum(bool(each["listed"]) for each in traces),
        link.repo if link and "/" in link.repo else "", pinned("gradio").partition("==")[2],
    )  # fmt: skip
    entries = [Entry("README.md", card.encode(), "Card of the Space, and how the Hub builds it")]
    if asked.static:
        page = static_page(info, traces)
        entries.append(
            Entry("index.html", page.encode(), f"The page with {len(traces)} recorded runs, all in one file")
        )
        return bundle("space", entries, [])
    entries += [*_app(asked, going, version, info, link), *map(_trace, range(len(traces)), traces)]
    if live:
        entries += _engine(going, weights is not None)
        if weights is not None and link is None:
            entries += checkpoint_entries(weights, asked, below="checkpoint/")
    return bundle("space", entries, [(f"worker {name}", why) for name, why in going.stays] if live else [])


def _app(
    asked: Publication, going: Travellers, version: int, info: dict[str, Any], link: ModelLink | None
) -> Iterator[Entry]:
    live = asked.visitors != "replay"
    space = {
        "podium_space": 1,
        "visitors": asked.visitors,
        "info": info,
        "pool_version": version,
        "policy": shown_name(asked.orchestrator),
        "model": {"repo": link.repo, "revision": link.revision} if link and live else None,
        "keys": [{"name": key.name, "workers": list(key.workers)} for key in going.secrets] if live else [],
    }
    yield Entry("app.py", asset("space/app.py"), "The app")
    yield Entry("space.json", as_json(space), "What the app is about")
    yield Entry("web/page.js", script().encode(), "The graph view, one script")
    yield Entry("web/page.css", stylesheet().encode(), "Its styles, fonts inside")
    pins = {pinned("gradio"), pinned("huggingface_hub")}
    if live:
        pins |= {*requirements(_modules(going, True)), *map(pinned, going.distributions)}
    yield Entry("requirements.txt", ("\n".join(sorted(pins, key=str.lower)) + "\n").encode(), "Packages, pinned")


def _engine(going: Travellers, with_model: bool) -> Iterator[Entry]:
    """Podium's own code, as far as this Space needs it."""
    yield Entry("live.py", asset("space/live.py"), "Runs a query")
    yield Entry("pool.json", export_pool(going.pool).encode(), f"{len(going.pool.workers)} workers that travel")
    for path, file in travelling(_modules(going, with_model)).items():
        yield Entry(path, file, "Podium's engine")


def _modules(going: Travellers, with_model: bool) -> list[str]:
    return [*ENGINE, *going.modules, *([LOCAL_MODEL] if with_model else [])]


def _trace(place: int, document: dict[str, Any]) -> Entry:
    """A recorded run; the app shows them in the order of their names."""
    episode = document["view"]["episode"]
    name = UNKNOWN_ID.sub("-", str(episode["id"]))
    content = json.dumps(document, ensure_ascii=False).encode()
    check_size(f"the run {episode['id']}", len(content))
    return Entry(
        f"traces/{place:03d}-{name}.json", content, f"Recorded run: {' '.join(str(episode['query']).split())[:80]}"
    )
