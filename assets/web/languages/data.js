// Whose texts are no page's own and stay as they are: questions, answers, names, code, and the fields of recipes, which are
// explained in the words of their documentation.
export const DATA = `[translate="no"], script, style, pre, code, kbd, output, textarea, [contenteditable], .page-card-title h2,
  .page-about, .train-form-section, .run-summary-query, .run-thread-answer, .run-keep-query, .run-graph-answer, .pool-memory-query,
  .compare-query-answer-cell, .compare-regrade-query, .compare-task-query, .tasks-query, .tasks-answer, .tasks-aside b,
  .tasks-aside-answer, .train-tasks b, .train-job-line h2, .train-jobs-line b, .train-rollouts-head h3,
  .compare-query-title h3, .compare-query-named, .traces-query`;
