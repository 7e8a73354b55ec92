// The order of a collection: pictures are dragged, or moved with the buttons below them, without
// a new page. Each move is sent as the form would send it; what the server makes of it stays.

const form = document.querySelector('[data-order]');
const list = form?.querySelector('ol');
const status = document.querySelector('#order-status');

// Moves are sent one after the other, in the order in which they were made.
let sending = Promise.resolve();

function send(cell) {
  const { previousElementSibling: before, nextElementSibling: after } = cell;
  const fields = new URLSearchParams();
  fields.set('csrf', form.elements.csrf.value);
  fields.set('moved', cell.dataset.uri);
  if (before) fields.set('after', before.dataset.uri);
  else if (after) fields.set('before', after.dataset.uri);
  sending = sending.then(async () => {
    // The server answers with a redirect; anything else is a page that says what is wrong.
    const answer = await fetch(form.action, { method: 'POST', body: fields, redirect: 'manual' });
    if (answer.type !== 'opaqueredirect') throw new Error(`status ${answer.status}`);
    status.classList.add('visually-hidden');
    status.textContent = form.dataset.moved
      .replace('{place}', list.start + [...list.children].indexOf(cell))
      .replace('{count}', list.dataset.total);
  }).catch(() => {
    status.classList.remove('visually-hidden');
    status.textContent = form.dataset.failed;
  });
  return sending;
}

function step(cell, name) {
  const other = name === 'earlier' ? cell.previousElementSibling : cell.nextElementSibling;
  if (!other) return false;
  if (name === 'earlier') other.before(cell);
  else other.after(cell);
  return true;
}

form?.addEventListener('submit', event => {
  const button = event.submitter;
  const cell = button?.closest('li');
  if (!cell || !['earlier', 'later'].includes(button.name)) return;
  const place = list.start + [...list.children].indexOf(cell);
  if (place === (button.name === 'earlier' ? 1 : Number(list.dataset.total))) {
    event.preventDefault();
  } else if (step(cell, button.name)) {
    event.preventDefault();
    button.focus();
    send(cell);
  }
  // At the edge of a page the form itself leads over it.
});

if (list && window.Sortable) {
  list.classList.add('can-drag');
  // The browser's own dragging looks different everywhere and leaves touch screens out.
  new window.Sortable(list, {
    animation: matchMedia('(prefers-reduced-motion: reduce)').matches ? 0 : 150,
    forceFallback: true,
    fallbackTolerance: 4,
    delay: 250,
    delayOnTouchOnly: true,
    filter: 'button',
    preventOnFilter: false,
    ghostClass: 'goes-here',
    onEnd: ({ item, oldIndex, newIndex }) => {
      if (oldIndex !== newIndex) send(item);
    },
  });
}
