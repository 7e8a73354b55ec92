// The hits without an end: while the visitor scrolls, the next page of hits is added to the list, and the address
// follows. Without scripts the links of the pager lead to the same pages.
//
// Hits far from the window are emptied and filled again when they come near, so that ten thousand of them take
// little more memory than a few hundred. Other scripts ask for hits by `tiles`, `show` and `more`, and learn of
// new ones by the event `tiles`.

import { leave, recall } from "./session_notes.js";

/** How far below the window the next page is loaded, in heights of the window. */
const AHEAD = 2;
/** How far from the window hits are filled, and from where on they are emptied. */
const FILLED_WITHIN = 3;
const EMPTIED_BEYOND = 6;
/** After a failure a page is loaded again after this time, which doubles with each further failure. */
const AGAIN_AFTER_MS = 5_000;
const AGAIN_AFTER_MS_MAX = 300_000;
const PLACE = "wirephoto.place";
const WALL = "wirephoto.wall";

const list = document.querySelector("[data-hits]");
const pager = document.querySelector(".pager");
const links = { prev: document.querySelector(".earlier a"), next: pager?.querySelector("[rel=next]") };
/** The addresses of the previous page that is not in the list, and of the next one. */
const beyond = { prev: links.prev?.href, next: links.next?.href };

/** The pages in the list, the first one first: number and hits of each. */
const pages = [];
/** What emptied hits contained. */
const kept = new WeakMap();
/** What is being loaded in each direction. */
const loading = { prev: null, next: null };
/** The pause after failures in each direction, and when it ends. */
const pauses = { prev: { ms: 0, until: 0 }, next: { ms: 0, until: 0 } };

/** The hits in the list. */
export const tiles = () => [...(list?.children ?? [])];

/** The place of a hit among all hits of the search, from 1. */
export const placeOf = (tile) => (pages[0].number - 1) * Number(list.dataset.size) + tiles().indexOf(tile) + 1;

/** Fills a hit that was emptied. */
export function show(tile) {
  if (!kept.has(tile)) return;
  tile.innerHTML = kept.get(tile);
  kept.delete(tile);
  tile.classList.remove("emptied");
  tile.style.blockSize = "";
  document.dispatchEvent(new CustomEvent("tiles", { detail: [tile] }));
}

function empty(tile) {
  const isUsed = tile.contains(document.activeElement) || tile.querySelector("input:checked");
  if (kept.has(tile) || isUsed) return;
  // Cells of the wall have one height, which their style has; other hits have their own.
  if (!list.classList.contains("even")) tile.style.blockSize = `${tile.offsetHeight}px`;
  kept.set(tile, tile.innerHTML);
  tile.classList.add("emptied");
  // A picture that is still loading would be loaded to its end, and stay in memory until then.
  for (const picture of tile.querySelectorAll("img, source")) {
    picture.removeAttribute("srcset");
    picture.removeAttribute("src");
  }
  tile.replaceChildren();
}

/** Keeps the link of the pager at the page that is not in the list yet. */
function follow(direction) {
  const own = links[direction];
  if (beyond[direction] && own) own.href = beyond[direction];
  else own?.remove();
  // It names one page, and the list has several now.
  pager?.querySelector(".count")?.remove();
}

async function load(direction) {
  const address = new URL(beyond[direction]);
  address.searchParams.set("part", "hits");
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) throw new Error(`status ${response.status}`);
  const part = new DOMParser().parseFromString(await response.text(), "text/html");
  const found = part.querySelector("[data-hits]");
  const further = part.querySelector(`.pager [rel=${direction}]`)?.getAttribute("href");
  beyond[direction] = further && new URL(further, location.href).href;
  // New items move others to the next page, which are in the list already.
  const added = [...(found?.children ?? [])].filter((tile) => !document.getElementById(tile.id));
  const page = { number: Number(found?.dataset.page), tiles: added };
  if (direction === "next") {
    pages.push(page);
    list.append(...added);
  } else {
    pages.unshift(page);
    const [height, y] = [document.documentElement.scrollHeight, scrollY];
    list.prepend(...added);
    // What the visitor looks at stays where it is.
    scrollTo(0, y + document.documentElement.scrollHeight - height);
  }
  follow(direction);
  document.dispatchEvent(new CustomEvent("tiles", { detail: added }));
  return added.length > 0;
}

/** Whether there is a page to load in a direction, and no pause after a failure. */
const mayLoad = (direction) => Boolean(beyond[direction]) && performance.now() >= pauses[direction].until;

async function attempt(direction) {
  const pause = pauses[direction];
  try {
    const isMore = await load(direction);
    pause.ms = 0;
    return isMore;
  } catch {
    // Until the next attempt the link of the pager leads there, and its page says what is wrong.
    pause.ms = Math.min(pause.ms * 2 || AGAIN_AFTER_MS, AGAIN_AFTER_MS_MAX);
    pause.until = performance.now() + pause.ms;
    return false;
  } finally {
    loading[direction] = null;
  }
}

/** Loads the page that follows, or the one before; resolves to whether hits were added. */
export async function more(direction = "next") {
  if (!mayLoad(direction)) return false;
  loading[direction] ??= attempt(direction);
  return loading[direction];
}

/** Whether what lies between two elements is further from the window than `far` heights of it. */
function isFar(first, last, far) {
  return last.getBoundingClientRect().bottom < -far * innerHeight
    || first.getBoundingClientRect().top > (1 + far) * innerHeight;
}

let again = 0;

/** Empties and fills hits by their distance, and brings the address up to date. */
function settle() {
  const sample = list.querySelector("li:not(.emptied)");
  if (sample) list.style.setProperty("--cell-height", `${sample.offsetHeight}px`);
  for (const page of pages.filter((one) => one.tiles.length)) {
    const [first, last] = [page.tiles[0], page.tiles.at(-1)];
    if (isFar(first, last, EMPTIED_BEYOND)) page.tiles.forEach(empty);
    else page.tiles.filter((tile) => !isFar(tile, tile, FILLED_WITHIN)).forEach(show);
  }
  const isAbove = (page) => page.tiles[0]?.getBoundingClientRect().top < innerHeight / 2;
  const number = (pages.findLast(isAbove) ?? pages[0]).number;
  const here = new URL(location.href);
  if (number > 1) here.searchParams.set("page", number);
  else here.searchParams.delete("page");
  if (here.search !== location.search) {
    here.hash = "";
    history.replaceState(history.state, "", here);
  }
  if (list.getBoundingClientRect().bottom < (1 + AHEAD) * innerHeight) {
    more().then((isMore) => {
      if (isMore) settle();
      // At the end of the list nothing scrolls any more.
      else if (pauses.next.ms) again ||= setTimeout(() => { again = 0; settle(); }, pauses.next.ms);
    });
  }
}

/** Stores the place for the way back, and the hits for the way to the next one from the page of an item. */
function leaveNotes() {
  const top = tiles().find((tile) => tile.getBoundingClientRect().bottom > 0);
  const place = { href: location.href, at: top?.id, top: top?.getBoundingClientRect().top };
  leave(PLACE, place);
  const near = tiles().filter((tile) => !kept.has(tile));
  const addresses = near.map((tile) => tile.querySelector("a[href^='/item/']")?.getAttribute("href"));
  leave(WALL, addresses.filter(Boolean));
}

/** Returns to the place that the visitor left, in a list that was longer then. */
function restore() {
  const place = recall(PLACE);
  const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  const tile = isBack && place?.href === location.href && document.getElementById(place.at);
  if (!tile) return;
  history.scrollRestoration = "manual";
  scrollBy(0, tile.getBoundingClientRect().top - place.top);
}

if (list) {
  pages.push({ number: Number(list.dataset.page), tiles: tiles() });
  // Where more hits are added below, the way up is above them.
  pager?.querySelector("[rel=prev]")?.remove();
  links.prev?.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || !mayLoad("prev")) return;
    event.preventDefault();
    more("prev").then(settle);
  });
  restore();
  let timer = 0;
  const later = () => { timer ||= setTimeout(() => { timer = 0; settle(); }, 150); };
  addEventListener("scroll", later, { passive: true });
  addEventListener("resize", later);
  addEventListener("pagehide", leaveNotes);
  addEventListener("beforeprint", () => tiles().forEach(show));
  later();
}
