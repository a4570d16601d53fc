// A variant is approved once its mail and every row that is approved have been in view. This window remembers
// them, for each person: a mail for all pages of its variant, and a row as it was shown.
(() => {
  "use strict";

  const page = document.getElementById("variant"), form = document.getElementById("approve-variant");
  const folds = [...document.querySelectorAll("details.long")];
  folds.forEach((el) => { el.open = false; });
  if (!form) return;

  const key = `hub-variant-${page.dataset.draft}`;
  let memory = { mails: [], rows: [] };
  const known = () => {
    try { return JSON.parse(sessionStorage.getItem(key)) ?? memory; } catch { return memory; }
  };
  const keep = (all) => {
    memory = all;
    try { sessionStorage.setItem(key, JSON.stringify(all)); } catch { /* it is remembered until the page is left */ }
  };

  const rows = [...document.querySelectorAll("tr[data-target]")];
  const says = form.querySelector("[data-left]");
  let mailSeen = known().mails.includes(page.dataset.variant);
  const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const isLeft = (row) => !row.hasAttribute("data-shown");
  const count = () => {
    const left = rows.filter(isLeft).length;
    const parts = [mailSeen ? "" : "the mail", left > 0 ? plural(left, "row", "rows") : ""].filter(Boolean);
    says.textContent = parts.length > 0 ? `Not in view yet: ${parts.join(" and ")}.` : "All of it was in view.";
    form.toggleAttribute("data-ready", parts.length === 0);
  };

  hubSeen.observe();

  // The mail: its head, what differs in it, and its preview once that has come.
  const mail = document.getElementById("mail");
  const frame = mail?.querySelector("iframe");
  let begun = false;
  const whole = hubSeen.group(() => {
    if (!begun || mailSeen || folds.some((el) => mail.contains(el) && !el.open)) return;
    mailSeen = true;
    const all = known();
    keep({ ...all, mails: [...all.mails, page.dataset.variant] });
    count();
  });
  const begin = () => {
    if (begun || mailSeen || !frame || !hubSeen.came(frame)) return;
    begun = true;
    hubSeen.watch(whole, frame);
  };
  if (mail && !mailSeen) {
    mail.querySelectorAll("[data-see]").forEach((el) => hubSeen.watch(whole, el));
    hubSeen.onPreview(begin);
    begin();
  }

  // A row is in view when each of its values is: a long one when it was unfolded.
  const cellOf = new Map(); // of what is folded
  const remembered = new Set(known().rows);
  rows.forEach((row) => {
    if (remembered.has(row.dataset.target)) return row.setAttribute("data-shown", "");
    const left = new Set(row.cells);
    [...row.cells].forEach((cell) => {
      const group = hubSeen.group(() => {
        left.delete(cell);
        if (left.size > 0) return;
        row.setAttribute("data-shown", "");
        const all = known();
        keep({ ...all, rows: [...all.rows, row.dataset.target] });
        count();
      });
      const look = () => {
        if (!left.has(cell)) return;
        hubSeen.drop(group);
        if ([...cell.querySelectorAll("details.long")].every((el) => el.open)) hubSeen.watch(group, cell);
      };
      cellOf.set(cell, look);
      look();
    });
  });
  document.addEventListener("toggle", (e) => {
    if (!e.target.matches?.("details.long")) return;
    cellOf.get(e.target.closest("th, td"))?.();
    if (mail?.contains(e.target) && !mailSeen) {
      hubSeen.drop(whole);
      begun = false;
      mail.querySelectorAll("[data-see]").forEach((el) => hubSeen.watch(whole, el));
      begin();
    }
  }, true);

  // Whoever asks too early is led to what was not in view.
  const unseen = () => {
    if (!mailSeen && mail) return mail.querySelector("details.long:not([open]) summary") ?? mail.querySelector(".watch") ?? mail;
    const row = rows.find(isLeft);
    return row?.querySelector("details.long:not([open]) summary") ?? row;
  };
  form.addEventListener("submit", (e) => {
    form.querySelectorAll("noscript").forEach((el) => el.remove()); // what browsers without scripts send
    if (!form.hasAttribute("data-ready")) {
      e.preventDefault();
      const el = unseen();
      el?.scrollIntoView({ block: "start" });
      if (el?.matches("summary")) el.focus({ preventScroll: true });
      return;
    }
    rows.forEach((row) => {
      const input = document.createElement("input");
      input.type = "hidden";
      input.name = "target";
      input.value = row.dataset.target;
      form.append(input);
    });
    const all = known(), gone = new Set(rows.map((row) => row.dataset.target));
    keep({ ...all, rows: all.rows.filter((text) => !gone.has(text)) });
  });
  addEventListener("pageshow", (e) => { if (e.persisted) form.querySelectorAll("input[name=target]").forEach((el) => el.remove()); });
  count();
})();
