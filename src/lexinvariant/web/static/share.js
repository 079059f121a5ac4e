// A text and what is said of it, in the part of an address that no browser sends: whoever has the link has the text.

const LONGEST = 8000; // characters of a link: longer ones are cut by what people send them with
const USUAL = { alphabet: "auto", notation: "auto", language: "auto", unspaced: false, crib_text: "", crib_words: [] };

// The link to a question, or null if it would be too long.
export function link(question) {
  const said = new URLSearchParams({ text: question.text });
  for (const [name, usual] of Object.entries(USUAL))
    if (String(question[name] ?? usual) !== String(usual)) said.set(name, name === "crib_words" ? question[name].join(" ") : String(question[name]));
  const url = `${location.origin}${location.pathname}#${said}`;
  return url.length <= LONGEST ? url : null;
}

const isKnown = (name, value) => Object.hasOwn(USUAL, name) && (name !== "unspaced" || /^(true|false)$/.test(value));

// The question in an address, or null if there is none.
export function shared(hash) {
  if (!hash.startsWith("#text=")) return null;
  const said = new URLSearchParams(hash.slice(1));
  return {
    text: said.get("text"),
    alphabet: said.get("alphabet") ?? USUAL.alphabet,
    notation: said.get("notation") ?? USUAL.notation,
    language: said.get("language") ?? USUAL.language,
    unspaced: said.get("unspaced") === "true",
    crib_text: said.get("crib_text") ?? "",
    crib_words: (said.get("crib_words") ?? "").split(" ").filter(Boolean),
    others: [...said].filter(([name, value]) => name !== "text" && !isKnown(name, value)),
  };
}
