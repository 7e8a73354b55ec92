// A message such as "Saved." is shown once: it is taken out of the address, which editors mail around
// and load again.

const here = new URL(location.href);
for (const name of ['done', 'in', 'count']) here.searchParams.delete(name);
history.replaceState(history.state, '', here);
