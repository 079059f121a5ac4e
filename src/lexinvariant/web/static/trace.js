// What the model knew of the key after every symbol, unpacked from the server's answer.

const RANK = (c) =>
  c === " " ? 0 : /[a-z]/.test(c) ? 1 : /[A-Z]/.test(c) ? 2 : /[0-9]/.test(c) ? 3 : c < " " ? 5 : 4;
const byKind = (a, b) => RANK(a) - RANK(b) || (a < b ? -1 : a > b ? 1 : 0);
const LETTERS = 26; // so few are always all shown
const WORTH_A_COLUMN = 30; // of 255: a character that is never likelier gets no column

export class Trace {
  constructor(answer, reading) {
    Object.assign(this, { cells: answer.cells, symbol: answer.symbol, lengths: answer.lengths, note: answer.note });
    const table = Uint8Array.from(atob(answer.table), (c) => c.charCodeAt(0));
    const [nS, nC] = [answer.symbols.length, answer.characters.length];
    this.n = this.cells.length;

    // The solver's key, by the symbols that the trace has rows for (letters count in either case).
    const solved = (symbol) => reading.key[symbol] ?? reading.key[symbol.toUpperCase()]?.toLowerCase();
    const sure = (symbol) => reading.confidence[symbol] ?? reading.confidence[symbol.toUpperCase()] ?? 0;

    const peak = new Uint8Array(nC);
    for (let i = 0; i < table.length; i++) if (table[i] > peak[i % nC]) peak[i % nC] = table[i];
    const inKey = new Set(answer.symbols.map(solved));
    const unlikely = [...inKey].filter((plain) => plain && !answer.characters.includes(plain)); // found by search alone
    const columns = [...answer.characters, ...unlikely]
      .map((character, c) => ({ character, c }))
      .filter(({ character, c }) => nC <= LETTERS || peak[c] >= WORTH_A_COLUMN || inKey.has(character))
      .sort((a, b) => byKind(a.character, b.character));
    const place = new Map(columns.map(({ character }, c) => [character, c]));
    const rows = answer.symbols
      .map((symbol, s) => ({ symbol, s, plain: solved(symbol), confidence: sure(symbol) }))
      .sort((a, b) => (place.get(a.plain) ?? 999) - (place.get(b.plain) ?? 999));

    this.characters = columns.map(({ character }) => character);
    this.rows = rows.map(({ symbol, plain, confidence }) => ({ symbol, plain, confidence, column: place.get(plain) ?? -1 }));
    const rowOf = new Int32Array(nS);
    rows.forEach(({ s }, r) => (rowOf[s] = r));
    this.rowAt = this.symbol.map((s) => (s < 0 ? -1 : rowOf[s]));
    this.table = new Float32Array(this.lengths.length * rows.length * columns.length);
    let to = 0;
    for (let f = 0; f < this.lengths.length; f++)
      for (const { s } of rows) for (const { c } of columns) this.table[to++] = c < nC ? table[(f * nS + s) * nC + c] / 255 : 0;

    // A cell that is not its row's symbol is that in capitals, or with an accent that the spelling leaves out.
    this.isCapital = (t) => this.rowAt[t] >= 0 && this.cells[t] !== this.rows[this.rowAt[t]].symbol && this.cells[t] !== this.cells[t].toLowerCase();
    this.places = this.rows.map(() => []);
    this.rowAt.forEach((r, t) => r >= 0 && this.places[r].push(t));
    this.readable = this.lengths.map((length, f) => this.share(this.frame(f), length));
  }

  get size() {
    return this.rows.length * this.characters.length;
  }

  frame(f) {
    return this.table.subarray(f * this.size, (f + 1) * this.size);
  }

  // The table after `position` symbols; between two moments that were looked at, a mixture of both.
  at(position, into = new Float32Array(this.size)) {
    if (position < this.lengths[0]) return into.fill(0);
    let after = this.lengths.findIndex((length) => length > position);
    if (after < 0) after = this.lengths.length - 1;
    const before = Math.max(0, this.lengths[after] <= position ? after : after - 1);
    const span = this.lengths[after] - this.lengths[before];
    const share = span ? (position - this.lengths[before]) / span : 0;
    const [a, b] = [this.frame(before), this.frame(after)];
    for (let i = 0; i < into.length; i++) into[i] = a[i] + (b[i] - a[i]) * share;
    return into;
  }

  // The solver's key: as sure as it is of each character, and what is left shared as the model shared it.
  solution(into = new Float32Array(this.size)) {
    const width = this.characters.length;
    into.set(this.frame(this.lengths.length - 1));
    this.rows.forEach(({ column, confidence }, r) => {
      if (column < 0) return;
      const row = into.subarray(r * width, (r + 1) * width);
      const rest = row.reduce((sum, p) => sum + p, 0) - row[column];
      const scale = rest > 0 ? (1 - confidence) / rest : 0;
      for (let c = 0; c < width; c++) row[c] *= scale;
      row[column] = confidence;
    });
    return into;
  }

  best(values, row) {
    const width = this.characters.length;
    let [column, p] = [-1, 0];
    for (let c = 0; c < width; c++) if (values[row * width + c] > p) [column, p] = [c, values[row * width + c]];
    return { column, p, plain: column < 0 ? null : this.characters[column] };
  }

  likeliest(values, row, count) {
    const width = this.characters.length;
    return this.characters
      .map((plain, c) => ({ plain, column: c, p: values[row * width + c] }))
      .sort((a, b) => b.p - a.p)
      .slice(0, count);
  }

  // Of the symbols read so far, the share that the likeliest key is expected to read rightly.
  share(values, length) {
    let [sum, count] = [0, 0];
    const best = this.rows.map((_, r) => this.best(values, r).p);
    for (let t = 0; t < length; t++)
      if (this.rowAt[t] >= 0) {
        sum += best[this.rowAt[t]];
        count++;
      }
    return count ? sum / count : 1;
  }
}
