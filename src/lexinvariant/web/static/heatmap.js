// The key as a heat map: rows are symbols of the cipher, columns are the characters they may stand for.

import { find, fit, make, percent, said, shown } from "./dom.js";

const ROW = 24;
const HEAD = 24;
const NARROWEST = 9;

export function palette() {
  const style = getComputedStyle(document.documentElement);
  const stops = [0, 1, 2, 3].map((i) => {
    const hex = style.getPropertyValue(`--heat-${i}`).trim().slice(1);
    return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
  return Array.from({ length: 256 }, (_, i) => {
    const x = Math.pow(i / 255, 0.7) * (stops.length - 1); // faint suspicions stay visible
    const left = Math.min(Math.floor(x), stops.length - 2);
    const [a, b] = [stops[left], stops[left + 1]];
    return `rgb(${a.map((v, k) => Math.round(v + (b[k] - v) * (x - left))).join(" ")})`;
  });
}

// Black or white, whichever stands out more.
function inkOn(colour) {
  const [r, g, b] = colour.match(/\d+/g).map((v) => (Number(v) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000" : "#fff";
}

export class HeatMap {
  constructor(onSymbol) {
    this.canvas = find("map");
    this.labels = find("rows");
    this.onSymbol = onSymbol;
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => (find("hover").textContent = "\u00a0"));
    this.canvas.addEventListener("click", (event) => {
      const at = this.cellAt(event);
      if (at) this.onSymbol(at.row, false, this.trace.characters[at.column]);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    new ResizeObserver(() => this.trace && this.redraw()).observe(this.canvas.parentElement);
    this.recolour();
  }

  recolour() {
    this.colours = palette();
    this.inks = this.colours.map(inkOn);
    const style = getComputedStyle(document.documentElement);
    this.ink = style.getPropertyValue("--ink").trim();
    this.quiet = style.getPropertyValue("--quiet").trim();
    this.accent = style.getPropertyValue("--accent").trim();
    const scale = fit(find("scale"), 96, 8);
    this.colours.forEach((colour, i) => {
      scale.fillStyle = colour;
      scale.fillRect((i / 256) * 96, 0, 1, 8);
    });
    if (this.trace) this.redraw();
  }

  build(trace) {
    this.trace = trace;
    this.buttons = trace.rows.map(({ symbol }, row) => {
      const button = make(
        "button",
        { type: "button", class: "row-label", "aria-pressed": "false" },
        make("span", { class: "from", text: shown(symbol) }),
        make("span", { class: "to", text: "" }),
      );
      button.addEventListener("click", (event) => this.onSymbol(row, event.detail === 0));
      button.addEventListener("keydown", (event) => this.step(event, row));
      button.tabIndex = row === 0 ? 0 : -1;
      return button;
    });
    this.labels.replaceChildren(...this.buttons);
  }

  // One stop for the Tab key; arrows move among the symbols.
  step(event, row) {
    const to = { ArrowDown: row + 1, ArrowUp: row - 1, Home: 0, End: this.buttons.length - 1 }[event.key];
    if (to === undefined || !this.buttons[to]) return;
    event.preventDefault();
    this.focus(to);
    this.onSymbol(to, false);
  }

  focus(row) {
    this.buttons.forEach((button, r) => (button.tabIndex = r === row ? 0 : -1));
    this.buttons[row].focus();
  }

  show(values, looks, marked, solved) {
    Object.assign(this, { values, looks, marked, solved });
    this.redraw();
    this.trace.rows.forEach((_, r) => {
      const button = this.buttons[r];
      const look = looks[r];
      const to = look?.plain ? shown(look.plain) : "";
      if (button.lastChild.textContent !== to) button.lastChild.textContent = to;
      button.classList.toggle("pinned", Boolean(look?.pinned));
      button.classList.toggle("faint", !look?.plain || look.p < 0.5);
      button.setAttribute("aria-pressed", String(r === marked));
    });
  }

  // Said only when nothing moves: names that change all the time are noise to a listener.
  describe() {
    this.trace.rows.forEach(({ symbol }, r) => {
      const look = this.looks[r];
      const others = this.trace
        .likeliest(this.values, r, 4)
        .filter(({ plain, p }) => p >= 0.02 && plain !== look?.plain)
        .map(({ plain, p }) => `${said(plain)} ${percent(p)}`)
        .slice(0, 3);
      const means = look?.plain
        ? `${said(look.plain)}, ${look.pinned ? "pinned" : percent(look.p)}${others.length ? `; or ${others.join(", ")}` : ""}`
        : "not read yet";
      this.buttons[r].setAttribute("aria-label", `${said(symbol)}: ${means}`);
    });
  }

  get columnWidth() {
    const room = this.canvas.parentElement.clientWidth;
    return Math.max(NARROWEST, Math.min(30, room / this.trace.characters.length));
  }

  redraw() {
    const { trace, values, marked } = this;
    if (!values) return;
    const wide = this.columnWidth;
    const [nR, nC] = [trace.rows.length, trace.characters.length];
    const context = fit(this.canvas, Math.floor(wide * nC), HEAD + nR * ROW);
    context.clearRect(0, 0, wide * nC, HEAD + nR * ROW);
    context.textAlign = "center";
    context.textBaseline = "middle";
    const font = (weight, size) => (context.font = `${weight} ${size}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace`);
    font(500, 12);
    context.fillStyle = this.quiet;
    trace.characters.forEach((character, c) => context.fillText(shown(character), (c + 0.5) * wide, HEAD / 2));
    font(700, 12);
    for (let r = 0; r < nR; r++)
      for (let c = 0; c < nC; c++) {
        const p = values[r * nC + c];
        const shade = Math.min(255, Math.round(p * 255));
        context.fillStyle = this.colours[shade];
        context.fillRect(c * wide + 0.5, HEAD + r * ROW + 0.5, wide - 1, ROW - 1);
        if (p >= 0.4) {
          context.fillStyle = this.inks[shade];
          context.fillText(shown(trace.characters[c]), (c + 0.5) * wide, HEAD + (r + 0.54) * ROW);
        }
      }
    context.lineWidth = 2;
    context.strokeStyle = this.accent;
    trace.rows.forEach(({ column }, r) => {
      if (column >= 0 && (this.solved || this.looks[r]?.pinned))
        context.strokeRect(column * wide + 1, HEAD + r * ROW + 1, wide - 2, ROW - 2);
    });
    if (marked >= 0) {
      context.lineWidth = 1;
      context.strokeStyle = this.ink;
      context.strokeRect(0.5, HEAD + marked * ROW - 0.5, Math.floor(wide * nC) - 1, ROW + 1);
    }
  }

  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.columnWidth);
    const row = Math.floor((event.clientY - box.top - HEAD) / ROW);
    const inside = row >= 0 && row < this.trace.rows.length && column >= 0 && column < this.trace.characters.length;
    return inside ? { row, column } : null;
  }

  hover(event) {
    const at = this.trace && this.cellAt(event);
    if (!at) return;
    const p = this.values[at.row * this.trace.characters.length + at.column];
    const [from, to] = [this.trace.rows[at.row].symbol, this.trace.characters[at.column]];
    find("hover").textContent = `${shown(from)} stands for ${shown(to)}: ${percent(p)}`;
  }
}
