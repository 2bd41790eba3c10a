"""What Podium promises, and the tests that try to break it: one entry for each row of docs/reliability.md.

To add a row, add an entry. `tests` are files or folders of tests, `only` is a `-k` expression. A test that makes many
trials asks `choose_trials` how many and counts them with `count_trials` (tests/trust/trials.py); `quick` and `full`
are what it is told. Without them each test is one trial. `waits` says that the trials spend their time waiting for
servers, not computing: such promises are tried beside the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Random trials say how often a promise can fail at most; a list says only that its cases are held.
Choice = Literal["random", "every place", "list"]


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise, what one trial of it is, and how its trials are chosen."""

    name: str
    says: str
    trial: str
    choice: Choice
    tests: tuple[str, ...]
    only: str = ""
    quick: int = 0
    full: int = 0
    waits: bool = False


SANDBOX_ATTACKS = "attack or dangerous or door or bomb or killed_at_its_time or forged"

# The long ones first: two promises are tried at a time.
PROMISES = (
    Promise(
        "training",
        "A killed training goes on from its last checkpoint: no checkpoint lost, no step twice",
        "kill -9 of a training",
        "random",
        ("tests/trainer/jobs/test_durability.py",),
        "survives_kills",
        40,
        200,
    ),
    Promise(
        "edits",
        "No acknowledged edit of a pool is lost, whoever else saves, renames, deletes or is killed",
        "an edit beside others, one of two processes killed",
        "random",
        (
            "tests/pool_registry/storage/test_edits_at_once.py",
            "tests/studio/pages/test_edits_at_once.py",
            "tests/studio/pages/test_two_studios.py",
            "tests/studio/housekeeping/test_edits_meanwhile.py",
            "tests/studio/publish/test_publication_record.py",
        ),
        "is_lost or all_in_the_pool or edit_during or added_during or at_once_one_does",
        2,
        200,
    ),
    Promise(
        "simulation",
        "An episode ends in time and in its limits; no worker sees more than its access list; a seed gives one trace",
        "a simulated episode",
        "random",
        ("tests/orchestrator/engine/test_simulation.py",),
        "must_hold",
        2_000,
        100_000,
    ),
    Promise(
        "upgrades",
        "A killed upgrade leaves the database at the old or the new schema",
        "a kill after a statement, from each schema",
        "every place",
        ("tests/pool_registry/storage/test_upgrade.py",),
        "killed",
    ),
    Promise(
        "served",
        "An answer that a client has got is on disk",
        "an answer before kill -9 of the server",
        "random",
        ("tests/studio/model_server/test_durable_answers.py",),
        "killed_server",
        2,
        60,
    ),
    Promise(
        "out of memory",
        "What runs out of memory says so and what to do; a training goes on from its last checkpoint",
        "memory refused, or a kill by the kernel",
        "random",
        ("tests/trainer/jobs/test_out_of_memory.py", "tests/pool_registry/sandbox/test_sandbox.py"),
        "test_a_training_that or runs_out_of_memory",
        3,
        30,
    ),
    Promise(
        "owners",
        "A living job or run is never taken for dead, no foreign process is signalled, nothing starts twice",
        "a clock step, reboot, container, host or race",
        "list",
        ("tests/orchestrator/engine/test_process_identity.py", "tests/trainer/jobs/test_durability.py"),
        "identity or claim or reused_pid or another_host or only_where_its_folder",
    ),
    Promise(
        "publishing",
        "A killed publish leaves nothing half public, and a repeat commits nothing twice",
        "kill -9 of a publish",
        "random",
        ("tests/studio/publish/test_publish.py",),
        "killed_at_any_moment",
        10,
        50,
    ),
    Promise(
        "traces",
        "An event that was acknowledged is on disk, and the database opens",
        "kill -9 of a process that runs episodes",
        "random",
        ("tests/orchestrator/traces/test_store.py",),
        "killed_process",
        10,
        1_000,
    ),
    Promise(
        "foreign pages",
        "Pages of other sites and strangers run no command",
        "a request",
        "list",
        ("tests/studio/frame", "tests/studio/access/test_accounts.py"),
        "other_origins or another_site or another_sites or commands_need or strangers",
    ),
    Promise(
        "first start",
        "Processes that start at once on one data folder all start",
        "a process, eight at once",
        "random",
        ("tests/pool_registry/storage/test_upgrade.py",),
        "at_once_all_start",
        1,
        20,
    ),
    Promise(
        "caps",
        "A cap on cost or tokens is exceeded by at most one reservation, and nothing is negative",
        "a plan with its usage",
        "random",
        ("tests/orchestrator/engine/test_caps.py",),
        "no_plan_exceeds",
        150,
        5_000,
    ),
    Promise(
        "job caps",
        "A job with eight episodes in flight stops at its cap, passes it by a call at most, goes on with a higher one",
        "a run up to the cap, or a resume at it",
        "random",
        ("tests/trainer/jobs/test_job_caps.py",),
        "never_costs_more",
        3,
        42,
    ),
    Promise(
        "plans",
        "Any text of a model is a plan or an error",
        "a text in a dialect",
        "random",
        ("tests/orchestrator/dialects/test_dialects.py",),
        "any_text or any_bytes or any_shape",
        60,
        2_000,
    ),
    Promise(
        "pages",
        "What models, tools and people write is text on every page",
        "a payload on a page",
        "list",
        ("tests/browser/test_xss.py",),
        "as_text or are_text",
    ),
    Promise(
        "sandbox full",
        "Code of a model reaches no file, network or process, and ends at its limits: bubblewrap, Landlock and seccomp",
        "an attack",
        "list",
        ("tests/pool_registry/sandbox/test_sandbox.py",),
        f"({SANDBOX_ATTACKS}) and FULL",
    ),
    Promise(
        "sandbox kernel",
        "The same where there is no bubblewrap: Landlock and seccomp alone",
        "an attack",
        "list",
        ("tests/pool_registry/sandbox/test_sandbox.py",),
        f"({SANDBOX_ATTACKS}) and KERNEL and not FULL",
    ),
    Promise(
        "functions",
        "An imported Python function reaches no file, network, program or process that its permissions do not name",
        "an attempt of a function",
        "list",
        ("tests/pool_registry/processes/test_function_sandbox.py",),
        "reaches or only_a_permission or wants_more",
    ),
    Promise(
        "addresses",
        "An address that a model chooses never reaches this machine or its network",
        "a spelling, redirect or name",
        "list",
        ("tests/pool_registry/network/test_http_client.py",),
        "spelling_of or odd_url or metadata or changes_its_mind or redirect_to_a_private or one_private",
    ),
    Promise(
        "injected outputs",
        "What a worker puts out gives no orders: no step more, no block closed, no turn of its own",
        "a payload for planner, worker or judge",
        "list",
        ("tests/orchestrator/engine/test_injected_outputs.py", "tests/orchestrator/engine/test_judge_injections.py"),
    ),
    Promise(
        "write errors",
        "A full disk or a failing write leaves the old state or the new one, and it goes on afterwards",
        "a failing write",
        "every place",
        (
            "tests/trainer/jobs/test_write_errors.py",
            "tests/trainer/jobs/test_full_disk.py",
            "tests/studio/export/test_write_errors.py",
            "tests/studio/publish/test_write_errors.py",
            "tests/studio/publish/test_publish.py",
            "tests/pool_registry/storage/test_upgrade.py",
            "tests/orchestrator/traces/test_store.py",
        ),
        "failing_write or full_disk or disk_that_refuses or disk_fills or cannot_be_stored",
    ),
    Promise(
        "imported pools",
        "A pool from a file gets no key, program, file or private address before a person agrees",
        "a want",
        "list",
        ("tests/pool_registry/test_wants.py", "tests/studio/pages/test_pool_commands.py"),
        "test_wants or imported_worker or ticked or would_go_elsewhere",
    ),
    Promise(
        "written keys",
        "A key that is written out is refused, and found before anything is published",
        "a place or a spelling",
        "list",
        (
            "tests/pool_registry/test_literal_keys.py",
            "tests/studio/publish/test_bundle.py",
            "tests/studio/test_planted_secrets.py",
        ),
        "written_out or description or looks_like or secret or shape",
    ),
    Promise(
        "references",
        "The value of a key's reference is in no trace, log, export, page or file",
        "a place where it could be",
        "list",
        ("tests/studio/test_canary.py",),
    ),
    Promise(
        "floods",
        "Workers that refuse and slow down in bursts are called no more than their limits and Retry-After allow",
        "a run of 64 steps on eight workers",
        "random",
        ("tests/pool_registry/network/test_floods.py",),
        "",
        3,
        40,
        waits=True,
    ),
    Promise(
        "soak",
        "A studio that runs for long keeps its memory, files and threads",
        "a run, after the first 250",
        "list",
        ("tests/studio/test_soak.py",),
        "",
        200,
        2_000,
    ),
    Promise(
        "model files",
        "A folder that could run code is refused before it is read, a file that was changed before it is used",
        "a hostile or changed folder and a loader",
        "list",
        (
            "tests/pool_registry/language_models/test_hostile_folders.py",
            "tests/trainer/learner/test_hostile_models.py",
            "tests/orchestrator/test_checkpoint_hashes.py",
        ),
    ),
    Promise(
        "worker faults",
        "A worker that fails in any way ends as a status, in time",
        "a fault of a server and a kind of worker",
        "list",
        ("tests/pool_registry/network/test_misbehaving_servers.py",),
    ),
    Promise(
        "long queries",
        "Any query of the allowed length is read in linear time, and no request of many pieces holds the others up",
        "a rule and a shape of text, or a request",
        "list",
        ("tests/orchestrator/repairs/test_linear_time.py", "tests/studio/model_server/test_large_requests.py"),
    ),
    Promise(
        "linear time",
        "Every function that takes texts reads them in linear time (a power of 1.2 of their length at most)",
        "a function and a shape of text",
        "list",
        ("tests/trust/test_text_growth.py",),
        "linear_time",
    ),
    Promise(
        "forms and routes",
        "What a form, a page's command or a route is sent is read in linear time, and off its server's event loop",
        "a field and a shape of text",
        "list",
        ("tests/trust/test_form_growth.py", "tests/studio/test_route_growth.py", "tests/studio/test_address_growth.py"),
    ),
    Promise(
        "schemas",
        "A schema or an API's document that asks for too much is refused at once, and a check holds nobody up",
        "a schema, a value or a document at a limit",
        "list",
        (
            "tests/pool_registry/schemas/test_check_time.py",
            "tests/pool_registry/schemas/test_schema_size.py",
            "tests/pool_registry/imports/test_openapi.py",
        ),
        "test_check_time or test_schema_size or asks_for_much or large_yaml",
    ),
    Promise(
        "held loops",
        "No route holds its server's event loop for a tenth of a second, with bodies at its limit and beyond it",
        "a route and a body",
        "list",
        ("tests/studio/test_body_limits.py",),
        "test_no_route",
    ),
    Promise(
        "orphaned jobs",
        "A job lives on when what has started it is killed, and is known for what it is afterwards",
        "kill -9 of what has started a job, with its processes",
        "random",
        ("tests/trainer/jobs/test_studio_dies.py",),
        "",
        3,
        100,
    ),
    Promise(
        "deployments",
        "A killed promotion or rollback leaves what served before or what serves after, whole, and the server goes on",
        "kill -9 of a process that promotes and rolls back",
        "random",
        ("tests/studio/model_server/test_deployment_kills.py",),
        "",
        20,
        200,
    ),
    Promise(
        "slow clients",
        "Clients that read slowly or send half a request slow nobody else down to half",
        "a client beside a normal one",
        "list",
        ("tests/studio/model_server/test_slow_clients.py",),
    ),
    Promise(
        "forgetting",
        "Of what a person or client has sent nothing is left once it is deleted for good",
        "a place where it could be",
        "list",
        ("tests/studio/housekeeping/test_forgetting.py",),
    ),
    Promise(
        "savers",
        "Of processes that save or claim at once none loses anything",
        "a race of eight processes",
        "list",
        ("tests/pool_registry/storage/test_pool_store.py", "tests/trainer/jobs/test_durability.py"),
        "save_at_once or claim_at_once",
    ),
)
