// The selection of a visit: the URIs of the selected items in the order of their selection.
//
// It is kept in the tab, under the name of the session, so that it ends with either. Tabs of one session
// tell each other of changes, and a new tab asks for what the others have.

const KEY = "wirephoto.selection";

function read(session) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY));
    return kept?.session === session && Array.isArray(kept.uris) ? kept.uris.map(String) : null;
  } catch {
    // Some browsers forbid to keep anything: then the selection is that of the page.
    return null;
  }
}

function keep(session, uris) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ session, uris }));
  } catch {
    // As above.
  }
}

/** The selection of `session` with at most `most` items; calls `onChange` when another tab changes it. */
export function selectedItems(session, most, onChange) {
  const kept = read(session);
  let uris = kept ?? [];
  const tabs = "BroadcastChannel" in window ? new BroadcastChannel(`${KEY}.${session}`) : null;
  const set = (next) => {
    uris = next;
    keep(session, uris);
  };
  const publish = () => tabs?.postMessage({ uris });
  if (tabs) {
    tabs.onmessage = ({ data }) => {
      if (data.ask) {
        if (uris.length) publish();
        return;
      }
      set(data.uris);
      onChange();
    };
    if (!kept) tabs.postMessage({ ask: true });
  }
  return {
    get uris() {
      return uris;
    },
    /** Reads again what a later page of the tab has kept. */
    reload() {
      uris = read(session) ?? uris;
    },
    /** Replaces the selection. */
    replace(next) {
      set([...new Set(next)].slice(0, most));
      publish();
    },
    /** Adds items at the end, as many as there is room for; false if some have none. */
    add(more) {
      const all = [...new Set([...uris, ...more])];
      this.replace(all);
      return all.length <= most;
    },
    /** Removes items; true, as there is always room for the others. */
    remove(fewer) {
      const gone = new Set(fewer);
      this.replace(uris.filter((uri) => !gone.has(uri)));
      return true;
    },
  };
}
