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
})();
