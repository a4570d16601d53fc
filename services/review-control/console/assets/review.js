// Approve shown takes the targets of a page that were shown: whose preview has come, with the
// content that the page was made for, and of which every part has been in view since. Their inputs
// are in the page disabled, so that without this script none of them is sent.
(() => {
  "use strict";

  // How high a part is that has to be in view at once, in pixels. A preview may be higher than the window.
  const part = 60;

  const cards = new Map(); // by their article: what of it has not been in view yet
  const right = new WeakSet(); // previews whose document has come, and is the right one

  // Whether the preview's document is the content that the page was made for: a frame tells nothing
  // about what is in it, but the answer has left a cookie.
  const isRight = (frame) => {
    const [path, index] = new URL(frame.src).pathname.split(/\/targets\/|\/preview/);
    const name = `hub-shown-${index % 50}`;
    const right = document.cookie.split("; ").includes(`${name}=${frame.dataset.of}`);
    document.cookie = `${name}=; Path=${path}; Max-Age=0`;
    return right;
  };

  const count = () => {
    const inputs = [...document.querySelectorAll("input[data-shown]")].filter((i) => i.closest("[data-item]")?.querySelector("[data-todo]"));
    const shown = inputs.filter((i) => !i.disabled).length;
    document.querySelectorAll("[data-shown-count]").forEach((el) => { el.textContent = `${shown} of ${inputs.length} shown`; });
  };

  let observer;
  const watch = (card, el) => {
    const box = el.getBoundingClientRect();
    const n = Math.max(1, Math.ceil(box.height / part));
    const holder = el.tagName === "IFRAME" ? el.parentElement : el;
    for (let i = 0; i < n; i++) {
      const mark = document.createElement("div");
      mark.className = "watch";
      mark.style.top = `${(100 * i) / n}%`;
      mark.style.height = `${100 / n}%`;
      holder.append(mark);
      card.left.add(mark);
      observer.observe(mark);
    }
  };

  const seen = (entries) => entries.forEach((e) => {
    if (e.intersectionRatio < 0.97) return;
    const article = e.target.closest("[data-item]");
    const card = cards.get(article);
    observer.unobserve(e.target);
    e.target.remove();
    if (!card?.left.delete(e.target) || card.left.size > 0 || !card.preview) return;
    card.input.disabled = false;
    count();
  });

  // Parts of what lies below the bar are not in view.
  const observe = () => {
    const bar = document.querySelector(".reviewbar");
    const top = document.querySelector("header.top");
    const sticks = (el) => el && getComputedStyle(el).position === "sticky";
    const covered = sticks(bar) ? parseFloat(getComputedStyle(bar).top) + bar.offsetHeight : sticks(top) ? top.offsetHeight : 0;
    observer?.disconnect();
    observer = new IntersectionObserver(seen, { rootMargin: `${-Math.ceil(covered)}px 0px 0px 0px`, threshold: [0.97, 1] });
    cards.forEach((card) => card.left.forEach((mark) => observer.observe(mark)));
  };

  const judge = (frame) => {
    const card = cards.get(frame.closest("[data-item]"));
    if (!card || card.preview || !right.has(frame)) return;
    card.preview = true;
    watch(card, frame);
  };

  // Before the first frame is there: load does not bubble, and comes once.
  document.addEventListener("load", (e) => {
    if (e.target.tagName !== "IFRAME" || !isRight(e.target)) return;
    right.add(e.target);
    judge(e.target);
  }, true);

  document.addEventListener("DOMContentLoaded", () => {
    const inputs = document.querySelectorAll("input[data-shown]");
    if (inputs.length === 0) return;
    observe();
    inputs.forEach((input) => {
      const article = input.closest("[data-item]");
      const card = { input, left: new Set(), preview: false };
      cards.set(article, card);
      if (!input.disabled) return; // opened by itself before
      article.querySelectorAll("[data-see]").forEach((el) => watch(card, el));
      judge(article.querySelector("iframe"));
    });
    count();
    addEventListener("resize", observe);
    document.addEventListener("htmx:after:swap", count);
  });
})();

// How long it is until the mails leave.
(() => {
  "use strict";
  const tick = () => document.querySelectorAll("time[data-countdown]").forEach((t) => {
    const left = Math.ceil((Date.parse(t.dateTime) - Date.now()) / 1000);
    t.textContent = left > 0 ? `in ${left} s` : "now";
  });
  setInterval(tick, 500);
  document.addEventListener("DOMContentLoaded", tick);
  document.addEventListener("htmx:after:swap", tick);
})();

// Ctrl+Enter in a note rejects with it, or says the same again with it where somebody has decided.
document.addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey) || !e.target.matches?.(".verdict textarea")) return;
  const verdict = e.target.closest(".verdict");
  const choice = verdict.classList.contains("approved") ? "approved" : "rejected";
  verdict.querySelector(`button[value="${choice}"]`)?.click();
  e.preventDefault();
});
