// The crop studio: a frame that follows pointer and keyboard, fields, a picture of the result and
// everything that is there to be copied.
//
// One rectangle of whole Hires pixels is the truth; frame, fields and addresses are drawn from it
// and never the other way round. The page works without this script as a form.

import {
  cropOperator, drawn, isInside, isSame, moved, parsePx, parseRatio, renditionUrl,
  resized, scaleCrop, shaped, sized, turned, wholeOf,
} from "./crop.js";
import { candidateWidths, pictureMarkup } from "./markup.js";

const PREVIEW_EVERY_MS = 150;
const ADDRESS_AFTER_MS = 250;
const SAID_AFTER_MS = 700;
const RETRY_AFTER_MS = 1200;
/** The Hires is asked for once the frame has come to rest. */
const HIRES_AFTER_MS = 400;
const COPIED_FOR_MS = 2000;
/** Below this many pixels of the screen a frame has no room for handles in it. */
const SMALL_FRAME_PX = 84;
/** A pointer that moves less than this draws nothing: it was a click. */
const CLICK_PX = 4;

const root = document.getElementById("studio");
const byId = (id) => document.getElementById(id);
const sizeOf = (text) => {
  const [width, height] = text.split("x").map(Number);
  return { width, height };
};
const { uri, page } = root.dataset;
const hires = sizeOf(root.dataset.hires);
const renditions = {
  hires: { name: "NormalHires", size: hires },
  preview: { name: "NormalPreview", size: sizeOf(root.dataset.preview) },
  thumbnail: { name: "NormalThumbnail", size: sizeOf(root.dataset.thumbnail) },
};
/** The widths in which the photograph is open. */
const openWidths = {
  whole: Number(root.dataset.open),
  smaller: root.dataset.smaller.split(" ").filter(Boolean).map(Number),
};
const [canvas, frame, mover] = ["canvas", "frame", "mover"].map(byId);
const settings = byId("settings");
const fields = Object.fromEntries(["x", "y", "width", "height"].map((name) => [name, byId(name)]));
const [live, summary, verdict, outside] = ["live", "summary", "verdict", "outside"].map(byId);

const given = Object.fromEntries(Object.keys(fields).map((name) => [name, Number(root.dataset[name])]));
let rect = isInside(given, hires) ? given : wholeOf(hires);
/** What presets are made from, so that trying several of them does not shrink the crop. */
let base = rect;

/** `text` with each {} replaced by the next value. */
function fill(text, ...values) {
  return text.split("{}").map((part, at) => part + (values[at] ?? "")).join("");
}

/** A function that runs `act` once nothing has asked for it for `ms`. */
function settled(act, ms) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, ms);
  };
}

const isMarked = () => byId("watermark").checked;
const preset = () => settings.elements.aspect.value;

function ratio() {
  if (preset() === "original") return [hires.width, hires.height];
  if (preset() === "custom") return parseRatio(byId("ratio").value);
  return parseRatio(preset());
}

/* What is drawn from the rectangle */

function drawFrame() {
  const { x, y, width, height } = rect;
  const [right, bottom] = [x + width, y + height];
  const box = `M${x} ${y}V${bottom}H${right}V${y}Z`;
  byId("shade").setAttribute("d", `M0 0H${hires.width}V${hires.height}H0Z${box}`);
  byId("edge").setAttribute("d", box);
  const across = [1, 2].map((third) => `M${x + (width * third) / 3} ${y}V${bottom}`);
  const down = [1, 2].map((third) => `M${x} ${y + (height * third) / 3}H${right}`);
  byId("thirds").setAttribute("d", across.concat(down).join(""));
  const share = (px, whole) => `${(100 * px) / whole}%`;
  frame.style.left = share(x, hires.width);
  frame.style.top = share(y, hires.height);
  frame.style.width = share(width, hires.width);
  frame.style.height = share(height, hires.height);
  const shown = canvas.getBoundingClientRect();
  frame.classList.toggle("narrow", (width * shown.width) / hires.width < SMALL_FRAME_PX);
  frame.classList.toggle("low", (height * shown.height) / hires.height < SMALL_FRAME_PX);
  frame.classList.toggle("whole", isSame(rect, wholeOf(hires)));
}

function show(name, value) {
  for (const place of root.querySelectorAll(`[data-show="${name}"]`)) place.textContent = value;
}

/** The crop on each rendition, with its address. */
function cuts() {
  const cut = ([kind, { name, size }]) => {
    const own = scaleCrop(rect, hires, size);
    return [kind, { ...own, url: renditionUrl(uri, name, own, isMarked()) }];
  };
  return Object.fromEntries(Object.entries(renditions).map(cut));
}

/** The file that a download of the crop is called. */
function fileName() {
  const crop = isSame(rect, wholeOf(hires)) ? "" : cropOperator(rect);
  return `${uri.split("/").at(-1)}${crop}${isMarked() ? "-watermark" : ""}.jpg`;
}

/** Where the crop is shown from the Hires, for a visitor who has bought it. */
function hiresUrl() {
  const url = new URL(root.dataset.proof ?? page, location.href);
  for (const name of Object.keys(fields)) url.searchParams.set(name, rect[name]);
  if (isMarked()) url.searchParams.set("watermark", "1");
  return url.href;
}

function drawTexts() {
  for (const name of Object.keys(fields)) show(name, rect[name]);
  const found = cuts();
  for (const [kind, cut] of Object.entries(found)) {
    show(`${kind}-url`, cut.url);
    show(`${kind}-width`, cut.width);
    show(`${kind}-height`, cut.height);
  }
  show("json-url", `${uri}${cropOperator(rect)}.json`);
  show("file", fileName());
  byId("full").href = hiresUrl();
  const smaller = byId("smaller");
  const { width, height } = found.preview;
  smaller.textContent = fill(smaller.dataset.text, width, height, rect.width, rect.height);
  smaller.hidden = width >= rect.width;
  byId("code-html").firstElementChild.textContent = pictureMarkup({
    uri,
    hires: found.hires,
    preview: found.preview,
    isMarked: isMarked(),
    widths: candidateWidths(found.preview.width, rect.width, hires.width, openWidths),
    alt: root.dataset.alt,
  });
}

function drawFields(except) {
  for (const [name, field] of Object.entries(fields)) {
    if (field !== except) field.value = rect[name];
    if (field !== except) field.removeAttribute("aria-invalid");
  }
}

function drawVerdict() {
  const needed = Number(byId("output").selectedOptions[0]?.dataset.px ?? 0);
  const isShort = rect.width < needed;
  const text = isShort ? verdict.dataset.short : verdict.dataset.enough;
  verdict.textContent = needed ? fill(text, rect.width, needed) : "";
  verdict.classList.toggle("short", isShort);
}

/* What others learn of it */

/** The query that shows the same studio again. */
function query() {
  const wanted = new URLSearchParams();
  if (!isSame(rect, wholeOf(hires))) {
    for (const name of Object.keys(fields)) wanted.set(name, rect[name]);
  }
  if (preset() !== "free") wanted.set("aspect", preset());
  if (preset() === "custom") wanted.set("ratio", byId("ratio").value);
  if (isMarked()) wanted.set("watermark", "1");
  if (byId("output").value) wanted.set("output", byId("output").value);
  // The way back to the search that led here.
  if (settings.elements.from) wanted.set("from", settings.elements.from.value);
  const text = wanted.toString();
  return text ? `?${text}` : "";
}

function tellAddress() {
  const here = page + query();
  if (here !== location.pathname + location.search) history.replaceState(null, "", here);
  const login = `/o/login?return_to=${encodeURIComponent(here)}`;
  for (const link of document.querySelectorAll('a[href^="/o/login?return_to="]')) link.href = login;
  for (const field of document.querySelectorAll('input[name="return_to"]')) field.value = here;
}

function tellForm() {
  const values = {
    ...rect,
    watermark: isMarked() ? "1" : "",
    aspect: preset(),
    ratio: byId("ratio").value,
    output: byId("output").value,
  };
  for (const field of root.querySelectorAll("[data-value]")) {
    field.value = values[field.dataset.value];
  }
}

const addressSoon = settled(tellAddress, ADDRESS_AFTER_MS);
const saySoon = settled(() => {
  const text = fill(root.dataset.said, rect.width, rect.height, rect.x, rect.y);
  summary.textContent = `${text} ${isMarked() ? root.dataset.marked : root.dataset.unmarked}`;
}, SAID_AFTER_MS);

/* The picture of the result */

const proof = { url: live.src, timer: 0, begun: 0, asked: 0, shown: 0, failed: "", isAtRest: true };

/** The picture that is to be shown: while the frame moves that of the Preview, which is there at once. */
function proofCut() {
  const { width, height } = rect;
  const isOffered = root.dataset.proof && width * height <= Number(root.dataset.proofMost);
  if (proof.isAtRest && isOffered) return { url: hiresUrl(), width, height, source: "hires" };
  const preview = cuts().preview;
  return { ...preview, source: preview.width >= width ? "whole" : "preview" };
}

function drawSource({ source, width, height }) {
  byId("source").textContent = fill(byId("source").dataset[source], width, height);
}

function loadProof() {
  const cut = proofCut();
  if (cut.url === proof.url) return;
  proof.url = cut.url;
  proof.begun = performance.now();
  const mine = ++proof.asked;
  const image = new Image();
  image.addEventListener("load", () => {
    // A later picture may be here already.
    if (mine < proof.shown) return;
    proof.shown = mine;
    proof.failed = "";
    byId("unloaded").hidden = true;
    live.src = cut.url;
    live.width = cut.width;
    live.height = cut.height;
    drawSource(cut);
  });
  image.addEventListener("error", () => {
    if (mine !== proof.asked) return;
    proof.url = "";
    if (proof.failed === cut.url && cut.source === "hires") {
      // The session has ended, or the purchase: the Preview is open to everybody.
      offerHires(null);
      return;
    }
    if (proof.failed === cut.url) {
      byId("unloaded").textContent = root.dataset.unloaded;
      byId("unloaded").hidden = false;
      return;
    }
    // The server may have been busy for a moment.
    proof.failed = cut.url;
    proofSoon(RETRY_AFTER_MS);
  });
  image.src = cut.url;
}

function proofSoon(ms = 0) {
  if (proof.timer) return;
  const wait = Math.max(ms, proof.begun + PREVIEW_EVERY_MS - performance.now());
  proof.timer = setTimeout(() => {
    proof.timer = 0;
    loadProof();
  }, wait);
}

const restSoon = settled(() => {
  if (drag) return;
  proof.isAtRest = true;
  proofSoon();
}, HIRES_AFTER_MS);

/** Shows the crop from the Hires at `url` from now on, or from the Preview. */
function offerHires(url) {
  if (url) root.dataset.proof = url;
  else delete root.dataset.proof;
  byId("full").hidden = !url;
  byId("full").href = hiresUrl();
  byId("show")?.toggleAttribute("hidden", Boolean(url));
  proofSoon();
}

// A download was a purchase: `bought.js` has the page as it is now.
document.addEventListener("bought", ({ detail }) => {
  const url = detail.getElementById("studio")?.dataset.proof;
  if (url) offerHires(url);
});

/* Changes */

/** Everything after a change; `except` is the field that is being typed into. */
function changed(except) {
  for (const part of root.querySelectorAll("[data-result]")) part.hidden = false;
  byId("mistakes")?.remove();
  byId("refused")?.remove();
  outside.hidden = true;
  drawFrame();
  drawTexts();
  drawFields(except);
  drawVerdict();
  tellForm();
  addressSoon();
  saySoon();
  proof.isAtRest = false;
  proofSoon();
  restSoon();
}

function put(next, except) {
  if (isSame(next, rect)) return;
  rect = next;
  changed(except);
}

/** A rectangle that somebody made by hand: presets begin with it from now on. */
function putByHand(next, except) {
  base = next;
  put(next, except);
}

/* Pointer */

let drag = null;

/** The pointer's place on the canvas, pixels of the screen. */
function place(event) {
  const shown = canvas.getBoundingClientRect();
  const scale = hires.width / shown.width;
  return { x: event.clientX - shown.left, y: event.clientY - shown.top, scale };
}

canvas.addEventListener("pointerdown", (event) => {
  if (drag || event.button !== 0) return;
  const handle = event.target.closest("[data-handle]");
  const isMove = !handle && event.target === mover && !isSame(rect, wholeOf(hires));
  // A finger beside the frame scrolls the page.
  if (!handle && !isMove && event.pointerType === "touch") return;
  event.preventDefault();
  canvas.setPointerCapture(event.pointerId);
  (handle ?? mover).focus({ preventScroll: true, focusVisible: false });
  const kind = handle ? "resize" : isMove ? "move" : "draw";
  drag = { id: event.pointerId, kind, handle: handle?.dataset.handle, from: place(event), before: rect };
  root.classList.add("dragging");
});

canvas.addEventListener("pointermove", (event) => {
  if (drag?.id !== event.pointerId) return;
  const to = place(event);
  const [across, down] = [to.x - drag.from.x, to.y - drag.from.y];
  const [dx, dy] = [across, down].map((px) => Math.round(px * to.scale));
  if (drag.kind === "resize") put(resized(drag.before, drag.handle, dx, dy, hires, ratio()));
  if (drag.kind === "move") put(moved(drag.before, dx, dy, hires));
  if (drag.kind === "draw" && Math.hypot(across, down) >= CLICK_PX) {
    const point = ({ x, y, scale }) => ({ x: Math.floor(x * scale), y: Math.floor(y * scale) });
    put(drawn(point(drag.from), point(to), hires, ratio()));
  }
});

function endDrag(event) {
  if (drag?.id !== event.pointerId) return;
  drag = null;
  base = rect;
  root.classList.remove("dragging");
  restSoon();
}
canvas.addEventListener("pointerup", endDrag);
canvas.addEventListener("pointercancel", endDrag);
canvas.addEventListener("lostpointercapture", endDrag);

/* Keyboard */

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

frame.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && drag) {
    put(drag.before);
    endDrag({ pointerId: drag.id });
    return;
  }
  const arrow = ARROWS[event.key];
  if (!arrow || drag || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const [dx, dy] = arrow.map((step) => step * (event.shiftKey ? 10 : 1));
  const handle = event.target.dataset.handle ?? (event.altKey ? "se" : null);
  const lead = dx ? "x" : "y";
  if (handle) putByHand(resized(rect, handle, dx, dy, hires, ratio(), lead));
  else putByHand(moved(rect, dx, dy, hires));
});

/* Fields */

function typed(name, value) {
  const field = fields[name];
  const [least, most] = [field.dataset.least, field.dataset.most].map(Number);
  const isRight = value !== null && value >= least && value <= most;
  field.toggleAttribute("aria-invalid", false);
  if (!isRight) {
    field.setAttribute("aria-invalid", "true");
    outside.textContent = fill(root.dataset.outside, least, most);
    outside.hidden = false;
    return;
  }
  outside.hidden = true;
  const isSide = name === "width" || name === "height";
  const dx = name === "x" ? value - rect.x : 0;
  const dy = name === "y" ? value - rect.y : 0;
  putByHand(isSide ? sized(rect, { [name]: value }, ratio(), hires) : moved(rect, dx, dy, hires), field);
}

for (const [name, field] of Object.entries(fields)) {
  // An empty field is on its way to something.
  field.addEventListener("input", () => {
    if (field.value.trim()) typed(name, parsePx(field.value));
  });
  field.addEventListener("change", () => {
    outside.hidden = true;
    drawFields();
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const [least, most] = [field.dataset.least, field.dataset.most].map(Number);
    const wanted = rect[name] + step * (event.shiftKey ? 10 : 1);
    typed(name, Math.max(least, Math.min(most, wanted)));
    drawFields();
  });
}

function reshape() {
  rect = shaped(base, ratio(), hires, renditions.preview.size);
  changed();
}

for (const choice of settings.elements.aspect) {
  choice.addEventListener("change", () => {
    reshape();
    if (choice.value === "custom") byId("ratio").focus();
  });
}
byId("ratio").addEventListener("input", () => {
  const isWrong = preset() === "custom" && byId("ratio").value !== "" && !ratio();
  byId("ratio").toggleAttribute("aria-invalid", false);
  byId("ratio-wrong").hidden = !isWrong;
  if (isWrong) byId("ratio").setAttribute("aria-invalid", "true");
  if (ratio()) reshape();
});

const divisor = (a, b) => (b ? divisor(b, a % b) : a);

/** The aspect on its side, so that the crop that is turned keeps it. */
function turnAspect() {
  const upright = ratio();
  if (!upright) return;
  const common = divisor(...upright);
  const text = `${upright[1] / common}:${upright[0] / common}`;
  const choices = [...settings.elements.aspect];
  const found = choices.find((choice) => choice.value === text);
  const other = parseRatio(text) ? "custom" : "free";
  if (!found) byId("ratio").value = text;
  (found ?? choices.find((choice) => choice.value === other)).checked = true;
}

byId("turn").addEventListener("click", () => {
  turnAspect();
  const next = turned(rect, hires);
  rect = shaped(next, ratio(), hires, renditions.preview.size);
  base = rect;
  changed();
});

byId("whole").addEventListener("click", (event) => {
  event.preventDefault();
  for (const choice of settings.elements.aspect) choice.checked = choice.value === "free";
  rect = wholeOf(hires);
  base = rect;
  changed();
});

byId("watermark").addEventListener("change", () => changed());
byId("output").addEventListener("change", () => changed());
settings.addEventListener("submit", (event) => event.preventDefault());

/* Copying */

/** The way of browsers that give the clipboard to secure pages only. */
function copyOldWay(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOldWay(text);
  }
}

for (const button of root.querySelectorAll("[data-copy]")) {
  const label = button.firstChild;
  const before = label.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const target = byId(button.dataset.copy);
    const isCopied = await copy(target.innerText.trim());
    button.focus({ preventScroll: true });
    summary.textContent = isCopied ? root.dataset.copied : root.dataset.uncopied;
    if (!isCopied) {
      getSelection().selectAllChildren(target);
      return;
    }
    label.textContent = root.dataset.copied;
    setTimeout(() => {
      label.textContent = before;
    }, COPIED_FOR_MS);
  });
}

/* Beginning */

root.classList.add("live");
for (const id of ["frame", "keys", "turn"]) byId(id).hidden = false;
drawFrame();
tellForm();
new ResizeObserver(drawFrame).observe(canvas);
if (location.pathname !== page) tellAddress();
