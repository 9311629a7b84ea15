// The serving process, its Spark, who holds which query, and consumer groups with their members.

import { get, path } from "../api.js";
import { el } from "../dom.js";
import { count, duration, size } from "../format.js";
import { Grid } from "../grid.js";
import { sheet } from "../dialogs.js";
import { empty, failure, loading } from "../states.js";

const REFRESH_MS = 2_000;

export async function open(root, { signal }) {
  const driver = el("dl", { class: "fact-list" });
  const spark = el("div");
  const stages = new Grid({ label: "Running stages", columns: STAGES, height: "260px" });
  const executors = new Grid({ label: "Executors", columns: EXECUTORS, height: "220px" });
  const holders = new Grid({ label: "Queries and their processes", columns: HOLDERS, height: "380px", onOpen: (row) => (location.hash = `#${path("queries", row.query)}`), tone: (row) => (row.died ? "warn" : "") });
  const groups = new Grid({ label: "Groups", columns: GROUPS, height: "420px", onOpen: (row) => showGroup(row.group), tone: (row) => (row.lag > 10_000 ? "warn" : "") });
  const noGroups = empty("No consumer groups or queues", "A program joins one with Consumer(…, group=…), and so does: potok consume TOPIC --group NAME");
  const groupCard = el("section", { class: "card flush" }, el("div", { class: "card-head" }, el("h2", { text: "Consumer groups and queues" })), groups.element, noGroups);
  const body = el("div", {}, loading());
  root.append(el("div", { class: "view-head" }, el("h1", { text: "Cluster" })), body);
  const parts = [
    el("div", { class: "columns" }, card("Driver", driver), card("Spark", spark)),
    el("section", { class: "card flush" }, el("div", { class: "card-head" }, el("h2", { text: "Queries and their processes" })), holders.element), groupCard];

  async function refresh() {
    try {
      const found = await get("/cluster", { signal });
      facts(driver, {
        Process: `${found.driver.process} on ${found.driver.host}`, Versions: `Potok ${found.driver.version}, Python ${found.driver.python}`, Up: duration(found.driver.uptime_ms),
        "CPU time": duration(found.driver.cpu_ms), "Peak memory": size(found.driver.memory_bytes), Threads: count(found.driver.threads),
        Streams: `${count(found.driver.push_queries)} open push queries and feeds`, "Runs SQL queries": found.driver.runs_queries ? "yes" : "no, another process does",
      });
      showSpark(found.spark);
      holders.show(found.holders);
      groups.show(found.groups);
      groups.element.hidden = !found.groups.length;
      noGroups.hidden = found.groups.length > 0;
      if (body.firstChild !== parts[0]) body.replaceChildren(...parts);
    } catch (error) {
      if (!signal.aborted) body.replaceChildren(failure(error, refresh));
    }
  }

  function showSpark(found) {
    if (!found) {
      spark.replaceChildren(el("p", { class: "soft", text: "No Spark runs in this process. Queries of other processes have their own." }));
      return;
    }
    const list = el("dl", { class: "fact-list" });
    facts(list, { Application: found.application, Master: found.master, "Task slots": count(found.slots), "Spark UI": found.ui || "off", Stages: found.stages.length ? "" : "none is running" });
    spark.replaceChildren(list, executors.element, found.stages.length ? stages.element : "");
    executors.show(found.executors);
    stages.show(found.stages);
  }

  await refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

async function showGroup(name) {
  const body = el("div", { class: "sheet-body" }, loading());
  sheet(name, body);
  try {
    const found = await get(path("groups", name));
    const partitions = new Grid({ label: "Partitions", columns: PARTITIONS, height: "46vh" });
    partitions.show(found.partitions);
    const queues = Object.entries(found.queues).flatMap(([topic, rows]) => rows.map((row) => el("li", { text: `${topic} ${row.partition}: ${count(row.ready)} ready, ${count(row.out)} out, ${count(row.waiting)} waiting` })));
    body.replaceChildren(
      el("div", {}, el("h3", { text: "Members" }), found.members.length
        ? el("ul", {}, ...found.members.map((one) => el("li", { class: "soft", text: `${one.client}: ${one.partitions.join(", ") || "no partition"}` })))
        : el("p", { class: "soft", text: "No live member." })),
      found.partitions.length ? partitions.element : "", queues.length ? el("ul", { class: "soft" }, ...queues) : "");
  } catch (error) {
    body.replaceChildren(failure(error));
  }
}

function facts(list, found) {
  list.replaceChildren(...Object.entries(found).filter(([, text]) => text).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
}

function card(title, ...content) {
  return el("section", { class: "card" }, el("div", { class: "card-head" }, el("h2", { text: title })), ...content);
}

const STAGES = [
  { title: "Stage", width: "minmax(140px, 2fr)", min: 140, cell: (row) => row.name },
  { title: "Tasks", width: "70px", min: 60, number: true, cell: (row) => count(row.tasks) },
  { title: "Done", width: "70px", min: 60, number: true, cell: (row) => count(row.completed) },
  { title: "Failed", width: "70px", min: 60, number: true, wide: true, cell: (row) => count(row.failed) },
];

const EXECUTORS = [
  { title: "Executor", width: "minmax(140px, 2fr)", min: 140, cell: (row) => row.address },
  { title: "Running tasks", width: "110px", min: 90, number: true, cell: (row) => count(row.running) },
  { title: "Memory", width: "minmax(120px, 1fr)", min: 110, number: true, cell: (row) => `${size(row.used_bytes)} of ${size(row.memory_bytes)}` },
];

const HOLDERS = [
  { title: "Query", width: "minmax(120px, 2fr)", min: 120, sort: (row) => row.query, cell: (row) => row.query },
  { title: "Started last by", width: "minmax(130px, 2fr)", min: 130, cell: (row) => row.process || "–" },
  { title: "Starts", width: "70px", min: 60, number: true, sort: (row) => row.starts, cell: (row) => count(row.starts) },
  { title: "Died", width: "70px", min: 60, number: true, wide: true, sort: (row) => row.died, cell: (row) => count(row.died) },
];

const GROUPS = [
  { title: "Group", width: "minmax(120px, 1.5fr)", min: 120, sort: (row) => row.group, cell: (row) => row.group },
  { title: "Kind", width: "100px", min: 90, wide: true, cell: (row) => row.kind },
  { title: "Topics", width: "minmax(110px, 2fr)", min: 110, cell: (row) => row.topics.join(", ") },
  { title: "Members", width: "80px", min: 76, number: true, wide: true, cell: (row) => (row.kind === "queue" ? "–" : count(row.members.length)) },
  { title: "Rebalances", width: "100px", min: 90, number: true, wide: true, sort: (row) => row.rebalances ?? -1, cell: (row) => (row.rebalances === null ? "–" : count(row.rebalances)) },
  { title: "Lag", width: "90px", min: 70, number: true, sort: (row) => row.lag, cell: (row) => count(row.lag) },
];

const PARTITIONS = [
  { title: "Topic", width: "minmax(110px, 2fr)", min: 110, cell: (row) => row.topic },
  { title: "Partition", width: "76px", min: 70, number: true, cell: (row) => count(row.partition) },
  { title: "Committed", width: "90px", min: 80, number: true, wide: true, cell: (row) => (row.committed === null ? "–" : count(row.committed)) },
  { title: "Lag", width: "80px", min: 70, number: true, cell: (row) => (row.lag === null ? "–" : count(row.lag)) },
  { title: "Member", width: "minmax(120px, 1.5fr)", min: 120, cell: (row) => row.member || "–" },
];
