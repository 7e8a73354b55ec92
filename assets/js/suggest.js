// Suggestions while a search is typed: words, and names of persons, places and subjects, each with the number of
// items that it finds. A word is completed in the box; a name becomes a filter of the search.

const WAIT_MS = 150;

const box = document.querySelector("[data-suggest]");
const input = box?.querySelector("input");
const form = input?.form;
let list = null;
let timer = 0;
let asked = null;
/** What was asked for last, so that the same text is not asked for twice. */
let last = "";

const options = () => [...(list?.querySelectorAll("[role=option]") ?? [])];
const active = () => list?.querySelector("[aria-selected=true]");

function close() {
  clearTimeout(timer);
  asked?.abort();
  list?.remove();
  list = null;
  last = "";
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

/** The text with its last word replaced. */
const completed = (word) => input.value.replace(/[\p{L}\p{N}\p{M}]+$/u, word);

function choose(option) {
  const { word, facet } = option.dataset;
  close();
  if (word) {
    input.value = completed(word);
    form.requestSubmit();
    return;
  }
  // A name contains all of the text, so nothing of it is left to search for.
  const fields = new URLSearchParams(new FormData(form));
  fields.delete("q");
  fields.append("facet", facet);
  for (const [name, value] of [...fields]) if (!value) fields.delete(name);
  location.href = `/?${fields}`;
}

function select(option) {
  for (const one of options()) one.setAttribute("aria-selected", String(one === option));
  if (option) {
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  } else {
    input.removeAttribute("aria-activedescendant");
  }
}

function entry(text, count, data, at) {
  const option = document.createElement("div");
  option.id = `suggestion-${at}`;
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  Object.assign(option.dataset, data);
  const [name, number] = [document.createElement("span"), document.createElement("span")];
  name.dir = "auto";
  name.textContent = text;
  number.className = "count";
  number.textContent = count.toLocaleString(document.documentElement.lang);
  option.append(name, number);
  return option;
}

function show(found) {
  const groups = [["words", found.words], ...Object.entries(found.facets)].filter(([, values]) => values.length);
  list?.remove();
  list = null;
  if (!groups.length) return close();
  list = document.createElement("div");
  list.className = "suggestions";
  list.id = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", box.dataset.label);
  let at = 0;
  for (const [name, values] of groups) {
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    const label = box.dataset[name.replace(/\.(.)/, (_, letter) => letter.toUpperCase())];
    group.setAttribute("aria-label", label);
    const heading = document.createElement("div");
    heading.className = "group";
    heading.setAttribute("aria-hidden", "true");
    heading.textContent = label;
    group.append(heading);
    for (const { key, count } of values) {
      const data = name === "words" ? { word: key } : { facet: `${name}:${key}` };
      group.append(entry(name === "words" ? completed(key) : key, count, data, at));
      at += 1;
    }
    list.append(group);
  }
  box.append(list);
  input.setAttribute("aria-expanded", "true");
}

async function ask() {
  const text = input.value;
  if (text === last) return;
  asked?.abort();
  asked = new AbortController();
  const address = new URL(box.dataset.suggest, location.href);
  address.searchParams.set("q", text);
  const headers = { Accept: "application/json" };
  if (box.dataset.token) headers.Authorization = `Session ${box.dataset.token}`;
  try {
    const response = await fetch(address, { headers, signal: asked.signal });
    if (!response.ok) return close();
    const found = await response.json();
    if (document.activeElement !== input || input.value !== text) return;
    show(found);
    last = text;
  } catch {
    // Typing has gone on, or the network is gone: the search works without suggestions.
  }
}

function onKey(event) {
  if (event.isComposing || !list) return;
  const all = options();
  const at = all.indexOf(active());
  if (event.key === "ArrowDown") select(all[(at + 1) % all.length]);
  else if (event.key === "ArrowUp") select(all[(at < 0 ? all.length : at) - 1]);
  else if (event.key === "Enter" && at >= 0) choose(all[at]);
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
}

if (input) {
  for (const [name, value] of [
    ["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", "suggestions"],
  ]) input.setAttribute(name, value);
  input.addEventListener("input", () => {
    clearTimeout(timer);
    if (input.value.trim().length < 2) close();
    else timer = setTimeout(ask, WAIT_MS);
  });
  input.addEventListener("keydown", onKey);
  input.addEventListener("blur", close);
  // The box keeps the focus while a suggestion is pressed.
  box.addEventListener("pointerdown", (event) => {
    if (event.target.closest(".suggestions")) event.preventDefault();
  });
  box.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose(option);
  });
}
