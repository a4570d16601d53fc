// Where there is a finger a mail is turned as a page is: by a swipe, to the next one or back. The buttons in the bar do the same.
(() => {
  "use strict";

  const far = 60; // in pixels; what is shorter is a tap, or the begin of a scroll
  let begin = null;

  // What is wider than its place is scrolled by the finger, and turns nothing.
  const wide = (el) => {
    const root = el.ownerDocument.documentElement;
    if (root.scrollWidth > root.clientWidth + 1) return true;
    for (; el?.nodeType === 1; el = el.parentElement) {
      if (el.scrollWidth > el.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(el).overflowX)) return true;
    }
    return false;
  };
  const down = (e) => {
    const of = e.target.ownerDocument === document ? e.target.closest("article.target > .mail, article.target > header") : e.target;
    begin = of && e.touches.length === 1 && !wide(e.target) ? e.touches[0] : null;
  };
  const up = (e) => {
    const end = e.changedTouches[0], from = begin;
    begin = null;
    if (!from || e.touches.length > 0) return;
    const x = end.screenX - from.screenX, y = end.screenY - from.screenY;
    if (Math.abs(x) < far || Math.abs(x) < 2 * Math.abs(y)) return;
    document.querySelector(`.ways [rel=${x < 0 ? "next" : "prev"}]`)?.click();
  };
  const listen = (to) => {
    to.addEventListener("touchstart", down, { passive: true });
    to.addEventListener("touchend", up, { passive: true });
    to.addEventListener("touchcancel", () => { begin = null; }, { passive: true });
  };
  listen(document);
  // A preview is a document of its own, in which no script of the mail runs.
  document.addEventListener("load", (e) => {
    if (e.target.matches?.("iframe.preview") && e.target.contentDocument) listen(e.target.contentDocument);
  }, true);
})();
