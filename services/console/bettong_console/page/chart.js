// A chart over time: uPlot with the page's colours, one cursor for all charts of a place, and a line with its values.
import uPlot from "./vendor/uplot/uPlot.mjs";
import { h } from "./dom.js";
import { moment, utc } from "./format.js";

const SYNC = "bettong";

export class Chart {
  /** `lines`: [{label, ink}]; `show(value)` returns the text of a value with its unit, `axis(value)` that of an axis. */
  constructor({ title, lines, show, axis, note }) {
    this._lines = lines;
    this._show = show;
    this._axis = axis;
    this._data = [[], ...lines.map(() => [])];
    this._readout = h("div", { class: "readout" });
    this._plot = h("div", { class: "plot", role: "img", "aria-label": `${title} over time` });
    this.element = h("section", { class: "card chart ages", "data-keep": `chart ${title}` },
      h("header", {}, h("h2", {}, title), note && h("span", { class: "quiet small" }, note)),
      h("div", { class: "body" }, this._readout, this._plot));
    this._resized = new ResizeObserver(() => this._fit());
    this._recoloured = () => this._build();
    this._dark = matchMedia("(prefers-color-scheme: dark)");
  }

  /** Draws the chart, once its element is in the page. */
  begin() {
    this._resized.observe(this._plot);
    document.addEventListener("bettong-theme", this._recoloured);
    this._dark.addEventListener("change", this._recoloured);
    this._build();
  }

  end() {
    this._resized.disconnect();
    document.removeEventListener("bettong-theme", this._recoloured);
    this._dark.removeEventListener("change", this._recoloured);
    if (this._chart) this._chart.destroy();
    this._chart = null;
  }

  draw(times, values) {
    this._data = [times, ...values.map((each) => (each.length === times.length ? each : times.map(() => null)))];
    if (this._chart) this._chart.setData(this._data);
    this._read();
  }

  _build() {
    if (!this._plot.clientWidth) return;
    if (this._chart) this._chart.destroy();
    const style = getComputedStyle(this._plot);
    // light-dark() is resolved where a colour is used, so the colour is read from an element.
    const colour = (name) => {
      this._plot.style.color = `var(${name})`;
      const found = getComputedStyle(this._plot).color;
      this._plot.style.color = "";
      return found;
    };
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: `11px ${style.fontFamily}` };
    this._chart = new uPlot(
      {
        width: this._plot.clientWidth,
        height: this._plot.clientHeight,
        legend: { show: false },
        padding: [8, 26, 0, 0],
        cursor: { drag: { x: false, y: false }, sync: { key: SYNC }, y: false, points: { size: 6 } },
        scales: { y: { range: (_, __, greatest) => [0, greatest > 0 ? greatest * 1.12 : 1] } },
        axes: [
          { ...axis, size: 26, space: 60, values: (_, splits, __, ___, step) => splits.map((at) => clock(at, step)) },
          { ...axis, size: 58, space: 34, values: (_, splits) => splits.map((value) => this._axis(value)) },
        ],
        series: [{}, ...this._lines.map(({ ink }) => ({ stroke: colour(ink), width: 1.6, spanGaps: false, points: { show: false } }))],
        hooks: { setCursor: [() => this._read()] },
      },
      this._data,
      this._plot,
    );
    this._read();
  }

  _fit() {
    if (!this._chart) this._build();
    else this._chart.setSize({ width: this._plot.clientWidth, height: this._plot.clientHeight });
  }

  _read() {
    const times = this._data[0];
    const at = this._chart ? this._chart.cursor.idx : null;
    const pointed = at !== null && at !== undefined && times[at] !== undefined;
    const values = this._lines.map(({ label, ink }, index) => {
      const own = this._data[index + 1];
      const value = pointed ? own[at] : own.findLast((each) => each !== null && each !== undefined);
      return h("span", { vars: { "--ink": `var(${ink})` } }, h("span", { class: "key" }), `${label} `,
        h("b", {}, value === null || value === undefined ? "–" : this._show(value)));
    });
    this._readout.replaceChildren(...values, pointed ? h("span", {}, moment(times[at]), ` · ${utc(times[at]).slice(11)}`) : "");
  }
}

function clock(at, step) {
  const shown = new Date(at * 1000).toLocaleTimeString("en-GB");
  return step % 60 ? shown : shown.slice(0, 5);
}
