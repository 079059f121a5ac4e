// A text in pieces of one symbol each.

import { signs } from "./dom.js";

// About what the server takes for symbols, to show them before it answers.
export const symbols = (text, notation) => groups(text, notation) ?? signs(text);

// Symbols of several characters each, or null where each character is one of the text.
export function groups(text, notation) {
  const runs = text.match(/\d+/g) ?? [];
  const inDigits = /^[\d\s,;:.\-–/|_+]+$/.test(text);
  const inNumbers = inDigits && runs.length >= 3 && runs.every((run) => run.length <= 3);
  const digits = runs.join("");
  const inPairs = inDigits && !inNumbers && digits.length >= 10 && digits.length % 2 === 0;
  if (notation === "numbers" || (notation === "auto" && inNumbers)) return runs;
  if (notation === "pairs" || (notation === "auto" && inPairs)) return text.replace(/\s/g, "").match(/../gu) ?? [];
  return notation === "tokens" ? text.trim().split(/\s+/) : null;
}
