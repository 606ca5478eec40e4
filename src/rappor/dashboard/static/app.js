// Keyboard shortcuts, and forms that send themselves. Every page works without this script.
"use strict";

const field = (element) => element.closest("input, select, textarea, [contenteditable]") !== null;

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape") {
    const open = document.querySelector("details.who[open], details.menu[open]");
    if (open) {
      open.removeAttribute("open");
      open.querySelector("summary").focus();
    } else if (field(event.target)) {
      event.target.blur();
    }
    return;
  }
  if (field(event.target) || document.documentElement.dataset.keys === "off") return;
  const wanted = {
    "/": () => document.querySelector("input[type=search]")?.focus(),
    "[": () => document.querySelector("a[data-key='[']")?.click(),
    "]": () => document.querySelector("a[data-key=']']")?.click(),
    "?": () => document.getElementById("help").showModal(),
  }[event.key];
  if (wanted) {
    event.preventDefault();
    wanted();
  }
}

// Each query has one address: fields in one order, without default values. Dimensions come after "to".
const ORDER = ["from", "to", "", "vs", "unit", "scale", "correction", "alpha", "method", "candidates", "q", "state", "sort"];
const LAST = ["version", "show", "anyway", "page", "map", "light"];

function tidy(form, data) {
  const place = (name) => [...ORDER, ...LAST].indexOf([...ORDER, ...LAST].includes(name) ? name : "");
  const usual = (name, value) => {
    const { usual, usualField } = form.elements.namedItem(name)?.dataset ?? {};
    return value === "" || value === usual || (usualField && value === data.get(usualField));
  };
  const parts = [...data].filter(([name, value]) => !usual(name, value));
  for (const name of [...data.keys()]) data.delete(name);
  for (const [name, value] of parts.sort((one, other) => place(one[0]) - place(other[0]))) data.append(name, value);
}

// A GET form marked data-auto is sent 250 ms after typing in its search field, and at once after a choice.
function automatic(form) {
  let timer = 0;
  const send = () => form.requestSubmit();
  form.addEventListener("formdata", (event) => tidy(form, event.formData));
  form.addEventListener("input", (event) => {
    if (event.target.type !== "search") return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      sessionStorage.setItem("typed", form.id);
      send();
    }, 250);
  });
  form.addEventListener("change", (event) => {
    if (event.target.matches("select, input[type=radio], input[type=checkbox]")) send();
  });
  for (const button of form.querySelectorAll("[data-without-script]")) button.hidden = true;
  if (sessionStorage.getItem("typed") === form.id) {
    sessionStorage.removeItem("typed");
    const search = form.querySelector("input[type=search]");
    if (search) {
      search.focus();
      search.setSelectionRange(search.value.length, search.value.length);
    }
  }
}

// A click elsewhere closes open menus.
function closeElsewhere(event) {
  for (const each of document.querySelectorAll("details.who[open], details.menu[open]")) {
    if (!each.contains(event.target)) each.removeAttribute("open");
  }
}

// A part marked data-refresh is fetched again every data-refresh seconds while the page is visible.
function refreshing(part) {
  const timer = setInterval(async () => {
    if (document.hidden || part.contains(document.activeElement)) return;
    const answer = await fetch(window.location.pathname + window.location.search).catch(() => null);
    if (!answer || !answer.ok || answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (!fresh) return;
    if (!fresh.dataset.refresh) clearInterval(timer);
    part.replaceChildren(...fresh.childNodes);
    document.dispatchEvent(new CustomEvent("refreshed"));
  }, 1000 * Number(part.dataset.refresh));
}

document.addEventListener("keydown", keys);
document.addEventListener("click", closeElsewhere);
for (const form of document.querySelectorAll("form[data-auto]")) automatic(form);
for (const part of document.querySelectorAll("[data-refresh]")) refreshing(part);
for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.confirm)) event.preventDefault();
  });
}
