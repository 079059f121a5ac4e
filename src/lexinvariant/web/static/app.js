// The page: asks the server, and shows one text as the model reads it.

import { get, post } from "./api.js";
import { calm, find, make, percent, said, shown, signs } from "./dom.js";
import { chips, press } from "./examples.js";
import { HeatMap } from "./heatmap.js";
import { Inspector } from "./inspector.js";
import { layOut } from "./layout.js";
import { Player } from "./player.js";
import { link, shared } from "./share.js";
import { Stage } from "./stage.js";
import { groups, symbols } from "./symbols.js";
import { drawTeaser } from "./teaser.js";
import { Trace } from "./trace.js";
import { figure, isKeyless, isUnread, language, named, showVerdict, showWaiting } from "./verdict.js";
import { Words } from "./words.js";

const state = { asked: null, reading: null, trace: null, text: null, truth: null, cribs: {}, marked: -1, waiting: null };
const stage = new Stage(find("stage"), (row) => row >= 0 && mark(row, false));
const map = new HeatMap((row, focusPin, character) => mark(row, focusPin, character));
const player = new Player(show, rest);
const words = new Words();
const inspector = new Inspector({ onPin: pin, onUnpin: unpin, onLeave: (row) => map.focus(row) });

const mode = () => document.querySelector("input[name=mode]:checked").value;
const FORMS = {
  decipher: { label: "Ciphertext", placeholder: "Paste a ciphertext, in any symbols.", go: "Decipher", missing: "Paste a ciphertext first, or choose an example." },
  encipher: { label: "Text to encipher", placeholder: "Write anything: it gets a random key, which the model does not see.", go: "Encipher it", missing: "Write something to encipher first." },
  words: { label: "Text in made-up words", placeholder: "Paste a text whose words were replaced one for one by made-up ones; the longer, the better.", go: "Read", missing: "Paste a text first, or choose the example." },
};
const tell = (sentence) => (find("news").textContent = sentence);

function trouble(sentence) {
  find("trouble").hidden = !sentence;
  find("trouble").textContent = sentence ?? "";
}

function busy(on, label) {
  document.body.classList.toggle("busy", on);
  find("go").textContent = label ?? FORMS[mode()].go;
  find("result").setAttribute("aria-busy", String(on));
}

// ---- asking

async function ask(request, { truth = null, focus = null, stay = false } = {}) {
  state.waiting?.abort();
  const waiting = (state.waiting = new AbortController());
  trouble(null);
  busy(true, "Reading…");
  tell(stay ? "Reading again with the pinned symbols." : "Reading the text.");
  if (!stay) preview(request);
  const question = { ...request, cribs: state.cribs };
  try {
    const reading = await post("/api/decipher", question, waiting.signal);
    if (waiting !== state.waiting) return;
    showVerdict(reading);
    tell(reading.verdict.sentence);
    const trace = await post("/api/trace", ofModel(question, reading), waiting.signal);
    if (waiting !== state.waiting) return;
    const marked = stay && state.marked >= 0 ? state.trace.rows[state.marked].symbol : focus;
    state.trace = new Trace(trace, reading);
    Object.assign(state, { asked: request, reading, truth, text: layOut(reading, state.trace) });
    build(marked);
    if (stay && !isKeyless(reading)) player.go(Math.min(player.position, player.n + 1));
    else if (atOnce(reading)) player.go(player.n + 1);
    else player.go(0);
    if (stay || atOnce(reading)) rest();
    else player.play();
    tell(summary());
  } catch (error) {
    if (error.name === "AbortError") return;
    tell("");
    if (stay) {
      undo();
      inspector.trouble(error.message);
    } else {
      trouble(error.message);
      only("empty");
    }
  } finally {
    if (waiting === state.waiting) busy(false);
  }
}

// Of a reading without a key of symbols there is nothing to play: the model believes in such a key.
const atOnce = (reading) => calm() || isKeyless(reading);

// A trace shows the model alone, which places no words, and finds out neither a language nor its spelling nor what was
// enciphered.
const ofModel = ({ crib_words: _, ...question }, { verdict, alphabet, folded }) => ({
  ...question,
  language: verdict.language ?? question.language,
  folded,
  alphabet: question.alphabet === "auto" ? alphabet : question.alphabet,
});

function summary() {
  const { verdict, seconds } = state.reading;
  return `${verdict.sentence} ${language(state.reading)} ${figure(state.reading)} Deciphered in ${seconds.toFixed(1)} seconds. The plaintext: ${plaintext().slice(0, 600)}`;
}

const plaintext = () => state.reading.spaced ?? state.reading.plaintext;

// The ciphertext at once, dimmed, while the model reads it.
function preview({ text, notation }) {
  player.pause(false);
  only("result");
  find("result").classList.add("waiting");
  find("result").classList.remove("keyless", "moved");
  const cells = symbols(text, notation).slice(0, 512);
  stage.build(cells, cells.map((cell) => (/\s/.test(cell) ? -1 : 0)));
  find("moment").textContent = "reading…";
  showWaiting();
  find("result").scrollIntoView({ behavior: calm() ? "auto" : "smooth", block: "start" });
}

// ---- showing

function build(symbol) {
  const { trace, reading, text } = state;
  find("result").classList.remove("waiting");
  find("result").classList.toggle("keyless", isKeyless(reading));
  find("result").classList.toggle("moved", text.moved);
  find("map-about").textContent = isKeyless(reading)
    ? "In this cipher no symbol stands for the same letter throughout: there is no key of symbols to show, and nothing to pin."
    : "Each row is a symbol of the cipher, each column a character it may stand for.";
  showVerdict(reading);
  stage.build(text.cells, text.rowAt);
  map.build(trace);
  player.build(trace);
  const notes = [reading.note, trace.note].filter(Boolean).join(" ");
  find("note").hidden = !notes;
  find("note").textContent = notes;
  mark(trace.rows.findIndex((row) => row.symbol === symbol), false, undefined, true);
  if (state.marked < 0) mark(mostFrequent(), false, undefined, true);
  others(reading.alternatives ?? []);
  find("whole-text").textContent = plaintext();
  find("plaintext").textContent = "";
  find("facts").textContent = facts();
}

// Spaces are the commonest and say the least.
function mostFrequent() {
  const { trace } = state;
  const count = ({ plain }, r) => (plain && plain.trim() ? trace.places[r].length : 0.5);
  return trace.rows.reduce((best, row, r) => (best < 0 || count(row, r) > count(trace.rows[best], best) ? r : best), -1);
}

function others(alternatives) {
  const texts = alternatives.map((other) => (typeof other === "string" ? { plaintext: other } : other));
  const different = texts.filter(({ plaintext }) => plaintext && plaintext !== state.reading.plaintext);
  find("others").hidden = !different.length;
  find("alternatives").replaceChildren(
    ...different.map(({ plaintext, probability }) => {
      const chance = probability === undefined ? "" : ` (${percent(probability)})`;
      return make("li", { text: (plaintext.length > 300 ? `${plaintext.slice(0, 300)}…` : plaintext) + chance });
    }),
  );
}

// What each row is taken for now: the likeliest character, or at the end the solver's.
function looks(values) {
  const { trace } = state;
  return trace.rows.map(({ symbol, plain, confidence }, r) => {
    const pinned = symbol in state.cribs;
    const occurred = trace.places[r][0] < player.length;
    if (player.solved) return { plain, p: confidence, pinned };
    return occurred ? { ...trace.best(values, r), pinned } : null;
  });
}

// What each cell of the text is taken for now, with its capitals: before the end by its symbol's row, and then as the
// server has written it.
function taken(now) {
  const { trace, text } = state;
  return text.rowAt.map((r, t) => {
    if (r < 0 || t >= player.length) return null;
    if (!player.solved) return now[r]?.plain && trace.isCapital(t) ? { ...now[r], plain: now[r].plain.toUpperCase() } : now[r];
    return { plain: text.pieces[t], p: text.sure ? text.sure[t] : now[r].p, pinned: !text.sure && now[r].pinned };
  });
}

function show() {
  const { trace } = state;
  if (!trace) return;
  const position = Math.min(player.position, trace.n);
  const room = state.values?.length === trace.size ? state.values : undefined;
  const values = (state.values = player.solved ? trace.solution(room) : trace.at(position, room));
  const now = looks(values);
  stage.show(taken(now), player.length, state.marked);
  map.show(values, now, state.marked, player.solved);
  if (state.marked >= 0) inspector.show(values, now[state.marked], player.length);
  const read = trace.share(values, player.length);
  find("moment").textContent = player.solved
    ? isUnread(state.reading)
      ? "No reading"
      : `Solution: ${percent(state.reading.right)} sure`
    : player.length === 0
      ? "nothing read yet"
      : `${player.length} of ${trace.n} read, ${percent(read)} of it readable`;
  find("slider").setAttribute("aria-valuetext", find("moment").textContent);
  find("solution").setAttribute("aria-pressed", String(player.solved));
  document.body.classList.toggle("solved", player.solved);
}

// Said and written out only when nothing moves.
function rest() {
  show();
  if (!state.trace) return;
  map.describe();
  const each = taken(map.looks);
  const text = state.text.cells.map((cell, t) => (state.text.rowAt[t] < 0 ? cell : (each[t]?.plain ?? "·")));
  find("plaintext").textContent = text.join("");
}

function facts() {
  const { reading, trace, truth, cribs } = state;
  const parts = [`Deciphered in ${reading.seconds.toFixed(1)} s.`];
  const pinned = Object.keys(cribs).length;
  if (pinned) parts.push(`${pinned} pinned.`);
  if (truth) {
    const meant = (symbol) => truth[symbol] ?? truth[symbol.toUpperCase()]?.toLowerCase() ?? symbol;
    const right = trace.rows.filter(({ symbol, plain }) => plain === meant(symbol)).length;
    parts.push(`The key is known here: ${right} of ${trace.rows.length} symbols are right.`);
  }
  return parts.join(" ");
}

function mark(row, focusPin, character, quietly = false) {
  state.marked = isKeyless(state.reading) ? -1 : row;
  if (state.marked < 0) return inspector.empty();
  map.buttons.forEach((button, r) => (button.tabIndex = r === row ? 0 : -1));
  inspector.build(state.trace, row, state.trace.rows[row].symbol in state.cribs);
  if (character) inspector.input.value = character;
  if (!quietly) {
    show();
    if (!player.playing) map.describe();
  }
  if (focusPin) {
    player.pause();
    inspector.input.focus();
  }
}

// ---- pinning

function pin(symbol, character) {
  const held = Object.entries(state.cribs).find(([other, plain]) => plain === character && other !== symbol);
  if (held) return inspector.trouble(`${shown(held[0])} is already pinned to ${shown(character)}: unpin it first.`);
  change({ ...state.cribs, [symbol]: character }, `${said(symbol)} pinned to ${said(character)}.`);
}

function unpin(symbol) {
  const { [symbol]: _, ...rest } = state.cribs;
  change(rest, `${said(symbol)} is unpinned.`);
}

async function change(cribs, sentence) {
  player.pause();
  state.before = state.cribs;
  state.cribs = cribs;
  await ask(state.asked, { truth: state.truth, stay: true });
  if (state.cribs === cribs) tell(`${sentence} ${summary()}`);
  inspector.input?.focus();
}

function undo() {
  state.cribs = state.before ?? {};
  show();
}

// ---- the form

find("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = find("text").value;
  if (!text.trim()) {
    find("text").focus();
    return trouble(FORMS[mode()].missing);
  }
  if (mode() === "words") {
    press(null);
    return readWords(text, text === state.own?.ciphertext ? state.own.key : null, find("make-up").checked);
  }
  if (mode() === "encipher") return encipher(text);
  press(null);
  start(asked(text), { truth: text === state.own?.ciphertext ? state.own.key : null });
});

// What the form says of a ciphertext, as the server is asked.
function asked(text) {
  const words = find("crib-words").value.split(/[\s,;]+/).filter(Boolean);
  return {
    text,
    alphabet: find("alphabet").value,
    notation: find("notation").value,
    language: find("language").value,
    unspaced: find("unspaced").checked,
    crib_text: find("crib-text").value.trimEnd(),
    crib_words: words,
  };
}

function start(request, rest = {}) {
  state.cribs = {};
  ask(request, rest);
}

async function encipher(text) {
  busy(true, "Enciphering…");
  try {
    const own = await post("/api/encipher", { text, into: find("into").value });
    state.own = own;
    choose("decipher");
    fill(own.ciphertext, find("into").value === "ascii" ? "ascii" : "auto", false);
    start(asked(own.ciphertext), { truth: own.key });
  } catch (error) {
    trouble(error.message);
    busy(false);
  }
}

// A text in made-up words; those of a plain one are made up first.
async function readWords(text, truth, makeUp = false) {
  state.waiting?.abort();
  const waiting = (state.waiting = new AbortController());
  trouble(null);
  busy(true, "Reading…");
  tell("Reading the text.");
  player.pause(false);
  try {
    if (makeUp) {
      state.own = await post("/api/encipher", { text, into: "words" }, waiting.signal);
      [text, truth] = [state.own.ciphertext, state.own.key];
      find("make-up").checked = false;
      fill(text, "auto", false);
    }
    const answer = await post("/api/words", { text, marks_too: find("marks-too").checked }, waiting.signal);
    if (waiting !== state.waiting) return;
    only("words");
    words.build(answer, truth);
    find("words").scrollIntoView({ behavior: calm() ? "auto" : "smooth", block: "start" });
    tell(`${find("words-moment").textContent}. ${answer.plaintext.slice(0, 600)}`);
  } catch (error) {
    if (error.name === "AbortError") return;
    tell("");
    trouble(error.message);
    only("empty");
  } finally {
    if (waiting === state.waiting) busy(false);
  }
}

// One of the three stands under the form.
function only(id) {
  for (const each of ["result", "words", "empty"]) find(each).hidden = each !== id;
}

function fill(text, alphabet, unspaced) {
  find("text").value = text;
  describe(alphabet, unspaced);
  count();
}

// What is said of a text belongs to that text alone.
function describe(alphabet = "auto", unspaced = false) {
  find("alphabet").value = alphabet;
  find("notation").value = find("language").value = "auto";
  find("unspaced").checked = unspaced;
  find("crib-text").value = find("crib-words").value = "";
}

function count() {
  const text = find("text").value;
  const inWords = mode() === "words";
  const wordsOf = () => text.toLowerCase().match(/\p{L}+/gu) ?? [];
  const groupsOf = () => (mode() === "decipher" ? groups(text, find("notation").value) : null);
  const pieces = !text.trim() ? [] : inWords ? wordsOf() : groupsOf();
  const cells = pieces ?? signs(text); // spaces and marks are counted, too: only the server knows which of them are kept
  const distinct = new Set(cells).size;
  const kind = inWords ? "word" : pieces ? "symbol" : "character";
  const many = cells.length === 1 ? `1 ${kind}` : `${cells.length.toLocaleString("en")} ${kind}s`;
  find("length").textContent = cells.length ? `${many}, ${distinct} different` : "";
}

function choose(value) {
  document.querySelector(`input[name=mode][value=${value}]`).checked = true;
  const { label, placeholder, go } = FORMS[value];
  find("text-label").textContent = label;
  find("text").placeholder = placeholder;
  for (const name of Object.keys(FORMS))
    for (const element of document.querySelectorAll(`.for-${name}`)) element.hidden = name !== value;
  find("go").textContent = go;
}

for (const input of document.querySelectorAll("input[name=mode]"))
  input.addEventListener("change", () => {
    choose(mode());
    if (mode() !== "decipher" && state.filled === find("text").value) fill("", "auto", false);
    count();
    find("text").focus();
  });
find("text").addEventListener("input", count);
find("text").addEventListener("paste", ({ target }) => {
  if (target.selectionStart === 0 && target.selectionEnd === target.value.length) describe(); // another text altogether
});
find("notation").addEventListener("change", count);
find("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("ask").requestSubmit();
});

find("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(plaintext());
    find("copy").textContent = "Copied";
    tell("The plaintext is copied.");
    setTimeout(() => (find("copy").textContent = "Copy the plaintext"), 1500);
  } catch {
    trouble("The browser does not allow copying here: select the text and copy it by hand.");
    find("whole").open = true;
  }
});

find("share").addEventListener("click", async () => {
  const url = link(state.asked);
  if (!url) return trouble("The text is too long for a link: send the text itself.");
  history.replaceState(null, "", url); // if copying is not allowed, it stands in the address line
  try {
    await navigator.clipboard.writeText(url);
    tell("A link that contains the text is copied.");
    find("share").textContent = "Copied";
    setTimeout(() => (find("share").textContent = "Copy a link"), 1500);
  } catch {
    trouble("The browser does not allow copying here: the link is in the address bar.");
  }
});

// ---- the start

// What a shared link asks, as if somebody had pasted it.
function open({ text, alphabet, notation, language, unspaced, crib_text, crib_words, others }) {
  choose("decipher");
  fill(text, "auto", unspaced);
  const said = { alphabet, notation, language, "crib-text": crib_text, "crib-words": crib_words.join(" ") };
  for (const [id, value] of Object.entries(said)) find(id).value = value;
  const unknown = ["alphabet", "notation", "language"].filter((id) => !find(id).value); // a link may say anything
  for (const id of unknown) find(id).value = "auto";
  count();
  press(null);
  start(asked(text));
  const ignored = [...unknown.map((id) => [id, said[id]]), ...others].map((pair) => pair.join("=").slice(0, 40));
  if (ignored.length) trouble(`The link says things that are unknown here and were left out: ${ignored.join(", ")}.`);
}

function run(example) {
  const inWords = example.group === "words";
  choose(inWords ? "words" : "decipher");
  fill(example.text, example.alphabet, example.unspaced);
  state.filled = example.text;
  press(example.name);
  if (inWords) {
    state.own = { ciphertext: example.text, key: example.key };
    find("make-up").checked = find("marks-too").checked = false;
    return readWords(example.text, example.key);
  }
  start(asked(example.text), { truth: example.key, focus: example.focus });
}

async function health() {
  try {
    const { status, model, names_words, languages } = await get("/api/health");
    find("words-mode").hidden = !names_words;
    if (find("language").options.length === 1)
      find("language").append(...languages.map((name) => make("option", { value: name, text: named(name) })));
    find("health").textContent = `${model} · ${status}`;
    find("health").dataset.status = status;
    if (status !== "ready") setTimeout(health, 2000);
  } catch {
    find("health").textContent = "not connected";
    find("health").dataset.status = "lost";
    setTimeout(health, 5000);
  }
}

async function begin() {
  choose(mode());
  count();
  const known = health();
  drawTeaser(find("teaser"));
  try {
    const { examples } = await get("/api/examples");
    const groups = { ours: "Try", paper: "From the paper", words: "Made-up words" };
    const held = Object.entries(groups).filter(([group]) => examples.some((example) => example.group === group));
    find("examples").replaceChildren(...held.map(([group, title]) => chips(examples, group, title, run)));
    await known; // a link may name a language
    const question = shared(location.hash);
    const wanted = examples.find(({ name }) => `#${name}` === location.hash);
    if (question?.text.trim()) open(question);
    else if (wanted) run(wanted);
    else if (!find("text").value && examples.length) {
      fill(examples[0].text, examples[0].alphabet, examples[0].unspaced);
      state.filled = examples[0].text;
      state.own = { ciphertext: examples[0].text, key: examples[0].key };
    }
  } catch (error) {
    trouble(error.message);
  }
}

addEventListener("hashchange", () => {
  const question = shared(location.hash);
  if (question?.text.trim()) open(question);
});
begin();
