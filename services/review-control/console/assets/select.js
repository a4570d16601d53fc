// Mails are chosen in the list, to be rejected together: by a click, a range with Shift, Space and x. This window remembers
// them, also while another page of the list is read. The list is one stop of Tab; arrows move in it.
(() => {
  "use strict";

  const form = () => document.getElementById("selection");
  const boxes = () => [...document.querySelectorAll(".pick input")];
  const links = () => [...document.querySelectorAll(".rows a[data-row]")];
  const box = (link) => link.parentElement.querySelector(".pick input");
  const draft = () => form()?.dataset.draft ?? "";
  // What is remembered, by index: what names a chosen mail in the form, and which mails were left for later.
  let memory = {};
  const read = (what) => {
    try { return JSON.parse(sessionStorage.getItem(`hub-${what}-${draft()}`) ?? "{}"); } catch { return memory[what] ?? {}; }
  };
  const keep = (what, all) => {
    memory[what] = all;
    try { sessionStorage.setItem(`hub-${what}-${draft()}`, JSON.stringify(all)); } catch { /* until the page is left */ }
  };
  const indexOf = (text) => text.split(":")[0];

  const show = () => {
    if (!form()) return;
    const n = Object.keys(read("selected")).length, all = form().elements.all;
    form().querySelector("[data-selected]").textContent = n > 0 && !all.checked ? say("{1} selected", n.toLocaleString("en")) : "";
    form().toggleAttribute("data-any", n > 0 || all.checked);
    // With mails chosen, the key to reject is theirs.
    document.querySelector(".verdict button[value=rejected]")?.setAttribute("data-key", n > 0 || all.checked ? "" : "r");
  };
  const set = (some, checked) => {
    const all = read("selected");
    some.forEach((el) => {
      el.checked = checked;
      if (checked) all[indexOf(el.value)] = el.value;
      else delete all[indexOf(el.value)];
    });
    keep("selected", all);
    show();
  };

  let last; // the index of the mail that a range begins with
  const range = (to, checked) => {
    const all = boxes(), from = all.findIndex((el) => indexOf(el.value) === last), until = all.indexOf(to);
    last = indexOf(to.value);
    set(from < 0 ? [to] : all.slice(Math.min(from, until), Math.max(from, until) + 1), checked);
  };
  document.addEventListener("click", (e) => {
    if (!e.target.matches?.(".pick input")) return;
    if (e.shiftKey) return range(e.target, e.target.checked);
    last = indexOf(e.target.value);
    set([e.target], e.target.checked);
  });
  document.addEventListener("change", (e) => {
    if (e.target.name === "all" && e.target.form === form()) show();
  });

  // Focus moves in the list by arrows; with Shift it takes mails along.
  const stop = (link) => links().forEach((el) => { el.tabIndex = el === link ? 0 : -1; });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const link = e.target.closest?.(".rows a[data-row]"), all = links(), at = all.indexOf(link);
    const to = link && { ArrowDown: all[at + 1], ArrowUp: all[at - 1], Home: all[0], End: all.at(-1) }[e.key];
    if (to) {
      if (e.shiftKey && box(link) && box(to)) {
        if (last !== link.dataset.row && !box(link).checked) set([box(link)], true);
        last = link.dataset.row;
        range(box(to), true);
      }
      stop(to);
      to.focus();
    } else if (link && e.key === " " && box(link)) {
      last = link.dataset.row;
      set([box(link)], !box(link).checked);
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }, true);
  document.addEventListener("click", (e) => {
    if (!e.target.closest?.("[data-select]")) return;
    const el = document.querySelector(".rows a[aria-current]");
    if (el && box(el)) set([box(el)], !box(el).checked);
  });

  // Who goes on without a decision comes back to the mail.
  document.addEventListener("click", (e) => {
    const article = e.target.closest?.("[data-later]") && document.querySelector("article[data-open]");
    if (article) keep("later", { ...read("later"), [indexOf(article.dataset.open)]: true });
  }, true);

  const begin = () => {
    if (!form()) return;
    const all = read("selected"), later = read("later");
    document.querySelectorAll(".row.approved, .row.rejected").forEach((row) => { delete all[row.dataset.row]; delete later[row.dataset.row]; });
    keep("later", later);
    boxes().forEach((el) => {
      el.tabIndex = -1;
      el.checked = indexOf(el.value) in all;
      if (el.checked) all[indexOf(el.value)] = el.value; // which may have been looked through since it was chosen
    });
    keep("selected", all);
    links().forEach((row) => {
      if (later[row.dataset.row] && !row.querySelector(".later")) row.querySelector(".mark").insertAdjacentHTML("beforeend", `<span class="later small">${say("Later")}</span>`);
    });
    stop(document.querySelector(".rows a[aria-current]") ?? links()[0]);
    show();
  };
  document.addEventListener("DOMContentLoaded", () => {
    if (form()) keep("selected", { ...hubSeen.returned(`hub-selected-${draft()}`), ...read("selected") });
    begin();
  });
  document.addEventListener("htmx:after:swap", begin);
  addEventListener("pageshow", (e) => { if (e.persisted) begin(); });

  // Those of other pages of the list go with the form, in one field: a form has at most 10,000. Or the form is for all that the list finds.
  document.addEventListener("submit", (e) => {
    if (e.target !== form()) return;
    const here = new Set(boxes().map((el) => indexOf(el.value)));
    const input = form().elements.targets ?? document.createElement("input"); // it is there on a page that has come back
    input.type = "hidden";
    input.name = "targets";
    input.value = Object.values(read("selected")).filter((text) => !here.has(indexOf(text))).join();
    form().append(input);
    hubSeen.sending(`hub-selected-${draft()}`, read("selected"));
    keep("selected", {});
  });

  // Whoever asks why begins with the first reason, which is none; Escape asks no more.
  document.addEventListener("toggle", (e) => {
    if (e.target.matches?.(".rejects[open]")) e.target.querySelector("button").focus({ preventScroll: true });
  }, true);
  document.addEventListener("keydown", (e) => {
    const open = e.key === "Escape" && document.querySelector(".rejects[open]");
    if (!open) return;
    open.open = false;
    open.querySelector("summary").focus({ preventScroll: true });
  });
})();
