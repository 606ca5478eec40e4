// The Results page: waits for a decode, leaves usual values out of addresses, copies code.
"use strict";

// A job under way: say how far it is, and load the page anew when it ends.
function follow(box) {
  const doing = box.querySelector("[data-doing]");
  const bar = box.querySelector("progress");
  const ask = async () => {
    let pause = 400;
    try {
      const answer = await fetch(`/jobs/${box.dataset.job}.json`, { headers: { accept: "application/json" } });
      if (answer.status === 404 || answer.status === 401) return window.location.reload();
      const job = await answer.json();
      if (["done", "failed", "cancelled"].includes(job.state)) return window.location.reload();
      if (doing.textContent !== job.doing) doing.textContent = job.doing;
      if (job.share === null) bar.removeAttribute("value");
      else bar.value = job.share;
    } catch {
      pause = 2000; // the dashboard is away for a moment
    }
    window.setTimeout(ask, pause);
  };
  window.setTimeout(ask, 300);
}

// What is usual stays out of the address: one view, one address.
function shorten(form) {
  form.addEventListener("submit", () => {
    const last = form.elements.namedItem("to");
    const first = form.elements.namedItem("from");
    if (first && last && first.value === last.value) first.disabled = true;
    if (last && last.selectedIndex === 0) last.disabled = true;
    for (const each of form.elements) {
      if (each.name && (each.value === "" || each.dataset.usual === each.value)) each.disabled = true;
    }
  });
}

// Fields that were left out are there again when the reader comes back to the page.
window.addEventListener("pageshow", () => {
  for (const form of document.forms) for (const each of form.elements) if (each.name) each.disabled = false;
});

for (const box of document.querySelectorAll("[data-job]")) follow(box);
for (const form of document.querySelectorAll("form[data-usual-form], form#search")) shorten(form);
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const code = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      window.getSelection().selectAllChildren(code);
      button.textContent = "Selected: press Ctrl+C";
    }
  });
}
