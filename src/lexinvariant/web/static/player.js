// Where in the text we are: 0 is nothing read, n is all read, n + 1 is the solution.

import { calm, draw, find } from "./dom.js";

const SECONDS = 9;

export class Player {
  constructor(onMove, onRest) {
    Object.assign(this, { onMove, onRest, n: 0, position: 0, playing: false });
    this.slider = find("slider");
    this.button = find("play");
    this.slider.addEventListener("input", () => {
      this.pause();
      this.go(Number(this.slider.value));
      this.onRest();
    });
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    find("solution").addEventListener("click", () => this.finish());
  }

  get solved() {
    return this.position > this.n;
  }

  // Whole symbols that are read.
  get length() {
    return Math.min(this.n, Math.floor(this.position));
  }

  build(trace) {
    this.n = trace.n;
    this.slider.max = String(trace.n + 1);
    const points = trace.lengths.map((length, f) => `${((100 * length) / (trace.n + 1)).toFixed(2)},${(100 - 100 * trace.readable[f]).toFixed(2)}`);
    find("spark").replaceChildren(
      draw("polygon", { points: `0,100 0,100 ${points.join(" ")} 100,${points.at(-1).split(",")[1]} 100,100` }),
    );
  }

  go(position) {
    this.position = position;
    this.slider.value = String(Math.round(position));
    this.onMove();
  }

  finish() {
    this.pause(false);
    this.go(this.n + 1);
    this.onRest();
  }

  play() {
    if (this.position >= this.n) this.position = 0;
    this.playing = true;
    this.show();
    if (calm()) {
      // Without motion, playing is a few steps that stand still for a moment each.
      const step = () => {
        if (!this.playing) return;
        if (this.position + this.n / 8 > this.n) return this.finish();
        this.go(Math.round(this.position + this.n / 8));
        this.timer = setTimeout(step, 1500);
      };
      step();
      return;
    }
    let last = performance.now();
    const speed = this.n / Math.min(SECONDS, 2 + this.n / 25);
    const tick = (now) => {
      if (!this.playing) return;
      const next = this.position + (Math.min(now - last, 100) / 1000) * speed;
      last = now;
      if (next >= this.n) {
        this.go(this.n);
        this.timer = setTimeout(() => this.playing && this.finish(), 500);
        return;
      }
      this.go(next);
      this.request = requestAnimationFrame(tick);
    };
    this.request = requestAnimationFrame(tick);
  }

  pause(rest = true) {
    const was = this.playing;
    this.playing = false;
    clearTimeout(this.timer);
    cancelAnimationFrame(this.request);
    this.show();
    if (was && rest) {
      this.go(Math.round(this.position));
      this.onRest();
    }
  }

  show() {
    this.button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.button.classList.toggle("playing", this.playing);
  }
}
