// Dead letters are sent again in two steps: the console says what that would do, and a person says yes.
import { h, on } from "./dom.js";
import { QUESTION_MS_MAX, send } from "./live.js";

const messages = (count) => `${count.toLocaleString("en")} ${count === 1 ? "message" : "messages"}`;

export class Retrying {
  constructor(root, draw, sent, signal) {
    this._root = root;
    this._draw = draw;
    this._sent = sent;
    this._signal = signal;
    this._clear();
    on(root, "click", "[data-retry]", (button) => this._ask({ ids: [button.dataset.retry] }), signal);
    on(root, "click", "[data-retry-all]", (button) => this._ask({ ids: "all", computation: button.dataset.retryAll }), signal);
    on(root, "click", "[data-retry-close]", () => this._close(), signal);
    on(root, "submit", "[data-retry-form]", (_, event) => {
      event.preventDefault();
      if (this._plan && !this._busy && !this._done) this._go();
    }, signal);
  }

  /** What is asked, or what came of it; nothing while nobody wants anything. */
  panel() {
    if (!this._wanted) return null;
    const answer = this._done || this._plan;
    return h("form", { class: "body asking", "data-retry-form": true, tabindex: -1, "aria-label": "Send dead letters again" },
      h("p", { role: "status" }, h("strong", {}, this._headline())),
      this._fault && h("p", { class: "refused", role: "alert" }, this._fault),
      answer && answer.fault && h("p", { class: "refused", role: "alert" }, answer.fault),
      answer && h("ul", {}, answer.texts.map((text) => h("li", { class: "wrap" }, text))),
      this._mayGo() && h("p", { class: "quiet small" }, "A message goes to its source and passes its whole stage once more. It counts once, however often it is sent. Who sent it stands among the changes."),
      h("div", { class: "controls" },
        this._mayGo() && h("button", { type: "submit" }, `Send ${messages(this._plan.sent)} again`),
        !this._busy && h("button", { type: "button", "data-retry-close": true }, this._mayGo() ? "Cancel" : "Close")));
  }

  _mayGo() {
    return this._plan !== null && this._plan.sent > 0 && !this._done && !this._busy && !this._fault;
  }

  _headline() {
    if (this._busy) return this._plan ? "Sending …" : "Finding out what that would do …";
    if (this._done) return `${messages(this._done.sent)} sent again`;
    if (this._plan) return this._plan.sent > 0 ? `Send ${messages(this._plan.sent)} again?` : "Nothing can be sent again";
    return "Not sent";
  }

  async _ask(wanted) {
    if (this._busy) return;
    this._clear();
    this._wanted = wanted;
    await this._answer(true, (answer) => (this._plan = answer));
  }

  async _go() {
    await this._answer(false, (answer) => (this._done = answer));
    if (!this._signal.aborted) this._sent();
  }

  async _answer(dry_run, keep) {
    this._busy = true;
    this._draw();
    try {
      keep(await send("/api/retry", { ...this._wanted, dry_run }, QUESTION_MS_MAX));
    } catch (error) {
      this._fault = error.message;
    }
    this._busy = false;
    if (this._signal.aborted) return;
    this._draw();
    const panel = this._root.querySelector("[data-retry-form]");
    if (panel) panel.focus();
  }

  _close() {
    this._clear();
    this._draw();
    const button = this._root.querySelector("[data-ask]");
    if (button) button.focus();
  }

  _clear() {
    [this._wanted, this._plan, this._done, this._fault, this._busy] = [null, null, null, "", false];
  }
}
