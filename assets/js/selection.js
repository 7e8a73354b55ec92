// The selection on pages of hits and the bar that stays with it: items are ticked by mouse and keyboard,
// several at once with Shift, and stay ticked on the next pages of a visit.
//
// By keyboard, within the hits: x ticks the item, Shift+x all from the one that was ticked last, b leads to
// the bar. Boxes that are added to the page later, or are ticked by other scripts, count as well.

import { copyText, showOutcome } from "./clipboard.js";
import { selectedItems } from "./selected_items.js";
import "./copy.js";
import "./drag.js";

const bar = document.querySelector(".selection-bar");
const form = bar.closest("form");
const count = bar.querySelector(".selection-count");
const outcome = bar.querySelector(".selection-outcome");
const BOX = "input[type=checkbox][name=uri]";

const hits = () => document.querySelector("form.pick");
const boxes = () => [...(hits()?.querySelectorAll(BOX) ?? [])];
const boxOf = (element) => element.closest?.("li")?.querySelector(BOX);
/** The URIs of all hits in the order of the page. The wall empties hits far from the window, boxes included. */
const listed = () => [...(hits()?.querySelectorAll("li") ?? [])]
  .map((item) => item.dataset.uri ?? item.querySelector(BOX)?.value)
  .filter(Boolean);

const selection = selectedItems(bar.dataset.selection, Number(bar.dataset.most), show);
/** The button that selects the item of its page. */
const buttons = document.querySelectorAll("[data-select]");
/** The item that a range with Shift begins at. */
let last = null;

function tick() {
  const selected = new Set(selection.uris);
  for (const box of boxes()) box.checked = selected.has(box.value);
  for (const button of buttons) button.ariaPressed = String(selected.has(button.dataset.select));
}

function show() {
  tick();
  const { length } = selection.uris;
  const { one, many } = bar.dataset;
  const text = length === 1 ? one : many.replace("{count}", length.toLocaleString(document.documentElement.lang));
  // An unchanged text is not written again: screen readers would say it again.
  if (count.textContent !== text) count.textContent = text;
  bar.classList.toggle("on", length > 0);
}

/** Selects or unselects items; what has no room is not ticked, and the bar says why. */
function change(uris, isOn) {
  const hasRoom = isOn ? selection.add(uris) : selection.remove(uris);
  show();
  if (!hasRoom) count.textContent = bar.dataset.full;
}

/** The items from the one that was ticked last to `uri`, in the order of the page. */
function range(uri) {
  const all = listed();
  const [from, to] = [all.indexOf(last), all.indexOf(uri)];
  return from < 0 || to < 0 ? [uri] : all.slice(Math.min(from, to), Math.max(from, to) + 1);
}

function choose(box, isOn, isRange) {
  change(isRange ? range(box.value) : [box.value], isOn);
  last = box.value;
}

const isWithinHits = (element) => hits()?.contains(element) && !bar.contains(element);

// Before the click reaches links and other scripts: with Shift it selects, and opens nothing.
document.addEventListener("click", (event) => {
  const { target } = event;
  if (!isWithinHits(target)) return;
  if (target.matches(BOX)) {
    choose(target, target.checked, event.shiftKey);
    return;
  }
  const box = boxOf(target);
  const isPlace = target.closest("a, label");
  if (!box || !isPlace || !event.shiftKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  choose(box, target.closest("label") ? !box.checked : true, true);
}, true);

document.addEventListener("mousedown", (event) => {
  // Shift would select the text between two clicks.
  if (event.shiftKey && isWithinHits(event.target) && boxOf(event.target)) event.preventDefault();
});

document.addEventListener("change", ({ target }) => {
  const isBox = target.matches?.(BOX) && isWithinHits(target);
  if (isBox && target.checked !== selection.uris.includes(target.value)) choose(target, target.checked, false);
});

document.addEventListener("keydown", (event) => {
  const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
  const box = isPlain && isWithinHits(event.target) && boxOf(event.target);
  if (!box || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  if (event.key.toLowerCase() === "x") choose(box, event.shiftKey || !box.checked, event.shiftKey);
  else if (event.key === "b" && selection.uris.length) bar.querySelector("button").focus();
  else return;
  event.preventDefault();
});

// Boxes of hits that arrive later.
new MutationObserver((changes) => {
  const added = changes.flatMap((one) => [...one.addedNodes]);
  if (added.some((node) => node.querySelector?.(BOX))) tick();
}).observe(document.querySelector("main"), { childList: true, subtree: true });

// The form of the bar sends the whole selection in its order, not only what is ticked on this page.
form.addEventListener("formdata", ({ formData }) => {
  formData.delete("uri");
  for (const uri of selection.uris) formData.append("uri", uri);
});

for (const button of buttons) {
  button.addEventListener("click", () => change([button.dataset.select], button.ariaPressed !== "true"));
}

bar.querySelector("[data-do=all]").addEventListener("click", () => change(listed(), true));
bar.querySelector("[data-do=all]").hidden = !hits();
bar.querySelector("[data-do=clear]").addEventListener("click", () => {
  selection.replace([]);
  last = null;
  show();
  // The bar is gone, and with it the button that had the focus.
  (boxes()[0] ?? document.querySelector("main")).focus();
});

// Menus close each other, and with Escape or a click elsewhere.
const menus = [...bar.querySelectorAll("details")];
for (const menu of menus) {
  menu.addEventListener("toggle", () => {
    if (menu.open) menus.filter((other) => other !== menu).forEach((other) => { other.open = false; });
  });
}
document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && menus.find((menu) => menu.open);
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});
document.addEventListener("pointerdown", ({ target }) => {
  menus.filter((menu) => !menu.contains(target)).forEach((menu) => { menu.open = false; });
});

/** What the server writes for the selection: its captions, its credits or its ids, in its order. */
async function written(part) {
  const body = new URLSearchParams({ csrf: form.elements.csrf.value, part });
  for (const uri of selection.uris) body.append("uri", uri);
  const answer = await fetch("/selection/captions.txt", { method: "POST", body });
  // A session that has ended is answered with its login page.
  if (!answer.ok || !answer.headers.get("content-type").startsWith("text/plain")) throw new Error(part);
  return (await answer.text()).trimEnd();
}

for (const button of bar.querySelectorAll("[data-part]")) {
  button.addEventListener("click", async () => {
    const isCopied = await copyText(written(button.dataset.part));
    showOutcome(button, outcome, isCopied ? bar.dataset.copied : bar.dataset.failed);
  });
}

addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  selection.reload();
  show();
});
show();
