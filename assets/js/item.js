// From the page of an item to those beside it among the hits that the visitor came from: by links, arrows, J and K.
// wall.js leaves the list of hits behind when the visitor opens one.

import { recall } from "./session_notes.js";

const beside = document.querySelector(".beside");
const hits = recall("wirephoto.wall") ?? [];
const at = hits.findIndex((address) => address.split("?")[0] === location.pathname);

/** What has use for the arrows itself, or for letters. */
const OTHERS = "input, select, textarea, video, dialog, [tabindex='0']";

function link(step) {
  return beside.querySelector(step < 0 ? "[rel=prev]" : "[rel=next]");
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return;
  if (event.target.closest(OTHERS) || document.querySelector("dialog[open]")) return;
  const ahead = document.dir === "rtl" ? -1 : 1;
  const step = { ArrowLeft: -ahead, k: -1, ArrowRight: ahead, j: 1 }[event.key];
  if (!step || !link(step).href) return;
  event.preventDefault();
  link(step).click();
}

if (beside && at >= 0) {
  for (const step of [-1, 1]) {
    const address = hits[at + step];
    if (address) link(step).href = address;
    else link(step).hidden = true;
  }
  beside.hidden = false;
  document.addEventListener("keydown", onKey);
}
