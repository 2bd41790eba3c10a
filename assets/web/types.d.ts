// The documents that the studio sends to its pages. Written by scripts/write_types.py; do not edit.

/** What an orchestrator loses without each worker; `shares` are those of its calls in the whole pool. */
export interface AblationDocument {
  ok: true;
  orchestrator: string;
  ablated: string[];
  seen: CellSummary;
  workers: WorkerDrop[];
  shares: Record<string, number>;
  choices: FilterChoices;
  /** A sentence about each judge that the figures rest on. */
  judges: string[];
}

export interface Advice {
  level: "alive" | "degenerate" | "tuning";
  sentence: string;
  action: string;
  alarming: boolean;
}

/** How many of the plans that were drawn in a round came to the result that was taken, itself included. A count: plans of one model can agree and be wrong. */
export interface AgreementView {
  round: number;
  plans: number;
  agreed: number;
  /** Whether no more than half of the plans agree. */
  unsure: boolean;
  sentence: string;
}

/** The chance of one of the answers that agents gave to be right. */
export interface AnswerChance {
  answer: string;
  chance: number;
}

/** The answer on the graph, and the steps that it quotes. */
export interface AnswerNode {
  x: number;
  y: number;
  width: number;
  height: number;
  from: number[];
  paths: string[];
}

/** How many of the drawn plans came to an answer. */
export interface AnswerVotes {
  answer: string;
  votes: number;
}

/** What a person is asked about a plan that waits. */
export interface ApprovalRequest {
  round: number;
  held_at: string;
  reasons: PlanReason[];
  cost: number;
  seconds: number;
  calls: PlannedCall[];
}

/** A task that no improvement takes until somebody puts it back. */
export interface AsideLine {
  query: string;
  answer: string;
}

/** What happened to the plan of a round before it ran, and who decided it. */
export interface AuditLine {
  round: number;
  kind: "held" | "escalated" | "approved" | "edited" | "rejected";
  by: string;
  when: string;
  text: string;
}

/** The binding of one of the checkpoints on one version of a pool; without checkpoints there are no rows. */
export interface BindingDocument {
  checkpoint: string;
  rows: BindingRow[];
  reason: string;
  changes_nothing: boolean;
  checkpoints: [string, string][];
  pool: string;
  version: number;
}

/** A learnt worker and the one that stands for it; `automatic` is what it would be without a person's choice. */
export interface BindingRow {
  learnt: string;
  role: "agent" | "tool" | "recursion";
  description: string;
  worker: string;
  worker_description: string;
  likeness: number;
  by: string;
  edited: boolean;
  automatic: string;
  parameters: [string, string][];
  choices: string[];
  problem: string;
}

/** The files of one repository; `left_out` are (what, why). */
export interface BundleDocument {
  kind: "model" | "space";
  size: number;
  files: BundleFile[];
  left_out: [string, string][];
}

/** One file of a repository. */
export interface BundleFile {
  path: string;
  size: number;
  about: string;
}

/** A worker that a step may call, with the JSON Schema of its arguments. */
export interface CallableWorker {
  name: string;
  role: "agent" | "tool" | "recursion";
  kind: string;
  description: string;
  parameters: Record<string, any>;
  instruction: string | null;
}

/** A question that may become a task. `concern` says what has to be looked at, `reason` why, in a sentence. */
export interface CandidateLine {
  id: string;
  query: string;
  answer: string;
  /** What may be right where people disagree, or a corrected plan answered and nobody has judged it. */
  choices: string[];
  /** Other wordings of it. */
  also: string[];
  evidence: EvidenceLine[];
  /** How many pieces of evidence are not listed. */
  more: number;
  group: string;
  split: string;
  marks: MarkLine[];
  concern: "personal" | "answer" | "disputed" | "leak" | "";
  reason: string;
}

/** Some of the `total` candidates of a pool, near-duplicates beside each other. */
export interface CandidatesDocument {
  pool: string;
  pools: string[];
  splits: string[];
  rows: CandidateLine[];
  total: number;
  /** Tasks that are set aside, some of `total_aside`; `aside_reason` says why. */
  aside: AsideLine[];
  total_aside: number;
  aside_reason: string;
  settings: TrafficSettings;
}

/** The mean of one family and level. */
export interface CellMean {
  family: string | null;
  level: number | null;
  tasks: number | null;
  mean: number | null;
}

/** The mean over some tasks. */
export interface CellSummary {
  mean: [number, number, number];
  tasks: number;
  episodes: number;
}

/** How likely an answer is right, in words; `probability` is None where no figure was fitted for its orchestrator. `round` is the one whose plan it rests on, and `why` what it rests on. */
export interface ChanceView {
  round: number;
  probability: number | null;
  unsure: boolean;
  likely: boolean;
  sentence: string;
  why: string;
}

/** A difference between an original and its copy; "" where a world has nothing there. */
export interface ChangeDocument {
  place: string;
  /** What of the file is other, such as "line 3"; "" for the file itself. */
  item: string;
  original: string;
  on_copy: string;
}

/** One change of a deployment; `evidence` is what a promotion rested on. */
export interface ChangeLine {
  number: number;
  action: string;
  serves: string;
  by: string;
  at: string;
  reason: string;
  evidence: string;
}

/** An answer that changed sides; `episode` is its trace. */
export interface ChangedSide {
  orchestrator: string;
  label: string;
  condition: string;
  query: string;
  answer: string;
  expected: string;
  correct: boolean;
  episode: string;
}

/** A task with the score of an orchestrator, that of the reference, and the episodes of both. */
export interface ChangedTask {
  source: string;
  family: string;
  level: number;
  split: string;
  index: number;
  condition: string;
  query: string;
  score: number;
  reference_score: number;
  episodes: string[];
  reference_episodes: string[];
}

export interface Circuit {
  state: "closed" | "open" | "half-open";
  failures: number;
  seconds: number;
}

/** What can be compared on a pool, and what the page shows first. */
export interface CompareChoices {
  pools: string[];
  pool: string;
  orchestrators: OrchestratorChoice[];
  begins: string[];
  /** Those that a trained orchestrator must beat. */
  baselines: string[];
  workers: string[];
  query: string;
  suites: SuiteLevel[];
  families: string[];
  held_out: string[];
  conditions: string[];
  most: number;
  fewest: number;
}

/** Several graphs in one system of coordinates; `slots` say by step id which steps are the same one. */
export interface ComparisonDocument {
  reference: number;
  views: EpisodeView[];
  slots: Record<string, number>[];
  /** None for the reference. */
  diffs: (GraphDiffDocument | null)[];
}

/** What changed in the view at `place` while every graph keeps its shape. */
export interface ComparisonPatch {
  place: number;
  clock_s: number;
  episode: EpisodeHead;
  turns: TurnView[];
  totals: EpisodeTotals;
  nodes: StepState[];
}

/** How likely the answer of a round is right, by the record of the agents that gave it, beside the other answers. */
export interface ConfidenceView {
  round: number;
  sentence: string;
  /** Whether a cascade would ask further agents, if there were any that help. */
  unsure: boolean;
  /** The likeliest first; empty where one agent answers alone. */
  answers: AnswerChance[];
}

/** Why an edit was refused: another of the same was saved first. Sent again with `based_on`, it replaces that. */
export interface ConflictDocument {
  based_on: string;
  lines: ConflictLine[];
}

/** One thing that two edits say differently, as text; None where it is not there. `worker` is empty for the pool itself, `field` for a worker as a whole. */
export interface ConflictLine {
  worker: string;
  field: string;
  theirs: string | null;
  yours: string | null;
}

/** What filled the prompt of a call or a turn, in tokens, about. */
export interface ContextBudget {
  slices: ContextSlice[];
  /** The most tokens of prompt and reply together; None: not known. */
  limit: number | null;
  /** The tokens that the reply may have. */
  reply: number;
}

/** One part of a prompt. */
export interface ContextSlice {
  origin: "role" | "skills" | "instruction" | "output" | "workers" | "memory" | "history";
  label: string;
  tokens: number;
  /** Its tokens before it was shortened. */
  whole: number;
  /** How it was shortened. */
  cut: "" | "excerpt" | "summary";
}

/** The files and folders that a what-if left alone, and what it changed on its copies of them. */
export interface CopiesDocument {
  places: string[];
  /** Whether the what-if came to the end that compares them. */
  compared: boolean;
  changes: ChangeDocument[];
}

/** So many of so many. */
export interface CountOf {
  count: number;
  of: number;
}

/** What each part of a run is worth to its score. `reason` says why nothing of it could be measured. */
export interface CreditDocument {
  episode: string;
  score: number;
  reason: string;
  steps: CreditLine[];
  workers: CreditLine[];
  access: CreditLine[];
  /** What the reward `credit` pays a right answer. */
  needed_share: number | null;
}

/** The credit of a step, a worker or an access-list entry; `value` is null where it cannot be measured. */
export interface CreditLine {
  /** The step; the reader of an access-list entry; 0 for a worker. */
  step: number;
  /** The step that the entry lets it see; 0 elsewhere. */
  source: number;
  worker: string;
  value: number | null;
  rerun: number[];
  reason: string;
}

/** A job's metrics as columns: every series has a value, or None, for each of the steps. */
export interface CurveColumns {
  steps: number[];
  series: Record<string, (number | null)[]>;
}

/** The episode whose plan was decided. */
export interface DecidedPlan {
  problems: [string, string][];
  episode: string;
}

/** Something in the trash; `days` are left until it goes for good. */
export interface DeletedThing {
  key: string;
  kind: string;
  name: string;
  deleted_at: string;
  size: number;
  days: number;
}

/** A deployment; `ports` are where it is served, `back_to` is what a rollback brings back, "" where nothing is. */
export interface DeploymentCard {
  name: string;
  pool: string;
  pool_version: number;
  orchestrator: string;
  label: string;
  ports: number[];
  back_to: string;
  trial: TrialView | null;
  changes: ChangeLine[];
}

export interface DeploymentMode {
  /** autonomous: plans run at once. review: every plan waits for a person. escalate: a plan runs at once while it stays within the limits below and calls no worker that has effects; otherwise it waits. */
  name: "autonomous" | "escalate" | "review";
  /** In escalate: the most doubt that a plan may have, from 0 to 1: how unlike what the orchestrator learnt the question's words are, and the share of drawn plans that disagree, each for itself. Neither is the chance that the answer is wrong. A plan without either figure always waits, unless this is 1. */
  max_doubt: number;
  /** In escalate: the highest estimated cost of a plan, in US dollars. */
  max_plan_cost: number | null;
  /** In escalate: the longest estimated time of a plan, in seconds. */
  max_plan_s: number | null;
  /** In escalate: the stronger orchestrator that plans instead, such as model:planner. A person is asked where its plan is beyond a limit too, and always before a call that has effects. Empty: a person. */
  escalate_to: string;
}

/** A description from evidence, for a person to accept or edit. */
export interface DescriptionProposal {
  worker: string;
  current: string;
  proposed: string;
  facts: string;
  prose: string;
  author: string;
  note: string;
  sampled: number;
  recorded: number;
  /** The hash of the pool that was measured, for the edit that takes the proposal. */
  based_on: string;
}

/** One step of a diff: what differs, its number on both sides, its slot, and sentences about it. */
export interface DiffEntry {
  what: ("moved" | "worker" | "arguments" | "access" | "same" | "added" | "removed")[];
  left: number | null;
  right: number | null;
  slot: number;
  says: string[];
}

/** How plans change while a job trains: its series and the shares of its workers, for each of the `steps`. */
export interface DriftDocument {
  ok: true;
  job: string;
  state: string;
  title: string;
  steps: number[];
  series: Record<string, (number | null)[]>;
  workers: Record<string, (number | null)[]>;
  traces: TracedShapes;
  checkpoints: MeasuredCheckpoint[];
}

/** From a step to one that may see it. */
export interface Edge {
  from: number;
  to: number;
  used: boolean;
  path: string;
}

/** An edit in words; one of the answer has no step. */
export interface EditDocument {
  edit: "change" | "add" | "remove" | "again" | "answer";
  step: number | null;
  worker: string;
  fields: EditedField[];
}

/** Why the edits cannot be carried out. */
export interface EditProblems {
  problems: [string, string][];
}

/** A field of a step before and after an edit. */
export interface EditedField {
  field: string;
  before: string;
  after: string;
}

/** One recorded round: its steps, or its answer, or the error of its turn. */
export interface EditedRound {
  round: number;
  error: string | null;
  answer: any;
  steps: PlannedStep[];
}

/** What stands above an episode's graph. */
export interface EpisodeHead {
  id: string;
  query: string;
  pool: string;
  pool_version: number | null;
  orchestrator: string;
  orchestrator_label: string;
  state: "running" | "waiting" | "ended" | "interrupted";
  outcome: "answered" | "gave_up" | "max_rounds" | "max_tokens" | "max_cost" | "deadline" | "stopped" | "orchestrator_failed" | "rejected" | null;
  reason: string | null;
  /** For a person: the finalizer's, else the plan's own in words. */
  answer: string | null;
  /** None where the answer is as the plan has it. */
  final: FinalAnswerView | null;
  /** Whether the answer says that no worker of the pool fits. */
  refused: boolean;
  started_at: string;
  depth: number;
  parent: ParentStep | null;
  what_if_of: string | null;
  /** None where it goes on with no other run. */
  follow_up: FollowUpView | null;
  task: TaskRef | null;
  verdict: Verdict | null;
  /** Why the answer has no verdict: a cap, or a failed verifier. */
  not_judged: string | null;
  /** None where one plan was written at a time. */
  agreement: AgreementView | null;
  /** How likely the answer is right; None where nothing is known of it. */
  chance: ChanceView | null;
  /** None where no record says how likely the answer is right. */
  confidence: ConfidenceView | null;
  out_of_depth: OutOfDepthView | null;
  offers: Offer[];
  /** None where no deployment was asked, and in published runs. */
  served: ServedView | null;
  /** The failed run whose lesson this one was shown at once; else empty. */
  retry_of: string;
  /** The second try of a failed run; None where there was none. */
  retried: RetriedView | null;
  /** How its plans are released; None in older traces and inner runs. */
  mode: "autonomous" | "escalate" | "review" | null;
  /** What its caller limited it to, a sentence each. */
  limits: string[];
  /** What a person is asked, while its plan waits. */
  approval: ApprovalRequest | null;
  audit: AuditLine[];
}

export interface EpisodeTotals {
  wall_s: number;
  critical_path_s: number;
  serial_s: number;
  speedup: number | null;
  workers_speedup: number | null;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  steps: number;
  rounds: number;
  valid_turns: number;
  width: number;
  depth: number;
  statuses: Record<string, number>;
  counts: StepCounts;
}

/** The whole view of an episode so far. */
export interface EpisodeView {
  clock_s: number;
  episode: EpisodeHead;
  graph: Graph;
  turns: TurnView[];
  totals: EpisodeTotals;
}

/** An orchestrator against the mixture of baselines that costs as much (trainer/results/equal_cost.py); `shares` are by baseline. */
export interface EqualCost {
  shares: Record<string, number>;
  difference: [number, number, number];
  tasks: number;
}

export interface Estimate {
  mean: number;
  low: number;
  high: number;
}

/** The recipe of an evaluation as text, and what prevents its start. */
export interface EvaluationCheck {
  yaml: string;
  missing: LaunchGap[];
}

/** A job that has results or will have some, and what it measured. */
export interface EvaluationLine {
  id: string;
  title: string;
  pool: string;
  name: string;
  state: string;
  message: string;
  created_at: string | null;
  episodes: number;
  orchestrators: string[];
  /** Of the orchestrators, by name. */
  labels: Record<string, string>;
  label: string;
  /** Whether it does nothing but measure. */
  measures: boolean;
  conditions: string[];
  families: string[];
}

/** What can be measured about a worker: the tasks there are, and which tools a person may allow to be called. */
export interface EvidenceDocument {
  worker: string;
  practice: number;
  recorded: number;
  refused: string[];
  /** Whether it can answer tasks alone. */
  is_agent: boolean;
  agents: string[];
  orchestrator: string;
  orchestrator_label: string;
}

/** What one run says of its question, such as "judged right by ann, page, 2026-11-29", and what it answered. */
export interface EvidenceLine {
  run: string;
  words: string;
  answered: string;
  /** Whose request it was, where a client sent it; else "". */
  client: string;
}

export interface Failure {
  code: string;
  message: string;
}

/** A field in two versions as text; None where it is not set. */
export interface FieldDifference {
  field: string;
  before: string | null;
  after: string | null;
}

/** A figure with the worker and without it, and the difference with its 95 % interval. */
export interface FigureChange {
  name: string;
  with_it: number;
  without_it: number;
  difference: number;
  low: number;
  high: number;
}

/** The content of one file of a preview. */
export interface FileDocument {
  path: string;
  size: number;
  content: string;
}

/** What the filters above a view can be set to. */
export interface FilterChoices {
  orchestrators: string[];
  conditions: string[];
  families: string[];
  levels: number[];
}

/** The call that wrote the final answer: what it was allowed to see, what was sent, what came back. */
export interface FinalAnswerDetail {
  /** The finalizer, or the worker that took over; "" where templates wrote. */
  worker: string;
  state: "RUNNING" | "OK" | "EXEC_ERR";
  /** None where it was not called. */
  started_at: number | null;
  sentence: string;
  plan_answer: string | null;
  /** The steps whose outputs it was shown. */
  sources: number[];
  visible: SeenStep[];
  prompt: string | null;
  value: any;
  code: string | null;
  error: string | null;
  latency_s: number | null;
  tokens_in: number;
  tokens_out: number;
  cost: number;
}

/** The answer for a person that the pool's finalizer writes or that templates put into words, and the plan's own. */
export interface FinalAnswerView {
  /** The finalizer, or the worker that took over; "" where templates wrote. */
  worker: string;
  state: "RUNNING" | "OK" | "EXEC_ERR";
  /** None where it was not called. */
  started_at: number | null;
  sentence: string;
  plan_answer: string | null;
  /** The steps whose outputs it was shown. */
  sources: number[];
}

/** A run that goes on with another. */
export interface FollowUpLine {
  episode: string;
  query: string;
  answer: string | null;
}

/** The run that was started; else the questions to choose from, or why there is none. */
export interface FollowUpReply {
  episode: string;
  readings: string[];
  problem: string;
}

/** The runs that go on with one, oldest first. */
export interface FollowUpRuns {
  runs: FollowUpLine[];
}

/** What a run goes on with: the words that were typed, and how they became its query. */
export interface FollowUpView {
  text: string;
  /** Such as "understood as"; the query follows. */
  how: string;
  /** What this run sees of the runs before, in a sentence. */
  seen: string;
  /** The latest run is the last. */
  before: RunBefore[];
}

/** Every template, and the models on which a role agent can run. */
export interface GalleryDocument {
  templates: TemplateCard[];
  models: ModelChoice[];
}

/** A step that only the reference has, where it stands there. */
export interface GhostStep {
  id: number;
  x: number;
  y: number;
  worker: string;
  instruction: string;
}

/** One GPU; `busy` in percent. None where the driver does not say. */
export interface GpuLoad {
  name: string;
  used: number | null;
  total: number | null;
  busy: number | null;
}

/** The laid-out graph of an episode. */
export interface Graph {
  width: number;
  height: number;
  node_width: number;
  node_height: number;
  lanes: Lane[];
  nodes: StepNode[];
  edges: Edge[];
  answer: AnswerNode | null;
}

/** What changes from the reference to another graph; `marks` are by step id of the other. */
export interface GraphDiffDocument {
  counts: Record<string, number>;
  marks: Record<string, ("moved" | "worker" | "arguments" | "access" | "same" | "added" | "removed")[]>;
  ghosts: GhostStep[];
  entries: DiffEntry[];
  empty: boolean;
}

export interface HullPoint {
  name: string;
  price: number;
  mean: number;
}

/** `learnt` and `held_out` count new tasks, of which `least_learnt` and `least_held_out` are needed; `set_aside` are left out. `state` is that of the last improvement, "" before the first; `reasons` says why its `candidate` may be promoted or not. Time in hours, cost in US dollars. */
export interface ImproveDocument {
  pool: string;
  serving: string;
  learnt: number;
  held_out: number;
  least_learnt: number;
  least_held_out: number;
  set_aside: number;
  has_enough: boolean;
  every: string;
  state: "" | "running" | "interrupted" | "promotable" | "refused";
  candidate: string;
  reasons: string[];
  jobs: string[];
  hours: number;
  cost: number;
}

/** A chart of a method's own figures: lines are (key, label); `share`: values between 0 and 1. */
export interface JobChart {
  id: string;
  title: string;
  about: string;
  lines: [string, string][];
  share: boolean;
}

/** One complete checkpoint; `name` is the orchestrator to run it, `best` marks the highest check. */
export interface JobCheckpoint {
  step: number;
  stage: string;
  phase: string;
  kind: string;
  created_at: string;
  bytes: number;
  correct: number | null;
  valid_turns: number | null;
  best: boolean;
  name: string;
  label: string;
  evaluation: JobEvaluation | null;
}

/** A job with its recipe as YAML and its curves. */
export interface JobDocument {
  id: string;
  name: string;
  /** What people read: the name that a person gave it, else its id. */
  label: string;
  kind: string;
  state: string;
  stage: string;
  step: number;
  steps: number;
  message: string;
  code: string;
  /** here, the rented machine as hf:FLAVOR, or the cluster as ray://HOST:PORT. */
  where: string;
  /** Those of this machine that it has to itself, by their numbers. */
  gpus: string[];
  processes: number;
  created_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  place: JobProgress;
  heartbeat_s: number | null;
  memory: MachineLoad | null;
  ahead: string[];
  advice: Advice[];
  checkpoints: JobCheckpoint[];
  evaluations: JobEvaluation[];
  stages: string[];
  trained: JobStage[];
  phases: JobPhase[];
  rollouts: number;
  resumable: boolean;
  can_stop: boolean;
  tiny: boolean;
  pool: string;
  title: string;
  outcome: OutcomeSentence | null;
  /** What came of training the choice of workers. */
  who: string;
  /** What came of asking a teacher for demonstrations. */
  taught: string;
  recipe: string;
  curves: CurveColumns;
}

export interface JobEstimate {
  calls: number;
  cost: number | null;
  minutes: number;
  basis: string;
}

/** What the evaluate stage measured of one orchestrator in one condition, without the episodes. */
export interface JobEvaluation {
  orchestrator: string | null;
  label: string;
  condition: string | null;
  split: string | null;
  tasks: number | null;
  samples: number | null;
  mean: number | null;
  interval: [number, number] | null;
  turn_errors: number | null;
  p50_s: number | null;
  speedup: number | null;
  cost: number | null;
  cells: CellMean[];
}

/** A job in the list; `code` is the reason of a failure in one word. */
export interface JobLine {
  id: string;
  name: string;
  /** What people read: the name that a person gave it, else its id. */
  label: string;
  kind: string;
  state: string;
  stage: string;
  step: number;
  steps: number;
  message: string;
  code: string;
  /** here, the rented machine as hf:FLAVOR, or the cluster as ray://HOST:PORT. */
  where: string;
  /** Those of this machine that it has to itself, by their numbers. */
  gpus: string[];
  processes: number;
  created_at: string | null;
  started_at: string | null;
  ended_at: string | null;
}

/** A phase of a stage; `border` is the job's last step before it. */
export interface JobPhase {
  name: string;
  border: number;
}

/** How far a job is: `done` of `total` in its stage, `step` of `steps` over all stages. */
export interface JobProgress {
  stage: string;
  done: number;
  total: number;
  step: number;
  steps: number;
  share: number;
  step_s: number | null;
  eta_s: number | null;
  elapsed_s: number | null;
}

/** A stage that trains: it has `steps` steps, of which the first comes after `before` others of the job. `rollouts`: groups of episodes can be looked at by step. */
export interface JobStage {
  name: string;
  label: string;
  before: number;
  steps: number;
  rollouts: boolean;
  charts: JobChart[];
}

/** Everything about one job but its curves and its log. */
export interface JobView {
  id: string;
  name: string;
  /** What people read: the name that a person gave it, else its id. */
  label: string;
  kind: string;
  state: string;
  stage: string;
  step: number;
  steps: number;
  message: string;
  code: string;
  /** here, the rented machine as hf:FLAVOR, or the cluster as ray://HOST:PORT. */
  where: string;
  /** Those of this machine that it has to itself, by their numbers. */
  gpus: string[];
  processes: number;
  created_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  place: JobProgress;
  heartbeat_s: number | null;
  memory: MachineLoad | null;
  ahead: string[];
  advice: Advice[];
  checkpoints: JobCheckpoint[];
  evaluations: JobEvaluation[];
  stages: string[];
  trained: JobStage[];
  phases: JobPhase[];
  rollouts: number;
  resumable: boolean;
  can_stop: boolean;
  tiny: boolean;
  pool: string;
  title: string;
  outcome: OutcomeSentence | null;
  /** What came of training the choice of workers. */
  who: string;
  /** What came of asking a teacher for demonstrations. */
  taught: string;
}

/** A kind of worker, and the JSON Schema of its configuration, from which the page builds the form. */
export interface KindDocument {
  name: string;
  label: string;
  role: "agent" | "tool" | "recursion";
  icon: string;
  summary: string;
  schema: Record<string, any>;
}

/** The columns of a round in one band of the graph: where they stand, which round, and how many steps it has. */
export interface Lane {
  x: number;
  y: number;
  width: number;
  height: number;
  round: number;
  label: string;
  note: string;
}

export interface LaunchGap {
  key: string;
  sentence: string;
  link: string;
  blocks: boolean;
}

/** How many answers stay as they were, and why. */
export interface LeftRows {
  reason: string;
  count: number;
}

export interface Lesson {
  query: string;
  sentence: string;
  written_by: string;
  episode: string;
  similarity: number;
}

/** A lesson, and the episode that it was learnt from. */
export interface LessonDocument {
  id: number | null;
  query: string;
  sentence: string;
  written_by: string;
  instead_of: string;
  episode: string;
  tokens: number;
  cost: number;
  created_at: string;
  /** The episode that was right with it; empty before one was. */
  retry: string;
  /** The second try that has to show whether it is good before it is used; else empty. */
  awaits: string;
  /** Whether that second try is being made; else it waits for a person's verdict. */
  is_tried: boolean;
  shown: number;
  helped: number;
}

export interface Limits {
  max_rounds: number;
  max_steps: number;
  /** How many episodes may be nested. */
  max_depth: number;
  deadline_s: number;
  max_tokens: number;
  /** US dollars; empty means no cap. */
  max_cost: number | null;
  /** How many workers an orchestrating model sees; of a larger pool, those that fit the query best. */
  max_shown: number;
  /** Who writes a sentence about each failed episode, to be shown before similar queries: rule, or an agent of the pool. off keeps and shows none. */
  memory: string;
  /** Run a question that failed once more at once, with the lesson before it and within the run's limits. The lesson is kept only where the answer is right then. */
  memory_retry: boolean;
  /** Who answers a served request that the orchestrator cannot take: an agent of the pool; auto, which is its first chat model, else its first local one; sentence, which says what the pool can do; or off. */
  fallback: string;
  /** Who writes the final answer for a person, from the question and the outputs that the plan's answer rests on: an agent of the pool, or off. The plan's own answer is kept beside it. */
  finalizer: string;
  /** Refuse arguments of another type. Else "5" is read as a number and "true" as a switch where only those fit, and null is left out where it is the default; the step says so. */
  exact_arguments: boolean;
}

/** Why a line, a row or an item is no task; `place` names it, as in "Line 3". */
export interface LineProblem {
  line: number;
  place: string;
  sentence: string;
}

/** A piece of a log: added to what is shown, or the `whole` in its place; `cut` when its beginning is left out. */
export interface LogText {
  text: string;
  whole: boolean;
  cut: boolean;
}

/** The files that a worker could take along. */
export interface LuggageDocument {
  worker: string;
  files: number;
  size: number;
}

/** The RAM that a job holds, what the machine has, and its GPUs. */
export interface MachineLoad {
  held: number;
  available: number;
  total: number;
  gpus: GpuLoad[];
}

/** `stage` says what is done now. The counts are of questions for agents: written, answered by all who are asked, agreed on (`settled`) and kept, of `count` that are to be kept; 0 where none are made. Costs in US dollars, times in seconds since 1970. `outcome` says what came of it, "" while it runs. */
export interface MakingDocument {
  pool: string;
  state: "running" | "stopped" | "failed" | "done" | "interrupted";
  stage: string;
  written: number;
  answered: number;
  settled: number;
  kept: number;
  count: number;
  cost: number;
  max_cost: number | null;
  started: number;
  updated: number;
  outcome: string;
  can_go_on: boolean;
}

/** What may tell who somebody is. */
export interface MarkLine {
  kind: string;
  text: string;
  why: string;
}

/** An orchestrator in one condition: its `change` against the seen pool on the `paired` tasks that both have. */
export interface MatrixCell {
  mean: [number, number, number];
  tasks: number;
  episodes: number;
  change: [number, number, number] | null;
  paired: number | null;
}

/** Orchestrators by pool condition and held-out family. */
export interface MatrixDocument {
  ok: true;
  columns: string[];
  rows: MatrixRow[];
  held_out: string[];
  choices: FilterChoices;
  /** A sentence about each judge that the figures rest on. */
  judges: string[];
}

/** One orchestrator; a condition that was not measured has no cell. */
export interface MatrixRow {
  orchestrator: string;
  cells: Record<string, MatrixCell>;
}

/** What evaluations measured of a checkpoint in the seen pool. */
export interface MeasuredCheckpoint {
  step: number;
  orchestrator: string;
  tasks: number;
  mean: [number, number, number];
  depth: number;
  width: number;
  turns: number;
  steps: number;
  parallelism: number | null;
  entropy: number;
  shares: Record<string, number>;
}

/** A pool's failure memory: who writes it (`gone` when that agent is not there any more), newest lesson first, and what it brings by the last measurement. */
export interface MemoryDocument {
  mode: string;
  /** Whether a failed run is tried again at once with its lesson. */
  retry: boolean;
  agents: string[];
  gone: boolean;
  count: number;
  read: number;
  lessons: LessonDocument[];
  gain: MemoryGain | null;
}

/** The shares of held-out tasks that are right without and with the lessons, and the paired difference. `state` is the job's; there are no figures before it has some of both. */
export interface MemoryGain {
  job: string;
  state: string;
  orchestrator: string;
  tasks: number;
  without: number | null;
  with_lessons: number | null;
  difference: [number, number, number] | null;
  ended_at: string;
}

/** A model on which a role agent can run. */
export interface ModelChoice {
  name: string;
  label: string;
}

/** The address of a new link, in this reply and nowhere else; else why there is none. */
export interface NewShare {
  address: string;
  problem: string;
}

/** A token, in this reply and nowhere else. */
export interface NewToken {
  name: string;
  token: string;
}

/** Why there is nothing to draw yet, and what to do. */
export interface NoDocument {
  ok: false;
  hint: string;
}

/** Where notices go. Of secrets there are references only. */
export interface NoticesDocument {
  webhook: string;
  authorization: string;
  kinds: string[];
  queries: boolean;
  /** What each kind of notice says, all kinds that there are. */
  labels: Record<string, string>;
}

/** What a call returned; the value as text. */
export interface ObservationDocument {
  status: string;
  value: string | null;
  latency_s: number;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  error: string | null;
  /** How arguments were read that were written otherwise. */
  notes: string[];
}

/** Something to try next: a run of `query` with `orchestrator`, or the page at `href`; `command` is for a shell. */
export interface Offer {
  text: string;
  orchestrator: string;
  query: string;
  href: string;
  command: string;
}

/** A worker that a source offers; `problem` says why it cannot be added. */
export interface OfferDocument {
  spec: WorkerSpec;
  problem: string;
  /** What was changed in the schema of its arguments so that it can be used. */
  mended: string[];
  /** Whether nothing says that its calls only read. */
  may_have_effects: boolean;
  parameters: Record<string, any>;
  /** The fields of what it returns, as plans name them: "{id, city}"; "" for none. */
  returns: string;
}

/** An orchestrator that can be compared, and the heading that it stands under. */
export interface OrchestratorChoice {
  name: string;
  label: string;
  group: string;
}

/** An orchestrator of a pool: its name, what a person calls it, what to expect of it, and its job, "" without. */
export interface OrchestratorLine {
  name: string;
  label: string;
  about: string;
  job: string;
}

/** How unlike everything that its checkpoint learnt the words of an episode's query are, and whether its pool lacks workers that it learnt. It is not how sure the answer is. */
export interface OutOfDepthView {
  /** That a query with such words is none that it learnt to plan; not shown. */
  probability: number;
  sentence: string;
  /** Whether to warn. */
  beyond: boolean;
}

/** What a job came to, the checkpoint that it is about, and the model that this was trained from. */
export interface OutcomeSentence {
  sentence: string;
  /** Whether it is better than its start; `open` where nothing shows that. */
  verdict: "better" | "open" | "worse";
  /** Whether none of a person's own questions was measured, made tasks alone. */
  lacks_own: boolean;
  orchestrator: string;
  start: string;
  pool: string;
}

export interface Output {
  /** JSON Schema of the result; JSON in an agent's answer is read before the check. */
  json_schema: Record<string, any> | null;
  /** Regular expression that the whole result must match, as text. */
  pattern: string | null;
}

/** An orchestrator against the reference on the tasks that both have done; `p` of the sign test. */
export interface PairedFigures {
  difference: [number, number, number];
  wins: number;
  losses: number;
  ties: number;
  tasks: number;
  unpaired: number;
  p: number;
}

export interface ParentStep {
  episode: string;
  step: number;
}

export interface ParetoPoint {
  name: string;
  price: number;
  mean: Estimate;
  efficient: boolean;
}

/** What a pasted text is: `actions` are what has to be asked before more can be offered, `takes` the settings that it has a use for. */
export interface PastedDocument {
  label: string;
  actions: string[];
  offers: OfferDocument[];
  notes: string[];
  takes: string[];
  /** How many keys stand in it. */
  keys: number;
}

/** What a written plan answers, what failed in it, and whether the answer is right. */
export interface PlanOutcome {
  answer: string;
  failure: string;
  correct: boolean;
}

/** Why a plan does not run by itself. */
export interface PlanReason {
  code: "review" | "effects" | "doubt" | "cost" | "time" | "escalation";
  sentence: string;
}

/** A task whose reference plan was run. */
export interface PlanRun {
  query: string;
  episode: string;
  correct: boolean;
  graph: SmallGraph;
}

/** A step of a plan that waits, with what its call takes by earlier calls of its worker. */
export interface PlannedCall {
  step: number;
  worker: string;
  /** The arguments in one line, with the outputs that are known. */
  instruction: string;
  /** The same with its references, as `$1`; empty where it has none that is known. */
  planned: string;
  cost: number;
  /** None where no call of the worker is recorded. */
  seconds: number | null;
  /** Whether the call may change something outside. */
  effects: boolean;
}

/** A step as it was planned, and how it ended. */
export interface PlannedStep {
  id: number;
  worker: string;
  arguments: Record<string, any>;
  access: number[];
  problem: string | null;
  status: string;
}

/** One version of a pool; `current` is its newest version. */
export interface PoolDocument {
  name: string;
  description: string;
  version: number;
  current: number;
  hash: string;
  /** The whole hash: an edit names with it what the person saw. */
  based_on: string;
  /** The same of the newest version. */
  current_hash: string;
  limits: Limits;
  mode: DeploymentMode;
  workers: WorkerCard[];
  versions: VersionLine[];
}

/** Everything that the page draws; there is no pool before the first one is made. `read_only`: only owners change this pool. `role` is the viewer's. */
export interface PoolPageState {
  pools: string[];
  pool: PoolDocument | null;
  kinds: KindDocument[];
  read_only: boolean;
  role: UserRole;
  limits_schema: Record<string, any>;
  mode_schema: Record<string, any>;
  advanced_schema: Record<string, any>;
}

/** A recipe that ships. */
export interface PresetDocument {
  name: string;
  title: string;
  stages: PresetStage[];
  base: string;
  adapter: boolean;
  /** The package that gives its tasks, where that is not installed. */
  needs: string;
}

/** A stage of a recipe that ships; an evaluation has no steps. */
export interface PresetStage {
  name: string;
  steps: number | null;
}

/** What would be sent; `recorded` are the queries that were run for it, `inside` that the model goes along, `texts` what a person reads before it leaves. */
export interface PreviewDocument {
  preview: string;
  recorded: number;
  bundles: BundleDocument[];
  secrets: SecretDocument[];
  runs: number;
  inside: boolean;
  texts: SentTextDocument[];
}

export interface Probe {
  ok: boolean;
  text: string;
  at: string;
}

/** How far a publication is; `links` are (label, address), `at` when it last changed. */
export interface PublicationDocument {
  key: string;
  repo: string;
  state: "ready" | "running" | "done" | "failed" | "interrupted";
  message: string;
  stages: StageDocument[];
  links: [string, string][];
  visibility: "private" | "public";
  at: string;
}

/** What can be published, and under which settings; pairs are (value, label). */
export interface PublishChoices {
  pools: string[];
  checkpoints: [string, string][];
  suggestion: string;
  policies: [string, string][];
  hardware: string[];
  licences: string[];
  visitors: Record<string, string>;
  logged_in: boolean;
}

/** The share of tasks that an orchestrator solved before and solves now, and the paired difference. */
export interface RankRow {
  orchestrator: string;
  label: string;
  condition: string;
  before: number;
  after: number;
  difference: [number, number, number];
}

export interface RecalledLessons {
  lessons: Lesson[];
  of: number;
  by: string;
}

/** A recipe as the page holds it, as text, and as the command that starts it. */
export interface RecipeDocument {
  recipe: Record<string, any>;
  yaml: string;
  command: string;
  /** What the command reads, where that is no preset. */
  file: string | null;
  /** The orchestrators that can make demonstrations on its pool. */
  teachers: string[];
  /** None where it was not looked for. */
  missing: LaunchGap[] | null;
  busy: JobLine[];
}

/** The pool that was made of a data set, and some of its tasks as graphs. */
export interface RecordedPoolDocument {
  pool: string;
  sentence: string;
  /** The first tasks, whose plans were run. */
  runs: PlanRun[];
}

/** A query of the evaluation with its task as it is now; how many of its answers count as right so far. */
export interface RegradeTask {
  query: string;
  answer: string;
  split: string;
  verifier: string;
  /** Those that its plan calls, in order. */
  workers: string[];
  origin: string;
  fields: Record<string, any>;
  /** What says that its answer is right, where nothing computed it. */
  checked: string;
  /** The digest of its line: an edit names with it what the person saw. */
  based_on: string;
  right: number;
  episodes: number;
}

/** The queries of an evaluation, some of the `total` that fit what a person looks for. `problem` says why the source gives no task: what is written on the page then grades alone. */
export interface RegradeTasks {
  job: string;
  pool: string;
  source: string;
  sources: string[];
  problem: string;
  rows: RegradeTask[];
  total: number;
}

/** An evaluation before and after it was graded again: some of the `total` answers that changed sides, of which `became_right` are right now. `digest` names this outcome when it is to be kept. */
export interface RegradingDocument {
  job: string;
  episodes: number;
  left: LeftRows[];
  ranking: RankRow[];
  changed: ChangedSide[];
  total: number;
  became_right: number;
  /** Of all that changed sides. */
  digest: string;
}

/** A machine that can be rented: what a recipe's `where` says, and its name, memory and price. */
export interface RentedPlace {
  where: string;
  label: string;
}

/** A whole episode that a page can replay without a server; steps and turns by their numbers. */
export interface Replay {
  podium_replay: 1;
  view: EpisodeView;
  steps: Record<string, StepDetail>;
  turns: Record<string, TurnDetail>;
  final: FinalAnswerDetail | null;
}

/** What has become of the second try of a failed run, with its lesson. */
export interface RetriedView {
  /** Its run; empty where there is none to look at. */
  episode: string;
  sentence: string;
}

/** The step of another run that an output was taken from. */
export interface ReusedStep {
  episode: string;
  step: number;
}

/** An episode of a group with its reward; its graph is None when its trace is not in this data folder. `written` is what the model wrote in each of its turns, the first characters of them. */
export interface RolloutEpisode {
  id: string;
  correct: boolean;
  reward: number;
  advantage: number;
  terms: Record<string, number>;
  graph: SmallGraph | null;
  written: string[];
  starred: boolean;
}

/** Episodes on one task: `solved` of them were right; `equal` when all had one outcome, `kept` when it trains. */
export interface RolloutGroupDocument {
  query: string;
  family: string;
  level: number | null;
  index: number | null;
  equal: boolean | null;
  kept: boolean | null;
  solved: number;
  of: number;
  episodes: RolloutEpisode[];
}

/** Groups of one step from number `first` on, and which steps there are; `equal` groups of it had one outcome. */
export interface RolloutPage {
  step: number | null;
  steps: number[];
  groups: RolloutGroupDocument[];
  first: number;
  of: number;
  equal: number;
}

/** A round, ready to be edited; `fresh` is the next free number of a step. */
export interface RoundDocument {
  round: number;
  error: string | null;
  answer: any;
  steps: PlannedStep[];
  rounds: number;
  fresh: number;
}

/** A run that a thread began with. */
export interface RunBefore {
  episode: string;
  question: string;
  /** As a person read it; "" where it had none. */
  answer: string;
}

/** A recorded run that can be shown; `shown` are those that a page shows when nobody chooses: right or starred. */
export interface RunChoice {
  id: string;
  query: string;
  correct: boolean | null;
  counts: StepCounts;
  shown: boolean;
}

/** What the choice of a pool and an orchestrator offers: runs to show, and workers' files that may go along. */
export interface RunChoices {
  runs: RunChoice[];
  luggage: LuggageDocument[];
}

/** What came of a run. */
export interface RunResult {
  id: string;
  orchestrator: string;
  state: string;
  answer: string | null;
  correct: boolean | null;
  started_at: string;
  wall_s: number;
  counts: StepCounts;
  tokens: number;
  cost: number;
}

/** A place to go to: what it is, its name, a few words on it, and its address. */
export interface SearchHit {
  kind: string;
  title: string;
  note: string;
  address: string;
}

/** A secret that the Space needs, and whether it is set on this machine. */
export interface SecretDocument {
  name: string;
  reference: string;
  workers: string[];
  is_set: boolean;
}

/** An earlier step as a later one was allowed to see it. */
export interface SeenStep {
  step: number;
  worker: string;
  status: "PENDING" | "RUNNING" | "OK" | "TRIED" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  value: any;
  error: string | null;
}

/** A text of the pool that would be sent, and where it stands in a worker's configuration. */
export interface SentTextDocument {
  worker: string;
  field: string;
  text: string;
}

/** Everything that the page draws; `orchestrators` are (label, name), `defaults` by pool, `port` is a free one. `tokens` are the viewer's own, `guarded` says whether anybody has one: then every request needs one. */
export interface ServeState {
  servers: ServedModel[];
  deployments: DeploymentCard[];
  tokens: TokenLine[];
  guarded: boolean;
  role: UserRole;
  pools: string[];
  orchestrators: [string, string][];
  defaults: Record<string, string>;
  port: number;
  python: string;
  home: string;
}

/** A running server and the model that it serves; `running` requests are being answered. `origins` are those of the pages that may use it from a browser; `recorded`: whether requests become traces. */
export interface ServedModel {
  url: string;
  host: string;
  port: number;
  pool: string;
  version: number;
  orchestrator: string;
  orchestrator_label: string;
  model: string;
  deployment: string;
  started_at: string;
  state: "starting" | "ready";
  origins: string[];
  recorded: boolean;
  running: number;
  answered: number;
  failed: number;
}

/** The deployment under whose name a run was asked for, and which side of it the run is. */
export interface ServedView {
  deployment: string;
  /** The number of its change that was served; 0 in traces of older versions. */
  change: number;
  side: "serving" | "candidate" | "shadow";
  /** The run whose answer was given, where this one is its shadow; else empty. */
  shadow_of: string;
  sentence: string;
}

/** A link that works, without its token; `mine`: the viewer may take it back. */
export interface ShareLine {
  id: string;
  episode: string;
  query: string;
  user: string;
  created_at: string;
  expires_at: string;
  mine: boolean;
}

/** The links of a run, or all that a person may take back, the latest first. */
export interface ShareList {
  links: ShareLine[];
}

/** A worker and its score for the query. */
export interface ShownWorker {
  worker: string;
  score: number;
}

/** The workers that the orchestrator was shown of a large pool, best first. */
export interface ShownWorkersDetail {
  count: number;
  of: number;
  by: string;
  workers: ShownWorker[];
}

/** A skill of a pool, or one that it may have: then `questions` are some of those that it was made of, and `problem` says why it cannot be added, "" where it can. */
export interface SkillLine {
  name: string;
  description: string;
  parameters: string[];
  /** The workers that it calls, in their order. */
  steps: string[];
  /** How it was tested, in a sentence. */
  record: string;
  questions: string[];
  problem: string;
}

/** The skills that a pool has, and those that were found for it just now. */
export interface SkillsDocument {
  skills: SkillLine[];
  candidates: SkillLine[];
}

/** The answer on a small graph. */
export interface SmallAnswer {
  x: number;
  y: number;
  paths: string[];
}

/** From a step to one that may see it. */
export interface SmallEdge {
  path: string;
  used: boolean;
}

/** The graph of an episode without its words; `node` is (width, height) of a step's card. */
export interface SmallGraph {
  width: number;
  height: number;
  node: [number, number];
  steps: number;
  rounds: number;
  failed: number;
  answer_text: string | null;
  outcome: "answered" | "gave_up" | "max_rounds" | "max_tokens" | "max_cost" | "deadline" | "stopped" | "orchestrator_failed" | "rejected" | null;
  nodes: SmallNode[];
  edges: SmallEdge[];
  answer: SmallAnswer | null;
}

/** A step on a small graph. */
export interface SmallNode {
  id: number;
  x: number;
  y: number;
  role: "agent" | "tool" | "recursion";
  status: "PENDING" | "RUNNING" | "OK" | "TRIED" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  worker: string;
}

/** A stage of a publication. */
export interface StageDocument {
  name: string;
  label: string;
  state: "done" | "running" | "waiting";
}

/** One run of a comparison: its episode, or the problem that prevented it. */
export interface StartedRun {
  orchestrator: string;
  episode: string | null;
  problem: string;
}

/** The episode of a what-if that was started. */
export interface StartedVariation {
  problems: [string, string][];
  episode: string;
}

/** The worker that the model asked for by the name it learnt, and how it came to the one that was called. */
export interface StepBinding {
  learnt: string;
  /** Empty where no worker here is like it. */
  worker: string;
  likeness: number;
  /** name, meaning, words or person. */
  by: string;
  /** Those that are called otherwise here, by their learnt names. */
  parameters: Record<string, string>;
}

export interface StepCounts {
  steps: number;
  failed: number;
  tries: number;
}

/** Everything about one step: what it was allowed to see, what was sent, what came back. */
export interface StepDetail {
  latency_s: number | null;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  /** Why it failed, in one word. */
  code: string | null;
  /** The episode that a recursive worker ran. */
  child: string | null;
  cached: boolean;
  answered_by: string | null;
  id: number;
  worker: string;
  kind: string;
  role: "agent" | "tool" | "recursion";
  icon: string;
  description: string;
  need: string;
  /** How its worker was chosen, in a sentence; empty where no score of outcomes did. */
  choice: string;
  binding: StepBinding | null;
  round: number;
  status: "PENDING" | "RUNNING" | "OK" | "TRIED" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  error: string | null;
  arguments: Record<string, any>;
  /** The arguments with `$k` replaced. */
  resolved: Record<string, any> | null;
  visible: SeenStep[];
  prompt: string | null;
  value: any;
  instead_of: Failure | null;
  reused: ReusedStep | null;
  context: ContextBudget | null;
  /** How arguments were read that were written otherwise. */
  notes: string[];
}

/** What the edits call again and what they keep, by the numbers that the edits use. */
export interface StepFates {
  problems: [string, string][];
  rerun: number[];
  kept: number[];
  /** Later rounds that are planned anew. */
  dropped: number;
  /** Those of `rerun` whose call may change something. */
  effectful: number[];
}

/** One step on the graph. */
export interface StepNode {
  latency_s: number | null;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  /** Why it failed, in one word. */
  code: string | null;
  /** The episode that a recursive worker ran. */
  child: string | null;
  cached: boolean;
  answered_by: string | null;
  id: number;
  worker: string;
  kind: string;
  role: "agent" | "tool" | "recursion";
  icon: string;
  /** The arguments in one line, with the outputs that are known. */
  instruction: string;
  /** The same with its references, as `$1`; empty where it has none that is known. */
  planned: string;
  /** What a reader said that the step is for, before a worker was chosen; else empty. */
  need: string;
  /** How its worker was chosen, in a sentence; empty where no score of outcomes did. */
  choice: string;
  round: number;
  layer: number;
  /** The steps whose outputs it may see. */
  access: number[];
  /** Those of them that its arguments quote. */
  used: number[];
  status: "PENDING" | "RUNNING" | "OK" | "TRIED" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  /** Whether it counts as another try (orchestrator/traces/step_counts.py). */
  tried: boolean;
  started_at: number | null;
  ended_at: number | null;
  critical: boolean;
  /** In a what-if: the step of the varied run that this output was taken from. */
  reused: number | null;
  x: number;
  y: number;
}

/** One step of the graph, without its place. */
export interface StepState {
  latency_s: number | null;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  /** Why it failed, in one word. */
  code: string | null;
  /** The episode that a recursive worker ran. */
  child: string | null;
  cached: boolean;
  answered_by: string | null;
  id: number;
  worker: string;
  kind: string;
  role: "agent" | "tool" | "recursion";
  icon: string;
  /** The arguments in one line, with the outputs that are known. */
  instruction: string;
  /** The same with its references, as `$1`; empty where it has none that is known. */
  planned: string;
  /** What a reader said that the step is for, before a worker was chosen; else empty. */
  need: string;
  /** How its worker was chosen, in a sentence; empty where no score of outcomes did. */
  choice: string;
  round: number;
  layer: number;
  /** The steps whose outputs it may see. */
  access: number[];
  /** Those of them that its arguments quote. */
  used: number[];
  status: "PENDING" | "RUNNING" | "OK" | "TRIED" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  /** Whether it counts as another try (orchestrator/traces/step_counts.py). */
  tried: boolean;
  started_at: number | null;
  ended_at: number | null;
  critical: boolean;
  /** In a what-if: the step of the varied run that this output was taken from. */
  reused: number | null;
}

/** A family at one level: the mean of every orchestrator. */
export interface SuiteCell {
  family: string;
  level: number;
  by: Record<string, CellSummary>;
}

/** The suite view; `turns` holds by orchestrator the share of episodes by their number of turns, `hull` the baselines that no mixture of others beats at their price. */
export interface SuiteDocument {
  ok: true;
  reference: string;
  condition: string;
  best_single: string | null;
  rows: SuiteRow[];
  cells: SuiteCell[];
  pareto: Record<string, ParetoPoint[]>;
  hull: Record<string, HullPoint[]>;
  equal_cost: Record<string, Record<string, EqualCost>>;
  turns: Record<string, Record<string, number>>;
  choices: FilterChoices;
  /** A sentence about each judge that the figures rest on. */
  judges: string[];
}

/** A family of generated tasks at one level. */
export interface SuiteLevel {
  family: string;
  level: number;
}

/** The figures of one orchestrator (trainer/results/figures.py says what each is). */
export interface SuiteRow {
  orchestrator: string;
  mean: [number, number, number];
  pass_at_k: [number, number, number];
  pass_all_k: [number, number, number];
  tasks: number;
  episodes: number;
  k: number;
  valid_turns: number | null;
  statuses: Record<string, number>;
  recovery: number | null;
  failed_episodes: number;
  outcomes: Record<string, number>;
  cost: number;
  cost_per_episode: number;
  tokens_per_episode: number;
  p50_s: number;
  p95_s: number;
  speedup: number | null;
  turns: number;
  steps: number;
  depth: number;
  width: number;
  access_precision: number | null;
  access_recall: number | null;
  matched: number | null;
  extra_steps: number | null;
  extra_depth: number | null;
  entropy: number;
  shares: Record<string, number>;
  paired: PairedFigures | null;
}

/** Some of the tasks `of` which an orchestrator did better, worse or equally well. */
export interface TaskPage {
  ok: true;
  orchestrator: string;
  reference: string;
  which: "improved" | "regressed" | "equal";
  of: number;
  first: number;
  tasks: ChangedTask[];
}

export interface TaskRef {
  family: string;
  level: number;
  split: string;
  index: number;
  version: number;
}

/** One task; `origin` is "made", "own" or "" where it has none, `fields` are those of its line in a task file. */
export interface TaskRow {
  query: string;
  answer: string;
  split: string;
  verifier: string;
  /** Those that its plan calls, in order. */
  workers: string[];
  origin: string;
  fields: Record<string, any>;
  /** What says that its answer is right, where nothing computed it. */
  checked: string;
  /** The digest of its line: an edit names with it what the person saw. */
  based_on: string;
}

/** Tasks as a page lists them: `rows` are some of the `total` that fit what a person looks for. `counts` by split, empty where a source makes as many as one wants. `pool` is the pool whose own tasks these are, "" for another source. `verifiers` says how each kind that occurs grades. `agents_only`: no other worker can be called, so that one of the agents has to write the tasks. */
export interface TasksDocument {
  source: string;
  pool: string;
  file: string;
  counts: Record<string, number>;
  made: number;
  own: number;
  with_plan: number;
  rows: TaskRow[];
  first: number;
  total: number;
  problems: LineProblem[];
  struck: string[];
  excluded: WorkerExclusion[];
  agents: string[];
  agents_only: boolean;
  /** Who can judge: workers that do nothing else first, then agents. */
  judges: string[];
  verifiers: Record<string, string>;
  /** How making them goes, or went the last time. */
  making: MakingDocument | null;
}

/** What was pasted or uploaded: `rows` are some of the `total`, `lacking` workers that the pool has not. `form` says how it was read, `unit` what is counted as `left_out`; `columns` are those of a table or of objects, of which two hold queries and answers. */
export interface TasksPreview {
  form: string;
  unit: string;
  left_out: number;
  columns: string[];
  query_column: string;
  answer_column: string;
  counts: Record<string, number>;
  total: number;
  rows: TaskRow[];
  problems: LineProblem[];
  examples: VerifierExample[];
  lacking: string[];
  /** A name for the pool that a data set of tool use becomes; else "". */
  new_pool: string;
  /** Sentences about such a data set as a whole. */
  notes: string[];
}

/** One card of the gallery; `preset` is what the form of "Edit first" begins with. */
export interface TemplateCard {
  id: string;
  group: "models" | "roles" | "tools" | "imports";
  title: string;
  line: string;
  needs: "nothing" | "a key" | "a running server" | "a file" | "a model" | "an address" | "a program";
  note: string;
  fields: TemplateField[];
  runs_on_model: boolean;
  kind: string;
  role: "agent" | "tool" | "recursion";
  icon: string;
  preset: WorkerSpec | null;
}

export interface TemplateField {
  field: string;
  label: string;
  about: string;
  control: "text" | "model" | "key" | "path" | "documents";
  value: string;
  choices: string[];
  optional: boolean;
}

/** A token by its name; the token itself is shown once, when it is made. */
export interface TokenLine {
  name: string;
  created_at: string;
}

/** A family of tasks: how many questions of it a worker was graded on, and how many it got right. */
export interface TopicFacts {
  topic: string;
  graded: number;
  right: number;
}

/** One run of the list; `state` is running, interrupted or the outcome, `side` that of a deployment. */
export interface TraceLine {
  id: string;
  started_at: string;
  query: string;
  pool: string;
  user: string;
  orchestrator: string;
  orchestrator_label: string;
  state: string;
  correct: boolean | null;
  answer: string;
  depth: number;
  counts: StepCounts;
  wall_s: number;
  tokens: number;
  cost: number;
  source: string;
  side: string;
  starred: boolean;
}

/** One page of runs, newest first, and what the filters can be set to; `problem` of the recording, if any. */
export interface TracePage {
  rows: TraceLine[];
  more: boolean;
  pools: string[];
  /** Labels by name. */
  orchestrators: Record<string, string>;
  states: string[];
  users: string[];
  sources: string[];
  problem: string | null;
}

/** The shape of the recorded episodes by step, from at most `episodes` of each; `lost` are no longer recorded. */
export interface TracedShapes {
  steps: number[];
  series: Record<string, (number | null)[]>;
  episodes: number;
  lost: number;
}

/** What is stored of served traffic. `clients`: their requests may become tasks. `served_days`: None for ever. */
export interface TrafficSettings {
  clients: boolean;
  served_days: number | null;
}

/** What *Train on this pool* would do: by plans or by the outcomes of agents, what it takes, and what is missing. */
export interface TrainingPlan {
  by_outcomes: boolean;
  /** Agents whose plans may be imitated first; their keys are set. */
  teachers: string[];
  estimate: JobEstimate | null;
  gaps: string[];
}

/** How one side of a deployment did since its candidate is tried; `cost` is US dollars of a request. */
export interface TrialSide {
  side: string;
  label: string;
  runs: number;
  answered: number;
  right: number;
  wrong: number;
  cost: number;
  median_s: number;
}

/** A candidate: how it is tried, what that showed, and why it may not be promoted (nothing: it may). */
export interface TrialView {
  label: string;
  sentence: string;
  sides: TrialSide[];
  notes: string[];
  evidence: string;
  refusals: string[];
}

/** What "Try it" begins with; `seen` is None for a worker that is never shown earlier outputs. */
export interface TryForm {
  parameters: Record<string, any>;
  /** The fields of what it returns, as plans name them; "" where nobody says them. */
  returns: string;
  sample: Record<string, any>;
  seen: string | null;
}

/** Everything about one turn: the text that the orchestrator wrote and the prompt that it was sent. */
export interface TurnDetail {
  round: number;
  started_at: number;
  ended_at: number | null;
  status: "RUNNING" | "OK" | "PARSE_ERR" | "EXEC_ERR";
  error: string | null;
  steps: number[];
  answers: boolean;
  tokens_in: number;
  tokens_out: number;
  text: string;
  prompt: string | null;
  shown: ShownWorkersDetail | null;
  recalled: RecalledLessons | null;
  vote: VoteDetail | null;
  confidence: ConfidenceView | null;
  /** What code changed in what the model wrote, or had it write again. */
  repairs: string[];
  latency_s: number | null;
  context: ContextBudget | null;
}

/** One turn of the orchestrator. */
export interface TurnView {
  round: number;
  started_at: number;
  ended_at: number | null;
  status: "RUNNING" | "OK" | "PARSE_ERR" | "EXEC_ERR";
  error: string | null;
  steps: number[];
  answers: boolean;
  tokens_in: number;
  tokens_out: number;
  /** Of a large pool: how many workers the orchestrator was shown. */
  shown: CountOf | null;
  /** How many lessons of the failure memory it was given. */
  recalled: CountOf | null;
}

export type UserRole = "viewer" | "editor" | "owner";

/** What a worker brings to its pool. */
export interface ValueDocument {
  worker: string;
  orchestrator: string;
  orchestrator_label: string;
  verdict: string;
  enough: boolean;
  pairs: number;
  tasks: number;
  /** Pairs whose reference plan calls the worker. */
  needing: number;
  /** Pairs in which the worker was called. */
  called: number;
  changes: FigureChange[];
  differing: ValueTask[];
  notes: string[];
}

/** One task that came out otherwise. */
export interface ValueTask {
  query: string;
  with_it: boolean;
  without_it: boolean;
}

/** The what-ifs of a run; of a what-if also the run that it varies, its edits and the difference. */
export interface VariationsDocument {
  problems: [string, string][];
  origin: RunResult | null;
  result: RunResult | null;
  round: number | null;
  dropped: number;
  kept: number;
  rerun: number;
  edits: EditDocument[];
  differences: Record<string, number>;
  variations: RunResult[];
  copies: CopiesDocument | null;
}

/** How the answer was graded. */
export interface Verdict {
  correct: boolean;
  expected: string;
  /** The plan's own answer was graded; a finalizer has written another one. */
  of_plan: boolean;
}

/** How a written task is graded: answers by example, and the grade of the one that a person gave, if any. */
export interface VerifierDocument {
  kind: string;
  about: string;
  answers: [string, boolean][];
  correct: boolean | null;
  reason: string;
}

/** How tasks of one kind are graded: answers by example, for the first of them. */
export interface VerifierExample {
  verifier: string;
  about: string;
  query: string;
  answers: [string, boolean][];
}

/** What differs between two versions: workers, and fields of the pool itself. */
export interface VersionDifference {
  workers: WorkerDifference[];
  pool: FieldDifference[];
}

/** A version of a pool, and what it changed. */
export interface VersionLine {
  version: number;
  created_at: string;
  hash: string;
  workers: number;
  changes: string;
}

/** What may change in a view without the graph changing its shape. */
export interface ViewPatch {
  clock_s: number;
  episode: EpisodeHead;
  turns: TurnView[];
  totals: EpisodeTotals;
  nodes: StepNode[];
}

/** How a turn was chosen among several drawn plans. The turn's own tokens are those of all plans and trials. */
export interface VoteDetail {
  /** How many were drawn. */
  plans: number;
  /** How many came to the same result as the chosen one, itself included. */
  agreed: number;
  /** What they agree on; empty where none could be used, and in older traces. */
  answer: string;
  unreadable: number;
  /** Readable plans that failed when they were tried. */
  failed: number;
  /** Plans that voted as they are written: a step of them may have effects. */
  untried: number;
  /** Plans without a vote: they leave out a figure or a name, or have a step that does nothing. */
  incomplete: number;
  /** The answer with most votes first. */
  answers: AnswerVotes[];
  /** What plans without a vote came to; older traces do not say it. */
  unvoted: AnswerVotes[];
  /** How many agree, in words. */
  sentence: string;
  unsure: boolean;
  /** What the chosen plan alone took; older traces do not say it. */
  chosen_tokens: number | null;
}

/** A run whose plan waits for a person. */
export interface WaitingPlan {
  id: string;
  query: string;
  pool: string;
  orchestrator: string;
  started_at: string;
  user_name: string;
}

/** The recorded rounds, and the workers that a step may call. */
export interface WhatIfEditor {
  problems: [string, string][];
  episode: string;
  rounds: EditedRound[];
  fresh: number;
  workers: CallableWorker[];
}

export interface WorkerCard {
  /** What plans call it: a-z, 0-9, _ and -. */
  name: string;
  kind: string;
  /** The orchestrator reads this. */
  description: string;
  config: Record<string, any>;
  enabled: boolean;
  /** Seconds from the worker's start. */
  timeout_s: number;
  max_concurrency: number;
  /** On 429, 5xx and connection errors only. */
  retries: number;
  max_output_chars: number;
  /** US dollars per million tokens in. */
  price_in: number;
  /** US dollars per million tokens out. */
  price_out: number;
  /** US dollars per call. */
  price_call: number;
  /** What the result must be; empty means anything. */
  output: Output | null;
  /** The worker that takes over when this one fails, times out or returns what it must not. */
  fallback: string;
  /** Calls per minute; empty means no limit. Waiting is queueing. */
  rate_limit: number | null;
  /** An equal call that may see the same gets the recorded result, for a week. */
  cache: boolean;
  /** Its calls cost nothing. Where a pool caps the cost, a worker elsewhere without a price is called only when this is set. */
  free: boolean;
  /** Whether a call changes something outside, such as sending a message. some: it waits for a person where the pool's mode asks one. auto: as the kind of worker and its source say. */
  effects: "auto" | "none" | "some";
  /** Of a language model: the most tokens of prompt and reply together. Outputs that it may see are shortened to fit, and a call that cannot fit is refused before it is paid for. Empty: not known. */
  context_tokens: number | null;
  /** Of a language model: the agent that shortens outputs which are too long for its prompt. Empty: their beginning is taken. The whole output stays in the trace. */
  summarizer: string;
  /** Of a language model: it only grades answers. It never plans, answers, takes over or shortens outputs, and no plan may call it. */
  judge_only: boolean;
  role: "agent" | "tool" | "recursion";
  icon: string;
  label: string;
  /** Where its answers come from, in one line. */
  points_at: string;
  remote: boolean;
  /** Where a call goes: this process, a server on this machine, or another machine. */
  place: "here" | "machine" | "remote";
  /** What a call starts on this machine outside the sandbox. */
  runs_program: string;
  isolated: boolean;
  /** What a Python function may reach in the sandbox; empty for all others. */
  permissions: string;
  light: WorkerHealth;
  calls: number;
  success: number | null;
  median_latency_s: number | null;
  /** Mean US dollars of its last calls here; None before the first and without a price. */
  cost_call: number | null;
  /** Whether a call may change something outside. */
  may_have_effects: boolean;
  /** Newest graded questions that it alone answered, or that a cascade asked it. */
  graded: number;
  /** Those of them that it got right. */
  right: number;
  /** Its track record; None before its first graded run. */
  facts: WorkerFacts | null;
  /** Of a judge: how far it agrees with a person, in a sentence. */
  agreement: string;
}

/** A worker that was added, removed or changed between two versions. */
export interface WorkerDifference {
  name: string;
  change: string;
  about: string;
  fields: FieldDifference[];
}

/** What an orchestrator loses `without` some workers, on the same tasks. */
export interface WorkerDrop {
  without: string;
  mean: [number, number, number];
  change: [number, number, number];
  wins: number;
  losses: number;
  ties: number;
  tasks: number;
}

/** A worker that made tasks leave out. One that a person may allow only might have effects. */
export interface WorkerExclusion {
  name: string;
  reason: string;
  may_be_allowed: boolean;
}

/** A worker's track record: questions that it alone answered and that were graded. `read` is how many graded runs of the pool were looked at, at most; None for all. Times in ISO 8601. */
export interface WorkerFacts {
  graded: number;
  right: number;
  median_s: number;
  /** Mean US dollars of a question. */
  cost: number;
  newest: string;
  topics: TopicFacts[];
  read: number | null;
  computed_at: string;
}

export interface WorkerHealth {
  light: "ok" | "degraded" | "failing" | "unknown";
  sentence: string;
  probe: Probe | null;
  circuit: Circuit;
  calls: number;
  errors: number;
  error_rate: number | null;
  median_latency_s: number | null;
  last_error: string | null;
}

export interface WorkerSpec {
  /** What plans call it: a-z, 0-9, _ and -. */
  name: string;
  kind: string;
  /** The orchestrator reads this. */
  description: string;
  config: Record<string, any>;
  enabled: boolean;
  /** Seconds from the worker's start. */
  timeout_s: number;
  max_concurrency: number;
  /** On 429, 5xx and connection errors only. */
  retries: number;
  max_output_chars: number;
  /** US dollars per million tokens in. */
  price_in: number;
  /** US dollars per million tokens out. */
  price_out: number;
  /** US dollars per call. */
  price_call: number;
  /** What the result must be; empty means anything. */
  output: Output | null;
  /** The worker that takes over when this one fails, times out or returns what it must not. */
  fallback: string;
  /** Calls per minute; empty means no limit. Waiting is queueing. */
  rate_limit: number | null;
  /** An equal call that may see the same gets the recorded result, for a week. */
  cache: boolean;
  /** Its calls cost nothing. Where a pool caps the cost, a worker elsewhere without a price is called only when this is set. */
  free: boolean;
  /** Whether a call changes something outside, such as sending a message. some: it waits for a person where the pool's mode asks one. auto: as the kind of worker and its source say. */
  effects: "auto" | "none" | "some";
  /** Of a language model: the most tokens of prompt and reply together. Outputs that it may see are shortened to fit, and a call that cannot fit is refused before it is paid for. Empty: not known. */
  context_tokens: number | null;
  /** Of a language model: the agent that shortens outputs which are too long for its prompt. Empty: their beginning is taken. The whole output stays in the trace. */
  summarizer: string;
  /** Of a language model: it only grades answers. It never plans, answers, takes over or shortens outputs, and no plan may call it. */
  judge_only: boolean;
}

/** What came of a test of a worker: of a call with the sample `input`, or of its probe. */
export interface WorkerTest {
  how: "call" | "probe";
  status: string;
  latency_s: number | null;
  text: string;
  input: string;
  /** Where the input of the call comes from, or why it was not called; "" for its own. */
  note: string;
}
