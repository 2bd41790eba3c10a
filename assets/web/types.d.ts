// The documents that the studio sends to its pages. Written by scripts/write_types.py; do not edit.

export interface Advice {
  level: "alive" | "degenerate" | "tuning";
  sentence: string;
  action: string;
  alarming: boolean;
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

/** The mean of one family and level. */
export interface CellMean {
  family: string | null;
  level: number | null;
  tasks: number | null;
  mean: number | null;
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
}

/** From a step to one that may see it. */
export interface Edge {
  from: number;
  to: number;
  used: boolean;
  path: string;
}

/** What stands above an episode's graph. */
export interface EpisodeHead {
  id: string;
  query: string;
  pool: string;
  pool_version: number | null;
  orchestrator: string;
  state: "running" | "ended" | "interrupted";
  outcome: "answered" | "gave_up" | "max_rounds" | "max_tokens" | "max_cost" | "deadline" | "stopped" | "orchestrator_failed" | null;
  reason: string | null;
  answer: string | null;
  started_at: string;
  depth: number;
  parent: ParentStep | null;
  what_if_of: string | null;
  task: TaskRef | null;
  verdict: Verdict | null;
  out_of_depth: OutOfDepthView | null;
  offers: Offer[];
}

export interface EpisodeTotals {
  wall_s: number;
  critical_path_s: number;
  serial_s: number;
  speedup: number | null;
  tokens_in: number;
  tokens_out: number;
  cost: number;
  steps: number;
  rounds: number;
  valid_turns: number;
  width: number;
  depth: number;
  statuses: Record<string, number>;
}

/** The whole view of an episode so far. */
export interface EpisodeView {
  clock_s: number;
  episode: EpisodeHead;
  graph: Graph;
  turns: TurnView[];
  totals: EpisodeTotals;
}

/** What can be measured about a worker: the tasks there are, and which tools a person may allow to be called. */
export interface EvidenceDocument {
  worker: string;
  practice: number;
  recorded: number;
  refused: string[];
  agents: string[];
  orchestrator: string;
  orchestrator_label: string;
}

export interface Failure {
  code: string;
  message: string;
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
  evaluation: JobEvaluation | null;
}

/** A job with its recipe as YAML and its curves. */
export interface JobDocument {
  id: string;
  name: string;
  kind: string;
  state: string;
  stage: string;
  step: number;
  steps: number;
  message: string;
  code: string;
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
  sft_steps: number;
  phases: JobPhase[];
  rollouts: number;
  resumable: boolean;
  can_stop: boolean;
  tiny: boolean;
  pool: string;
  title: string;
  outcome: OutcomeSentence | null;
  recipe: string;
  curves: CurveColumns;
}

/** What the evaluate stage measured of one orchestrator in one condition, without the episodes. */
export interface JobEvaluation {
  orchestrator: string | null;
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
  kind: string;
  state: string;
  stage: string;
  step: number;
  steps: number;
  message: string;
  code: string;
  created_at: string | null;
  started_at: string | null;
  ended_at: string | null;
}

/** A phase of GRPO; `border` is the job's last step before it. */
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

/** Everything about one job but its curves and its log. */
export interface JobView {
  id: string;
  name: string;
  kind: string;
  state: string;
  stage: string;
  step: number;
  steps: number;
  message: string;
  code: string;
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
  sft_steps: number;
  phases: JobPhase[];
  rollouts: number;
  resumable: boolean;
  can_stop: boolean;
  tiny: boolean;
  pool: string;
  title: string;
  outcome: OutcomeSentence | null;
}

/** One column of the graph: its round, and how many steps stand in it. */
export interface Lane {
  x: number;
  width: number;
  round: number;
  label: string;
  note: string;
}

export interface Lesson {
  query: string;
  sentence: string;
  written_by: string;
  episode: string;
  similarity: number;
}

/** Why a line is no task. */
export interface LineProblem {
  line: number;
  sentence: string;
}

/** A piece of a log: added to what is shown, or the `whole` in its place; `cut` when its beginning is left out. */
export interface LogText {
  text: string;
  whole: boolean;
  cut: boolean;
}

/** The RAM that a job holds, what the machine has, and its GPUs. */
export interface MachineLoad {
  held: number;
  available: number;
  total: number;
  gpus: GpuLoad[];
}

/** Something to try next: a run of `query` with `orchestrator`, or the page at `href`; `command` is for a shell. */
export interface Offer {
  text: string;
  orchestrator: string;
  query: string;
  href: string;
  command: string;
}

/** An orchestrator of a pool: its name, what a person calls it, what to expect of it, and its job, "" without. */
export interface OrchestratorLine {
  name: string;
  label: string;
  about: string;
  job: string;
}

/** How unlike everything that its checkpoint learnt an episode's query and pool are. */
export interface OutOfDepthView {
  probability: number;
  sentence: string;
  /** Whether to warn. */
  beyond: boolean;
}

/** What a job came to, and the checkpoint that it is about. */
export interface OutcomeSentence {
  sentence: string;
  orchestrator: string;
  pool: string;
}

export interface ParentStep {
  episode: string;
  step: number;
}

export interface RecalledLessons {
  lessons: Lesson[];
  of: number;
  by: string;
}

/** A whole episode that a page can replay without a server; steps and turns by their numbers. */
export interface Replay {
  podium_replay: 1;
  view: EpisodeView;
  steps: Record<string, StepDetail>;
  turns: Record<string, TurnDetail>;
}

/** The step of another run that an output was taken from. */
export interface ReusedStep {
  episode: string;
  step: number;
}

/** An earlier step as a later one was allowed to see it. */
export interface SeenStep {
  step: number;
  worker: string;
  status: "PENDING" | "RUNNING" | "OK" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  value: any;
  error: string | null;
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
  outcome: "answered" | "gave_up" | "max_rounds" | "max_tokens" | "max_cost" | "deadline" | "stopped" | "orchestrator_failed" | null;
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
  status: "PENDING" | "RUNNING" | "OK" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  worker: string;
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
  binding: StepBinding | null;
  round: number;
  status: "PENDING" | "RUNNING" | "OK" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  error: string | null;
  arguments: Record<string, any>;
  /** The arguments with `$k` replaced. */
  resolved: Record<string, any> | null;
  visible: SeenStep[];
  prompt: string | null;
  value: any;
  instead_of: Failure | null;
  reused: ReusedStep | null;
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
  x: number;
  y: number;
  worker: string;
  kind: string;
  role: "agent" | "tool" | "recursion";
  icon: string;
  instruction: string;
  /** What a reader said that the step is for, before a worker was chosen; else empty. */
  need: string;
  round: number;
  layer: number;
  /** The steps whose outputs it may see. */
  access: number[];
  /** Those of them that its arguments quote. */
  used: number[];
  status: "PENDING" | "RUNNING" | "OK" | "PARSE_ERR" | "EXEC_ERR" | "TIMEOUT";
  started_at: number | null;
  ended_at: number | null;
  critical: boolean;
  /** In a what-if: the step of the varied run that this output was taken from. */
  reused: number | null;
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
}

/** Tasks as a page lists them: `rows` are some of the `total` that fit what a person looks for. `counts` by split, empty where a source makes as many as one wants. `pool` is the pool whose own tasks these are, "" for another source. `verifiers` says how each kind that occurs grades. */
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
  verifiers: Record<string, string>;
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
  latency_s: number | null;
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

/** How the answer was graded. */
export interface Verdict {
  correct: boolean;
  expected: string;
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
  /** The answer with most votes first. */
  answers: AnswerVotes[];
  /** What the chosen plan alone took; older traces do not say it. */
  chosen_tokens: number | null;
}

/** A worker that made tasks leave out. One that a person may allow only might have effects. */
export interface WorkerExclusion {
  name: string;
  reason: string;
  may_be_allowed: boolean;
}
