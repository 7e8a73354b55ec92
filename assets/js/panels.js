// A button that copies, at every piece of code of a page.

async function copy(pre) {
  if (navigator.clipboard) return navigator.clipboard.writeText(pre.textContent);
  // Without TLS browsers give no clipboard; what is selected can be copied all the same.
  getSelection().selectAllChildren(pre);
  if (!document.execCommand('copy')) throw new Error('refused');
}

export function addCopyButtons(root) {
  for (const panels of root.querySelectorAll('.panels')) {
    const status = panels.querySelector('[role=status]');
    for (const details of panels.querySelectorAll('details')) {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'button second copy';
      const [label, language] = ['span', 'span'].map(name => document.createElement(name));
      label.textContent = panels.dataset.copy;
      language.className = 'visually-hidden';
      language.textContent = ` ${details.querySelector('summary').textContent}`;
      button.append(label, language);
      button.addEventListener('click', async () => {
        try {
          await copy(details.querySelector('pre'));
        } catch {
          return;
        }
        label.textContent = status.textContent = panels.dataset.copied;
        setTimeout(() => {
          label.textContent = panels.dataset.copy;
          status.textContent = '';
        }, 2000);
      });
      details.append(button);
    }
  }
}

addCopyButtons(document);
