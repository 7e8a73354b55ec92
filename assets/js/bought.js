// After a download: what the page says of agreements and purchases, as it is by then. A download
// leaves its page as it was, so the page is asked for again until something in it has changed. A form
// that buys names that page in [data-buys].
//
// Parts of the page with [data-fresh] are exchanged, each for the part of the same name. Other
// scripts learn of it by the event `bought`, whose detail is the new page.

const ASK_AFTER_MS = [700, 1500, 3000, 6000, 12000, 24000];

const parts = (page) => [...page.querySelectorAll("[data-fresh]")];
const named = (page, name) => page.querySelector(`[data-fresh="${name}"]`);
/** What the server wrote; what was chosen in it since does not count. */
const written = new Map(parts(document).map((part) => [part.dataset.fresh, part.innerHTML]));

function exchange(page) {
  for (const part of parts(document)) {
    const fresh = named(page, part.dataset.fresh);
    if (!fresh) continue;
    const chosen = part.querySelector("select")?.value;
    part.replaceChildren(...fresh.cloneNode(true).childNodes);
    written.set(part.dataset.fresh, fresh.innerHTML);
    const select = part.querySelector("select");
    if (select && [...select.options].some((option) => option.value === chosen)) select.value = chosen;
  }
}

async function look(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  if (!response.ok) return false;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const isNew = (part) => named(page, part.dataset.fresh)?.innerHTML !== written.get(part.dataset.fresh);
  // A page without those parts is that of somebody who is no longer logged in.
  if (!parts(page).length || !parts(document).some(isNew)) return false;
  exchange(page);
  document.dispatchEvent(new CustomEvent("bought", { detail: page }));
  return true;
}

async function follow({ currentTarget: form }) {
  // What was bought before is free now, and nothing changes.
  if (form.querySelector("[data-fresh] .tag.open")) return;
  for (const wait of ASK_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (await look(form.dataset.buys).catch(() => false)) return;
  }
}

for (const form of document.querySelectorAll("form[data-buys]")) {
  form.addEventListener("submit", follow);
}
