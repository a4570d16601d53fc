// What the reference adds where there is JavaScript: copying, and a filter. All of it can be read without.
(() => {
  "use strict";

  document.querySelectorAll("[data-copy-text]").forEach((button) => {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copyText);
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      } catch { getSelection().selectAllChildren(text); }
    });
  });

  const finder = document.querySelector("[data-filter]");
  const field = document.getElementById("q");
  const said = finder.querySelector("[role=status]");
  const operations = [...document.querySelectorAll("[data-operation]")].map((el) => ({
    el,
    words: el.textContent.toLowerCase(),
    row: document.querySelector(`[data-for="${CSS.escape(el.id)}"]`),
    item: document.querySelector(`.side a[href$="#${CSS.escape(el.id)}"]`)?.closest("li"),
  }));
  const filter = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const o of operations) {
      const fits = wanted.every((w) => o.words.includes(w));
      shown += fits ? 1 : 0;
      for (const el of [o.el, o.row, o.item]) if (el) el.hidden = !fits;
    }
    document.querySelectorAll("[data-group]").forEach((g) => { g.hidden = !g.querySelector("[data-operation]:not([hidden])"); });
    document.querySelectorAll("[data-guide]").forEach((g) => { g.hidden = wanted.length > 0; });
    document.querySelectorAll(".side .part").forEach((g) => { g.hidden = !g.querySelector("li:not([hidden])"); });
    document.querySelector("[data-index]").hidden = shown === 0;
    document.querySelector("[data-nothing]").hidden = shown > 0;
    said.textContent = wanted.length ? `${shown} of ${operations.length}` : "";
  };
  finder.hidden = false;
  field.addEventListener("input", filter);
  field.form.addEventListener("submit", (e) => {
    e.preventDefault();
    document.querySelector("[data-operation]:not([hidden]) h3 a")?.focus();
  });
  // Whoever follows a link to what the filter hides has done with the filter.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target || !target.closest("[hidden]")) return;
    field.value = "";
    filter();
    target.scrollIntoView();
  });
  filter(); // what the browser has put back into the field

  // You are here: the entry of the sidebar of what stands at the top of the screen, or of what was asked for where the page ends.
  const side = document.querySelector(".side");
  const places = [...side.querySelectorAll("a[href*='#']")].map((link) => ({
    link, el: document.getElementById(decodeURIComponent(link.hash.slice(1))),
  })).filter((p) => p.el);
  let current = null;
  const mark = () => {
    const seen = places.filter((p) => p.el.getClientRects().length > 0);
    const line = innerHeight / 4;
    let here = seen.findLast((p) => p.el.getBoundingClientRect().top <= line) ?? seen[0];
    const asked = seen.find((p) => p.link.hash === location.hash);
    const isEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    if (isEnd) here = asked && asked.el.getBoundingClientRect().top < innerHeight && asked.el.getBoundingClientRect().top >= 0 ? asked : seen.at(-1);
    if (!here || here === current) return;
    current?.link.removeAttribute("aria-current");
    current = here;
    here.link.setAttribute("aria-current", "location");
    // The sidebar follows by itself; the page stays where it is.
    const box = side.getBoundingClientRect(), at = here.link.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) side.scrollTop += at.top - box.top - box.height / 3;
  };
  let waits = false;
  const soon = () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => { waits = false; mark(); });
  };
  for (const when of ["scroll", "resize", "hashchange"]) addEventListener(when, soon, { passive: true });
  field.addEventListener("input", soon);
  mark();
})();
