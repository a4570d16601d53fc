// What the console adds where there is JavaScript. Everything works without it.
(() => {
  "use strict";

  const typing = (el) => el instanceof HTMLElement && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName));
  const shown = (el) => !el.disabled && el.getClientRects().length > 0;

  // The current one of a list: [data-list] holds [data-item]s, j and k move between them.
  const items = () => [...document.querySelectorAll("[data-list] [data-item]")].filter(shown);
  const current = () => document.querySelector("[data-item][data-current]");
  const choose = (el) => {
    current()?.removeAttribute("data-current");
    if (!el) return;
    el.setAttribute("data-current", "");
    if (!el.hasAttribute("tabindex")) el.setAttribute("tabindex", "-1");
    el.focus({ preventScroll: true });
    el.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const all = items();
    const at = all.indexOf(current());
    choose(all[Math.min(Math.max(at + by, 0), all.length - 1)]);
  };

  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    const help = document.getElementById("help");
    if (typing(e.target) || help?.open) return;
    if (e.key === "?") help?.showModal();
    else if (e.key === "/") document.querySelector("input[type=search]")?.focus();
    else if ((e.key === "j" || e.key === "k") && items().length) step(e.key === "j" ? 1 : -1);
    else {
      // Any other key presses the button that names it, of the current item if there is one.
      const quoted = `[data-key="${CSS.escape(e.key)}"]`;
      const button = [...(current() ?? document).querySelectorAll(quoted)].find(shown);
      if (!button || e.repeat) return;
      button.click();
    }
    e.preventDefault();
  });

  document.addEventListener("focusin", (e) => {
    const item = e.target.closest?.("[data-item]");
    if (item && item !== current()) {
      current()?.removeAttribute("data-current");
      item.setAttribute("data-current", "");
    }
  });

  // A second click must not send a form twice.
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (e.defaultPrevented || form.method === "dialog") return;
    if (form.hasAttribute("aria-busy")) return e.preventDefault();
    form.setAttribute("aria-busy", "true");
    setTimeout(() => form.querySelectorAll("button").forEach((b) => { b.disabled = true; }));
  });
  // Coming back by the back button finds the page as it was left.
  addEventListener("pageshow", () => {
    document.querySelectorAll("form[aria-busy]").forEach((form) => {
      form.removeAttribute("aria-busy");
      form.querySelectorAll("button").forEach((b) => { b.disabled = false; });
    });
  });

  // Moments are in UTC; the reader's own time is a hover away.
  const localTimes = (root) => root.querySelectorAll("time[datetime]").forEach((t) => {
    const at = new Date(t.dateTime);
    if (!isNaN(at)) t.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "short" });
  });
  localTimes(document);
  document.addEventListener("htmx:after:swap", () => localTimes(document));
})();
