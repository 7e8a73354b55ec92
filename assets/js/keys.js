// The hits by keyboard: arrows, J and K move between them, X selects one, Enter opens it as any link. Space for a
// quick look is in lightbox.js.
//
// The keys work while a hit has the focus, J and K also while nothing has it: elsewhere they are letters.

import { more, show, tiles } from "./wall.js";

const list = document.querySelector("[data-hits]");

/** The link of a hit to its page. */
export const linkOf = (tile) => tile?.querySelector("a:not([tabindex='-1'])");

/** The hit whose link has the focus. */
export function focused() {
  const tile = document.activeElement?.closest("[data-hits] > li");
  return tile && linkOf(tile) === document.activeElement ? tile : null;
}

/** Focuses a hit and brings it into the window. */
export function focus(tile) {
  show(tile);
  linkOf(tile)?.focus({ preventScroll: true });
  tile.scrollIntoView({ block: "nearest" });
}

/** How many hits stand in a row. */
function columns() {
  const all = tiles();
  const first = all[0].offsetTop;
  const next = all.findIndex((tile) => tile.offsetTop > first);
  return next > 0 ? next : all.length;
}

async function move(from, step) {
  const all = tiles();
  const to = from + step;
  if (to < 0) return;
  if (to >= all.length && !(await more())) return;
  const tile = tiles()[to];
  if (tile) focus(tile);
}

function firstInWindow() {
  return tiles().find((tile) => tile.getBoundingClientRect().top >= 0) ?? tiles()[0];
}

const STEPS = {
  j: () => 1,
  k: () => -1,
  ArrowRight: () => (document.dir === "rtl" ? -1 : 1),
  ArrowLeft: () => (document.dir === "rtl" ? 1 : -1),
  ArrowDown: columns,
  ArrowUp: () => -columns(),
};

function isFree() {
  return [null, document.body, document.querySelector("main")].includes(document.activeElement);
}

document.addEventListener("keydown", (event) => {
  // A script that selects hits itself has the key first.
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const tile = focused();
  if (!tile) {
    // Arrows scroll the page until a hit has the focus.
    if (!isFree() || !["j", "k"].includes(key) || !tiles().length) return;
    event.preventDefault();
    focus(firstInWindow());
  } else if (STEPS[key]) {
    event.preventDefault();
    move(tiles().indexOf(tile), STEPS[key]());
  } else if (key === "x") {
    tile.querySelector("input[name=uri]")?.click();
  }
});

if (list) {
  for (const help of document.querySelectorAll(".keyboard")) help.hidden = false;
}
