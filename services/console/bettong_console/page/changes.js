// What may be changed from the page. `wanted`: what is asked for, of the button that was pressed; `asks`, `may`, `go`:
// of the console's plan; `again`: whether what was typed is asked about first, not done.
import { h } from "./dom.js";

const some = (count, name) => `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;

export const RETRY = {
  opener: "retry",
  path: "/api/retry",
  label: "Send dead letters again",
  // An id, or nothing for all of the computation that the button names.
  wanted: ({ dataset }) => (dataset.retry ? { ids: [dataset.retry] } : { ids: "all", computation: dataset.computationOf }),
  asks: ({ sent }) => (sent > 0 ? `Send ${some(sent, "message")} again?` : "Nothing can be sent again"),
  may: ({ sent }) => sent > 0,
  go: ({ sent }) => `Send ${some(sent, "message")} again`,
  going: "Sending …",
  done: ({ sent }) => `${some(sent, "message")} sent again`,
  failed: "Not sent",
  note: "A message goes to its source and passes its whole stage once more. It counts once, however often it is sent. Who sent it stands among the changes.",
};

export const SCALE = {
  opener: "scale",
  path: "/api/scale",
  label: "Set the number of workers",
  wanted: () => ({ workers: null }),
  asks: ({ before, workers }) => (workers === null ? "How many workers shall there be?" : workers === before ? `There are to be ${some(workers, "worker")} already` : `Set ${some(workers, "worker")} instead of ${before.toLocaleString("en")}?`),
  may: ({ before, workers }) => workers !== before,
  again: ({ workers }) => workers === null,
  field: ({ before, workers }) => workers === null && h("label", { class: "field" }, "Workers",
    h("input", { type: "number", name: "workers", min: 0, max: 4096, step: 1, required: true, value: before })),
  go: ({ workers }) => (workers === null ? "Next" : `Set ${some(workers, "worker")}`),
  going: "Setting …",
  done: ({ workers }) => `${some(workers, "worker")} set: they come and go as Kubernetes can`,
  failed: "Not set",
  note: "Partitions move to the workers that there are then, each going on from its snapshot. No result is lost or repeated. Who set it stands among the changes.",
};

export const reset = (application) => ({
  opener: "reset",
  path: "/api/reset",
  label: "Throw all states away",
  danger: true,
  wanted: () => ({ application }),
  asks: () => `Throw away all states of ${application}?`,
  may: () => true,
  field: () => h("label", { class: "field" }, h("span", {}, "Type ", h("strong", { class: "mono" }, application), " to confirm"),
    h("input", { type: "text", name: "application", required: true, maxlength: 200, autocapitalize: "off", spellcheck: "false" })),
  go: () => "Throw all states away",
  going: "Deleting …",
  done: () => "All snapshots are deleted",
  failed: "Not reset",
  note: "There is no way back, but that each state comes out of its log again. Who did it stands among the changes.",
});

/** Why something is not changed here, and the commands that do it. */
export const elsewhere = (found) => found && h("div", { class: "body elsewhere" }, h("p", { class: "quiet" }, found.why), h("pre", { class: "mono" }, found.commands));
