// Copy buttons: each [data-copy="#id"] copies the text of that element. They are hidden without
// scripts. Where the browser gives no clipboard the text is selected, to be copied by hand.

for (const button of document.querySelectorAll('[data-copy]')) {
  const source = document.querySelector(button.dataset.copy);
  if (!source) continue;
  const label = button.textContent;
  const status = document.createElement('span');
  status.className = 'visually-hidden';
  status.setAttribute('role', 'status');
  button.after(status);
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
    } catch {
      getSelection().selectAllChildren(source);
      return;
    }
    button.textContent = status.textContent = button.dataset.done;
    setTimeout(() => {
      button.textContent = label;
      status.textContent = '';
    }, 2000);
  });
}
