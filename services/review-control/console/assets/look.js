// How a reader looks at previews: on a desk, a phone or in the dark, and with what is particular to the mail marked. This window
// remembers it. None of it changes the preview: marks are another document that is laid over it, and what lies below has not been in
// view (seen.js).
(() => {
  "use strict";

  const root = document.documentElement;
  const remembered = () => {
    try { return JSON.parse(sessionStorage.getItem("hub-look") ?? "{}"); } catch { return {}; }
  };
  const remember = () => {
    try { sessionStorage.setItem("hub-look", JSON.stringify({ ...root.dataset })); } catch { /* until the page is left */ }
  };
  const { as = "desk", marks } = remembered();
  root.dataset.as = as;
  if (marks) root.dataset.marks = marks;

  const show = () => {
    document.querySelectorAll("button[data-as]").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.as === root.dataset.as));
    });
    document.querySelectorAll("[data-marks][href]").forEach((link) => {
      const view = link.closest("article").querySelector(".view"), on = root.dataset.marks === "on";
      if (on) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      const frame = view.querySelector(".marked");
      if (!on) frame?.remove();
      if (!on || frame) return;
      const marked = document.createElement("iframe");
      marked.className = "marked";
      marked.setAttribute("sandbox", "allow-same-origin");
      marked.title = say("The mail with its own values marked");
      marked.style.setProperty("--scale", view.querySelector(".preview").style.getPropertyValue("--scale") || 1);
      marked.src = link.href;
      view.append(marked);
    });
  };
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("htmx:after:swap", show);
  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("button[data-as], [data-marks][href]");
    if (!button || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    if (button.dataset.as) root.dataset.as = button.dataset.as;
    else if (root.dataset.marks) delete root.dataset.marks;
    else root.dataset.marks = "on";
    remember();
    show();
    document.querySelectorAll("iframe.preview[data-measured]").forEach(hubSeen.measure);
    hubSeen.observe();
  });
})();
