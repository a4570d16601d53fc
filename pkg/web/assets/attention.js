// Parts with [data-while-used] refresh themselves while somebody is there: the page is visible, and was used
// in the last five minutes. Asking would otherwise keep a session for ever that nobody uses.
(() => {
  "use strict";

  const patience = 5 * 60 * 1000;
  let used = Date.now();
  for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"]) {
    addEventListener(kind, () => { used = Date.now(); }, { passive: true, capture: true });
  }
  document.addEventListener("htmx:before:request", (e) => {
    if (e.target.closest?.("[data-while-used]") && (document.hidden || Date.now() - used > patience)) e.preventDefault();
  });
})();
