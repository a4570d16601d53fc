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

  keep({ ...known(), rows: [...known().rows, ...hubSeen.returned(key) ?? []] });
  const rows = [...document.querySelectorAll(".same [data-see], tr[data-target]")];
  const says = form.querySelector("[data-left]");
  let mailSeen = known().mails.includes(page.dataset.variant);
  const isLeft = (row) => !row.hasAttribute("data-shown");
  const count = () => {
    const left = rows.filter(isLeft).length;
    const rest = left === 1 ? say("{1} row", left) : say("{1} rows", left.toLocaleString("en"));
    const parts = [...mailSeen ? [] : [say("the mail")], ...left > 0 ? [rest] : []];
    says.textContent = parts.length === 0 ? say("All of it was in view.")
      : parts.length === 1 ? say("Not in view yet: {1}.", ...parts) : say("Not in view yet: {1} and {2}.", ...parts);
    form.toggleAttribute("data-ready", parts.length === 0);
  };

  // The bar below is as high as what it says.
  new ResizeObserver(hubSeen.observe).observe(document.getElementById("together"));
  hubSeen.observe();

  // All of some elements has been in view: of a long value when it was unfolded, of a preview when it has come.
  const looks = new Map();
  const all = (elements, done) => {
    const left = new Set(elements);
    elements.forEach((el) => {
      const group = hubSeen.group(() => {
        left.delete(el);
        looks.delete(el);
        if (left.size === 0) done();
      });
      const look = () => {
        hubSeen.drop(group);
        const folded = [...el.querySelectorAll("details.long")].some((fold) => !fold.open);
        if (!folded && (el.tagName !== "IFRAME" || hubSeen.came(el) && hubSeen.whole(el))) hubSeen.watch(group, el);
      };
      looks.set(el, look);
      look();
    });
  };
  hubSeen.onPreview((frame) => looks.get(frame)?.());
  document.addEventListener("toggle", (e) => {
    if (e.target.matches?.("details.long")) looks.forEach((look, el) => { if (el.contains(e.target)) look(); });
  }, true);

  const mail = document.getElementById("mail");
  if (mail && !mailSeen) {
    all([...mail.querySelectorAll("[data-see], iframe")], () => {
      mailSeen = true;
      keep({ ...known(), mails: [...known().mails, page.dataset.variant] });
      count();
    });
  }
  const remembered = new Set(known().rows);
  rows.forEach((row) => {
    const text = row.dataset.target ?? row.dataset.same;
    if (remembered.has(text)) return row.setAttribute("data-shown", "");
    all(row.cells ? [...row.cells].filter((cell) => !cell.matches(".outcome")) : [row], () => {
      row.setAttribute("data-shown", "");
      keep({ ...known(), rows: [...known().rows, text] });
      count();
    });
  });

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
    rows.filter((row) => row.dataset.target).forEach((row) => {
      const input = document.createElement("input");
      input.type = "hidden";
      input.name = "target";
      input.value = row.dataset.target;
      form.append(input);
    });
    const gone = new Set(rows.map((row) => row.dataset.target)); // what they have in common, the next page may have too
    hubSeen.sending(key, known().rows.filter((text) => gone.has(text)));
    keep({ ...known(), rows: known().rows.filter((text) => !gone.has(text)) });
  });
  addEventListener("pageshow", (e) => { if (e.persisted) form.querySelectorAll("input[name=target]").forEach((el) => el.remove()); });
  count();
})();
