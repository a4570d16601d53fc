// What the reference adds where there is JavaScript: copying, and a filter of the index. All of it can be read without.
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

  // The index finds an operation by all that its article says.
  const index = document.querySelector("[data-index]");
  if (index) {
    const finder = document.querySelector("[data-filter]");
    const field = document.getElementById("q");
    const said = finder.querySelector("[role=status]");
    const rows = [...index.querySelectorAll("[data-for]")];
    const filter = () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) row.hidden = !wanted.every((w) => row.dataset.words.includes(w));
      const shown = rows.filter((row) => !row.hidden);
      index.querySelectorAll("[data-group]").forEach((group) => {
        let row = group.nextElementSibling;
        while (row?.matches("[data-for]") && row.hidden) row = row.nextElementSibling;
        group.hidden = !row?.matches("[data-for]");
      });
      document.querySelectorAll("[data-guide]").forEach((g) => { g.hidden = wanted.length > 0; });
      index.hidden = shown.length === 0;
      document.querySelector("[data-nothing]").hidden = shown.length > 0;
      said.textContent = wanted.length ? `${shown.length} of ${rows.length}` : "";
    };
    finder.hidden = false;
    field.addEventListener("input", filter);
    field.form.addEventListener("submit", (e) => {
      e.preventDefault();
      rows.find((row) => !row.hidden)?.querySelector("a").focus();
    });
    filter(); // what the browser has put back into the field
    // An operation's name alone, as in /docs#get_brand, leads to its article.
    const named = rows.find((row) => row.dataset.for === decodeURIComponent(location.hash.slice(1)));
    if (named) location.replace(named.querySelector("a").href);
  }

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
  document.getElementById("q")?.addEventListener("input", soon);
  mark();
})();
