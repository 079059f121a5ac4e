// Texts that are one click away.

import { find, make } from "./dom.js";

// Shows which example is there, if any.
export function press(name) {
  for (const chip of find("examples").querySelectorAll("button")) chip.setAttribute("aria-pressed", String(chip.dataset.name === name));
}

// Buttons for the examples of one group.
export function chips(examples, group, title, run) {
  const buttons = examples
    .filter((example) => example.group === group)
    .map((example) => {
      const chip = make("button", { type: "button", class: "chip", title: example.about, "aria-pressed": "false", onclick: () => run(example) }, make("span", { text: example.title }));
      chip.dataset.name = example.name;
      return chip;
    });
  return make("div", { class: "row chips", role: "group", "aria-label": title }, make("span", { class: "quiet", text: title, "aria-hidden": "true" }), ...buttons);
}
