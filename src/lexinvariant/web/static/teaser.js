// What stands where the result will be: a key that is just becoming clear.

import { calm, fit } from "./dom.js";
import { palette } from "./heatmap.js";

const [COLUMNS, ROWS, STEP] = [32, 10, 20];

export function drawTeaser(canvas) {
  const noise = Array.from({ length: COLUMNS * ROWS }, (_, i) => Math.abs(Math.sin(i * 12.9898) * 43758.5453) % 1);
  const paint = (clear) => {
    const colours = palette();
    const context = fit(canvas, COLUMNS * STEP, ROWS * STEP);
    context.clearRect(0, 0, COLUMNS * STEP, ROWS * STEP);
    for (let r = 0; r < ROWS; r++)
      for (let c = 0; c < COLUMNS; c++) {
        const distance = Math.abs(c / (COLUMNS - 1) - r / (ROWS - 1)) * 12;
        const p = Math.exp(-distance * distance * (0.2 + clear * 3)) * 0.85 + (1 - clear) * 0.18 * noise[r * COLUMNS + c];
        context.fillStyle = colours[Math.round(Math.min(1, p) * 255)];
        context.fillRect(c * STEP + 1, r * STEP + 1, STEP - 2, STEP - 2);
      }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint(0.8));
  if (calm()) return paint(0.8);
  const began = performance.now();
  const tick = (now) => {
    const clear = Math.min(1, (now - began) / 2500);
    paint(0.8 * clear * clear * (3 - 2 * clear));
    if (clear < 1 && !canvas.closest("[hidden]")) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}
