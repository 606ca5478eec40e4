// Pages of a collection: wait for a job, and copy code.
"use strict";

// Whether the visitor is leaving the page: a reload now would undo the choice.
// A download looks the same but does not leave the page, so this holds for a while only.
let leaving = false;
window.addEventListener("beforeunload", () => {
  leaving = true;
  window.setTimeout(() => { leaving = false; }, 10000);
});

// A running job: show its progress, and reload the page when it ends.
function follow(box) {
  const doing = box.querySelector("[data-doing]");
  const bar = box.querySelector("progress");
  const ask = async () => {
    let pause = 400;
    try {
      const answer = await fetch(`/jobs/${box.dataset.job}.json`, { headers: { accept: "application/json" } });
      const job = [401, 404].includes(answer.status) ? null : await answer.json();
      const ended = job === null || ["done", "failed", "cancelled"].includes(job.state);
      if (ended && !leaving) return window.location.reload();
      if (!ended) {
        if (doing.textContent !== job.doing) doing.textContent = job.doing;
        if (job.share === null) bar.removeAttribute("value");
        else bar.value = job.share;
      }
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
