// One symbol up close: its likeliest characters, how they rose and fell, and the pin.

import { draw, find, isWord, make, percent, said, short, shown } from "./dom.js";

const LINES = 5;
const BARS = 4;
const [WIDE, HIGH, LEFT, RIGHT, FOOT] = [320, 140, 4, 22, 22];
const APART = 14; // from label to label, more than a letter is high

export class Inspector {
  constructor({ onPin, onUnpin, onLeave }) {
    Object.assign(this, { onPin, onUnpin, onLeave });
    this.body = find("inspector-body");
    this.row = -1;
  }

  empty() {
    this.row = -1;
    this.body.replaceChildren(make("p", { class: "quiet", text: "Choose a symbol in the text or in the key." }));
  }

  build(trace, row, pinned) {
    Object.assign(this, { trace, row });
    const { symbol } = trace.rows[row];
    this.says = make("p", { class: "says" });
    this.bars = make("ol", { class: "bars", "aria-label": `What ${said(symbol)} may stand for; choosing one pins it` });
    this.input = make("input", { id: "pin-to", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "2" });
    const form = make(
      "form",
      { class: "pin", novalidate: true },
      make("label", { for: "pin-to", text: "Pin it to" }),
      this.input,
      make("button", { type: "submit", text: "Pin" }),
      make("button", { type: "button", text: "Unpin", hidden: !pinned, onclick: () => this.onUnpin(symbol) }),
    );
    this.alert = make("p", { class: "trouble", role: "alert", hidden: true });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [character] = Array.from(this.input.value);
      if (character) this.onPin(symbol, character);
    });
    form.addEventListener("keydown", (event) => event.key === "Escape" && this.onLeave(row));
    const left = make(
      "div",
      {},
      make("p", { class: "glyph", "aria-hidden": "true" }, make("span", { class: isWord(symbol) ? "token" : "sign", text: shown(symbol) }), make("span", { class: "arrow", text: "→" }), (this.guess = make("span", { class: "guess-glyph" }))),
      this.says,
      form,
      this.alert,
      this.bars,
    );
    this.body.replaceChildren(left, make("div", {}, make("h3", { text: "How it got there" }), this.story()));
  }

  // What is wrong with a pin is said beside it.
  trouble(sentence) {
    this.alert.hidden = !sentence;
    this.alert.textContent = sentence ?? "";
  }

  // Probability against symbols read, a line for each character that was ever in the running.
  story() {
    const { trace, row } = this;
    const width = trace.characters.length;
    const peak = trace.characters.map((plain, c) => {
      let [most, sum] = [0, 0];
      for (let f = 0; f < trace.lengths.length; f++) {
        const p = trace.table[f * trace.size + row * width + c];
        most = Math.max(most, p);
        sum += p;
      }
      return { plain, c, most, weight: sum + most * 10 };
    });
    const chosen = peak.sort((a, b) => b.weight - a.weight).slice(0, LINES).filter(({ most }) => most > 0.1);
    const x = (n) => LEFT + (n / trace.n) * (WIDE - LEFT - RIGHT);
    const y = (p) => 6 + (1 - p) * (HIGH - FOOT - 10);
    const svg = draw("svg", { class: "story", viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
    for (const p of [0, 0.5, 1]) svg.append(draw("line", { class: "rule", x1: LEFT, x2: x(trace.n), y1: y(p), y2: y(p) }));
    for (const t of trace.places[row]) svg.append(draw("line", { class: "tick", x1: x(t + 1), x2: x(t + 1), y1: HIGH - FOOT + 1, y2: HIGH - FOOT + 6 }));
    const labels = [];
    chosen.forEach(({ plain, c }, i) => {
      const points = [];
      let last = 0;
      trace.lengths.forEach((length, f) => {
        if (length <= trace.places[row][0]) return;
        last = trace.table[f * trace.size + row * width + c];
        points.push(`${x(length).toFixed(1)},${y(last).toFixed(1)}`);
      });
      svg.append(draw("polyline", { class: `line-${i}`, points: points.join(" ") }));
      labels.push({ plain, i, y: y(last) });
    });
    // Labels stand apart: first each below the one before it, then all above the floor.
    labels.sort((a, b) => a.y - b.y);
    for (let k = 1; k < labels.length; k++) labels[k].y = Math.max(labels[k].y, labels[k - 1].y + APART);
    let floor = y(0) - 2;
    for (let k = labels.length - 1; k >= 0; k--, floor -= APART) labels[k].y = Math.min(labels[k].y, floor);
    for (const { plain, i, y: at } of labels) {
      const text = draw("text", { class: `line-${i}`, x: WIDE - RIGHT + 6, y: at + 4 });
      text.textContent = shown(plain);
      svg.append(text);
    }
    const foot = draw("text", { class: "foot", x: LEFT, y: HIGH - 3 });
    foot.textContent = "symbols read; a tick each time it occurs";
    svg.append(foot, (this.cursor = draw("line", { class: "cursor", y1: 2, y2: HIGH - FOOT })));
    this.x = x;
    return svg;
  }

  show(values, look, length) {
    if (this.row < 0) return;
    const { symbol } = this.trace.rows[this.row];
    const seen = this.trace.places[this.row].filter((t) => t < length).length;
    const times = seen === 1 ? "once" : seen === 2 ? "twice" : `${seen} times`;
    this.guess.textContent = look?.plain ? shown(look.plain) : "?";
    const means = !seen
      ? "It has not occurred yet."
      : !look?.plain
        ? `Seen ${times}. Nothing is known of it yet.`
        : look.pinned
          ? `You pinned it to ${said(look.plain)}.`
          : `Seen ${times}. It stands for ${said(look.plain)}: ${percent(look.p)} sure.`;
    if (this.says.textContent !== means) this.says.textContent = means;
    const likely = this.trace.likeliest(values, this.row, BARS);
    while (this.bars.children.length < likely.length) this.bars.append(this.bar());
    likely.forEach(({ plain, p }, i) => {
      this.bars.children[i].classList.toggle("nothing", p === 0 || !look?.plain);
      const button = this.bars.children[i].firstChild;
      button.dataset.plain = plain;
      button.children[0].textContent = look?.plain ? shown(plain) : "·";
      button.children[1].firstChild.style.width = `${(p * 100).toFixed(1)}%`;
      button.children[2].textContent = look?.plain ? short(p) : "";
      button.setAttribute("aria-label", `Pin ${said(symbol)} to ${said(plain)}, now ${percent(p)}`);
    });
    const at = Math.min(length, this.trace.n);
    this.cursor.setAttribute("x1", this.x(at));
    this.cursor.setAttribute("x2", this.x(at));
  }

  bar() {
    const button = make(
      "button",
      { type: "button", title: "Pin it to this character" },
      make("span", { class: "bar-name" }),
      make("span", { class: "bar-room" }, make("span", { class: "bar-fill" })),
      make("span", { class: "bar-number" }),
    );
    button.addEventListener("click", () => this.onPin(this.trace.rows[this.row].symbol, button.dataset.plain));
    return make("li", {}, button);
  }
}
