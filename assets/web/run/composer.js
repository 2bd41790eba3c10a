// The form above a run folds to one line once there is a run to look at, and unfolds where somebody goes into it.

/**
 * @param {import("./run_view.js").RunView} view
 */
export function attach(view) {
  const composer = document.getElementById("composer");
  if (!composer) return;
  /** @param {Event} event */
  const unfold = ({ target }) => {
    if (!(/** @type {Element} */ (target).closest("#run, #stop"))) composer.classList.remove("run-folded");
  };
  for (const name of ["focusin", "pointerdown", "input"]) composer.addEventListener(name, unfold);
  document.addEventListener("podium:query", () => markQuery(view)); // the page has filled it in, or somebody types
  let looked = "";
  view.full.addEventListener("marked", () => {
    requestAnimationFrame(() => markQuery(view));
    const looks = `${view.episode} ${view.step ?? ""} ${view.round ?? ""}`;
    if (looks === looked) return;
    const isSame = looked.startsWith(`${view.episode} `);
    looked = looks;
    if (!isSame || view.step || view.round) composer.classList.add("run-folded");
  });
}

/** Whether the query of the run stands whole in the form, and so need not be said again below it.
 * @param {import("./run_view.js").RunView} view */
function markQuery(view) {
  const box = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("#query textarea"));
  const query = /** @type {HTMLElement | null} */ (view.summary.root.querySelector(".run-summary-query"));
  if (query) query.dataset.above = String(box?.value.trim() === query.textContent.trim() && box.scrollWidth <= box.clientWidth);
}
