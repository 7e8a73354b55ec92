// Forms that change several fields in the same way: what is typed is meant to replace, unless another
// change is chosen. Without scripts the change is chosen first.

for (const field of document.querySelectorAll('[data-modes] .mode')) {
  const mode = field.querySelector('select');
  const value = field.querySelector('textarea, input');
  const show = () => field.classList.toggle('on', mode.value !== '');
  value.addEventListener('input', () => {
    if (value.value !== '' && ['', 'clear'].includes(mode.value)) mode.value = 'replace';
    else if (value.value === '' && mode.value === 'replace') mode.value = '';
    show();
  });
  mode.addEventListener('change', () => {
    if (['', 'clear'].includes(mode.value)) value.value = '';
    show();
  });
}
