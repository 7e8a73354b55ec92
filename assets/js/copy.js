// Copy buttons: each [data-copy="#id"] copies the text of that element, each [data-copy-text] its own text.
// The former are hidden without scripts. Where the browser copies nothing, the text of the element is
// selected, to be copied by hand.

import { copyText, showOutcome } from './clipboard.js';

for (const button of document.querySelectorAll('[data-copy], [data-copy-text]')) {
  const { copy, copyText: text, done, failed } = button.dataset;
  const source = copy && document.querySelector(copy);
  if (copy && !source) continue;
  const status = document.createElement('span');
  status.className = 'visually-hidden';
  status.setAttribute('role', 'status');
  button.after(status);
  button.hidden = false;
  button.addEventListener('click', async () => {
    const isCopied = await copyText(source ? source.textContent.trim() : text);
    if (!isCopied && source) getSelection().selectAllChildren(source);
    else showOutcome(button, status, isCopied ? done : failed);
  });
}
