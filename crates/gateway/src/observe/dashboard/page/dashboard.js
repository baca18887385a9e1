// The dashboard: reads one stream of frames and draws them. Text goes into the page as text only, never as markup.
"use strict";

const KEPT_MS = 600000;
const SERIES = 8;
const ROWS = 8; // of flows
const ROWS_MAX = 12; // of levels and of flow schemas, until somebody wants all
const PAIRS = 6; // rows and columns of the matrix
const byId = (id) => document.getElementById(id);
const past = new Map(); // the points of each level, the oldest first
const limits = []; // the points of the limit that finds itself, the oldest first
let frame = null;
let chosen = "";
let lastFrameAt = 0;
let pointedAt = null; // where the pointer is in the chart, as a part of its width
let pointedAtLimit = null; // the same in the chart of the limit
const wantsAll = { levels: false, schemas: false };

// === Making elements ===

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const small = (text) => el("small", {}, text);

// === Writing numbers ===

const list = (value) => value || [];
const number = (value) => {
  const v = value || 0;
  if (v >= 99.5 || Number.isInteger(v)) return Math.round(v).toLocaleString("en");
  return v.toFixed(v >= 0.95 ? 1 : 2);
};
// For columns of means: the decimal points are below each other.
const mean = (value) => (!value ? "0" : value >= 99.5 ? number(value) : value < 0.05 ? "< 0.1" : value.toFixed(1));
const count = (many, one, more) => (many === 1 ? `1 ${one}` : `${number(many)} ${more}`);
const percent = (value) => `${Math.round((value || 0) * 100)} %`;
function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 10000) return `${Math.round(ms / 1000)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 10 || ms === 0 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}
const clock = (ms) => `${new Date(ms).toISOString().slice(11, 19)} UTC`; // as in the log and in the diagnosis
const sum = (values) => values.reduce((all, one) => all + one, 0);
const rejected = (level) => sum(Object.values(level.rejected || {}));
const flowName = (flow) => flow.distinguisher || flow.schema;
const isExempt = (level) => level.queuing === "exempt";

// === Names ===

// Names come from clients, and must neither hide nor reorder what is around them: the rule of the logs (`visible.rs`).
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const visible = (text) => text.replace(HIDDEN, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
const parsed = (json) => JSON.parse(json, (_, value) => (typeof value === "string" ? visible(value) : value));

// === The stream ===

function keep(name, point) {
  const points = past.get(name) || [];
  points.push(point);
  while (points.length && points[0].t < point.t - KEPT_MS) points.shift();
  past.set(name, points);
}

function takePast(data) {
  const values = (series) => list(data[series]);
  const count = values("inUse").length;
  past.set(data.name, values("inUse").map((inUse, index) => ({
    t: data.untilMs - (count - 1 - index) * data.intervalMs,
    inUse, current: values("current")[index], waiting: values("waiting")[index],
  })));
}

function takeFrame(data) {
  frame = data;
  lastFrameAt = Date.now();
  for (const level of list(frame.levels)) {
    const points = past.get(level.name);
    if (frame.intervalMs && !(points && points.length && points[points.length - 1].t >= frame.timeMs)) {
      keep(level.name, { t: frame.timeMs, inUse: level.inUseMean || 0, current: level.current || 0, waiting: level.waiting || 0 });
    }
  }
  const { limit } = frame.server;
  if (limit) limits.push({ t: frame.timeMs, seats: limit.seats, applied: limit.applied });
  while (limits.length && limits[0].t < frame.timeMs - KEPT_MS) limits.shift();
  if (!document.hidden) draw();
}

function connect() {
  const stream = new EventSource("/debug/frames");
  const reading = (take) => (event) => { if (event.data) take(parsed(event.data)); };
  stream.addEventListener("past", reading(takePast));
  stream.addEventListener("frame", reading(takeFrame));
  stream.addEventListener("error", () => {
    // A refusal ends the stream for good; then it is on us to try again.
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
  });
}

function showLive() {
  const age = Date.now() - lastFrameAt;
  const isLive = lastFrameAt && age < 4000;
  byId("live").className = isLive ? "is-live" : lastFrameAt ? "is-lost" : "";
  setText(byId("live-text"), isLive ? `live, ${clock(frame.timeMs)}` : lastFrameAt ? `no frame for ${Math.round(age / 1000)} s` : "connecting…");
}

// === Drawing ===

function draw() {
  if (!frame) return;
  const levels = inOrder(list(frame.levels));
  drawDiagnosis();
  drawTotals(levels);
  drawChoices(levels);
  drawLevels(levels);
  drawFlows(levels);
  drawCosts(levels);
  drawRates(levels);
  drawDelays(levels);
  drawModels();
  drawUpstreams();
  drawEvents();
  drawSchemas(levels);
  byId("shadow").hidden = !frame.server.hasShadow; // its place is there before its report
  if (frame.server.hasShadow && !shadow) readShadow();
  if (byId("content").hidden) {
    byId("content").hidden = false;
    document.documentElement.dataset.usableMs = Math.round(performance.now());
  }
  drawChart(levels);
  drawLimit();
  showLive();
}

const isIdle = (level) => !level.inUse && !level.waiting && !level.dispatched && !rejected(level);

// By name, and those last that every server has and nobody uses.
function inOrder(levels) {
  const isLast = (level) => ["catch-all", "exempt"].includes(level.name) && isIdle(level);
  return [...levels.filter((level) => !isLast(level)), ...levels.filter(isLast)];
}

// Red says that requests fail. Those of a client that is limited as intended are told, and are no alarm.
const lossTone = () => (frame.diagnosis.state === "failing" ? "bad" : "strong");

// The numbers of the sentence change every second. Only a change of what it says is announced and animated.
function drawDiagnosis() {
  const { state, text, level } = frame.diagnosis;
  byId("diagnosis").className = state;
  const said = (level && text.startsWith(level) ? text : text.charAt(0).toUpperCase() + text.slice(1)) + ".";
  const sentence = byId("sentence");
  setText(sentence, said);
  const topic = `${state} ${level || text.split(/[:;0-9]/)[0]}`;
  if (sentence.dataset.topic !== topic) {
    sentence.dataset.topic = topic;
    setText(byId("announced"), said);
    sentence.classList.remove("pulse");
    void sentence.offsetWidth; // so that the animation begins anew
    sentence.classList.add("pulse");
  }
  setText(byId("state"), { well: "healthy", slow: "slow", failing: "requests fail" }[state] || "");
  document.title = state === "well" ? "Evenkeel" : `(${state === "slow" ? "!" : "!!"}) Evenkeel`;
}

// The fleet that the seats are shared with, if they are.
function fleetOf(server) {
  const fleet = server.fleet;
  if (!fleet) {
    return "";
  }
  const footing = { grant: "", floor: ", cut off from etcd: on its floor" }[fleet.footing] ?? ", etcd does not answer: no seats";
  return `, ${number(fleet.total)} in the fleet of ${number(fleet.instances)}${footing}`;
}

function drawTotals(levels) {
  const server = frame.server;
  const lending = server.borrowing ? `, ${server.borrowing} borrowing` : "";
  setText(byId("about"), `${server.program || ""} on ${location.host}${lending}`.trim());
  const exempt = server.exempt ? `, and ${number(server.exempt)} exempt` : "";
  byId("total-seats").replaceChildren(number(server.inUse), small(` of ${number(server.concurrency)}${exempt}${fleetOf(server)}`));
  setText(byId("total-waiting"), number(sum(levels.map((level) => level.waiting || 0))));
  setText(byId("total-started"), number(sum(levels.map((level) => level.dispatched || 0))));
  const lost = sum(levels.map(rejected));
  setText(byId("total-rejected"), number(lost));
  byId("total-rejected").className = lost > 0 ? lossTone() : "";
}

function drawChoices(levels) {
  const select = byId("chart-level");
  const names = ["", ...levels.map((level) => level.name)];
  if (names.length !== select.options.length || names.some((name, index) => select.options[index].value !== name)) {
    if (!names.includes(chosen)) chosen = "";
    select.replaceChildren(...names.map((name) => el("option", { value: name }, name || "all levels")));
  }
  select.value = chosen;
}

// Rows stay in place and change their contents, so that the focus is not lost and nothing jumps.
function rows(body, items, key, make, update) {
  const known = new Map([...body.children].map((row) => [row.dataset.key, row]));
  items.forEach((item, index) => {
    let row = known.get(key(item));
    if (!row) {
      row = make(item);
      row.dataset.key = key(item);
    }
    known.delete(key(item));
    if (body.children[index] !== row) body.insertBefore(row, body.children[index] || null);
    update(row, item);
  });
  for (const row of known.values()) row.remove();
}

// The items with the most weight, in their own order; all of them if somebody wants that. One that is shown stays unless
// another one has much more weight, so that rows do not come and go.
const shownBefore = { levels: new Set(), schemas: new Set() };
function shownOf(what, items, weight, isWanted) {
  const button = byId(`all-${what}`);
  button.hidden = items.length <= ROWS_MAX;
  setText(button, wantsAll[what] ? "Show fewer" : `Show all ${number(items.length)}`);
  button.setAttribute("aria-expanded", wantsAll[what]);
  if (button.hidden || wantsAll[what]) return items;
  const value = (item) => (isWanted(item) ? Infinity : weight(item) * (shownBefore[what].has(item.name) ? 2 : 1));
  const most = items.map((item) => [value(item), item.name]).sort((a, b) => b[0] - a[0]).slice(0, ROWS_MAX);
  shownBefore[what] = new Set(most.map(([, name]) => name));
  return items.filter((item) => shownBefore[what].has(item.name));
}

// What a level has used and how much has waited in it, over all that is remembered: a sum that changes slowly.
const pastWeight = (level) => sum((past.get(level.name) || []).map((point) => point.inUse + 10 * point.waiting));

const cell = (label, name = "number") => el("td", { class: name, "data-label": label });

function drawLevels(levels) {
  const isWanted = (level) => level.name === chosen || level.name === frame.diagnosis.level;
  const shown = shownOf("levels", levels, pastWeight, isWanted);
  setText(byId("levels-count"), shown.length < levels.length ? `the ${shown.length} busiest of ${levels.length}` : "");
  const widest = Math.max(1, ...shown.map((level) => Math.max(level.nominal || 0, level.inUse || 0, level.current || 0)));
  rows(byId("level-rows"), shown, (level) => level.name, (level) => {
    const button = el("button", { type: "button" }, level.name);
    button.addEventListener("click", () => choose(level.name));
    return el("tr", {}, el("td", {}, button, small("")), cell("seats in use", "wide"), cell("waiting"), cell("wait p50"),
      cell("wait p99"), cell("started/s"), cell("rejected/s"), cell("utilisation: min, mean, max", "wide"));
  }, (row, level) => {
    const [name, seats, waiting, p50, p99, started, lost, used] = row.children;
    row.className = level.name === chosen ? "chosen" : isIdle(level) ? "idle" : "";
    name.firstChild.setAttribute("aria-pressed", level.name === chosen);
    const kept = level.kept ? `, ${count(level.kept, "seat is", "seats are")} kept for new clients` : "";
    const borrow = level.borrowed ? `, ${number(level.borrowed)} borrowed` : level.lent ? `, ${number(level.lent)} lent` : "";
    setText(name.lastChild, level.isQuiescing ? "being removed" : isExempt(level) ? "exempt: no limit"
      : `${count(level.nominal || 0, "seat", "seats")}${borrow}${kept}`);
    seats.replaceChildren(seatMeter(level, widest), small(seatText(level)));
    setText(waiting, number(level.waiting));
    waiting.className = level.waiting ? "number warn" : "number";
    setText(p50, duration(level.waitMs && level.waitMs.p50));
    setText(p99, duration(level.waitMs && level.waitMs.p99));
    p99.className = level.waitMs && level.waitMs.p99 >= 10 ? "number warn" : "number";
    setText(started, number(level.dispatched));
    const reasons = Object.entries(level.rejected || {});
    // Requests that were let in and ended, for seats of another level.
    const ended = level.revoked ? [["revoked", level.revoked]] : [];
    const why = [...reasons, ...ended].map(([reason, rate]) => `${reason} ${number(rate)}`).join(", ");
    lost.replaceChildren(number(rejected(level)), ...(why ? [el("small", { title: why }, why)] : []));
    lost.className = reasons.length ? `number ${lossTone()}` : "number";
    const { min, mean, max } = level.utilisation || {};
    if (level.utilisation && level.current) used.replaceChildren(rangeMeter(level.utilisation), small(`${percent(min)}, ${percent(mean)}, ${percent(max)}`));
    else setText(used, "–");
  });
}

function seatText(level) {
  if (isExempt(level)) return `${number(level.inUse)} in use`;
  const isFixed = [level.floor || 0, level.limit || 0].every((bound) => bound === (level.nominal || 0));
  const bounds = isFixed ? "" : `, floor ${number(level.floor)}, limit ${number(level.limit)}`;
  return `${number(level.inUse)} of ${number(level.current)}${bounds}`;
}

// Seats of its own, then borrowed ones in another colour; the line is the nominal number.
function seatMeter(level, widest) {
  const x = (seats) => Math.min(100, (100 * seats) / widest);
  const [inUse, nominal, current] = [level.inUse || 0, level.nominal || 0, level.current || 0];
  const own = isExempt(level) ? inUse : Math.min(inUse, nominal);
  return svg("svg", { class: "meter", viewBox: "0 0 100 14", preserveAspectRatio: "none", role: "img", "aria-label": seatText(level) },
    svg("rect", { class: "track", x: 0, y: 3, height: 8, width: x(Math.max(current, inUse)) }),
    svg("rect", { class: "use", x: 0, y: 3, height: 8, width: x(own) }),
    svg("rect", { class: "over", x: x(own), y: 3, height: 8, width: x(inUse) - x(own) }),
    svg("line", { class: "mark", x1: x(nominal), x2: x(nominal), y1: 0, y2: 14 }));
}

function rangeMeter({ min, mean, max }) {
  const top = Math.max(1, max);
  const x = (value) => (100 * value) / top;
  return svg("svg", { class: "meter", viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", x: 0, y: 5, height: 4, width: 100 }),
    svg("rect", { class: "span", x: x(min), y: 3, height: 8, width: Math.max(0.5, x(max) - x(min)) }),
    svg("rect", { class: "mean", x: Math.max(0, x(mean) - 0.7), y: 1, height: 12, width: 1.4 }));
}

function drawFlows(levels) {
  const flows = levels.flatMap((level) => list(level.flows).map((flow) => ({ flow, level: level.name })))
    .filter(({ flow }) => flow.held || flow.seats >= 0.05 || flow.waiting >= 0.05 || flow.rejected > 0);
  // Flows of about the same weight stand in the order of their names, and a row has a place rather than a flow: nothing jumps.
  const key = ({ flow, level }) => `${level}\n${flow.schema}\n${flow.distinguisher || ""}`;
  const weight = ({ flow }) => Math.round(4 * Math.log((flow.seats || 0) + (flow.waiting || 0) + 0.01));
  flows.sort((a, b) => weight(b) - weight(a) || key(a).localeCompare(key(b)));
  byId("flows-empty").hidden = flows.length > 0;
  rows(byId("flow-rows"), flows.slice(0, ROWS).map((item, place) => ({ ...item, place })), ({ place }) => String(place),
    () => el("tr", {}, el("td", { class: "one" }), cell("holds now"), cell("seats, mean"), cell("waiting"), cell("rejected/s")),
    (row, { flow, level }) => {
      row.children[0].title = `flow schema ${flow.schema}, level ${level}`;
      row.children[0].replaceChildren(flowName(flow), small(level));
      setText(row.children[1], number(flow.held));
      setText(row.children[2], mean(flow.seats));
      setText(row.children[3], mean(flow.waiting));
      setText(row.children[4], mean(flow.rejected));
      row.children[4].className = flow.rejected ? `number ${lossTone()}` : "number";
    });
}

// The flows whose requests cost the most, where costs count. Costs in different units are not comparable: each unit has its own rows.
function drawCosts(levels) {
  const costs = levels.flatMap((level) => list(level.flows).flatMap((flow) => list(flow.costs).map((cost) => ({ cost, flow, level: level.name }))));
  const key = ({ flow, level }) => `${level}\n${flow.schema}\n${flow.distinguisher || ""}`;
  costs.sort((a, b) => a.cost.unit.localeCompare(b.cost.unit) || b.cost.rate - a.cost.rate || key(a).localeCompare(key(b)));
  byId("costs").hidden = costs.length === 0;
  rows(byId("cost-rows"), costs.slice(0, ROWS).map((item, place) => ({ ...item, place })), ({ place }) => String(place),
    () => el("tr", {}, el("td", { class: "one" }), el("td", { class: "one" }), cell("cost/s"), cell("expected/s")),
    (row, { cost, flow, level }) => {
      row.children[0].title = `flow schema ${flow.schema}, level ${level}`;
      row.children[0].replaceChildren(flowName(flow), small(level));
      setText(row.children[1], cost.unit);
      setText(row.children[2], mean(cost.rate));
      setText(row.children[3], mean(cost.expected));
    });
}

// The flow schemas whose flows have a rate, and what waits for it without a seat. Those with most requests waiting come first.
function drawRates(levels) {
  const rates = levels.flatMap((level) => list(level.schemas).filter((schema) => schema.flowRate).map((schema) => ({ rate: schema.flowRate, schema, level: level.name })));
  const key = ({ schema, level }) => `${level}\n${schema.name}`;
  rates.sort((a, b) => (b.rate.waiting || 0) - (a.rate.waiting || 0) || (b.rate.delayed || 0) - (a.rate.delayed || 0) || key(a).localeCompare(key(b)));
  byId("rates").hidden = rates.length === 0;
  rows(byId("rate-rows"), rates.slice(0, ROWS).map((item, place) => ({ ...item, place })), ({ place }) => String(place),
    () => el("tr", {}, el("td", { class: "one" }), el("td", { class: "one" }), cell("delayed/s"), cell("wait for it")),
    (row, { rate, schema, level }) => {
      row.children[0].title = `flow schema ${schema.name}, level ${level}`;
      row.children[0].replaceChildren(schema.name, small(level));
      setText(row.children[1], rate.policy);
      setText(row.children[2], mean(rate.delayed));
      setText(row.children[3], number(rate.waiting));
    });
}

// Who waits is a row, who holds the seats is a column. Figures are shares of the row: of all that this flow waited.
function drawDelays(levels) {
  const waited = (level) => sum(list(level.delays).map((delay) => delay.seconds));
  const wanted = levels.find((level) => level.name === chosen && list(level.delays).length);
  const level = wanted || levels.reduce((most, one) => (waited(one) > (most ? waited(most) : 0) ? one : most), null);
  byId("delays-empty").hidden = Boolean(level);
  setText(byId("delays-level"), level ? `in ${level.name}, last minute` : "");
  if (!level) return byId("matrix").replaceChildren();
  const [waiter, blamed] = [(delay) => delay.waiter, (delay) => (delay.by === undefined ? -1 : delay.by)];
  const pick = (of) => {
    const sums = new Map();
    for (const delay of level.delays) sums.set(of(delay), (sums.get(of(delay)) || 0) + delay.seconds);
    return [...sums].filter(([index]) => index >= 0).sort((a, b) => b[1] - a[1]).slice(0, PAIRS).map(([index]) => index);
  };
  const [rowsOf, columns] = [pick(waiter), pick(blamed)];
  const name = (index) => (index < 0 ? "others" : flowName(level.flows[index] || { schema: "?" }));
  const all = waited(level);
  const ofColumn = (delays, by) => sum(delays.filter((delay) => (by < 0 ? !columns.includes(blamed(delay)) : blamed(delay) === by)).map((delay) => delay.seconds));
  const shown = ofColumn(level.delays, -1) > 0.005 * all ? [...columns, -1] : columns;
  const line = (title, delays) => {
    const total = sum(delays.map((delay) => delay.seconds));
    const cells = shown.map((by) => {
      const share = total > 0 ? ofColumn(delays, by) / total : 0;
      const data = el("td", { title: `${title}: ${percent(share)} behind ${name(by)}` }, share >= 0.005 ? percent(share) : "·");
      data.style.backgroundColor = share > 0 ? `color-mix(in srgb, var(--heat) ${Math.round(6 + 26 * share)}%, transparent)` : "";
      return data;
    });
    return el("tr", {}, el("th", { scope: "row", title }, title), ...cells, el("td", { class: "all" }, percent(total / all)));
  };
  const head = el("tr", {}, el("th", { scope: "col" }, "waits ↓ behind →"), ...shown.map((by) => el("th", { scope: "col", title: name(by) }, name(by))),
    el("th", { scope: "col", title: "the part of all waiting in this level" }, "of all"));
  const body = rowsOf.map((index) => line(name(index), level.delays.filter((delay) => waiter(delay) === index)));
  return byId("matrix").replaceChildren(el("thead", {}, head), el("tbody", {}, ...body), el("tfoot", {}, line("all flows", level.delays)));
}

function drawModels() {
  const models = list(frame.models);
  byId("models").hidden = models.length === 0;
  rows(byId("model-rows"), models, (model) => model.name,
    (model) => el("tr", {}, el("td", { class: "one", title: model.name }, model.name), cell(""), cell(""), cell("")),
    (row, model) => {
      [model.running, model.prompt, model.output].forEach((value, index) => setText(row.children[index + 1], number(value)));
    });
}

const outCauses = {connections: "refuses connections", errors: "responds with errors", silent: "does not respond", check: "fails its health check"};

function drawUpstreams() {
  const failures = (one) => (one.errors || 0) + (one.timeouts || 0) + (one.unreachable || 0) + (one.cut || 0);
  const out = (one) => `${outCauses[one.outCause] || "fails"}${list(frame.upstreams).length > 1 ? ", gets no requests" : ""}`;
  rows(byId("upstream-rows"), list(frame.upstreams), (one) => one.name,
    (one) => el("tr", {}, el("td", {}, one.name, small("")), cell(""), cell(""), cell(""), cell("")),
    (row, one) => {
      const [name, responses, errors, now, before] = row.children;
      const isBad = one.isOut || failures(one) > 0;
      setText(name.lastChild, one.isOut ? out(one) : isBad ? "serving, some requests fail" : one.changedMs ? `slower since ${clock(one.changedMs)}` : "serving");
      name.lastChild.className = isBad ? "bad" : one.changedMs ? "warn" : "";
      setText(responses, number(one.responses));
      setText(errors, number(failures(one)));
      errors.className = failures(one) > 0 ? "number bad" : "number";
      setText(now, duration(one.latencyMs));
      setText(before, duration(one.latencyBeforeMs));
      now.className = one.changedMs ? "number warn" : "number";
    });
}

function drawEvents() {
  const events = list(frame.events);
  const key = (event) => `${event.timeMs} ${event.text}`;
  const body = byId("events");
  if (!events.length) return body.replaceChildren(el("li", { class: "quiet" }, "Nothing has changed so far."));
  if (body.dataset.latest === key(events[0])) return undefined;
  body.dataset.latest = key(events[0]);
  return body.replaceChildren(...events.map((event) =>
    el("li", {}, el("time", { datetime: new Date(event.timeMs).toISOString() }, clock(event.timeMs).slice(0, 8)), event.text)));
}

function drawSchemas(levels) {
  const schemas = levels.flatMap((level) => list(level.schemas).map((schema) => ({ ...schema, level: level.name })));
  const never = schemas.filter((schema) => !schema.hits).length;
  setText(byId("schemas-count"), !schemas.length ? "there are too many to list" : never ? `${never} of ${schemas.length} never hit` : "");
  rows(byId("schema-rows"), shownOf("schemas", schemas, (schema) => schema.hits, (schema) => schema.level === chosen),
    (schema) => `${schema.level}\n${schema.name}`,
    (schema) => el("tr", {}, el("td", { class: "one", title: schema.name }, schema.name), el("td", { class: "one", title: schema.level }, schema.level), cell(""), cell("")),
    (row, schema) => {
      for (const name of [0, 1]) row.children[name].className = schema.hits ? "one" : "one quiet";
      setText(row.children[2], schema.hits ? number(schema.hits) : "never hit");
      row.children[2].className = schema.hits ? "number" : "number never";
      setText(row.children[3], schema.hits ? number(schema.rate) : "–");
    });
}

// === The shadow ===

const SHADOW_MS = 5000; // percentiles of hundreds of flows are not made every second
let shadow = null;

async function readShadow() {
  if (!frame || !frame.server.hasShadow || document.hidden) return;
  try {
    const response = await fetch("/debug/shadow");
    shadow = response.ok ? parsed(await response.text()) : null;
  } catch {
    shadow = null; // the next look tells
  }
  drawShadow();
}

// The reports, each with the service that it is about; without services there is one.
const reports = () => (!shadow ? [] : shadow.services ? shadow.services.map((one) => ({ service: one.service, ...one.shadow })) : [{ service: "", ...shadow }]);

function drawShadow() {
  const all = reports();
  if (!frame.server.hasShadow || !all.length) return;
  byId("shadow-report").hidden = false;
  const of = (report) => (report.service ? `${report.service}: ` : "");
  const dropped = sum(all.map((report) => report.dropped));
  setText(byId("shadow-counts"), `${count(sum(all.map((report) => report.requests)), "request", "requests")}${dropped ? `, ${number(dropped)} missed` : ""}`);
  setText(byId("shadow-summary"), all.map((report) => of(report) + report.summary).join(" "));
  setText(byId("shadow-caveat"), all[0].caveat);
  const canaries = all.filter((report) => report.canary);
  byId("shadow-canary").hidden = !canaries.length;
  setText(byId("shadow-canary"), canaries.map((report) => of(report) + aboutCanary(report.canary)).join(" "));
  const totals = all.map((report) => ({ key: `${report.service}\n`, name: `${of(report)}all`, level: "", ...report.totals, requests: report.requests }));
  const flows = all.flatMap((report) => list(report.flows).slice(0, ROWS).map((flow) => ({
    key: `${report.service}\n${flow.flowSchema}\n${flow.flow}\n${flow.level.real}\n${flow.level.shadow}`,
    name: of(report) + (flow.flow || flow.flowSchema),
    level: flow.level.real === flow.level.shadow ? flow.level.real : `${flow.level.real} → ${flow.level.shadow}`,
    requests: flow.requests, rejected: flow.rejected, wait: flow.wait,
  })));
  rows(byId("shadow-rows"), [...totals, ...flows], (row) => row.key,
    (row) => el("tr", {}, el("td", { class: "one", title: row.name }, row.name), el("td", { class: "one", title: row.level }, row.level),
      cell("requests"), cell("rejected"), cell("in the shadow"), cell("wait p99"), cell("in the shadow")),
    (row, { requests, rejected: lost, wait }) => {
      const known = ({ samples, p99 }) => (samples ? duration(p99) : "–"); // where no request started, nobody knows
      const values = [number(requests), number(lost.real), number(lost.shadow), known(wait.real), known(wait.shadow)];
      values.forEach((value, index) => setText(row.children[index + 2], value));
      row.children[4].className = lost.shadow > lost.real ? "number bad" : "number";
      row.children[6].className = wait.shadow.p99 > wait.real.p99 * 1.1 + 1 ? "number warn" : "number";
    });
}

function aboutCanary({ phase, percent: part, seats, requests, rejected: lost, waitP99, returned }) {
  const figures = `${count(requests, "request", "requests")}, ${number(lost)} rejected, wait p99 ${duration(waitP99)}`;
  return phase === "running" ? `The canary has ${part} % of the flows and ${count(seats, "seat", "seats")}: ${figures}.` : `The canary has returned: ${returned} (${figures}).`;
}

// === The chart ===

const HEIGHT = 240;
const EDGE = { left: 40, right: 8, top: 8, bottom: 22 };

function scale(values) {
  const top = Math.max(1, ...values) * 1.05;
  const rough = top / 5;
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * base).find((candidate) => candidate >= rough));
  return { top: Math.ceil(top / step) * step, step };
}

// The axes of a chart of the last `span` milliseconds. `at` is the time at a part of its width, if it is inside.
function axes(chart, span, values) {
  const [width, height] = [chart.clientWidth || 800, chart.clientHeight || HEIGHT];
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const now = frame.timeMs;
  const x = (t) => EDGE.left + (width - EDGE.left - EDGE.right) * Math.max(0, 1 - (now - t) / span);
  const { top, step } = scale(values);
  const y = (value) => height - EDGE.bottom - ((height - EDGE.top - EDGE.bottom) * Math.min(value, top)) / top;
  const nodes = [];
  for (let value = 0; value <= top; value += step) {
    nodes.push(svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }));
    nodes.push(svg("text", { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" }, number(value)));
  }
  const marks = width < 520 ? 2 : span < 300000 ? 4 : 5;
  for (let mark = 0; mark <= marks; mark += 1) {
    const ago = (span * (marks - mark)) / marks;
    const anchor = mark === marks ? "end" : mark === 0 ? "start" : "middle";
    const label = ago ? ago >= 60000 && ago % 30000 === 0 ? `−${ago / 60000} min` : `−${ago / 1000} s` : "now";
    nodes.push(svg("text", { x: x(now - ago), y: height - 5, "text-anchor": anchor }, label));
  }
  const timeAt = (part) => now - span * (1 - (part * width - EDGE.left) / (width - EDGE.left - EDGE.right));
  const at = (part) => (part === null || timeAt(part) > now || timeAt(part) < now - span ? null : timeAt(part));
  const cursor = (t) => svg("line", { class: "cursor", x1: x(t), x2: x(t), y1: EDGE.top, y2: height - EDGE.bottom });
  return { x, y, nodes, at, cursor };
}

function drawChart(levels) {
  const span = spanMs(levels.map((level) => (past.get(level.name) || [])[0]));
  const one = levels.find((level) => level.name === chosen);
  const parts = one ? levelParts(one, span) : stackParts(levels, span);
  const { x, y, nodes, at, cursor } = axes(byId("chart"), span, parts.values);
  for (const { kind, color, points, low, high } of parts.areas) {
    if (points.length) nodes.push(svg("path", { class: kind, fill: color, d: areaPath(points, x, (p) => y(low(p)), (p) => y(high(p))) }));
  }
  for (const { kind, points, value } of parts.lines) {
    if (points.length) nodes.push(svg("path", { class: `line ${kind}`, d: linePath(points, x, (p) => y(value(p))) }));
  }
  const time = at(pointedAt);
  if (time !== null) nodes.push(cursor(time));
  byId("chart").replaceChildren(...nodes);
  drawLegend(byId("legend"), parts.legend);
  setText(byId("chart-description"), time !== null ? `${clock(time)}: ${parts.readAt(time)}` : parts.description);
}

// The limit that finds itself: what is believed to be right, what is in effect, and each trial with its reason.
function drawLimit() {
  const { limit } = frame.server;
  byId("limit").hidden = !limit;
  if (!limit) return;
  const steps = list(limit.steps).filter((step) => step.timeMs >= frame.timeMs - KEPT_MS);
  const trials = steps.filter((step) => step.tried !== undefined);
  // Decisions tell what was before this page was opened.
  const before = steps.filter((step) => !limits.length || step.timeMs < limits[0].t);
  const known = before.flatMap((step) => [{ t: step.timeMs, seats: step.from }, { t: step.timeMs, seats: step.to }]);
  const believed = [...known, ...limits];
  const span = spanMs([believed[0], limits[0]]);
  const ceiling = limit.ceiling || null;
  const values = [...believed.map((p) => p.seats), ...limits.map((p) => p.applied), ...trials.map((step) => step.tried)];
  const { x, y, nodes, at, cursor } = axes(byId("limit-chart"), span, values);
  const ends = [{ t: frame.timeMs - span }, { t: frame.timeMs }];
  if (ceiling) nodes.push(svg("path", { class: "line ceiling", d: linePath(ends, x, () => y(ceiling)) }));
  nodes.push(svg("path", { class: "line applied", d: linePath(limits, x, (p) => y(p.applied)) }));
  nodes.push(svg("path", { class: "line current", d: linePath(believed, x, (p) => y(p.seats)) }));
  for (const step of trials) {
    const kind = step.to === step.tried ? "taken" : "not-taken";
    nodes.push(svg("circle", { class: kind, cx: x(step.timeMs), cy: y(step.tried), r: 3.5 }, svg("title", {}, `${clock(step.timeMs)}: ${step.text}`)));
  }
  const time = at(pointedAtLimit);
  if (time !== null) nodes.push(cursor(time));
  byId("limit-chart").replaceChildren(...nodes);
  const bounds = `of ${number(limit.least)} to ${number(limit.most)}`;
  setText(byId("limit-now"), `${count(limit.applied, "seat", "seats")}, ${bounds}; ${limit.phase.replace("-", " ")}${limit.isHeldDown ? ", held down by the service's own metric" : ""}`);
  const decided = (t) => steps.filter((step) => step.timeMs <= t).pop();
  const latest = decided(frame.timeMs);
  const then = time === null ? null : decided(time);
  const point = time === null ? null : pointAt(believed, time);
  setText(byId("limit-why"), time !== null ? `${clock(time)}: ${number(point ? Math.round(point.seats) : 0)} seats${then ? `; ${clock(then.timeMs)} ${then.text}` : ""}`
    : latest ? `${clock(latest.timeMs)}: ${latest.text}` : "Nothing has been tried yet: no request had to wait for long.");
  drawLegend(byId("limit-legend"), [["current", "found"], ["applied", "in effect"], ["taken", "trial, taken"], ["not-taken", "trial, not taken"],
    ...(ceiling ? [["ceiling", `ceiling ${number(Math.round(ceiling))}: more did harm`]] : [])]);
  const key = String(latest ? latest.number : 0);
  if (byId("limit-steps").dataset.key !== key) {
    byId("limit-steps").dataset.key = key;
    byId("limit-steps").replaceChildren(...[...steps].reverse().map((step) => el("li", { value: step.number }, `${clock(step.timeMs)} ${step.text}`)));
  }
}

// The shortest time that has all that is remembered: a gateway that has just started has little.
function spanMs(firstPoints) {
  const now = frame.timeMs;
  const oldest = Math.min(now, ...firstPoints.filter(Boolean).map((point) => point.t));
  return [60000, 120000, 300000, KEPT_MS].find((span) => now - oldest <= span) || KEPT_MS;
}

// The point at a time: that of the interval in which it is.
const pointAt = (points, t) => points.find((point) => point.t >= t) || points[points.length - 1];

const linePath = (points, x, y) => points.map((p, index) => `${index ? "L" : "M"}${x(p.t).toFixed(1)} ${y(p).toFixed(1)}`).join("");
const areaPath = (points, x, low, high) =>
  `${linePath(points, x, high)}${[...points].reverse().map((p) => `L${x(p.t).toFixed(1)} ${low(p).toFixed(1)}`).join("")}Z`;

const colour = (index) => `var(--s${Math.min(index, SERIES - 1)})`;

// All levels on top of each other: the busiest ones by name, all others together.
function stackParts(levels, kept) {
  const used = (name) => sum((past.get(name) || []).map((point) => point.inUse));
  const busiest = levels.map((level) => [level.name, used(level.name)]).filter(([, use]) => use > 0).sort((a, b) => b[1] - a[1]);
  const shown = busiest.slice(0, busiest.length > SERIES ? SERIES - 1 : SERIES).map(([name]) => name).sort();
  const others = busiest.map(([name]) => name).filter((name) => !shown.includes(name));
  const groups = [...shown.map((name) => [name, [name]]), ...(others.length ? [[`${others.length} others`, others]] : [])];
  // Intervals are not exactly a second long. Each level has one value for each second, that of a neighbour if need be.
  const seconds = new Map(shown.concat(others).map((name) =>
    [name, new Map((past.get(name) || []).map((point) => [Math.round(point.t / 1000), point.inUse]))]));
  const times = [...new Set([...seconds.values()].flatMap((values) => [...values.keys()]))].sort((a, b) => a - b);
  const at = (name, t) => [t, t - 1, t + 1].map((second) => seconds.get(name).get(second)).find((value) => value !== undefined) || 0;
  const tops = times.map(() => 0);
  const areas = groups.map(([, names], index) => {
    const points = times.map((t, place) => {
      const low = tops[place];
      tops[place] += sum(names.map((name) => at(name, t)));
      return { t: t * 1000, low, high: tops[place] };
    });
    return { kind: "area", color: colour(index), points, low: (p) => p.low, high: (p) => p.high };
  });
  const total = frame.server.concurrency;
  const span = [{ t: frame.timeMs - kept }, { t: frame.timeMs }];
  const readAt = (t) => groups.map(([name], index) => {
    const point = pointAt(areas[index].points, t);
    return `${name} ${mean(point ? point.high - point.low : 0)}`;
  }).join(", ") || "no seats in use";
  // Most services use few of their seats. The line of all seats would make everything else flat.
  const peak = Math.max(0, ...tops);
  const isFar = peak > 0 && total > 4 * peak;
  return {
    areas,
    readAt,
    lines: isFar ? [] : [{ kind: "nominal", points: span, value: () => total }],
    values: isFar ? tops : [total, ...tops],
    legend: [...groups.map(([name], index) => ["area", name, colour(index)]),
      ["nominal", isFar ? `all ${number(total)} seats are far above` : `all ${number(total)} seats`]],
    description: "By level, the mean of each second. Choose a level to see what it may use, borrows and lends.",
  };
}

// One level: what it uses, what it may use, what it has borrowed and lent.
function levelParts(level, kept) {
  const points = past.get(level.name) || [];
  const span = [{ t: frame.timeMs - kept }, { t: frame.timeMs }];
  const nominal = level.nominal || 0;
  const areas = [{ kind: "own", points, low: () => 0, high: (p) => (isExempt(level) ? p.inUse : Math.min(p.inUse, nominal)) }];
  const lines = [];
  const legend = [["own", "in use"]];
  const values = [nominal, ...points.map((p) => p.inUse)];
  if (!isExempt(level)) {
    areas.push({ kind: "borrowed", points, low: () => nominal, high: (p) => Math.max(p.inUse, nominal) });
    areas.push({ kind: "lent", points, low: (p) => Math.min(p.current, nominal), high: () => nominal });
    lines.push({ kind: "current", points, value: (p) => p.current }, { kind: "nominal", points: span, value: () => nominal });
    values.push(...points.map((p) => p.current));
    legend.push(["borrowed", "in use, borrowed"], ["lent", "lent"], ["current", "may use now"]);
    const [floor, limit] = [level.floor || 0, level.limit || 0];
    // Lines that are the same number are one line.
    const same = [["floor", floor], ["limit", limit]].filter(([, value]) => value === nominal).map(([name]) => name);
    legend.push(["nominal", `${["nominal", ...same].join(" and ")} ${number(nominal)}`]);
    if (floor !== nominal) {
      lines.push({ kind: "floor", points: span, value: () => floor });
      legend.push(["floor", `floor ${number(floor)}`]);
    }
    if (limit !== nominal) {
      legend.push(["limit", `limit ${number(limit)}`]);
      // A limit that is far away would make everything else flat.
      if (limit <= 2 * Math.max(...values)) {
        lines.push({ kind: "limit", points: span, value: () => limit });
        values.push(limit);
      }
    }
  }
  const readAt = (t) => {
    const point = pointAt(points, t);
    return point ? `${mean(point.inUse)} seats in use${isExempt(level) ? "" : ` of ${number(point.current)}`}, ${count(point.waiting, "request waits", "requests wait")}` : "";
  };
  return { areas, lines, values, legend, readAt, description: `${level.name}: ${seatText(level)}.` };
}

function drawLegend(legend, entries) {
  const key = JSON.stringify(entries);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren(...entries.map(([kind, name, color]) => {
    const isArea = ["area", "own", "borrowed", "lent"].includes(kind);
    const sample = isArea ? svg("rect", { class: kind, fill: color, width: 18, height: 10, rx: 2 })
      : kind.endsWith("taken") ? svg("circle", { class: kind, cx: 9, cy: 5, r: 3.5 }) : svg("path", { class: `line ${kind}`, d: "M0 5H18" });
    return el("li", {}, svg("svg", { viewBox: "0 0 18 10", "aria-hidden": "true" }, sample), name);
  }));
}

function choose(name) {
  chosen = chosen === name ? "" : name;
  draw();
}

// === Explaining ===

async function explain(event) {
  event.preventDefault();
  const form = new FormData(event.target);
  const query = new URLSearchParams({ method: form.get("method") || "GET", url: form.get("url") });
  if (form.get("user")) query.set("user", form.get("user"));
  for (const group of form.get("groups").split(",")) if (group.trim()) query.append("group", group.trim());
  const out = byId("explained");
  try {
    const response = await fetch(`/debug/explain?${query}`);
    if (!response.ok) out.replaceChildren(el("p", { class: "bad" }, (await response.text()).trim()));
    else out.replaceChildren(...explanation(parsed(await response.text())));
  } catch (error) {
    out.replaceChildren(el("p", { class: "bad" }, `The gateway did not respond: ${error.message}`));
  }
}

function explanation(found) {
  const wait = found.live && found.live.wait;
  const seats = found.seats || {};
  const facts = [
    ["flow schema", found.flowSchema + (found.matched ? ` (${found.matched})` : "")],
    ["level", found.priorityLevel],
    ["flow", found.flow || "none: the schema does not distinguish flows"],
    ["seats", `${seats.initial}${seats.rule ? `, ${seats.rule}` : ""}`],
    ["now", wait ? [wait.outcome === "starts" ? "it would start at once" : wait.outcome, wait.expectedMs ? `about ${duration(wait.expectedMs)}` : "", wait.why].filter(Boolean).join("; ") : "not known"],
  ];
  const tried = list(found.tried);
  return [
    el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])),
    ...(tried.length ? [el("details", {}, el("summary", {}, `${count(tried.length, "flow schema was", "flow schemas were")} tried before and did not match`),
      el("ul", {}, ...tried.map((one) => el("li", {}, `${one.schema}: ${one.failed}`))))] : []),
  ];
}

// === Beginning ===

byId("chart-level").addEventListener("change", (event) => { chosen = event.target.value; draw(); });
byId("explain").addEventListener("submit", explain);
document.addEventListener("visibilitychange", () => { if (!document.hidden) draw(); });
for (const what of ["levels", "schemas"]) {
  byId(`all-${what}`).addEventListener("click", () => { wantsAll[what] = !wantsAll[what]; draw(); });
}
const point = (at) => { pointedAt = at; if (frame) drawChart(list(frame.levels)); };
byId("chart").addEventListener("pointermove", (event) => {
  const { left, width } = byId("chart").getBoundingClientRect();
  point((event.clientX - left) / width);
});
byId("chart").addEventListener("pointerleave", () => point(null));
const pointAtLimit = (at) => { pointedAtLimit = at; if (frame) drawLimit(); };
byId("limit-chart").addEventListener("pointermove", (event) => {
  const { left, width } = byId("limit-chart").getBoundingClientRect();
  pointAtLimit((event.clientX - left) / width);
});
byId("limit-chart").addEventListener("pointerleave", () => pointAtLimit(null));
addEventListener("resize", () => { if (frame) { drawChart(list(frame.levels)); drawLimit(); } });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosen && event.target.tagName !== "INPUT") choose(chosen);
});
setInterval(showLive, 1000);
setInterval(readShadow, SHADOW_MS);
connect();
