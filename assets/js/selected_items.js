// The selection of a visit: the URIs of the selected items in the order of their selection.
//
// It is kept in the tab, under the name of the session, so that it ends with either. Tabs of one session
// tell each other of changes. A page hears nothing while it is closed, and many pages have no selection, so
// each asks the others when it opens; of two selections the one that was changed last counts.

const KEY = "wirephoto.selection";

function read(session) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY));
    if (kept?.session !== session || !Array.isArray(kept.uris)) return null;
    return { uris: kept.uris.map(String), changed: Number(kept.changed) || 0 };
  } catch {
    // Browsers may refuse access to the storage; the selection is then that of the page.
    return null;
  }
}

function keep(session, uris, changed) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ session, uris, changed }));
  } catch {
    // Where the browser refuses access, or the storage is full, the selection ends with the page.
  }
}

/** The selection of `session` with at most `most` items; calls `onChange` when another tab changes it. */
export function selectedItems(session, most, onChange) {
  // When the selection was changed: the time, or more where clocks were set back. 0 is before any change.
  let { uris, changed } = read(session) ?? { uris: [], changed: 0 };
  const tabs = "BroadcastChannel" in window ? new BroadcastChannel(`${KEY}.${session}`) : null;
  const set = (next, at) => {
    uris = next;
    changed = at;
    keep(session, uris, changed);
  };
  const publish = () => tabs?.postMessage({ uris, changed });
  const ask = () => tabs?.postMessage({ ask: true, changed });
  if (tabs) {
    tabs.onmessage = ({ data }) => {
      if (data.ask) {
        if (changed > data.changed) publish();
      } else if (data.changed > changed) {
        set(data.uris, data.changed);
        onChange();
      }
    };
    ask();
  }
  return {
    get uris() {
      return uris;
    },
    /** Reads again what a later page of the tab has kept, and asks for what other tabs have. */
    reload() {
      const kept = read(session);
      if (kept && kept.changed > changed) ({ uris, changed } = kept);
      ask();
    },
    /** Replaces the selection. */
    replace(next) {
      set([...new Set(next)].slice(0, most), Math.max(Date.now(), changed + 1));
      publish();
    },
    /** Adds items at the end, as many as there is room for; false if some have none. */
    add(more) {
      const all = [...new Set([...uris, ...more])];
      this.replace(all);
      return all.length <= most;
    },
    /** Adds an item that was removed to its place: after those that precede it in `order`. */
    restore(uri, order) {
      if (uris.includes(uri) || uris.length >= most) return;
      const before = new Set(order.slice(0, order.indexOf(uri)));
      const at = uris.findLastIndex((one) => before.has(one)) + 1;
      this.replace([...uris.slice(0, at), uri, ...uris.slice(at)]);
    },
    /** Removes items; true, as there is always room for the others. */
    remove(fewer) {
      const gone = new Set(fewer);
      this.replace(uris.filter((uri) => !gone.has(uri)));
      return true;
    },
  };
}
