// How many items have arrived since the page was loaded: asked for now and then while the page is seen, with a
// search that gives no hits. The notice leads to the newest ones.

const EVERY_MS = 30_000;
/** After a failure the next question waits longer, up to this time. */
const EVERY_MS_MAX = 600_000;

const notice = document.querySelector("[data-poll]");
const link = notice.querySelector("a");
let wait = EVERY_MS;
let timer = 0;

async function count() {
  const headers = { Accept: "application/json" };
  if (notice.dataset.token) headers.Authorization = `Session ${notice.dataset.token}`;
  const response = await fetch(notice.dataset.poll, { headers });
  // The session has ended, or the search needs a login by now.
  if ([400, 401, 403].includes(response.status)) return null;
  if (!response.ok) throw new Error(`status ${response.status}`);
  return (await response.json()).total;
}

async function ask() {
  clearTimeout(timer);
  if (document.hidden) return;
  try {
    const total = await count();
    if (total === null) return;
    wait = EVERY_MS;
    link.hidden = total === 0;
    link.textContent = total === 1 ? notice.dataset.one : notice.dataset.many.replace("{count}", total);
    if (total === 0) link.textContent = "";
  } catch {
    wait = Math.min(wait * 2, EVERY_MS_MAX);
  }
  timer = setTimeout(ask, wait);
}

timer = setTimeout(ask, wait);
// A page that was hidden is up to date when it is seen again.
document.addEventListener("visibilitychange", ask);
