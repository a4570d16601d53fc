// Approve shown takes the mails that were shown: whose preview has come, with the content that the page was
// made for, and of which every part has been in view. This browser remembers them, for each person, for as
// long as its window is open; without scripts what was opened counts.
(() => {
  "use strict";

  // How many mails are approved at once.
  const most = 100;

  const form = () => document.getElementById("approve-shown");
  const key = () => `hub-shown-${form().dataset.draft}`;
  let memory = {};
  // What was shown: by index, what names it in the form, or "" for what has a flag.
  const shown = () => {
    try { return JSON.parse(sessionStorage.getItem(key()) ?? "{}"); } catch { return memory; }
  };
  const keep = (all) => {
    memory = all;
    try { sessionStorage.setItem(key(), JSON.stringify(all)); } catch { /* it is remembered until the page is left */ }
  };

  const number = (n) => Number(n).toLocaleString("en");
  const ends = (leave, not) => leave === 1
    ? say("It ends the review: {1} mail will leave, {2} will not.", number(leave), number(not))
    : say("It ends the review: {1} mails will leave, {2} will not.", number(leave), number(not));
  const left = (flagged) => flagged === 1
    ? say("{1} flagged: decide it on its own page.", number(flagged))
    : say("{1} flagged: decide each on its own page.", number(flagged));
  const count = () => {
    if (!form()?.querySelector("[data-shown-count]")) return; // the mails are still being looked through
    const all = Object.values(shown());
    const n = Math.min(all.filter(Boolean).length, most);
    const flagged = all.filter((text) => !text).length;
    const { pending, approved, rejected } = form().dataset;
    form().querySelector("[data-shown-count]").textContent = n > 0 ? number(n) : say("what");
    document.querySelector("[data-shown-says]").textContent = n > 0 && n === Number(pending) ? ends(Number(approved) + n, rejected)
      : flagged > 0 ? left(flagged) : say("Flagged mails are decided one by one.");
  };

  let card; // the article that is watched: { article, group, preview }
  const done = () => {
    if (!card.preview) return;
    const text = card.article.dataset.open;
    keep({ ...shown(), [text.split(":")[0]]: card.article.hasAttribute("data-together") && hubSeen.whole(card.article.querySelector("iframe")) ? text : "" });
    card.article.setAttribute("data-shown", "");
    count();
  };
  const judge = (frame) => {
    if (!card || card.preview || !card.article.contains(frame) || !hubSeen.came(frame)) return;
    card.preview = true;
    hubSeen.watch(card.group, frame);
  };
  hubSeen.onPreview(judge);

  // Where evidence lies above the mail and not beside it, it is folded.
  const beside = matchMedia("(min-width: 62rem) and (min-height: 38rem)");
  const fold = () => document.querySelectorAll(".grounds > details").forEach((el) => { el.open = beside.matches; });
  beside.addEventListener("change", fold);

  const begin = () => {
    const article = document.querySelector("article[data-open]");
    if (form()) { // what was decided meanwhile is no longer to be approved
      const all = shown();
      document.querySelectorAll("[data-row].approved, [data-row].rejected").forEach((row) => { delete all[row.dataset.row]; });
      keep(all);
    }
    count();
    if (!form() || article === card?.article) return;
    if (card) hubSeen.drop(card.group);
    card = article ? { article, group: hubSeen.group(done), preview: false } : undefined;
    hubSeen.observe();
    if (!card) return;
    article.querySelectorAll("[data-see]").forEach((el) => hubSeen.watch(card.group, el));
    judge(article.querySelector("iframe"));
  };
  document.addEventListener("DOMContentLoaded", () => {
    if (form()) keep({ ...hubSeen.returned(key()), ...shown() });
    fold();
    begin();
  });
  addEventListener("pageshow", (e) => { if (e.persisted) begin(); });

  document.addEventListener("submit", (e) => {
    if (e.target !== form() && e.target.id !== "reject-shown") return;
    // What was opened is for browsers without scripts; in what htmx has put in, it is part of the form.
    e.target.querySelectorAll("noscript").forEach((el) => el.remove());
    const all = shown(), sent = {};
    Object.entries(all).filter(([, text]) => text).slice(0, most).forEach(([index, text]) => {
      const input = document.createElement("input");
      input.type = "hidden";
      input.name = "target";
      input.value = text;
      e.target.append(input);
      sent[index] = text;
      delete all[index];
    });
    hubSeen.sending(key(), sent);
    keep(all);
  }, true);

  // A mail that has not come is not approved. What has come and cannot be told to be the mail is left to its reader, who
  // has to press again.
  const doubted = new WeakSet();
  document.addEventListener("submit", (e) => {
    const frame = e.target.closest("article.target")?.querySelector("iframe.preview");
    if (!frame || e.submitter?.value !== "approved" || hubSeen.came(frame) || doubted.has(frame)) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    const came = hubSeen.loaded(frame), says = document.createElement("p");
    if (came) doubted.add(frame);
    says.className = "notice wrong early";
    says.setAttribute("role", "alert");
    says.textContent = came ? say("Is this the mail? Reload the page, or approve again.") : say("The mail has not come yet.");
    e.target.parentElement.querySelectorAll(".early").forEach((el) => el.remove());
    e.target.before(says);
  }, true);
  hubSeen.onPreview((frame) => frame.closest("article")?.querySelectorAll(".early").forEach((el) => el.remove()));

  // Whether the begin of a mail is in view, from its name to some lines of its text.
  const begins = () => {
    const top = (selector) => document.querySelector(selector).getBoundingClientRect().top;
    return top("article.target") >= (document.querySelector("header.top")?.getBoundingClientRect().bottom ?? 0) && top("iframe.preview") + 100 <= top(".verdict");
  };

  // Another mail is on the page: the list stays where it was, and the reader is told.
  let scrolled = 0;
  const keepInView = (list, row) => {
    const box = row.getBoundingClientRect(), around = list.getBoundingClientRect();
    if (box.top < around.top || box.bottom > around.bottom) list.scrollTop += box.top - around.top - list.clientHeight / 3;
  };
  document.addEventListener("DOMContentLoaded", () => {
    const list = document.querySelector(".listing"), row = list?.querySelector("[aria-current]");
    if (row && list.scrollHeight > list.clientHeight) keepInView(list, row);
  });
  document.addEventListener("htmx:before:swap", () => { scrolled = document.querySelector(".listing")?.scrollTop ?? 0; });
  document.addEventListener("htmx:after:swap", () => {
    const list = document.querySelector(".listing");
    const row = list?.querySelector("[aria-current]");
    const article = document.querySelector("article.target");
    if (!article || article === card?.article) {
      if (list) list.scrollTop = scrolled;
      return count();
    }
    fold();
    if (list && row && list.scrollHeight > list.clientHeight) {
      list.scrollTop = scrolled;
      keepInView(list, row);
    } else if (!article.hasAttribute("data-stays") && !begins()) {
      article.scrollIntoView({ block: "start" });
    }
    article.focus({ preventScroll: true });
    begin();
  });

  // What is being written is there again when the session has ended meanwhile, or the page was left.
  const noteKey = (el) => `hub-note-${document.getElementById("help")?.dataset.user}-${el.closest("form").action}-${el.closest("article").id}`;
  document.addEventListener("input", (e) => {
    if (!e.target.matches?.(".verdict textarea")) return;
    try { sessionStorage.setItem(noteKey(e.target), e.target.value); } catch { /* it is lost with the page */ }
  });
  const restore = () => document.querySelectorAll(".verdict textarea").forEach((el) => {
    try {
      const text = sessionStorage.getItem(noteKey(el));
      if (el.closest("[data-todo]") === null) sessionStorage.removeItem(noteKey(el));
      else if (text && !el.value) {
        el.value = text;
        el.closest("details").open = true;
      }
    } catch { /* nothing is remembered */ }
  });
  document.addEventListener("DOMContentLoaded", restore);
  document.addEventListener("htmx:after:swap", restore);

  // Keys that are pressed in a preview nobody hears, as it runs no scripts: a click into it leaves the keyboard with
  // the mail around it. Whoever comes there by Tab stays, and goes on from there.
  let tabs = false;
  document.addEventListener("keydown", (e) => { tabs = e.key === "Tab"; }, true);
  document.addEventListener("pointerover", () => { tabs = false; }, true);
  addEventListener("blur", () => setTimeout(() => {
    if (!tabs && document.activeElement?.matches(".view > iframe")) document.activeElement.closest(".mail").focus({ preventScroll: true });
  }));

  // How long it is until the mails leave. The server says in how many milliseconds, and that is counted down from when the part of the
  // page has come: this computer's clock may be wrong, but not by more and more. So a page that was left and comes back is right, too.
  const arrived = new WeakMap();
  let age = () => performance.now() - (performance.getEntriesByType("navigation")[0]?.responseStart ?? 0);
  const tick = () => document.querySelectorAll("time[data-countdown]").forEach((t) => {
    if (!arrived.has(t)) arrived.set(t, Date.now() - age());
    const left = Math.ceil((Number(t.dataset.countdown) + arrived.get(t) - Date.now()) / 1000);
    t.textContent = left > 0 ? say("in {1} s", left) : say("now");
  });
  setInterval(tick, 500);
  document.addEventListener("DOMContentLoaded", tick);
  addEventListener("pageshow", tick);
  document.addEventListener("htmx:after:swap", () => {
    age = () => 0;
    tick();
  });

  // The fields for a note are folded away: who asks for them writes.
  document.addEventListener("toggle", (e) => {
    if (e.target.matches?.(".why[open]")) e.target.querySelector("textarea")?.focus();
  }, true);
  // Ctrl+Enter in a note rejects with it, or says the same again with it where somebody has decided.
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey) || !e.target.matches?.(".verdict textarea")) return;
    const choice = e.target.closest(".verdict").classList.contains("approved") ? "approved" : "rejected";
    e.target.form.querySelector(`button[value="${choice}"]`)?.click();
    e.preventDefault();
  });
})();
