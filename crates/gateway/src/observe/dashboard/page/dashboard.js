// The dashboard: reads one stream of frames and draws them. Text goes into the page as text only, never as markup.
"use strict";

const KEPT_MS = 600000;
const SERIES = 8;
const ROWS = 8;
const byId = (id) => document.getElementById(id);
const past = new Map(); // the points of each level, the oldest first
let frame = null;
let chosen = "";
let lastFrameAt = 0;

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
  return v.toFixed(v >= 9.95 ? 1 : 2).replace(/\.?0+$/, "");
};
const percent = (value) => `${Math.round((value || 0) * 100)} %`;
function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 10000) return `${Math.round(ms / 1000)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 10 || ms === 0 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}
const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
const sum = (values) => values.reduce((all, one) => all + one, 0);
const rejected = (level) => sum(Object.values(level.rejected || {}));
const flowName = (flow) => flow.distinguisher || flow.schema;
const isExempt = (level) => level.queuing === "exempt";

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
  if (!document.hidden) draw();
}

function connect() {
  const stream = new EventSource("/debug/frames");
  const reading = (take) => (event) => { if (event.data) take(JSON.parse(event.data)); };
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
  const levels = list(frame.levels);
  drawDiagnosis();
  drawTotals(levels);
  drawChoices(levels);
  drawLevels(levels);
  drawFlows(levels);
  drawDelays(levels);
  drawUpstreams();
  drawEvents();
  drawSchemas(levels);
  if (byId("content").hidden) {
    byId("content").hidden = false;
    document.documentElement.dataset.usableMs = Math.round(performance.now());
  }
  drawChart(levels);
  showLive();
}

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
  document.title = state === "well" ? "Evenkeel" : `(${state === "slow" ? "!" : "!!"}) Evenkeel`;
}

function drawTotals(levels) {
  const server = frame.server;
  const lending = server.borrowing ? `, ${server.borrowing} borrowing` : "";
  setText(byId("about"), `${server.program || ""} on ${location.host}${lending}`.trim());
  const exempt = server.exempt ? `, and ${number(server.exempt)} exempt` : "";
  byId("total-seats").replaceChildren(number(server.inUse), small(` of ${number(server.concurrency)}${exempt}`));
  setText(byId("total-waiting"), number(sum(levels.map((level) => level.waiting || 0))));
  setText(byId("total-started"), number(sum(levels.map((level) => level.dispatched || 0))));
  const lost = sum(levels.map(rejected));
  setText(byId("total-rejected"), number(lost));
  byId("total-rejected").className = lost > 0 ? "bad" : "";
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

const cell = (label, name = "number") => el("td", { class: name, "data-label": label });

function drawLevels(levels) {
  const widest = Math.max(1, ...levels.map((level) => Math.max(level.nominal || 0, level.inUse || 0, level.current || 0)));
  rows(byId("level-rows"), levels, (level) => level.name, (level) => {
    const button = el("button", { type: "button" }, level.name);
    button.addEventListener("click", () => choose(level.name));
    return el("tr", {}, el("td", {}, button, small("")), cell("seats in use", "wide"), cell("waiting"), cell("wait p50"),
      cell("wait p99"), cell("started/s"), cell("rejected/s"), cell("utilisation: min, mean, max", "wide"));
  }, (row, level) => {
    const [name, seats, waiting, p50, p99, started, lost, used] = row.children;
    row.className = level.name === chosen ? "chosen" : "";
    const borrow = level.borrowed ? `, ${number(level.borrowed)} borrowed` : level.lent ? `, ${number(level.lent)} lent` : "";
    setText(name.lastChild, level.isQuiescing ? "being removed" : isExempt(level) ? "exempt: no limit"
      : `${number(level.nominal)} seats${borrow}`);
    seats.replaceChildren(seatMeter(level, widest), small(seatText(level)));
    setText(waiting, number(level.waiting));
    waiting.className = level.waiting ? "number warn" : "number";
    setText(p50, duration(level.waitMs && level.waitMs.p50));
    setText(p99, duration(level.waitMs && level.waitMs.p99));
    p99.className = level.waitMs && level.waitMs.p99 >= 10 ? "number warn" : "number";
    setText(started, number(level.dispatched));
    const reasons = Object.entries(level.rejected || {});
    lost.replaceChildren(number(rejected(level)), ...reasons.map(([reason, rate]) => small(`${reason} ${number(rate)}`)));
    lost.className = reasons.length ? "number bad" : "number";
    const { min, mean, max } = level.utilisation || {};
    if (level.utilisation) used.replaceChildren(rangeMeter(level.utilisation), small(`${percent(min)}, ${percent(mean)}, ${percent(max)}`));
    else setText(used, "–");
  });
}

const seatText = (level) => isExempt(level) ? `${number(level.inUse)} in use`
  : `${number(level.inUse)} of ${number(level.current)}, floor ${number(level.floor)}, limit ${number(level.limit)}`;

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
  const flows = levels.flatMap((level) => list(level.flows).map((flow) => ({ flow, level: level.name })));
  const weight = ({ flow }) => (flow.seats || 0) + (flow.waiting || 0);
  flows.sort((a, b) => weight(b) - weight(a));
  byId("flows-empty").hidden = flows.length > 0;
  rows(byId("flow-rows"), flows.slice(0, ROWS), ({ flow, level }) => `${level}\n${flow.schema}\n${flow.distinguisher || ""}`,
    ({ flow, level }) => el("tr", {}, el("td", {}, flowName(flow), small(`${flow.schema} → ${level}`)),
      cell("seats"), cell("waiting"), cell("rejected/s")),
    (row, { flow }) => {
      setText(row.children[1], number(flow.seats));
      setText(row.children[2], number(flow.waiting));
      setText(row.children[3], number(flow.rejected));
      row.children[3].className = flow.rejected ? "number bad" : "number";
    });
}

// Who waits is a row, who holds the seats is a column, and the figure is the share of all waiting in the level.
function drawDelays(levels) {
  const waited = (level) => sum(list(level.delays).map((delay) => delay.seconds));
  const wanted = levels.find((level) => level.name === chosen && list(level.delays).length);
  const level = wanted || levels.reduce((most, one) => (waited(one) > (most ? waited(most) : 0) ? one : most), null);
  byId("delays-empty").hidden = Boolean(level);
  setText(byId("delays-level"), level ? `in ${level.name}: row waits behind column, share of all waiting` : "");
  if (!level) return byId("matrix").replaceChildren();
  const pick = (of) => {
    const shares = new Map();
    for (const delay of level.delays) shares.set(of(delay), (shares.get(of(delay)) || 0) + delay.share);
    return [...shares].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([index]) => index);
  };
  const [waiters, blamed] = [pick((delay) => delay.waiter), pick((delay) => (delay.by === undefined ? -1 : delay.by))];
  const name = (index) => (index < 0 ? "others" : flowName(level.flows[index] || { schema: "?" }));
  const head = el("tr", {}, el("th", { scope: "col" }, "waits ↓ behind →"),
    ...blamed.map((index) => el("th", { scope: "col", title: name(index) }, name(index))));
  const body = waiters.map((waiter) => el("tr", {}, el("th", { scope: "row", title: name(waiter) }, name(waiter)),
    ...blamed.map((by) => {
      const of = level.delays.filter((delay) => delay.waiter === waiter && (delay.by === undefined ? -1 : delay.by) === by);
      const share = sum(of.map((delay) => delay.share));
      const data = el("td", { title: `${name(waiter)} waits behind ${name(by)}: ${percent(share)}` }, share >= 0.005 ? percent(share) : "·");
      data.style.backgroundColor = share > 0 ? `color-mix(in srgb, var(--s1) ${Math.round(12 + 70 * share)}%, transparent)` : "";
      return data;
    })));
  byId("matrix").replaceChildren(el("thead", {}, head), el("tbody", {}, ...body));
}

function drawUpstreams() {
  rows(byId("upstream-rows"), list(frame.upstreams), (one) => one.name,
    (one) => el("tr", {}, el("td", {}, one.name, small("")), cell(""), cell(""), cell("")),
    (row, one) => {
      const [name, responses, now, before] = row.children;
      setText(name.lastChild, one.isOut ? "out of the rotation" : one.changedMs ? `slower since ${clock(one.changedMs)}` : "in the rotation");
      name.lastChild.className = one.isOut ? "bad" : one.changedMs ? "warn" : "";
      setText(responses, number(one.responses));
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
  return body.replaceChildren(...events.slice(0, ROWS).map((event) =>
    el("li", {}, el("time", { datetime: new Date(event.timeMs).toISOString() }, clock(event.timeMs)), event.text)));
}

function drawSchemas(levels) {
  const schemas = levels.flatMap((level) => list(level.schemas).map((schema) => ({ ...schema, level: level.name })));
  rows(byId("schema-rows"), schemas, (schema) => `${schema.level}\n${schema.name}`,
    (schema) => el("tr", {}, el("td", {}, schema.name), el("td", {}, schema.level), cell(""), cell("")),
    (row, schema) => {
      row.children[0].className = schema.hits ? "" : "quiet";
      setText(row.children[2], schema.hits ? number(schema.hits) : "never hit");
      row.children[2].className = schema.hits ? "number" : "number warn";
      setText(row.children[3], schema.hits ? number(schema.rate) : "–");
    });
}

// === The chart ===

const HEIGHT = 240;
const EDGE = { left: 40, right: 8, top: 8, bottom: 22 };

function scale(values) {
  const top = Math.max(1, ...values) * 1.05;
  const rough = top / 4;
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * base).find((candidate) => candidate >= rough));
  return { top: Math.ceil(top / step) * step, step };
}

function drawChart(levels) {
  const chart = byId("chart");
  const [width, height] = [chart.clientWidth || 800, chart.clientHeight || HEIGHT];
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const now = frame.timeMs;
  const x = (t) => EDGE.left + (width - EDGE.left - EDGE.right) * Math.max(0, 1 - (now - t) / KEPT_MS);
  const one = levels.find((level) => level.name === chosen);
  const parts = one ? levelParts(one) : stackParts(levels);
  const { top, step } = scale(parts.values);
  const y = (value) => height - EDGE.bottom - ((height - EDGE.top - EDGE.bottom) * Math.min(value, top)) / top;
  const nodes = [];
  for (let value = 0; value <= top; value += step) {
    nodes.push(svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }));
    nodes.push(svg("text", { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end" }, number(value)));
  }
  for (let minutes = 10; minutes >= 0; minutes -= width < 520 ? 5 : 2) {
    const at = x(now - minutes * 60000);
    const anchor = minutes === 0 ? "end" : minutes === 10 ? "start" : "middle";
    nodes.push(svg("text", { x: at, y: height - 5, "text-anchor": anchor }, minutes ? `−${minutes} min` : "now"));
  }
  for (const { kind, color, points, low, high } of parts.areas) {
    if (points.length) nodes.push(svg("path", { class: kind, fill: color, d: areaPath(points, x, (p) => y(low(p)), (p) => y(high(p))) }));
  }
  for (const { kind, points, value } of parts.lines) {
    if (points.length) nodes.push(svg("path", { class: `line ${kind}`, d: linePath(points, x, (p) => y(value(p))) }));
  }
  chart.replaceChildren(...nodes);
  drawLegend(parts.legend);
  setText(byId("chart-description"), parts.description);
}

const linePath = (points, x, y) => points.map((p, index) => `${index ? "L" : "M"}${x(p.t).toFixed(1)} ${y(p).toFixed(1)}`).join("");
const areaPath = (points, x, low, high) =>
  `${linePath(points, x, high)}${[...points].reverse().map((p) => `L${x(p.t).toFixed(1)} ${low(p).toFixed(1)}`).join("")}Z`;

const colour = (index) => `var(--s${Math.min(index, SERIES - 1)})`;

// All levels on top of each other: the busiest ones by name, all others together.
function stackParts(levels) {
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
  const span = [{ t: frame.timeMs - KEPT_MS }, { t: frame.timeMs }];
  return {
    areas,
    lines: [{ kind: "nominal", points: span, value: () => total }],
    values: [total, ...tops],
    legend: [...groups.map(([name], index) => ["area", name, colour(index)]), ["nominal", "all seats"]],
    description: `Mean seats in use each second, by level. ${number(frame.server.inUse)} of ${number(total)} are in use now.`,
  };
}

// One level: what it uses, what it may use, what it has borrowed and lent.
function levelParts(level) {
  const points = past.get(level.name) || [];
  const span = [{ t: frame.timeMs - KEPT_MS }, { t: frame.timeMs }];
  const nominal = level.nominal || 0;
  const areas = [{ kind: "area", color: colour(0), points, low: () => 0, high: (p) => (isExempt(level) ? p.inUse : Math.min(p.inUse, nominal)) }];
  const lines = [];
  const legend = [["area", "in use", colour(0)]];
  const values = [nominal, ...points.map((p) => p.inUse)];
  if (!isExempt(level)) {
    areas.push({ kind: "borrowed", points, low: () => nominal, high: (p) => Math.max(p.inUse, nominal) });
    areas.push({ kind: "lent", points, low: (p) => Math.min(p.current, nominal), high: () => nominal });
    lines.push({ kind: "nominal", points: span, value: () => nominal }, { kind: "floor", points: span, value: () => level.floor || 0 },
      { kind: "current", points, value: (p) => p.current });
    values.push(...points.map((p) => p.current));
    legend.push(["borrowed", "in use, borrowed"], ["lent", "lent"], ["current", "may use now"], ["nominal", "nominal"], ["floor", "floor"]);
    const busy = Math.max(...values);
    if (level.limit && level.limit <= 2 * busy) {
      lines.push({ kind: "limit", points: span, value: () => level.limit });
      values.push(level.limit);
      legend.push(["limit", "limit"]);
    }
  }
  return { areas, lines, values, legend, description: `${level.name}: ${seatText(level)}.` };
}

function drawLegend(entries) {
  const legend = byId("legend");
  const key = JSON.stringify(entries);
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren(...entries.map(([kind, name, color]) => {
    const isArea = ["area", "borrowed", "lent"].includes(kind);
    const sample = isArea ? svg("rect", { class: kind, fill: color, width: 18, height: 10, rx: 2 })
      : svg("path", { class: `line ${kind}`, d: "M0 5H18" });
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
    else out.replaceChildren(...explanation(await response.json()));
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
    ["flow", found.flow || "none: the schema tells no flows apart"],
    ["seats", `${seats.initial}${seats.rule ? `, ${seats.rule}` : ""}`],
    ["wait", wait ? [wait.outcome, wait.expectedMs ? `about ${duration(wait.expectedMs)}` : "", wait.why].filter(Boolean).join("; ") : "not known"],
  ];
  const tried = list(found.tried);
  return [
    el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])),
    ...(tried.length ? [el("details", {}, el("summary", {}, `${tried.length} flow schemas did not match before`),
      el("ul", {}, ...tried.map((one) => el("li", {}, `${one.schema}: ${one.failed}`))))] : []),
  ];
}

// === Beginning ===

byId("chart-level").addEventListener("change", (event) => { chosen = event.target.value; draw(); });
byId("explain").addEventListener("submit", explain);
document.addEventListener("visibilitychange", () => { if (!document.hidden) draw(); });
addEventListener("resize", () => { if (frame) drawChart(list(frame.levels)); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosen && event.target.tagName !== "INPUT") choose(chosen);
});
setInterval(showLive, 1000);
connect();
