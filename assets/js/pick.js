// What is ticked among the hits stays ticked when the page comes back from adding it to a collection,
// so that it can go into another one too.

const KEY = "wirephoto.picked";
const form = document.querySelector("form.pick");
const boxes = form ? [...form.querySelectorAll("input[name=uri]")] : [];

const here = new URL(location.href);
if (here.searchParams.get("done") === "added") {
  const picked = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
  for (const box of boxes) box.checked ||= picked.has(box.value);
}
sessionStorage.removeItem(KEY);

form?.addEventListener("submit", () => {
  const picked = boxes.filter((box) => box.checked).map((box) => box.value);
  sessionStorage.setItem(KEY, JSON.stringify(picked));
});
