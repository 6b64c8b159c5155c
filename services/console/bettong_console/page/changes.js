// The changes that the page offers. `wanted`: the request, from the button that was pressed; `asks`, `may`, `go`: texts
// and permission, from the console's plan; `again`: whether typed values get a plan first, before they are applied.
import { h } from "./dom.js";

const some = (count, name) => `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;

export const RETRY = {
  opener: "retry",
  path: "/api/retry",
  label: "Send dead letters again",
  // An id, or nothing for all dead letters of the button's computation.
  wanted: ({ dataset }) => (dataset.retry ? { ids: [dataset.retry] } : { ids: "all", computation: dataset.computationOf }),
  asks: ({ sent }) => (sent > 0 ? `Send ${some(sent, "message")} again?` : "Nothing can be sent again"),
  may: ({ sent }) => sent > 0,
  go: ({ sent }) => `Send ${some(sent, "message")} again`,
  going: "Sending …",
  done: ({ sent }) => `${some(sent, "message")} sent again`,
  failed: "Not sent",
  note: "A message goes to its source and passes its whole stage once more. It counts once, however often it is sent. The change is listed with your name.",
};

export const SCALE = {
  opener: "scale",
  path: "/api/scale",
  label: "Set the number of workers",
  wanted: () => ({ workers: null }),
  asks: ({ before, workers }) => (workers === null ? "How many workers should run?" : workers === before ? `${some(workers, "worker")} are set already` : `Set ${some(workers, "worker")} instead of ${before.toLocaleString("en")}?`),
  may: ({ before, workers }) => workers !== before,
  again: ({ workers }) => workers === null,
  field: ({ before, workers }) => workers === null && h("label", { class: "field" }, "Workers",
    h("input", { type: "number", name: "workers", min: 0, max: 4096, step: 1, required: true, value: before })),
  go: ({ workers }) => (workers === null ? "Next" : `Set ${some(workers, "worker")}`),
  going: "Setting …",
  done: ({ workers }) => `${some(workers, "worker")} set: Kubernetes starts or stops them`,
  failed: "Not set",
  note: "Partitions move between the workers, each resuming from its snapshot. No result is lost or repeated. The change is listed with your name.",
};

export const reset = (application) => ({
  opener: "reset",
  path: "/api/reset",
  label: "Reset all states",
  danger: true,
  wanted: () => ({ application }),
  asks: () => `Reset all states of ${application}?`,
  may: () => true,
  field: () => h("label", { class: "field" }, h("span", {}, "Type ", h("strong", { class: "mono" }, application), " to confirm"),
    h("input", { type: "text", name: "application", required: true, maxlength: 200, autocapitalize: "off", spellcheck: "false" })),
  go: () => "Reset all states",
  going: "Deleting …",
  done: () => "All snapshots are deleted",
  failed: "Not reset",
  note: "This cannot be undone; each state is rebuilt from its log. The change is listed with your name.",
});

/** Why a change is not offered here, and the commands that make it. */
export const elsewhere = (found) => found && h("div", { class: "body elsewhere" }, h("p", { class: "quiet" }, found.why), h("pre", { class: "mono" }, found.commands));
