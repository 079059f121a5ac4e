// Which signs stand on the stage, and what the server's plaintext says in the place of each.

import { signs } from "./dom.js";
import { isKeyless } from "./verdict.js";

// {cells, rowAt, pieces, sure, moved}: the ciphertext's cells, the row of each one's symbol (-1: it stands for itself) and
// its part of the plaintext. `sure` tells of each cell how likely it is right, where no key of symbols does. Where
// characters changed places, the ciphertext's cells say nothing about the plaintext's: that is shown by itself.
export function layOut(reading, trace) {
  const { cells, rowAt } = trace;
  const pieces = inPlaces(reading.plaintext, trace);
  if (!isKeyless(reading)) return { cells, rowAt, pieces, sure: null, moved: false };
  const sureOf = (rows) => {
    let next = 0;
    return rows.map((r) => (r < 0 ? null : reading.letter_confidence[next++]));
  };
  if (pieces.every((piece, t) => rowAt[t] >= 0 || piece === cells[t])) return { cells, rowAt, pieces, sure: sureOf(rowAt), moved: false };
  const kept = new Set(cells.filter((_, t) => rowAt[t] < 0)); // a letter of another alphabet may be one of these
  const plain = signs(reading.plaintext).slice(0, trace.n);
  const rows = plain.map((sign) => (/\p{L}/u.test(sign) && !kept.has(sign) ? 0 : -1));
  return { cells: plain, rowAt: rows, pieces: plain, sure: sureOf(rows), moved: true };
}

// One character stands for each symbol; what is kept may be a sign of several.
function inPlaces(plaintext, { cells, rowAt }) {
  const characters = Array.from(plaintext);
  let end = 0;
  return cells.map((cell, t) => characters.slice(end, (end += rowAt[t] < 0 ? Array.from(cell).length : 1)).join(""));
}
