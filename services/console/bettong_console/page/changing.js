// A change in steps: the console reports what it would do, and a person confirms. `changes.js` has the changes.
import { h, on } from "./dom.js";
import { QUESTION_MS_MAX, send } from "./live.js";

export class Changing {
  /** `change`: one of `changes.js`. Elements with its `opener` as their `data-` attribute open it, with its value. */
  constructor(change, root, draw, changed, signal) {
    this._change = change;
    this._root = root;
    this._draw = draw;
    this._changed = changed;
    this._signal = signal;
    this._clear();
    on(root, "click", `[data-${change.opener}]`, (button) => this._open(button), signal);
    on(root, "click", `[data-close="${change.opener}"]`, () => this._close(), signal);
    on(root, "submit", `[data-change="${change.opener}"]`, (form, event) => {
      event.preventDefault();
      if (this._mayGo()) this._submit(form);
    }, signal);
  }

  /** The question, or the outcome; nothing while no change is requested. */
  panel() {
    if (!this._wanted) return null;
    const { opener, label, danger, field, note, go } = this._change;
    const answer = this._done || this._plan;
    return h("form", { class: `body asking${danger ? " danger" : ""}`, "data-change": opener, tabindex: -1, "aria-label": label, autocomplete: "off" },
      h("p", { role: "status" }, h("strong", {}, this._headline())),
      this._fault && h("p", { class: "refused", role: "alert" }, this._fault),
      answer && answer.fault && h("p", { class: "refused", role: "alert" }, answer.fault),
      answer && h("ul", {}, answer.texts.map((text) => h("li", { class: "wrap" }, text))),
      this._mayGo() && note && h("p", { class: "quiet small" }, note),
      this._mayGo() && field && field(this._plan),
      h("div", { class: "controls" },
        this._mayGo() && h("button", { type: "submit" }, go(this._plan)),
        !this._busy && h("button", { type: "button", "data-close": opener }, this._mayGo() ? "Cancel" : "Close")));
  }

  _mayGo() {
    return this._plan !== null && !this._done && !this._busy && this._change.may(this._plan);
  }

  _headline() {
    const { asks, going, done, failed } = this._change;
    if (this._busy) return this._going ? going : "Checking what this would do …";
    if (this._done) return done(this._done);
    return this._plan && !this._fault ? asks(this._plan) : failed;
  }

  async _open(button) {
    if (this._busy) return;
    this._clear();
    this._opened = button;
    this._wanted = this._change.wanted(button);
    await this._answer(true);
  }

  /** Adds typed values to the request. */
  async _submit(form) {
    for (const { name, valueAsNumber, value } of form.querySelectorAll("input")) this._wanted[name] = Number.isNaN(valueAsNumber) ? value : valueAsNumber;
    const dry_run = this._change.again ? this._change.again(this._plan) : false;
    await this._answer(dry_run);
    if (!dry_run && !this._signal.aborted) this._changed();
  }

  async _answer(dry_run) {
    [this._busy, this._going, this._fault] = [true, !dry_run, ""];
    this._draw();
    try {
      const answer = await send(this._change.path, { ...this._wanted, dry_run }, QUESTION_MS_MAX);
      if (dry_run) this._plan = answer;
      else this._done = answer;
    } catch (error) {
      this._fault = error.message;
    }
    this._busy = false;
    if (this._signal.aborted) return;
    this._draw();
    const panel = this._root.querySelector(`[data-change="${this._change.opener}"]`);
    if (panel) panel.focus();
  }

  _close() {
    const opened = this._opened;
    this._clear();
    this._draw();
    (opened.isConnected ? opened : this._root).focus();
  }

  _clear() {
    [this._wanted, this._plan, this._done, this._fault, this._busy, this._going, this._opened] = [null, null, null, "", false, false, null];
  }
}
