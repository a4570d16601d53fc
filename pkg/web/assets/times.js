// Moments in the reader's own time; UTC is a hover away, and all there is without JavaScript.
(() => {
  "use strict";

  const two = (n) => String(n).padStart(2, "0");
  const local = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  // As wide as "UTC", where the zone is whole hours away from it.
  const zone = (at) => {
    const east = -at.getTimezoneOffset();
    if (east === 0) return "UTC";
    const minutes = Math.abs(east) % 60;
    return (east < 0 ? "\u2212" : "+") + two(Math.floor(Math.abs(east) / 60)) + (minutes ? `:${two(minutes)}` : "");
  };

  const show = (root) => root.querySelectorAll("time[datetime]:not([data-local])").forEach((t) => {
    const at = new Date(t.dateTime);
    if (isNaN(at)) return;
    t.dataset.local = "";
    const label = t.querySelector(".zone");
    if (t.classList.contains("day")) t.textContent = local(at).slice(0, 10);
    if (!label) { // an age
      t.title = `${local(at)} ${zone(at)} (${t.title})`;
      return;
    }
    t.firstChild.data = `${local(at)}${t.classList.contains("second") ? `:${two(at.getSeconds())}` : ""} `;
    label.textContent = zone(at);
  });
  // A form that asks for times tells in which zone they are: the reader's, unless it was filled in in another one.
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  document.querySelectorAll("input[type=hidden][name=zone]").forEach((field) => {
    const times = [...field.form.querySelectorAll("input[type=datetime-local]")];
    if (!here || field.value || times.some((t) => t.value)) return;
    field.value = here;
    times.forEach((t) => {
      const hint = document.getElementById(`${t.id}-hint`);
      if (hint) hint.textContent = here;
    });
  });
  show(document);
  document.addEventListener("htmx:after:swap", () => show(document));
})();
