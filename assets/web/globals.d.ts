// What the type checker must know beyond the modules themselves.

// Every element of our pages is HTML or SVG: both have a dataset, a tab index and focus.
interface Element extends HTMLOrSVGElement {}

// What the curves use of uPlot (vendor/uplot).
interface UPlot {
  readonly width: number;
  readonly series: unknown[];
  readonly cursor: { idx: number | null };
  readonly scales: Record<string, { min: number; max: number }>;
  readonly ctx: CanvasRenderingContext2D;
  readonly bbox: { left: number; top: number; width: number; height: number };
  readonly over: HTMLElement;
  setData(data: (number | null)[][]): void;
  setSeries(place: number, change: { show: boolean }): void;
  setSize(size: { width: number; height: number }): void;
  redraw(paths?: boolean, axes?: boolean): void;
  valToPos(value: number, scale: string, onCanvas: boolean): number;
  destroy(): void;
}

interface UPlotOptions {
  scales: Record<string, { time?: boolean; distr?: number; range: (plot: UPlot, low: number | null, high: number | null) => number[] }>;
  axes: { values: (plot: UPlot, ticks: (number | null)[]) => string[]; [option: string]: unknown }[];
  hooks: Record<string, ((plot: UPlot) => void)[]>;
  [option: string]: unknown;
}

type UPlotClass = new (options: UPlotOptions, data: (number | null)[][], frame: HTMLElement) => UPlot;

interface Window {
  uPlot: UPlotClass;
}

// "button.page-button" makes a HTMLButtonElement.
type TagOf<Selector extends string> = Selector extends `${infer Tag}.${string}` ? Tag : Selector;
type ElementOf<Selector extends string> = TagOf<Selector> extends keyof HTMLElementTagNameMap
  ? HTMLElementTagNameMap[TagOf<Selector>]
  : HTMLElement;
