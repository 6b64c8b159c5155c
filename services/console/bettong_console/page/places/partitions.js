// What holds it up? Every partition, sorted and filtered; what holds its watermark back; and each worker's load.
import { addressWith, choose, chosen } from "../address.js";
import { elsewhere, reset, SCALE } from "../changes.js";
import { Changing } from "../changing.js";
import { h, morphChildren, on } from "../dom.js";
import { amount, bytes, count, digits, duration, durationText, milliseconds, percent, rate, since, utc } from "../format.js";
import { openWindows } from "../open_windows.js";

const SHOWN_MAX = 200;
const by = (name) => (row) => row[name];
const behind = (row, now_s) => (row.watermark_s === null ? null : Math.max(0, now_s - row.watermark_s));

// id, head with its unit, whether it is a number, sort key, cell, tooltip.
const COLUMNS = [
  ["partition", "Partition", false, (row) => row.order, (row) => h("td", { class: "name", title: `${row.stage}/${row.partition}` }, `${row.stage}/${row.partition}`), "stage/number"],
  ["state", "State", false, (row) => (row.stands_still ? 2 : row.lag_s >= 10 ? 1 : 0), stateCell, "whether it moves"],
  ["slot", ["Slot", "of worker"], true, by("slot"), (row) => number(row.slot === null ? amount(null) : String(row.slot)), "of the resident processor that holds it"],
  ["rate", ["Messages", "a second"], true, by("messages_per_s"), (row) => number(count(row.messages_per_s)), "folded a second, of the last 10 s"],
  ["share", ["Share", "of its stage"], true, by("share"), shareCell, "of its stage's messages now"],
  ["offset", ["Offset", "of its log"], true, by("offset"), (row) => h("td", { class: "number roomy" }, count(row.offset)), "the next record to fold"],
  ["lag", ["Lag", "records"], true, by("lag"), (row) => number(count(row.lag)), "in the log, not yet folded"],
  ["behind", ["Behind", "oldest record"], true, by("lag_s"), (row) => number(duration(row.lag_s)), "how long the next record to fold has waited"],
  ["p50", ["p50", "of latency"], true, by("p50_ms"), (row) => h("td", { class: "number roomy" }, milliseconds(row.p50_ms)), "sender's stamp to durable output"],
  ["p99", ["p99", "of latency"], true, by("p99_ms"), (row) => number(milliseconds(row.p99_ms)), "sender's stamp to durable output"],
  ["keys", ["Keys", "with a state"], true, by("keys"), (row) => number(count(row.keys)), "with a state"],
  ["hot", ["Hottest key", "of its messages"], false, (row) => row.hot_keys.length ? row.hot_keys[0].share : null, hotCell, "the key that has most of a partition's recent messages, and its share at most"],
  ["bytes", ["State", "as saved"], true, by("state_bytes"), (row) => number(bytes(row.state_bytes)), "of its saved states, which a recovery reads"],
  ["age", ["Snapshot", "age"], true, (row, now_s) => row.snapshot && now_s - row.snapshot.saved_s, snapshotCell, "since its newest snapshot was saved"],
  ["pause", ["Paused", "for a snapshot"], true, (row) => row.snapshot && row.snapshot.paused_ms, (row) => number(milliseconds(row.snapshot && row.snapshot.paused_ms)), "for how long its fold was paused while its newest snapshot was made"],
  ["unsaved", ["Unsaved", "records"], true, by("unsaved_records"), (row) => number(count(row.unsaved_records)), "folded since its newest snapshot, which a recovery folds again"],
  ["watermark", ["Watermark", "behind"], true, behind, (row, now_s) => number(duration(behind(row, now_s))), "event time behind the clock"],
  ["holder", ["Held by", "the watermark"], false, by("watermark_held_by"), (row) => h("td", { class: "holder", title: row.watermark_held_by && `${row.watermark_held_by}, for ${durationText(row.held_s ?? 0)} or longer` }, row.watermark_held_by || amount(null)), "the origin whose event time has come least far"],
  ["late", ["Late", "messages"], true, (row) => row.late + row.partly_late, (row) => number(row.partly_late ? [count(row.late), h("span", { class: "unit" }, `+ ${digits(row.partly_late, { whole: true })} partly`)] : count(row.late)), "messages whose windows were over"],
  ["dead", ["Dead", "letters"], true, by("dead_letters"), (row) => number(count(row.dead_letters)), "emitted by it"],
];

// Columns that a narrow page leaves out.
const ROOMY = ["offset", "p50"];

const number = (content) => h("td", { class: "number" }, content);

function stateCell(row) {
  if (row.stands_still) return h("td", {}, h("span", { class: "badge bad", title: row.fault || null }, row.nobody_folds ? "no worker" : ["stalled for ", duration(row.stalled_s)]));
  if (row.lag_s >= 10) return h("td", {}, h("span", { class: "badge notice" }, "behind"));
  return h("td", {}, h("span", { class: "badge" }, row.messages_per_s > 0 ? "folding" : "idle"));
}

function shareCell(row) {
  if (row.share === null) return number(amount(null));
  return h("td", { class: "number" }, (row.share * 100).toFixed(1), h("span", { class: "unit" }, "%"),
    h("span", { class: `bar${row.skewed ? " notice" : ""}` }, h("i", { vars: { "--part": `${(row.share / row.share_max) * 100}%` } })));
}

function hotCell(row) {
  if (row.hot_keys.length === 0) return h("td", {}, amount(null));
  const [first] = row.hot_keys;
  return h("td", { class: "holder", title: row.hot_keys.map((each) => `${each.key}: ${(each.share * 100).toFixed(1)} %`).join("\n") },
    `${(first.share * 100).toFixed(0)} % `, h("a", { href: `/key?${new URLSearchParams({ stage: row.stage, key: first.key })}`, "data-go": true }, first.key));
}

function snapshotCell(row, now_s) {
  if (row.snapshot_fault) return h("td", { class: "number" }, h("span", { class: "badge notice", title: row.snapshot_fault }, "not saved"));
  const age = since(row.snapshot && row.snapshot.saved_s, now_s);
  if (row.snapshot) age.title = `saved ${utc(row.snapshot.saved_s)}: ${row.snapshot.size.toLocaleString("en")} bytes in ${row.snapshot.took_ms.toFixed(1)} ms`;
  return number(age);
}

export function partitionsPlace(root, description) {
  let view = null;
  const ended = new AbortController();
  const changing = (name, change) => (description.changes && !description.elsewhere[name] ? new Changing(change, root, draw, () => {}, ended.signal) : null);
  const scaling = changing("scale", SCALE);
  const resetting = changing("reset", reset(description.application));

  on(root, "click", "button[data-sort]", (button) => {
    const [column, order] = sorting();
    const name = button.dataset.sort;
    choose({ sort: name, order: name === column && order === "desc" ? "asc" : name === column ? "desc" : null });
    draw();
  }, ended.signal);
  on(root, "input", "[data-choice]", (field) => {
    choose({ [field.dataset.choice]: field.type === "checkbox" ? (field.checked ? "1" : null) : field.value });
    draw();
  }, ended.signal);

  function sorting() {
    const column = chosen("sort", "partition", COLUMNS.map(([id]) => id));
    const numeric = COLUMNS.find(([id]) => id === column)[2] || column === "state" || column === "hot";
    return [column, chosen("order", numeric ? "desc" : "asc", ["asc", "desc"])];
  }

  function rows(columns) {
    const [column, order] = sorting();
    const sign = order === "asc" ? 1 : -1;
    const words = chosen("filter", "").toLowerCase().split(/\s+/).filter(Boolean);
    const stage = chosen("stage", "");
    const value = columns.find(([id]) => id === column)?.[3] ?? COLUMNS[0][3];
    return view.rows
      .filter((row) => !stage || row.stage === stage)
      .filter((row) => chosen("trouble", null) !== "1" || row.stands_still || row.lag_s >= 1 || row.fault || row.snapshot_fault)
      .filter((row) => words.every((word) => `${row.stage}/${row.partition} ${row.watermark_held_by} slot:${row.slot}`.toLowerCase().includes(word)))
      .map((row) => [value(row, view.status.now_s), row])
      .sort(([a], [b]) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -sign : sign))
      .map(([, row]) => row);
  }

  function draw() {
    if (!view) return;
    const timed = view.rows.some((row) => row.watermark_s !== null || row.watermark_held_by);
    const known = view.rows.some((row) => row.hot_keys.length > 0);
    const columns = COLUMNS.filter(([id]) => (timed || !["watermark", "holder", "late"].includes(id)) && (known || id !== "hot"));
    const found = rows(columns);
    morphChildren(root, h("div", {}, heavy(view), workers(view.workers, scaling, description.elsewhere.scale), table(columns, found), openWindows(windows()), description.changes && states()));
  }

  function states() {
    return h("section", { class: "card" },
      h("header", {}, h("h2", {}, "States"), h("span", { class: "quiet small" }, "each is folded from its log"),
        resetting && h("div", { class: "end" }, h("button", { type: "button", "data-reset": true }, "Reset …"))),
      resetting && h("div", {}, resetting.panel()),
      h("p", { class: "body quiet" }, "Reset states that wrong code has built, while the processor is stopped: its next start folds them again from the beginning of the log, with its code at that time."),
      elsewhere(description.elsewhere.reset));
  }

  function windows() {
    const stage = chosen("stage", "");
    return view.windows.filter((each) => !stage || each.stage === stage);
  }

  function table(columns, found) {
    const [column, order] = sorting();
    return h("section", { class: "card" },
      h("header", {}, h("h2", {}, "Partitions"), h("span", { class: "quiet small" }, shownText(found.length), !view.hot_keys_measured && "; hot keys are not measured (BETTONG_MEASURES=off)"),
        h("div", { class: "controls end" },
          description.stages.length > 1 && h("select", { "data-choice": "stage", "aria-label": "Stage" }, h("option", { value: "" }, "all stages"),
            description.stages.map((stage) => h("option", { value: stage, selected: stage === chosen("stage", "") }, stage))),
          h("label", { class: "choice" }, h("input", { type: "checkbox", "data-choice": "trouble", checked: chosen("trouble", null) === "1" }), "only problems"),
          h("input", { type: "search", "data-choice": "filter", placeholder: "Filter: stage, origin, slot:0", "aria-label": "Filter partitions", value: chosen("filter", ""), size: 24, maxlength: 200 }))),
      found.length === 0
        ? h("p", { class: "body empty" }, view.rows.length === 0 ? "No partition has been folded yet." : "No partition matches. Remove the filter to see all.")
        : h("div", { class: "scroll" }, h("table", { class: "ages pinned" },
          h("thead", {}, h("tr", {}, columns.map(([id, head, numeric, , , title]) =>
            h("th", { scope: "col", class: `${numeric ? "number" : ""}${ROOMY.includes(id) ? " roomy" : ""}`, title, "aria-sort": id === column && (order === "desc" ? "descending" : "ascending") },
              h("button", { type: "button", "data-sort": id }, [head].flat()[0]), Array.isArray(head) && h("small", {}, head[1]))))),
          h("tbody", {}, found.slice(0, SHOWN_MAX).map((row) =>
            h("tr", { class: row.stands_still ? "bad" : row.lag_s >= 10 ? "notice" : "" },
              columns.map(([, , , , cell]) => cell(row, view.status.now_s))))))));
  }

  function shownText(length) {
    const shown = Math.min(length, SHOWN_MAX);
    if (view.total > view.rows.length) return `${shown} shown of the ${view.rows.length.toLocaleString("en")} furthest behind, of ${view.total.toLocaleString("en")} in total`;
    return shown === view.total ? `all ${view.total.toLocaleString("en")}` : `${shown} of ${view.total.toLocaleString("en")}`;
  }

  return {
    show(fresh) {
      view = fresh;
      const greatest = {};
      for (const row of view.rows) greatest[row.stage] = Math.max(greatest[row.stage] || 0, row.share || 0);
      for (const row of view.rows) {
        row.share_max = greatest[row.stage] || 1;
        row.order = description.stages.indexOf(row.stage) * 10_000 + row.partition;
        row.skewed = view.heavy.some((each) => each.stage === row.stage && each.partition === row.partition);
      }
      draw();
    },
    addressChanged: draw,
    end() {
      ended.abort();
    },
  };
}

function heavy({ heavy: found, rows }) {
  const hottest = (each) => rows.find((row) => row.stage === each.stage && row.partition === each.partition)?.hot_keys ?? [];
  const named = (keys) => (keys.length === 0 ? "A few keys may be hot" : `Its hottest keys: ${keys.map((each) => `${each.key} ${(each.share * 100).toFixed(0)} %`).join(", ")}`);
  return found.map((each) => h("div", { class: "card callout notice ages" }, h("p", {},
    h("strong", {}, `${each.stage}/${each.partition}`), ` takes ${digits(each.share * 100)} % of its stage's messages, ${digits(each.times)} times its share. `,
    h("span", { class: "quiet" }, `${named(hottest(each))}. Remedy: spread them by a key with more fields, or combine them before the log with local=True of a window.`))));
}

function workers(found, scaling, insteadOfScaling) {
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Workers"), h("span", { class: "quiet small" }, "slots of the resident processor"),
      scaling && h("div", { class: "end" }, h("button", { type: "button", "data-scale": true }, "Scale …"))),
    // Always there, so that the element below stays the same.
    h("div", {}, scaling && scaling.panel()),
    found.length === 0
      ? h("p", { class: "body empty" }, "No slot holds a partition. Under the micro-batch schedule there are none: Spark assigns each batch to any free process.")
      : h("div", { class: "scroll" }, h("table", { class: "ages" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Slot"), [["Partitions"], ["Messages"], ["Busy", "share of the time"], ["Lag"], ["p99"], ["Keys"], ["CPUs"]].map(([name, title]) => h("th", { scope: "col", class: "number", title: title ?? null }, name)))),
        h("tbody", {}, found.map((row) => h("tr", {},
          h("td", { class: "name" }, h("a", { href: addressWith({ filter: `slot:${row.slot}` }), "data-go": true }, `slot ${row.slot}`)),
          number(count(row.partitions)), number(rate(row.messages_per_s)), number(percent(row.busy_share)), number(count(row.lag, "records")), number(milliseconds(row.p99_ms)), number(count(row.keys)), number(count(row.cpus))))))),
    elsewhere(insteadOfScaling));
}
