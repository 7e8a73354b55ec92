// A picture that is dragged to the desktop is saved there as the file that it stands for, under that
// file's name: [data-drag] has its address, [data-drag-name] its name if that is not the end of the address.
//
// `DownloadURL` is understood by Chromium's browsers. The others save what is on the page.

document.addEventListener("dragstart", ({ target, dataTransfer }) => {
  const source = target.closest?.("[data-drag]");
  if (!source || !dataTransfer) return;
  const address = new URL(source.dataset.drag, location.href);
  const name = source.dataset.dragName ?? decodeURIComponent(address.pathname.split("/").at(-1));
  dataTransfer.setData("DownloadURL", `image/jpeg:${name}:${address.href}`);
});

// Once a picture is bought it stands for its original.
document.addEventListener("bought", ({ detail: page }) => {
  const [here, there] = [document, page].map((one) => one.querySelector(".mat[data-drag]"));
  if (here && there) Object.assign(here.dataset, there.dataset);
});
