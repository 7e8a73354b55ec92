// Copy buttons: each [data-copy="#id"] copies the text of that element. They are hidden without
// scripts, and where the browser lets nobody copy.

for (const button of document.querySelectorAll('[data-copy]')) {
  const source = document.querySelector(button.dataset.copy);
  if (!source || !navigator.clipboard) continue;
  const label = button.textContent;
  const status = document.createElement('span');
  status.className = 'visually-hidden';
  status.setAttribute('role', 'status');
  button.after(status);
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(source.textContent.trim());
    button.textContent = status.textContent = button.dataset.done;
    setTimeout(() => {
      button.textContent = label;
      status.textContent = '';
    }, 2000);
  });
}
