// Copies text to the clipboard.

/** Copies what is selected in a field of its own: without TLS browsers give no clipboard. */
function copyFromField(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return isCopied;
}

/** Copies a text, or the text of a promise; says whether it is in the clipboard now. */
export async function copyText(text) {
  const ready = Promise.resolve(text);
  // A text that cannot be had is the failure that is returned below, and no error of the page.
  ready.catch(() => {});
  try {
    if (navigator.clipboard && window.ClipboardItem) {
      // The promise is handed over, because some browsers allow copying only right after the click.
      const blob = ready.then((plain) => new Blob([plain], { type: "text/plain" }));
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
      return true;
    }
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(await ready);
      return true;
    }
  } catch {
    // The browser refused; the old way may still work.
  }
  try {
    return copyFromField(await ready);
  } catch {
    return false;
  }
}

const SHOWN_MS = 2000;

/** Shows the outcome in the button for a moment, and says it in `status`. */
export function showOutcome(button, status, outcome) {
  button.dataset.label ??= button.textContent;
  button.textContent = status.textContent = outcome;
  clearTimeout(Number(button.dataset.timer));
  button.dataset.timer = setTimeout(() => {
    button.textContent = button.dataset.label;
    status.textContent = "";
  }, SHOWN_MS);
}
