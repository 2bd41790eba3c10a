// What the type checker must know beyond the modules themselves.

// Every element of our pages is HTML or SVG: both have a dataset, a tab index and focus.
interface Element extends HTMLOrSVGElement {}

interface Window {
  uPlot: any;
}
