// The page of a selection: what it says of the cost follows what is ticked and chosen, and what a download
// took. The server says it each time; parts of the page with [data-fresh] are exchanged.

import { selectedItems } from "./selected_items.js";
import "./drag.js";

/** A download leaves its page as it was, so the page is asked for until something in it has changed. */
const ASK_AFTER_MS = [700, 1500, 3000, 6000, 12000, 24000];
/** The server quotes the whole selection for each question, so several ticks in a row are one. */
const TICKED_FOR_MS = 300;

const form = document.querySelector("form.selection-review");
const boxes = [...form.querySelectorAll("input[name=uri]")];
const selection = form.dataset.selection
  ? selectedItems(form.dataset.selection, Number(form.dataset.most), () => {})
  : null;
const parts = (page) => new Map([...page.querySelectorAll("[data-fresh]")].map((part) => [part.dataset.fresh, part]));
/** What the server wrote; what was chosen in it since does not count. */
const written = new Map([...parts(document)].map(([name, part]) => [name, part.innerHTML]));
const cost = form.querySelector("[data-fresh=cost]");
/** The buttons that download, deliver and order. */
const confirmation = form.querySelector("[data-fresh=confirm]");
const isAnyTicked = () => boxes.some((box) => box.checked);

/** Ends the request in flight for the cost. */
let asking = new AbortController();
let timer = 0;

/** Says that nothing is ticked, instead of the cost of what was, and leaves nothing to confirm. */
function showNothing() {
  const text = Object.assign(document.createElement("p"), { className: "hint", textContent: form.dataset.nothing });
  cost.replaceChildren(text);
  // The next answer replaces the text, also where the cost is the one from before.
  written.delete("cost");
  // Hidden and not removed: the chosen channel stays.
  confirmation.hidden = true;
}

/** Asks for the page with what is ticked now and exchanges what differs; says whether something did. */
async function refresh() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch("/selection", { method: "POST", body, signal });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  // A page without the form is that of a session that has ended.
  if (signal.aborted || !page.querySelector("form.selection-review")) return false;
  confirmation.hidden = false;
  let isChanged = false;
  const fresh = parts(page);
  for (const [name, part] of parts(document)) {
    const html = fresh.get(name)?.innerHTML;
    if (html === undefined || html === written.get(name)) continue;
    const channel = part.querySelector("[name=channel]")?.value;
    part.replaceChildren(...fresh.get(name).cloneNode(true).childNodes);
    const select = part.querySelector("[name=channel]");
    if (select && channel) select.value = channel;
    written.set(name, html);
    isChanged = true;
  }
  return isChanged;
}

/** Refreshes once nothing more is ticked. */
function refreshSoon() {
  // What was asked for is out of date.
  asking.abort();
  clearTimeout(timer);
  if (!isAnyTicked()) {
    showNothing();
    return;
  }
  timer = setTimeout(() => refresh().catch(() => {}), TICKED_FOR_MS);
}

form.addEventListener("change", ({ target }) => {
  if (target.name === "uri") {
    // Only this item changes: other tabs may have selected some that the page does not list. The order of the page
    // is that of the selection.
    if (target.checked) selection?.restore(target.value, boxes.map((box) => box.value));
    else selection?.remove([target.value]);
  }
  if (["uri", "agr"].includes(target.name)) refreshSoon();
});

async function follow() {
  for (const wait of ASK_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    // With nothing ticked the page says so, and there is no cost to ask for.
    if (!isAnyTicked()) return;
    if (await refresh().catch(() => false)) return;
  }
}

form.addEventListener("submit", ({ submitter }) => {
  if (submitter?.formAction.endsWith("/selection/zip")) follow();
});

addEventListener("pageshow", ({ persisted }) => {
  if (persisted) selection?.reload();
});
