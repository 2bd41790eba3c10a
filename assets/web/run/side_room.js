// The column beside the graph stays in sight: it is as tall as the window has room below where it begins.

const LEAST = 320; // pixels
const MARGIN = 16;

/**
 * Gives `side` the room that it has, as --room, whenever that changes.
 * @param {HTMLElement} side
 */
export function keepInSight(side) {
  const fit = () => {
    const top = Math.max(MARGIN, side.getBoundingClientRect().top);
    side.style.setProperty("--room", `${Math.max(LEAST, innerHeight - top - MARGIN)}px`);
  };
  addEventListener("scroll", fit, { passive: true });
  addEventListener("resize", fit);
  new ResizeObserver(fit).observe(document.body); // what stands above it grows and folds
  return side;
}
