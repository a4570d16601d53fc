// What admin's pages add where there is JavaScript: tables sort in place, and menus are dragged. Both work without it.
(() => {
  "use strict";

  // Sorting, by the rules of the server's: what is empty comes last, numbers by their value, texts without regard to case.
  const keyOf = (cell) => cell.dataset.keyValue ?? (cell.querySelector(":scope > .muted[aria-label]") ? "" : (cell.querySelector("li bdi, summary") ?? cell).textContent.trim().toLowerCase());
  const sort = (th) => {
    const table = th.closest("table");
    const index = [...th.parentElement.children].indexOf(th);
    const down = th.getAttribute("aria-sort") === "ascending";
    const number = th.hasAttribute("data-number");
    const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row.cells[index]), row]);
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === "");
      const order = number ? a - b : a < b ? -1 : a > b ? 1 : 0;
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
    for (const other of th.parentElement.children) other.setAttribute("aria-sort", other === th ? (down ? "descending" : "ascending") : "none");
  };
  document.addEventListener("click", (e) => {
    const button = e.target.closest?.("[data-sorts] th button");
    if (!button) return;
    e.preventDefault();
    sort(button.closest("th"));
  });

  // Dragging: a list with [data-order] holds [data-slug]s; where one is put down the list's new order is sent.
  document.querySelectorAll(".grip").forEach((grip) => { grip.hidden = false; });
  const send = (list) => {
    const form = document.getElementById("order");
    const field = (name, value) => {
      const input = document.createElement("input");
      input.type = "hidden";
      input.name = name;
      input.value = value;
      return input;
    };
    const slugs = [...list.children].map((li) => field("slug", li.dataset.slug));
    form.replaceChildren(field("group", list.dataset.order), ...slugs);
    form.requestSubmit();
  };
  document.addEventListener("pointerdown", (e) => {
    const grip = e.target.closest?.(".grip");
    if (!grip || e.button !== 0) return;
    const item = grip.closest("[data-slug]");
    const list = item.parentElement;
    const before = [...list.children];
    e.preventDefault();
    item.classList.add("dragged");
    const move = (at) => {
      const others = [...list.children].filter((li) => li !== item);
      const next = others.find((li) => {
        const box = li.getBoundingClientRect();
        return at.clientY < box.top + box.height / 2;
      });
      list.insertBefore(item, next ?? null);
    };
    const end = (at) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      item.classList.remove("dragged");
      if (at.type === "pointercancel") return list.append(...before);
      if ([...list.children].some((li, n) => li !== before[n])) send(list);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  });
})();
