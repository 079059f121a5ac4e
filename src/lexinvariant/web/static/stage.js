// The text, one cell a symbol: what it is taken for above, the symbol of the cipher below.

import { calm, isWord, make, shown } from "./dom.js";

const grade = (p) => (p >= 0.9 ? "sure" : p >= 0.5 ? "likely" : "guess");
const isSpace = (cell) => /^\s$/.test(cell);

export class Stage {
  constructor(element, onSymbol) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const cell = event.target.closest(".cell");
      if (cell) onSymbol(Number(cell.dataset.row));
    });
  }

  // Cells for a text of which nothing is read yet; where spaces are kept, words stay together.
  build(cells, rowAt) {
    this.cells = [];
    const tokens = cells.some(isWord);
    const lines = [[]];
    let word = null;
    cells.forEach((symbol, t) => {
      if (rowAt[t] < 0 && isSpace(symbol)) {
        word = null;
        if (symbol === "\n") lines.push([]);
        else lines.at(-1).push(make("span", { class: "gap", text: " " }));
        this.cells.push(null);
        return;
      }
      const plain = make("b", { text: shown(symbol) });
      const cipher = make("i", { text: shown(symbol) });
      const cell = make("span", { class: rowAt[t] < 0 ? "cell kept" : "cell unread" }, plain, cipher);
      cell.classList.toggle("token", tokens);
      cell.dataset.row = rowAt[t];
      if (!word) lines.at(-1).push((word = make("span", { class: "word" })));
      word.append(cell);
      if (rowAt[t] >= 0 && rowAt.every((r) => r >= 0)) word = null; // no spaces known: it may break anywhere
      if (rowAt[t] >= 0 && symbol === "\n") lines.push([]);
      this.cells.push({ cell, plain, symbol: shown(symbol), text: plain.textContent, grade: "unread" });
    });
    this.rowAt = rowAt;
    this.element.replaceChildren(...lines.map((line) => make("div", { class: "line" }, ...line)));
  }

  // `looks[t]` is {plain, p, pinned}, or null where nothing is known; symbols from `length` on are not read yet.
  show(looks, length, marked) {
    const moving = !calm();
    this.cells.forEach((entry, t) => {
      if (!entry) return;
      const row = this.rowAt[t];
      const { cell, plain } = entry;
      cell.classList.toggle("kept-unread", row < 0 && t >= length);
      if (row < 0) return;
      const look = looks[t];
      const text = look?.plain ? shown(look.plain) : entry.symbol;
      const graded = look?.plain ? (look.pinned ? "pinned" : grade(look.p)) : "unread";
      if (text !== entry.text) {
        plain.textContent = entry.text = text;
        if (moving && look) plain.animate([{ opacity: 0.2, transform: "translateY(-3px)" }, {}], { duration: 160 });
      }
      if (graded !== entry.grade) {
        cell.classList.replace(entry.grade, graded);
        entry.grade = graded;
      }
      cell.classList.toggle("blank", Boolean(look?.plain) && isSpace(look.plain));
      cell.classList.toggle("marked", row === marked);
      cell.classList.toggle("now", t === length - 1 && length < this.cells.length);
    });
    this.follow(length);
  }

  // Keeps the symbol just read in view, without moving the page.
  follow(length) {
    const box = this.element;
    const cell = this.cells[Math.min(length, this.cells.length) - 1]?.cell;
    if (!cell || box.scrollHeight <= box.clientHeight || length >= this.cells.length) return;
    const [top, bottom] = [cell.offsetTop - box.offsetTop, cell.offsetTop - box.offsetTop + cell.offsetHeight];
    if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight / 2;
    else if (top < box.scrollTop) box.scrollTop = top - 4;
  }
}
