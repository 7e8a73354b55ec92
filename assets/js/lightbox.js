// A quick look: one picture of the wall as large as the window, with those beside it. It opens by Space and by the
// button of a hit; arrows, J and K lead on, Enter opens the page of the item, X selects it, Space and Escape close.

import { focus, focused, linkOf } from "./keys.js";
import { more, placeOf, show, tiles } from "./wall.js";

const template = document.querySelector("#quick-look");
let dialog = null;
/** The hit that is shown. */
let shown = null;

const hasPicture = (tile) => { show(tile); return tile.querySelector("picture") !== null; };

function offerButtons(list) {
  for (const tile of list) tile.querySelector(".look")?.removeAttribute("hidden");
}

/** The largest picture of a hit, to be as large as the window. */
function enlarged(tile) {
  const picture = tile.querySelector("picture").cloneNode(true);
  const image = picture.querySelector("img");
  for (const one of [image, ...picture.querySelectorAll("source")]) one.sizes = "100vw";
  image.removeAttribute("loading");
  image.alt = tile.querySelector(".headline").textContent;
  return picture;
}

function texts(tile) {
  return [".headline", ".teaser", "figcaption"].flatMap((selector) => {
    const found = tile.querySelector(selector);
    if (!found) return [];
    const text = document.createElement("p");
    text.append(...found.cloneNode(true).childNodes);
    for (const name of ["dir", "lang"]) {
      if (found.hasAttribute(name)) text.setAttribute(name, found.getAttribute(name));
    }
    return [text];
  });
}

/** The next hit with a picture in a direction; further pages are loaded for it. */
async function neighbour(step) {
  let at = tiles().indexOf(shown) + step;
  for (;;) {
    if (at < 0 || (at >= tiles().length && !(await more()))) return null;
    const tile = tiles()[at];
    if (!tile || hasPicture(tile)) return tile ?? null;
    at += step;
  }
}

function look(tile) {
  shown = tile;
  dialog.querySelector(".quick-picture").replaceChildren(enlarged(tile));
  dialog.querySelector(".quick-text").replaceChildren(...texts(tile));
  dialog.querySelector("[data-open]").href = linkOf(tile).href;
  dialog.querySelector(".count").textContent = dialog.dataset.place
    .replace("{place}", placeOf(tile))
    .replace("{count}", dialog.dataset.total);
}

async function step(by) {
  const tile = await neighbour(by);
  if (tile && dialog.open) look(tile);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const onButton = event.target.closest("button, a");
  const by = { ArrowLeft: -1, k: -1, ArrowRight: 1, j: 1 }[key];
  if (by) step(by);
  else if (key === "x") shown.querySelector("input[name=uri]")?.click();
  else if (key === "Enter" && !onButton) dialog.querySelector("[data-open]").click();
  else if (key === " " && !onButton) dialog.close();
  else return;
  event.preventDefault();
  // The hit behind has the focus again by now, and the key would mean the hit.
  event.stopPropagation();
}

function build() {
  dialog = template.content.firstElementChild.cloneNode(true);
  document.body.append(dialog);
  dialog.tabIndex = -1;
  for (const button of dialog.querySelectorAll("[data-step]")) {
    button.addEventListener("click", () => step(Number(button.dataset.step)));
  }
  dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", onKey);
  dialog.addEventListener("close", () => focus(shown));
}

function open(tile) {
  if (!tile || !hasPicture(tile)) return;
  if (!dialog) build();
  look(tile);
  dialog.showModal();
  // The keys are those of the picture, and not of the first button.
  dialog.focus();
}

if (template) {
  offerButtons(tiles());
  document.addEventListener("tiles", (event) => offerButtons(event.detail));
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".look");
    if (button) open(button.closest("li"));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || dialog?.open || !focused()) return;
    event.preventDefault();
    open(focused());
  });
}
