// What the type checker must know beyond the modules themselves.

// Every element of our pages is HTML or SVG: both have a dataset, a tab index and focus.
interface Element extends HTMLOrSVGElement {}

interface Window {
  uPlot: any;
}

// "button.page-button" makes a HTMLButtonElement.
type TagOf<Selector extends string> = Selector extends `${infer Tag}.${string}` ? Tag : Selector;
type ElementOf<Selector extends string> = TagOf<Selector> extends keyof HTMLElementTagNameMap
  ? HTMLElementTagNameMap[TagOf<Selector>]
  : HTMLElement;
