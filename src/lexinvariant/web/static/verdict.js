// What a text is, in which language, and how sure all that is: the first thing that is shown of an answer.

import { find, make, percent, sentence } from "./dom.js";

export const named = (language) => language[0].toUpperCase() + language.slice(1);

export const isUnread = ({ verdict }) => verdict.status === "unread";

// Several alphabets, or letters in other places: no symbol stands for one letter, so that there is no key of symbols.
export const isKeyless = ({ letter_confidence }) => letter_confidence.length > 0;

export const figure = (reading) =>
  isUnread(reading) ? "The best reading below is probably wrong throughout." : sentence(`${percent(reading.right)} of the symbols are expected to be right.`);

// The language with its probability where it was found out, and what else it may be.
export function language({ verdict }) {
  if (!verdict.language) return "";
  const likely = Object.entries(verdict.languages).filter(([, p]) => p >= 0.01);
  const told = likely.map(([name, p]) => `${named(name)} (${percent(p)})`);
  return `Language: ${told.join(", or ") || named(verdict.language)}.`;
}

export function showVerdict(reading) {
  const { verdict } = reading;
  find("verdict").dataset.status = verdict.status;
  find("verdict-sentence").textContent = verdict.sentence;
  find("verdict-figure").textContent = figure(reading);
  find("verdict-language").textContent = language(reading);
  const kinds = Object.entries(verdict.kinds).filter(([, p]) => p >= 0.01);
  const byKind = `By kind: ${kinds.map(([kind, p]) => `${kind.replace("-", " ")} ${percent(p)}`).join(", ")}.`;
  find("reasons").replaceChildren(...[...verdict.reasons, byKind].map((reason) => make("li", { text: reason })));
}

export function showWaiting() {
  find("verdict").dataset.status = "waiting";
  find("verdict-sentence").textContent = "Reading…";
  find("verdict-figure").textContent = find("verdict-language").textContent = "";
  find("reasons").replaceChildren();
}
