// The timeline of a table: a lane for each writer and for what concerns all of them, on one axis of UTC.
// Wheel with Ctrl, pinch, + and - zoom; dragging and the arrow keys pan; the axis follows the time until one pans away from it.

import { h, now, s, span, utc } from './dom.js';

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800].map((one) => one * 1000);
const SHORTEST = 10 * 1000;
const SPANS = [['15 min', 900e3], ['1 h', 3600e3], ['6 h', 21600e3], ['All', 0]];
const AXIS = 26;
const LEVEL = 18;
const STRIP = 12;
const NARROW = 640;
const STRIPS = ['attempt', 'starts', 'queued']; // below the instants of a writer: whether it runs, starts or waits
const NAMES = {
  commit: 'commit', pending: 'not completed', ended: 'completed or rolled back', refused: 'refused', attempt: 'attempt', starts: 'attempt starts', queued: 'waits for admission',
  held: 'lock is held', fenced: 'fenced', drained: 'drained', 'rolled back': 'rolled back', service: 'table service', savepoint: 'savepoint', restore: 'restore',
};
const TITLES = { lock: 'Lock', foreign: 'Foreign writers', services: 'Services', savepoints: 'Savepoints' };
const css = (kind) => kind.replace(' ', '-');

// Levels on which no two bars overlap; by time, so that they stay when one zooms.
function levels(bars) {
  const ends = [];
  for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
    let level = ends.findIndex((end) => end <= bar.from);
    if (level < 0) level = ends.length < 4 ? ends.length : 3;
    ends[level] = Math.max(ends[level] ?? 0, bar.to);
    bar.level = level;
  }
  return Math.max(1, ends.length);
}

export class Timeline {
  #lanes = [];
  #from = 0;
  #to = 0;
  #length = 0; // of what is shown while the axis follows the time; 0: all there is
  #follows = true;
  #width = 0;
  #chosen = null; // "lane.bar"; which one that is, is found again when the lanes are others
  #pointers = new Map();
  #timer;
  #sizes;

  constructor(place) {
    this.svg = s('svg', { class: 'timeline', tabindex: '0', role: 'img', 'aria-describedby': 'bar' });
    this.told = h('p', { id: 'bar', class: 'quiet bar-text', 'aria-live': 'polite' });
    this.buttons = SPANS.map(([name, length]) => h('button', { type: 'button', onclick: () => this.#last(length) }, name));
    const button = (text, title, act) => h('button', { type: 'button', 'aria-label': title, title, onclick: act }, text);
    this.legend = h('ul', { class: 'legend' });
    place.append(h('section', { class: 'picture' },
      h('div', { class: 'bar' }, h('h2', {}, 'Timeline'), h('span', { class: 'buttons' }, this.buttons,
        button('−', 'Zoom out', () => this.#zoom(1.5)), button('+', 'Zoom in', () => this.#zoom(1 / 1.5)),
        button('‹', 'Earlier', () => this.#pan(-0.4)), button('›', 'Later', () => this.#pan(0.4)))),
      this.svg, this.told, this.legend));
    this.svg.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    this.svg.addEventListener('keydown', (event) => this.#key(event));
    for (const name of ['pointerdown', 'pointermove', 'pointerup', 'pointercancel']) {
      this.svg.addEventListener(name, (event) => this.#pointer(event));
    }
    this.#sizes = new ResizeObserver(() => this.#draw());
    this.#sizes.observe(place);
    this.#timer = setInterval(() => { if (this.#follows && !document.hidden && !this.#pointers.size) this.#draw(); }, 1000);
    this.#say(null);
  }

  end() {
    clearInterval(this.#timer);
    this.#sizes.disconnect();
  }

  show(lanes) {
    const chosen = this.#at(this.#chosen);
    this.#lanes = lanes.map((lane) => {
      const bars = lane.bars.map((bar) => ({ ...bar, from: Date.parse(bar.begin), to: Date.parse(bar.end), strip: STRIPS.includes(bar.kind) }));
      const open = now() + 864e5;
      const high = levels(bars.filter((bar) => !bar.strip).map((bar) => { if (bar.open) bar.to = open; return bar; }));
      return { ...lane, bars, high, title: TITLES[lane.of] ?? lane.name };
    });
    const kinds = new Set(this.#lanes.flatMap((lane) => lane.bars.map((bar) => bar.kind)));
    this.legend.replaceChildren(...Object.keys(NAMES).filter((kind) => kinds.has(kind)).map((kind) =>
      h('li', {}, h('span', { class: `swatch k-${css(kind)}` }), NAMES[kind])));
    if (chosen) {
      const l = this.#lanes.findIndex((one) => one.of === chosen.lane.of && one.name === chosen.lane.name);
      const b = this.#lanes[l]?.bars.findIndex((one) => one.kind === chosen.bar.kind && one.begin === chosen.bar.begin) ?? -1;
      this.#chosen = b < 0 ? null : `${l}.${b}`;
      this.#say(this.#at(this.#chosen));
    }
    this.#draw();
  }

  // ------------------------------------------------------------ what is shown of time
  #all() {
    const begins = this.#lanes.flatMap((lane) => lane.bars.map((bar) => bar.from));
    const length = begins.length ? now() - Math.min(...begins) : 0;
    return Math.max(length * 1.04, 60e3);
  }

  #last(length) {
    this.#length = length;
    this.#follows = true;
    this.#draw();
  }

  #set(from, to) {
    const length = Math.max(to - from, SHORTEST);
    const latest = now() + length * 0.05;
    this.#follows = to >= now();
    this.#length = length;
    this.#to = Math.min(from + length, latest);
    this.#from = this.#to - length;
    this.#draw();
  }

  #zoom(by, at = 1) {
    const length = Math.min(Math.max((this.#to - this.#from) * by, SHORTEST), Math.max(this.#all() * 2, 3600e3));
    const fixed = this.#from + (this.#to - this.#from) * at;
    this.#set(fixed - length * at, fixed + length * (1 - at));
  }

  #pan(by) {
    const length = this.#to - this.#from;
    this.#set(this.#from + by * length, this.#to + by * length);
  }

  get #left() { return this.#width < NARROW ? 8 : 168; }

  get #right() { return this.#width - 12; }

  #x(moment) {
    return this.#left + ((moment - this.#from) / (this.#to - this.#from)) * (this.#right - this.#left);
  }

  // ------------------------------------------------------------ hands
  #share(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    return Math.min(1, Math.max(0, (x - this.#left) / (this.#right - this.#left)));
  }

  #wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.#zoom(Math.exp(Math.sign(event.deltaY) * 0.2), this.#share(event));
    } else if (event.deltaX) {
      event.preventDefault();
      this.#pan(event.deltaX / (this.#right - this.#left));
    }
  }

  #pointer(event) {
    if (event.type === 'pointerdown') {
      this.#pointers.set(event.pointerId, { x: event.clientX, moved: false });
      this.svg.setPointerCapture(event.pointerId);
      return;
    }
    const held = this.#pointers.get(event.pointerId);
    if (!held) return;
    if (event.type !== 'pointermove') {
      this.#pointers.delete(event.pointerId);
      if (event.type === 'pointerup' && !held.moved) this.#choose(document.elementFromPoint(event.clientX, event.clientY)?.closest?.('[data-n]')?.dataset.n);
      return;
    }
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    const wide = this.#right - this.#left;
    if (Math.abs(event.clientX - held.x) < 3 && !held.moved) return;
    held.moved = true;
    if (other) {
      const before = Math.max(20, Math.abs(held.x - other.x));
      const after = Math.max(20, Math.abs(event.clientX - other.x));
      const middle = { clientX: (event.clientX + other.x) / 2 };
      held.x = event.clientX;
      this.#zoom(before / after, this.#share(middle));
    } else {
      const by = (held.x - event.clientX) / wide;
      held.x = event.clientX;
      this.#pan(by);
    }
  }

  #key(event) {
    const acts = {
      ArrowLeft: () => this.#pan(-0.1), ArrowRight: () => this.#pan(0.1), '+': () => this.#zoom(1 / 1.5), '=': () => this.#zoom(1 / 1.5),
      '-': () => this.#zoom(1.5), 0: () => this.#last(0), End: () => this.#last(this.#length), '.': () => this.#next(1), ',': () => this.#next(-1),
      Escape: () => this.#choose(undefined),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  // ------------------------------------------------------------ one bar
  #next(by) {
    const all = this.#lanes.flatMap((lane, l) => lane.bars.map((bar, b) => ({ n: `${l}.${b}`, from: bar.from })));
    all.sort((a, b) => a.from - b.from);
    if (!all.length) return;
    const at = all.findIndex((one) => one.n === this.#chosen);
    const to = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length];
    if (to.from < this.#from || to.from > this.#to) {
      const length = this.#to - this.#from;
      this.#set(to.from - length / 2, to.from + length / 2);
    }
    this.#choose(to.n);
  }

  #at(n) {
    const [l, b] = (n ?? '').split('.');
    const bar = this.#lanes[l]?.bars[b];
    return bar ? { lane: this.#lanes[l], bar } : null;
  }

  #choose(n) {
    this.#chosen = n ?? null;
    this.#say(this.#at(this.#chosen));
    this.#draw();
  }

  #say(found) {
    if (!found?.bar) {
      this.told.textContent = 'Drag or ← → to move, Ctrl and wheel or + − to zoom, 0 for all; choose a bar, or . and , for one after the other.';
      return;
    }
    const { lane, bar } = found;
    const end = bar.open ? now() : bar.to;
    const when = end === bar.from ? utc(bar.from) : `${utc(bar.from)} to ${bar.open ? 'now' : utc(end)} (${span(end - bar.from)})`;
    this.told.textContent = `${lane.title}: ${bar.text}. ${when} UTC`;
  }

  // ------------------------------------------------------------ the picture
  #draw() {
    this.#width = Math.floor(this.svg.parentElement?.clientWidth ?? 0);
    if (!this.#width || !this.#lanes.length) return;
    if (this.#follows) {
      const length = this.#length || this.#all();
      this.#to = now() + length * 0.03;
      this.#from = this.#to - length;
    }
    const narrow = this.#width < NARROW;
    const grounds = []; // below the lines of the axis, and these below the bars
    const lines = [];
    const drawn = [];
    let y = AXIS;
    this.#lanes.forEach((lane, l) => {
      const title = narrow ? 16 : 0;
      const strip = lane.of === 'writer' ? STRIP : 0;
      const high = title + 8 + lane.high * LEVEL + strip;
      grounds.push(s('rect', { class: l % 2 ? 'ground odd' : 'ground', x: 0, y, width: this.#width, height: high }));
      drawn.push(s('g', { class: 'lane' },
        this.#label(lane, narrow, y, high),
        lane.bars.map((bar, b) => this.#bar(bar, `${l}.${b}`, y + title + 4, lane.high))));
      y += high;
    });
    for (const moment of this.#ticks()) {
      const x = this.#x(moment);
      lines.push(s('line', { class: 'tick', x1: x, x2: x, y1: AXIS - 6, y2: y }), s('text', { class: 'time', x, y: AXIS - 11, 'text-anchor': 'middle' }, this.#time(moment)));
    }
    const present = this.#x(now());
    const line = present <= this.#right + 1 ? s('line', { class: 'now', x1: present, x2: present, y1: AXIS - 6, y2: y }) : null;
    const clip = s('clipPath', { id: 'inside' }, s('rect', { x: this.#left - 8, y: 0, width: this.#right - this.#left + 16, height: y }));
    this.svg.setAttribute('viewBox', `0 0 ${this.#width} ${y + 2}`);
    this.svg.setAttribute('width', this.#width);
    this.svg.setAttribute('height', y + 2);
    this.svg.setAttribute('aria-label', `Timeline from ${utc(this.#from)} to ${utc(this.#to)} UTC, ${this.#lanes.length} lanes`);
    this.svg.replaceChildren(...[s('defs', {}, clip, hatch()), ...grounds, ...lines, ...drawn, line].filter(Boolean));
  }

  #label(lane, narrow, y, high) {
    const most = narrow ? Math.floor(this.#width / 7.2) : 21;
    const text = lane.title.length > most ? `${lane.title.slice(0, most - 1)}…` : lane.title;
    const place = narrow ? { x: 8, y: y + 13 } : { x: 10, y: y + high / 2 + 4 };
    return s('text', { class: `label of-${lane.of}`, ...place }, text, s('title', {}, lane.title));
  }

  #bar(bar, n, y, high) {
    const end = bar.open ? now() : bar.to;
    if (end < this.#from || bar.from > this.#to) return null;
    const x = this.#x(bar.from);
    const isMark = !bar.open && bar.to === bar.from;
    const wide = Math.max(this.#x(end) - x, 3);
    const names = `bar-of k-${css(bar.kind)}${bar.failed ? ' failed' : ''}${bar.open ? ' open' : ''}${n === this.#chosen ? ' chosen' : ''}`;
    const top = bar.strip ? y + high * LEVEL + 2 : y + bar.level * LEVEL + 1;
    const tall = bar.strip ? 7 : LEVEL - 3;
    const shape = isMark
      ? s('path', { d: `M${x} ${top} l7.5 7.5 l-7.5 7.5 l-7.5 -7.5 z` })
      : s('rect', { x, y: top, width: wide, height: tall, rx: 2 });
    const over = bar.failed && !isMark && !bar.strip ? s('rect', { fill: 'url(#hatch)', class: 'hatch', x, y: top, width: wide, height: tall, rx: 2 }) : null;
    const cross = bar.failed && bar.strip ? s('path', { class: 'cross', d: `M${x + wide - 4} ${top - 1} l8 8 m0 -8 l-8 8` }) : null;
    return s('g', { class: names, 'data-n': n, 'clip-path': 'url(#inside)' }, shape, over, cross, s('title', {}, bar.text));
  }

  #ticks() {
    const most = Math.max(1, Math.floor((this.#right - this.#left) / (this.#to - this.#from > 864e5 ? 110 : 84)));
    const length = this.#to - this.#from;
    const step = STEPS.find((one) => length / one <= most) ?? Math.ceil(length / most / STEPS.at(-1)) * STEPS.at(-1);
    const found = [];
    for (let at = Math.ceil(this.#from / step) * step; at <= this.#to; at += step) {
      const x = this.#x(at);
      if (x >= this.#left + 26 && x <= this.#right - 26) found.push(at);
    }
    return found;
  }

  #time(moment) {
    const text = new Date(moment).toISOString();
    if (this.#to - this.#from > 180 * 864e5) return text.slice(0, 10);
    return this.#to - this.#from > 864e5 ? `${text.slice(5, 10)} ${text.slice(11, 16)}` : text.slice(11, 19);
  }
}

const hatch = () => s('pattern', { id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
  s('rect', { width: 2, height: 6, class: 'line' }));
