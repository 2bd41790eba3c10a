"""Writes assets/web/types.d.ts: the documents that the studio sends to its pages, as TypeScript interfaces.

    python -m scripts.write_types [--check]

The interfaces come from the JSON Schemas of the pydantic models in DOCUMENTS and of every model that these contain.
Modules refer to them in JSDoc, such as `@typedef {import("../types").EpisodeView} EpisodeView`, and `tsc` checks what
they read. `--check` writes nothing and exits with 1 when the file is not what would be written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from studio.episode_documents.credit import CreditDocument
from studio.episode_documents.schema import EpisodeView, Replay, StepDetail, TurnDetail, ViewPatch
from studio.frame.document import PageDocument
from studio.housekeeping.routes import DeletedThing
from studio.pages.compare import regrade_documents as regrade
from studio.pages.compare import schema as compare
from studio.pages.pool import schema as pool
from studio.pages.pool.learning.evidence_commands import DescriptionProposal, EvidenceDocument, ValueDocument
from studio.pages.pool.orchestrator_list import OrchestratorLine
from studio.pages.publish import schema as publish
from studio.pages.run import what_if_documents as what_if
from studio.pages.run.follow_up_routes import FollowUpReply, FollowUpRuns
from studio.pages.run.share_routes import NewShare, ShareList
from studio.pages.serve.schema import NewToken, ServeState
from studio.pages.tasks.documents import CandidatesDocument
from studio.pages.traces.routes import TracePage
from studio.pages.train.improve_documents import ImproveDocument
from studio.pages.train.notice_commands import NoticesDocument
from studio.pages.train.rollouts import RolloutPage, SmallGraph
from studio.pages.train.schema import (
    JobDocument,
    JobLine,
    JobView,
    LogText,
    PresetDocument,
    RecipeDocument,
    RentedPlace,
)
from studio.pages.train.tasks.recorded_commands import RecordedPoolDocument
from studio.pages.train.tasks.task_documents import PlanOutcome, TasksDocument, TasksPreview, VerifierDocument
from studio.search.find import SearchHit

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "assets" / "web" / "types.d.ts"
DOCUMENTS: tuple[type[BaseModel], ...] = (
    CandidatesDocument,
    CreditDocument,
    DeletedThing,
    DescriptionProposal,
    EpisodeView,
    EvidenceDocument,
    FollowUpReply,
    FollowUpRuns,
    ImproveDocument,
    JobDocument,
    JobLine,
    JobView,
    LogText,
    NewShare,
    NewToken,
    NoticesDocument,
    OrchestratorLine,
    PlanOutcome,
    PresetDocument,
    RecipeDocument,
    RecordedPoolDocument,
    RentedPlace,
    Replay,
    RolloutPage,
    SearchHit,
    ServeState,
    ShareList,
    SmallGraph,
    StepDetail,
    TasksDocument,
    TasksPreview,
    TracePage,
    TurnDetail,
    ValueDocument,
    VerifierDocument,
    ViewPatch,
    compare.AblationDocument,
    compare.CompareChoices,
    compare.ComparisonDocument,
    compare.ComparisonPatch,
    compare.DriftDocument,
    compare.EvaluationCheck,
    compare.EvaluationLine,
    compare.MatrixDocument,
    compare.NoDocument,
    compare.StartedRun,
    compare.SuiteDocument,
    compare.TaskPage,
    pool.BindingDocument,
    pool.ConflictDocument,
    pool.GalleryDocument,
    pool.MemoryDocument,
    pool.ObservationDocument,
    pool.OfferDocument,
    pool.PastedDocument,
    pool.PoolPageState,
    pool.SkillsDocument,
    pool.TrainingPlan,
    pool.TryForm,
    pool.VersionDifference,
    pool.WorkerTest,
    regrade.RegradeTasks,
    regrade.RegradingDocument,
    publish.FileDocument,
    publish.PreviewDocument,
    publish.PublicationDocument,
    publish.PublishChoices,
    publish.RunChoice,
    publish.RunChoices,
    what_if.DecidedPlan,
    what_if.EditProblems,
    what_if.RoundDocument,
    what_if.StartedVariation,
    what_if.StepFates,
    what_if.ChangeDocument,
    what_if.CopiesDocument,
    what_if.VariationsDocument,
    what_if.WaitingPlan,
    what_if.WhatIfEditor,
)
HEAD = "// The documents that the studio sends to its pages. Written by scripts/write_types.py; do not edit.\n"
PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}

Schema = Mapping[str, Any]


def build_types() -> str:
    """The whole file; interfaces in the order of their names."""
    _, schema = models_json_schema([(model, "serialization") for model in DOCUMENTS])
    own = {model.__name__ for model in _subclasses(PageDocument)}
    interfaces = [_interface(name, rule, name in own) for name, rule in sorted(schema["$defs"].items())]
    return "\n".join([HEAD, *interfaces])


def _subclasses(model: type[BaseModel]) -> set[type[BaseModel]]:
    return {model}.union(*(_subclasses(sub) for sub in model.__subclasses__()))


def _interface(name: str, rule: Schema, described: bool) -> str:
    """One interface, or the name of a choice of words. Only documents of the pages are described: docstrings of what
    they contain change elsewhere."""
    if "enum" in rule:
        return f"export type {name} = {_type(rule)};\n"
    lines = [*_comment(rule.get("description", "") if described else "", ""), f"export interface {name} {{"]
    for field, value in rule.get("properties", {}).items():
        lines += [*_comment(value.get("description", ""), "  "), f"  {field}: {_type(value)};"]  # all are always sent
    return "\n".join([*lines, "}", ""])


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}/** {' '.join(text.split())} */"] if text else []


def _type(rule: Schema) -> str:
    """The TypeScript type of a JSON Schema."""
    if "$ref" in rule:
        return str(rule["$ref"].rpartition("/")[2])
    if "const" in rule:
        return json.dumps(rule["const"])
    if "enum" in rule:
        return " | ".join(map(json.dumps, rule["enum"]))
    if "anyOf" in rule:
        return " | ".join(_type(option) for option in rule["anyOf"])
    kind = rule.get("type")
    if kind == "array":
        return _array(rule)
    if kind == "object":
        values = rule.get("additionalProperties", {})
        return f"Record<string, {_type(values) if isinstance(values, Mapping) else 'any'}>"
    return PLAIN[kind] if kind else "any"


def _array(rule: Schema) -> str:
    if "prefixItems" in rule:
        return f"[{', '.join(_type(item) for item in rule['prefixItems'])}]"
    item = _type(rule.get("items", {}))
    return f"({item})[]" if " | " in item else f"{item}[]"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write assets/web/types.d.ts.")
    parser.add_argument("--check", action="store_true", help="exit with 1 when the file is stale")
    text = build_types()
    if not parser.parse_args().check:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{FILE.relative_to(ROOT)} is stale; run: python -m scripts.write_types")
    return 1


if __name__ == "__main__":
    sys.exit(main())
