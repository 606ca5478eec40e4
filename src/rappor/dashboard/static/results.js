// Pages of a collection: wait for a job, copy code.
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

for (const box of document.querySelectorAll("[data-job]")) follow(box);
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
