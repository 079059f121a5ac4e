// Elements without HTML strings: text is only ever set as text.

export const find = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function draw(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const NAMES = { " ": "space", "\n": "line end", "\t": "tab", "\r": "return" };
const SIGNS = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "↵" };

// What is seen as one sign is one symbol, though it be several characters.
const JOINED = /[\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\u{1f1e6}-\u{1f1ff}\u{1f3fb}-\u{1f3ff}\u{e0020}-\u{e007f}]/u;
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
export const signs = (text) => (JOINED.test(text) ? Array.from(graphemes.segment(text), ({ segment }) => segment) : Array.from(text));
export const isWord = (symbol) => symbol.length > 1 && signs(symbol).length > 1;

// A character as it can be seen, and as it can be said.
export const shown = (character) => SIGNS[character] ?? (character < " " ? "�" : character);
export const said = (character) =>
  NAMES[character] ?? (character < " " ? "a control character" : /^[A-Z]$/.test(character) ? `capital ${character}` : character);

export const sentence = (text) => text[0].toUpperCase() + text.slice(1);
export const percent = (p) =>
  p > 0.995 && p < 0.99999 ? "over 99%" : p > 0 && p < 0.005 ? "under 1%" : `${Math.round(p * 100)}%`;
export const short = (p) => percent(p).replace("over ", ">").replace("under ", "<");
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export function fit(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
