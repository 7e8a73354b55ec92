// What a page leaves behind in its tab for the next ones of the same session. The tab outlives a logout, and the
// next user must not see what the former one searched for.

// Anonymous pages have no bar of the selection, and are a session of their own.
const session = document.querySelector("[data-selection]")?.dataset.selection ?? "";

/** What a page of this session left under `key`; null if there is nothing. What another session left is removed. */
export function recall(key) {
  try {
    const note = JSON.parse(sessionStorage.getItem(key));
    if (note?.session === session) return note.value;
    sessionStorage.removeItem(key);
  } catch {
    // Browsers may refuse access to the storage; the page then works without the note.
  }
  return null;
}

/** Leaves `value` under `key`. */
export function leave(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify({ session, value }));
  } catch {
    // The note is lost where the browser refuses access or the storage is full.
  }
}
