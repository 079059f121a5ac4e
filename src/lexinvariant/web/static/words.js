// A text in made-up words: what the model takes each of them for, and its other guesses.

import { find, make, percent, short } from "./dom.js";

const UNSAID = 0.1; // a guess below this is not put into the text (LIKELY in decipher/word_cipher.py)
const grade = (p) => (p >= 0.9 ? "sure" : p >= 0.5 ? "likely" : p >= UNSAID ? "guess" : "unread");
const times = (n) => (n === 1 ? "once" : n === 2 ? "twice" : `${n} times`);

export class Words {
  constructor() {
    this.text = find("words-text");
    this.list = find("word-list");
    for (const place of [this.text, this.list])
      for (const kind of ["click", "mouseover", "focusin"])
        place.addEventListener(kind, (event) => {
          const cell = event.target.closest("[data-word]");
          if (cell) this.mark(Number(cell.dataset.word));
        });
  }

  // `truth` maps made-up words to true ones where they are known.
  build(answer, truth) {
    Object.assign(this, { answer, truth });
    const lines = [make("div", { class: "line" })];
    let together = null; // a word and the marks beside it, which no line end parts
    for (const [piece, number] of answer.pieces)
      for (const part of number >= 0 ? [this.cell(piece, number)] : piece.match(/\n|[^\S\n]+|\S+/g)) {
        if (part === "\n") lines.push(make("div", { class: "line" }));
        if (typeof part === "string" && !part.trim()) {
          if (part !== "\n") lines.at(-1).append(part);
          together = null;
          continue;
        }
        if (!together) lines.at(-1).append((together = make("span", { class: "word" })));
        together.append(number >= 0 ? part : make("span", { class: "mark", text: part }));
      }
    this.text.replaceChildren(...lines);
    const order = answer.words.map((_, s) => s).sort((a, b) => answer.words[b].count - answer.words[a].count || a - b);
    this.list.replaceChildren(...order.map((s) => make("li", {}, this.entry(s))));
    find("words-moment").textContent = `${Math.round(answer.n_expected)} of ${answer.n_words} words expected to be right`;
    find("words-facts").textContent = this.facts();
    this.mark(order[0]);
  }

  cell(piece, number) {
    const { word, probability } = this.answer.words[number];
    const cell = make("button", { type: "button", class: `cell token ${grade(probability)}`, "aria-label": this.said(number) }, make("b", { text: piece }), make("i", { text: word }));
    cell.dataset.word = number;
    return cell;
  }

  entry(number) {
    const { word, name, probability, count } = this.answer.words[number];
    const entry = make("button", { type: "button", class: "entry", "aria-label": this.said(number) }, make("span", { class: "from", text: word }), make("span", { class: "quiet", text: `${count}×` }), make("span", { class: `to ${grade(probability)}`, text: name }), make("span", { class: "bar-number", text: short(probability) }));
    entry.dataset.word = number;
    return entry;
  }

  said(number) {
    const { word, name, probability } = this.answer.words[number];
    return `${word}: ${name}, ${percent(probability)}`;
  }

  facts() {
    const { answer, truth } = this;
    const parts = [`Read in ${answer.seconds.toFixed(1)} s. No two words have the same meaning.`];
    if (truth) {
      const right = answer.words.reduce((sum, { word, name, count }) => sum + (truth[word] === name ? count : 0), 0);
      parts.push(`The words are known here: ${right} of ${answer.n_words} are right.`);
    }
    return parts.join(" ");
  }

  mark(number) {
    const { word, name, probability, count, guesses } = this.answer.words[number];
    for (const cell of document.querySelectorAll("[data-word]")) cell.classList.toggle("marked", Number(cell.dataset.word) === number);
    const truth = this.truth?.[word];
    const says = `Seen ${times(count)}. Read as “${name}”: ${percent(probability)} sure.${truth ? ` The right word is “${truth}”.` : ""}`;
    const bars = Object.entries(guesses).map(([guess, p]) => {
      const fill = make("span", { class: "bar-fill" });
      fill.style.width = `${(p * 100).toFixed(1)}%`;
      return make("li", { class: "word-bar" }, make("span", { class: "bar-name", text: guess }), make("span", { class: "bar-room" }, fill), make("span", { class: "bar-number", text: short(p) }));
    });
    find("word-body").replaceChildren(
      make("p", { class: "glyph" }, make("span", { class: "token", text: word }), make("span", { class: "arrow", text: "→" }), make("span", { class: "guess-glyph token", text: name })),
      make("p", { class: "says", text: says }),
      make("ol", { class: "bars", "aria-label": `What ${word} may stand for` }, ...bars),
    );
  }
}
