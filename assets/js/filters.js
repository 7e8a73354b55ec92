// The menus of filters: one that is open closes when another place is clicked, and by Escape.

const menus = [...document.querySelectorAll(".drop")];

document.addEventListener("click", (event) => {
  for (const menu of menus) {
    if (menu.open && !menu.contains(event.target)) menu.open = false;
  }
});

for (const menu of menus) {
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

// A change of the density leads back to the pictures that are in the window.
const density = document.querySelector("form.density");
density?.addEventListener("submit", () => {
  const first = [...document.querySelectorAll("[data-hits] > li")]
    .find((item) => item.getBoundingClientRect().bottom > 0);
  const isScrolled = first && scrollY > 0;
  density.elements.return_to.value = location.pathname + location.search + (isScrolled ? `#${first.id}` : "");
});
