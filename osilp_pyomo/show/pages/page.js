// What moves on a page: a slider over time, charts that follow it, values under the pointer or the arrow keys.
// It reads one block of JSON from the page, asks for nothing else, and writes names as text only.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("osilp-data").textContent);
  const stage = document.getElementById("osilp-stage");
  const SVG = "http://www.w3.org/2000/svg";
  const state = { time: data.times.length - 1, row: data.rows[0], shown: data.series.map(() => true), timer: null };
  const charts = [];
  const HINT = "Point at the chart, or use the arrow keys, for values.";

  // -- small tools --------------------------------------------------------------------------------------------

  function make(name, attributes = {}, ...children) {
    const drawn = ["svg", "g", "path", "line", "rect", "text", "circle", "clipPath", "title"].includes(name);
    const made = drawn ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function numbers(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  }

  const plain = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 5 });
  const list = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
  const short = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
  const whole = new Intl.NumberFormat("en-US");

  const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);

  function tell(value, unit = "", form = plain) {
    if (value === null || !Number.isFinite(value)) return "none";
    const size = Math.abs(value);
    if (size < 1e-12) return withUnit("0", unit);
    const text = size && (size < 1e-4 || size >= 1e9) ? value.toExponential(2) : form.format(value);
    return withUnit(text, unit);
  }

  function ticks(low, high, most) {
    const rough = (high - low) / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at += 1) found.push(at === 0 ? 0 : at * step);
    return found;
  }

  const arrivals = (count) => `${whole.format(count)} ${count === 1 ? data.unit.replace(/s$/, "") : data.unit}`;
  const looks = (number) => `c${number % 7} d${number % 5}`;
  const swatch = (kind) =>
    make("svg", { class: "swatch", width: 28, height: 10, "aria-hidden": "true" },
      make("line", { x1: 1, y1: 5, x2: 27, y2: 5, class: kind }));

  // -- charts -------------------------------------------------------------------------------------------------

  // What all charts share: a title, a line of words for what is looked at, a drawing, and a place in it.
  class Chart {
    constructor(panel) {
      this.panel = panel;
      this.cursor = null;
      this.words = make("p", { class: "readout" });
      this.area = make("div", { class: "area", tabindex: "0", role: "group", "aria-label": `${panel.title}. Arrow keys read values.` });
      this.box = make("section", { class: `panel ${panel.kind}`, "data-row": panel.row ?? "" },
        make("h3", {}, panel.title), this.words, this.area);
      this.key();
      if (panel.note) this.box.append(make("p", { class: "small" }, panel.note));
      this.area.addEventListener("pointermove", (event) => this.point(event));
      this.area.addEventListener("pointerdown", (event) => this.point(event));
      this.area.addEventListener("pointerleave", () => this.look(null));
      this.area.addEventListener("keydown", (event) => this.press(event));
      this.area.addEventListener("focus", () => this.words.setAttribute("aria-live", "polite"));
      this.area.addEventListener("blur", () => { this.words.removeAttribute("aria-live"); this.look(null); });
    }

    key() {
      const entries = this.entries();
      if (!entries.length) return;
      this.box.append(make("ul", { class: "key" }, ...entries.map(([kind, text]) => make("li", {}, swatch(kind), text))));
    }

    entries() { return []; }

    point(event) {
      const box = this.area.getBoundingClientRect();
      this.look(this.nearest(event.clientX - box.left, event.clientY - box.top));
    }

    press(event) {
      const moved = this.moved(event.key);
      if (moved === undefined) return;
      event.preventDefault();
      this.look(moved);
    }

    // Where an arrow key leads; undefined for a key that is not ours.
    moved(key) {
      const last = this.count() - 1;
      const now = this.cursor ?? this.usual();
      const step = Math.max(1, Math.round(last / 100));
      const to = {
        ArrowLeft: now - step, ArrowDown: now - step, ArrowRight: now + step, ArrowUp: now + step,
        PageDown: now - 10 * step, PageUp: now + 10 * step, Home: 0, End: last,
      }[key];
      if (key === "Escape") return null;
      return to === undefined ? undefined : Math.min(last, Math.max(0, to));
    }

    look(place) {
      this.cursor = place;
      this.draw();
    }

    usual() { return 0; }

    draw() {
      const hidden = Boolean(this.panel.row) && this.panel.row !== state.row;
      this.box.hidden = hidden;
      if (hidden) return;
      this.width = Math.max(200, this.area.clientWidth);
      this.paint();
      this.words.textContent = this.say();
    }
  }

  // Lines over a common axis.
  class Lines extends Chart {
    frame(low, high, bottom, top) {
      const { x, y } = this.panel;
      const height = 250;
      const edge = { left: 54, right: 18, top: 8, bottom: 42 };
      const wide = this.width - edge.left - edge.right;
      const tall = height - edge.top - edge.bottom;
      this.across = (value) => edge.left + (wide * (value - low)) / (high - low || 1);
      this.up = (value) => edge.top + tall * (1 - (value - bottom) / (top - bottom || 1));
      const name = `clip${charts.indexOf(this)}`;
      const svg = make("svg", { width: this.width, height, "aria-hidden": "true" });
      for (const at of ticks(bottom, top, 5)) {
        svg.append(
          make("line", { class: "grid", x1: edge.left, x2: edge.left + wide, y1: this.up(at), y2: this.up(at) }),
          make("text", { class: "tick", x: edge.left - 6, y: this.up(at) + 4, "text-anchor": "end" }, tell(at, "", short)));
      }
      for (const at of ticks(low, high, Math.max(2, wide / 90))) {
        svg.append(make("text", { class: "tick", x: this.across(at), y: height - 24, "text-anchor": "middle" }, tell(at, "", short)));
      }
      svg.append(
        make("line", { class: "axis", x1: edge.left, x2: edge.left + wide, y1: this.up(Math.max(bottom, 0)), y2: this.up(Math.max(bottom, 0)) }),
        make("text", { class: "label", x: edge.left + wide / 2, y: height - 6, "text-anchor": "middle" }, x.label),
        make("clipPath", { id: name }, make("rect", { x: edge.left, y: edge.top - 3, width: wide, height: tall + 6 })));
      this.plot = make("g", { "clip-path": `url(#${name})` });
      svg.append(this.plot);
      this.edge = edge;
      this.tall = tall;
      this.area.replaceChildren(svg);
    }

    line(xs, ys, kind) {
      let path = "";
      let open = false;
      for (let i = 0; i < xs.length; i += 1) {
        if (!Number.isFinite(ys[i])) { open = false; continue; }
        path += `${open ? "L" : "M"}${this.across(xs[i]).toFixed(1)},${this.up(ys[i]).toFixed(1)}`;
        open = true;
      }
      this.plot.append(make("path", { class: `line ${kind}`, d: path }));
    }

    between(xs, ones, others, kind) {
      const there = xs.map((x, i) => `${this.across(x).toFixed(1)},${this.up(ones[i]).toFixed(1)}`);
      const back = xs.map((x, i) => `${this.across(x).toFixed(1)},${this.up(others[i]).toFixed(1)}`).reverse();
      if (there.length) this.plot.append(make("path", { class: kind, d: `M${there.join("L")}L${back.join("L")}Z` }));
    }

    upright(x, kind) {
      this.plot.append(make("line", { class: kind, x1: this.across(x), x2: this.across(x), y1: this.edge.top, y2: this.edge.top + this.tall }));
    }

    near(xs, left) {
      let best = 0;
      for (let i = 1; i < xs.length; i += 1) {
        if (Math.abs(this.across(xs[i]) - left) < Math.abs(this.across(xs[best]) - left)) best = i;
      }
      return best;
    }
  }

  // Functions of the index after so many arrivals, beside what does not move.
  class Curve extends Lines {
    constructor(panel) {
      super(panel);
      this.xs = Array.from(numbers(panel.x.at));
      this.lines = panel.lines.map((each) => ({ ...each, frames: numbers(each.frames) }));
      this.still = panel.still.map((each) => ({ ...each, values: Array.from(numbers(each.values)) }));
    }

    entries() {
      const own = data.series.length > 1 ? [] : this.panel.lines.map((each) => [looks(each.series), each.label]);
      return [...own, ...this.panel.still.map((each) => [each.kind, each.label])];
    }

    count() { return this.xs.length; }
    nearest(left) { return this.near(this.xs, left); }

    now(line) {
      const size = this.xs.length;
      const frame = line.moments ? line.moments[state.time] : state.time;
      return frame < 0 ? null : line.frames.subarray(frame * size, (frame + 1) * size);
    }

    seen() { return this.lines.filter((each) => state.shown[each.series] && this.now(each)); }

    // Which share of a limit is used at a place; what needs something is looked at the other way round.
    share(ys, limit, i) { return limit && limit.values[i] > 0 ? ys[i] / limit.values[i] : null; }

    usual() {
      const [first] = this.seen();
      const limit = this.still.find((each) => each.kind === "limit");
      if (!first) return 0;
      const ys = this.now(first);
      let best = 0;
      for (let i = 1; i < ys.length; i += 1) {
        const one = this.share(ys, limit, i) ?? ys[i];
        const other = this.share(ys, limit, best) ?? ys[best];
        if ((this.panel.upper ? one > other : one < other) || Number.isNaN(other)) best = i;
      }
      return best;
    }

    paint() {
      const [bottom, top] = this.panel.y.range;
      this.frame(this.xs[0], this.xs[this.xs.length - 1], bottom, top);
      const limit = this.still.find((each) => each.kind === "limit");
      const seen = this.seen();
      if (data.series.length === 1 && seen.length) this.between(this.xs, Array.from(this.now(seen[0])), this.xs.map(() => Math.max(bottom, 0)), "under");
      if (limit && this.panel.upper) {
        for (const each of seen) this.between(this.xs, Array.from(this.now(each), (y, i) => Math.max(y, limit.values[i])), limit.values, "over");
      }
      for (const each of this.still) this.line(this.xs, each.values, each.kind);
      for (const each of seen) this.line(this.xs, this.now(each), looks(each.series));
      if (this.cursor !== null) {
        this.upright(this.xs[this.cursor], "cursor");
        for (const each of seen) {
          this.plot.append(make("circle", { class: `dot c${each.series % 7}`, r: 4, cx: this.across(this.xs[this.cursor]), cy: this.up(this.now(each)[this.cursor]) }));
        }
      }
    }

    say() {
      const seen = this.seen();
      if (!seen.length) return this.lines.length ? this.panel.nothing : "";
      if (data.series.length > 1 && this.cursor === null) return HINT;
      const i = this.cursor ?? this.usual();
      if (this.cursor === null && !this.panel.still.length && !this.now(seen[0])[i]) return "zero everywhere at this moment";
      const unit = this.panel.y.unit;
      const limit = this.still.find((each) => each.kind === "limit");
      const where = `${this.cursor === null ? this.panel.peak : ""}${this.panel.x.name} = ${tell(this.xs[i], this.panel.x.unit)}: `;
      const told = seen.map((each) => {
        const y = this.now(each)[i];
        const share = this.share(this.now(each), limit, i);
        const name = data.series.length > 1 ? `${data.series[each.series].name} ` : "";
        return `${name}${tell(y, unit)}${share === null ? "" : ` (${tell(100 * share, "%", short)})`}`;
      });
      const rest = this.still.map((each) => `${each.label} ${tell(each.values[i], unit)}`);
      return where + [...told, ...rest].join(", ");
    }
  }

  // Numbers over time; a click moves the slider.
  class Path extends Lines {
    constructor(panel) {
      super(panel);
      this.area.addEventListener("click", () => this.cursor !== null && go(this.cursor));
    }

    entries() {
      const own = data.series.length > 1 ? [] : this.panel.lines.map((each) => [looks(each.series), each.label]);
      return [...own, ...this.panel.levels.map((each) => ["level", each.label])];
    }

    count() { return data.times.length; }
    usual() { return state.time; }
    nearest(left) { return this.near(data.times, left); }
    seen() { return this.panel.lines.filter((each) => state.shown[each.series]); }

    paint() {
      const [bottom, top] = this.panel.y.range;
      this.frame(0, data.total, bottom, top);
      for (const level of this.panel.levels) this.line([0, data.total], [level.value, level.value], "level");
      for (const each of this.seen()) {
        this.line(data.times, each.values, `${looks(each.series)} faint`);
        this.line(data.times.slice(0, state.time + 1), each.values.slice(0, state.time + 1), looks(each.series));
      }
      this.upright(data.times[state.time], "now");
      if (this.cursor !== null) this.upright(data.times[this.cursor], "cursor");
    }

    say() {
      if (data.series.length > 1 && this.cursor === null) return HINT;
      const i = this.cursor ?? state.time;
      const told = this.seen().map((each) =>
        `${data.series.length > 1 ? `${data.series[each.series].name} ` : ""}${tell(each.values[i], this.panel.y.unit)}`);
      return `after ${arrivals(data.times[i])}: ${told.join(", ") || "no policy is switched on"}`;
    }
  }

  // How many of each kind, in bins of arrivals.
  class Stack extends Lines {
    entries() { return this.panel.parts.map((each) => [`bar p${each.way}`, each.label]); }
    count() { return this.panel.edges.length - 1; }
    usual() {
      const found = this.panel.edges.findIndex((each) => each >= data.times[state.time]);
      return Math.max(0, (found < 0 ? this.panel.edges.length : found) - 1);
    }

    nearest(left) {
      const middles = this.panel.edges.slice(1).map((each, i) => (each + this.panel.edges[i]) / 2);
      return this.near(middles, left);
    }

    paint() {
      const { edges, parts } = this.panel;
      this.frame(0, data.total, 0, 100);
      for (let i = 0; i + 1 < edges.length; i += 1) {
        const size = edges[i + 1] - edges[i];
        let done = 0;
        parts.forEach((part) => {
          const share = (100 * part.counts[i]) / size;
          if (!share) return;
          const ahead = edges[i] >= data.times[state.time] ? " ahead" : "";
          const picked = i === this.cursor ? " picked" : "";
          const [from, to] = [this.across(edges[i]), this.across(edges[i + 1])];
          this.plot.append(make("rect", {
            class: `block p${part.way}${ahead}${picked}`, x: from, width: Math.max(0.5, to - from - (to - from > 4 ? 1 : 0)),
            y: this.up(done + share), height: this.up(done) - this.up(done + share),
          }));
          done += share;
        });
      }
      this.upright(data.times[state.time], "now");
    }

    say() {
      const { edges, parts } = this.panel;
      const i = Math.min(this.cursor ?? this.usual(), edges.length - 2);
      const told = parts.filter((part) => part.counts[i]).map((part) => `${whole.format(part.counts[i])} ${part.label}`);
      const [first, last] = [whole.format(edges[i] + 1), whole.format(edges[i + 1])];
      return `${first === last ? `arrival ${first}` : `arrivals ${first} to ${last}`}: ${told.join(", ")}`;
    }
  }

  // A function over two axes as colours.
  class Heat extends Chart {
    constructor(panel) {
      super(panel);
      this.frames = numbers(panel.frames);
      [this.nx, this.ny] = panel.size;
      this.canvas = make("canvas", { width: this.nx, height: this.ny, "aria-hidden": "true" });
      this.marks = make("svg", { class: "marks", "aria-hidden": "true" });
      this.area.append(this.canvas, this.marks);
      const steps = make("canvas", { width: 101, height: 1, class: "steps", "aria-hidden": "true" });
      const brush = steps.getContext("2d");
      for (let i = 0; i <= 100; i += 1) { brush.fillStyle = colour(i / 100); brush.fillRect(i, 0, 1, 1); }
      const { low, high, unit } = panel.scale;
      const told = [make("span", {}, tell(low, unit, short)), steps, make("span", {}, tell(high, unit, short))];
      if (panel.over) told.push(make("span", { class: "overswatch" }), make("span", {}, panel.over));
      this.box.append(make("p", { class: "scale" }, panel.scale.label, " ", ...told));
    }

    count() { return this.nx * this.ny; }

    usual() {
      const now = this.now();
      let best = 0;
      for (let i = 0; i < now.length; i += 1) if (now[i] > now[best] || Number.isNaN(now[best])) best = i;
      return best;
    }

    now() { return this.frames.subarray(state.time * this.count(), (state.time + 1) * this.count()); }

    nearest(left, top) {
      const i = Math.min(this.nx - 1, Math.max(0, Math.floor(((left - 54) / (this.width - 64)) * this.nx)));
      const j = Math.min(this.ny - 1, Math.max(0, Math.floor((1 - (top - 8) / this.tall) * this.ny)));
      return j * this.nx + i;
    }

    moved(key) {
      const now = this.cursor ?? this.usual();
      const [i, j] = [now % this.nx, Math.floor(now / this.nx)];
      const to = {
        ArrowLeft: [Math.max(0, i - 1), j], ArrowRight: [Math.min(this.nx - 1, i + 1), j],
        ArrowDown: [i, Math.max(0, j - 1)], ArrowUp: [i, Math.min(this.ny - 1, j + 1)], Home: [0, j], End: [this.nx - 1, j],
      }[key];
      if (key === "Escape") return null;
      return to && to[1] * this.nx + to[0];
    }

    at(axis, i, size) { return axis.low + ((axis.high - axis.low) * i) / (size - 1); }

    paint() {
      const { x, y, scale } = this.panel;
      this.tall = Math.min(320, Math.max(200, (this.width - 64) * 0.7));
      const brush = this.canvas.getContext("2d");
      const now = this.now();
      for (let k = 0; k < now.length; k += 1) {
        const share = (now[k] - scale.low) / (scale.high - scale.low || 1);
        brush.fillStyle = Number.isNaN(now[k]) ? "#8883" : this.panel.over && now[k] > scale.high * (1 + 1e-6) ? "#D55E00" : colour(share);
        const [i, j] = [k % this.nx, this.ny - 1 - Math.floor(k / this.nx)];
        brush.clearRect(i, j, 1, 1);
        brush.fillRect(i, j, 1, 1);
      }
      this.canvas.style.width = `${this.width - 64}px`;
      this.canvas.style.height = `${this.tall}px`;
      this.marks.setAttribute("width", this.width);
      this.marks.setAttribute("height", this.tall + 52);
      this.marks.replaceChildren();
      const across = (value) => 54 + ((this.width - 64) * (value - x.low)) / (x.high - x.low);
      const up = (value) => 8 + this.tall * (1 - (value - y.low) / (y.high - y.low));
      for (const at of ticks(x.low, x.high, 4)) this.marks.append(make("text", { class: "tick", x: across(at), y: this.tall + 26, "text-anchor": "middle" }, tell(at, "", short)));
      for (const at of ticks(y.low, y.high, 4)) this.marks.append(make("text", { class: "tick", x: 48, y: up(at) + 4, "text-anchor": "end" }, tell(at, "", short)));
      this.marks.append(make("text", { class: "label", x: this.width / 2, y: this.tall + 45, "text-anchor": "middle" }, `${x.label} (across), ${y.label} (up)`));
      if (this.cursor !== null) {
        const [i, j] = [this.cursor % this.nx, Math.floor(this.cursor / this.nx)];
        const [wide, tall] = [(this.width - 64) / this.nx, this.tall / this.ny];
        this.marks.append(make("rect", { class: "cell", x: 54 + i * wide, y: 8 + (this.ny - 1 - j) * tall, width: wide, height: tall }));
      }
    }

    say() {
      const k = this.cursor ?? this.usual();
      const { x, y, scale } = this.panel;
      const place = `${x.name} = ${tell(this.at(x, k % this.nx, this.nx), x.unit, short)}, ${y.name} = ${tell(this.at(y, Math.floor(k / this.nx), this.ny), y.unit, short)}`;
      const value = this.now()[k];
      if (this.cursor === null && !value) return "zero everywhere at this moment";
      return `${this.cursor === null ? this.panel.peak : ""}${place}: ${Number.isNaN(value) ? "not in the index" : `${tell(value, scale.unit)} ${this.panel.what}`}`;
    }
  }

  // Cividis, which people with any kind of colour vision read alike.
  const CIVIDIS = [[0, 34, 78], [35, 62, 108], [87, 92, 109], [124, 123, 120], [165, 156, 116], [211, 193, 100], [254, 232, 56]];
  function colour(share) {
    const at = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
    const [low, part] = [Math.min(CIVIDIS.length - 2, Math.floor(at)), at - Math.min(CIVIDIS.length - 2, Math.floor(at))];
    return `rgb(${CIVIDIS[low].map((each, i) => Math.round(each + part * (CIVIDIS[low + 1][i] - each))).join(",")})`;
  }

  // The last decisions, one a line.
  class List {
    constructor(panel) {
      this.panel = panel;
      this.body = make("tbody");
      const head = make("tr", {}, ...panel.columns.map((each) => make("th", { scope: "col" }, each)));
      this.box = make("section", { class: "panel list" }, make("h3", {}, panel.title),
        make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": panel.title },
          make("table", { class: "data" }, make("thead", {}, head), this.body)));
    }

    draw() {
      const end = data.times[state.time];
      const rows = this.panel.rows.slice(Math.max(0, end - 8), end).reverse();
      this.body.replaceChildren(...rows.map((row) => make("tr", {}, ...row.map((entry) =>
        typeof entry === "number" ? make("td", { class: "number" }, tell(entry, "", list)) : make("td", {}, String(entry ?? ""))))));
      if (!rows.length) this.body.append(make("tr", {}, make("td", { colspan: this.panel.columns.length }, "No arrival yet.")));
    }
  }

  // -- what is told in numbers --------------------------------------------------------------------------------

  const tileBox = make("div", { class: "tiles" });

  function told(tile, series) {
    const note = tile.notes ? tile.notes[series][state.time] : "";
    return [tell(tile.values[series][state.time], tile.unit, tile.unit === "%" ? short : plain), note];
  }

  function drawTiles() {
    const tiles = data.tiles.filter((tile) => !tile.row || tile.row === state.row);
    if (data.series.length === 1) {
      tileBox.replaceChildren(...tiles.map((tile) => {
        const [text, note] = told(tile, 0);
        return make("div", { class: "tile", "data-tile": tile.name }, make("span", { class: "name" }, tile.label), make("strong", {}, text), make("span", { class: "small" }, note));
      }));
      return;
    }
    const head = make("tr", {}, ...["policy", ...tiles.map((tile) => tile.label)].map((each) => make("th", { scope: "col" }, each)));
    const rows = data.series.map((series, i) => make("tr", { class: state.shown[i] ? "" : "off" }, make("th", { scope: "row" }, series.name),
      ...tiles.map((tile) => make("td", { class: "number", "data-tile": tile.name }, told(tile, i).filter(Boolean).join(" ")))));
    tileBox.replaceChildren(make("div", { class: "wide" }, make("table", { class: "data" }, make("thead", {}, head), make("tbody", {}, ...rows))));
  }

  // -- controls -----------------------------------------------------------------------------------------------

  const slider = make("input", { type: "range", min: 0, max: data.times.length - 1, step: 1, id: "osilp-time", "aria-label": "time, in arrivals" });
  const clock = make("output", { for: "osilp-time" });
  const play = make("button", { type: "button" }, "Play");

  function go(time) {
    state.time = Math.min(data.times.length - 1, Math.max(0, time));
    slider.value = String(state.time);
    const text = `after ${whole.format(data.times[state.time])} of ${whole.format(data.total)} ${data.unit}`;
    slider.setAttribute("aria-valuetext", text);
    clock.textContent = text;
    draw();
  }

  function draw() {
    drawTiles();
    for (const chart of charts) chart.draw();
  }

  function stop() {
    clearInterval(state.timer);
    state.timer = null;
    play.textContent = "Play";
  }

  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  play.addEventListener("click", () => {
    if (state.timer) { stop(); return; }
    if (state.time === data.times.length - 1) go(0);
    play.textContent = "Pause";
    state.timer = setInterval(() => { go(state.time + 1); if (state.time === data.times.length - 1) stop(); }, 90);
  });

  const controls = make("div", { class: "controls" }, play, slider, clock);
  if (data.rows.length > 1) {
    const choice = make("select", { id: "osilp-row" }, ...data.rows.map((row) => make("option", { value: row }, row)));
    choice.addEventListener("change", () => { state.row = choice.value; draw(); });
    controls.append(make("label", { for: "osilp-row" }, "constraint ", choice));
  }
  stage.append(controls);
  if (data.series.length > 1) {
    stage.append(make("fieldset", {}, make("legend", {}, "policies"), ...data.series.map((series, i) => {
      const box = make("input", { type: "checkbox", checked: "" });
      box.addEventListener("change", () => { state.shown[i] = box.checked; draw(); });
      return make("label", {}, box, swatch(looks(i)), series.name);
    })));
  }
  const kinds = { curve: Curve, path: Path, stack: Stack, heat: Heat, list: List };
  const grid = make("div", { class: "panels" });
  for (const panel of data.panels) {
    const chart = new kinds[panel.kind](panel);
    charts.push(chart);
    grid.append(chart.box);
  }
  stage.append(tileBox, grid);
  let width = 0;
  new ResizeObserver(() => {
    if (stage.clientWidth === width) return;
    width = stage.clientWidth;
    if (width) draw();
  }).observe(stage);
  go(state.time);
})();
