// What has been in view: each part of it at once, and none below what sticks to the top or to the bottom of the window.
const hubSeen = (() => {
  "use strict";

  // How high a part is that has to be in view at once, in pixels. What is looked at may be higher than the window.
  const part = 60;

  let observer;
  const watched = new Map(); // what is laid over each part that was not in view, with the group that it is of
  const seen = (entries) => entries.forEach((e) => {
    const group = watched.get(e.target);
    if (e.intersectionRatio < 0.97 || !group || unmeasured()) return;
    forget(e.target);
    group.left.delete(e.target);
    if (group.left.size === 0) group.done();
  });
  const forget = (mark) => {
    observer?.unobserve(mark);
    watched.delete(mark);
    mark.remove();
  };

  // What lies below the bar that sticks to the bottom of a window, or to its top, is not in view.
  const observe = () => {
    const sticks = (el) => el && ["sticky", "fixed"].includes(getComputedStyle(el).position) ? el.offsetHeight : 0;
    const top = sticks(document.querySelector("header.top")), bottom = sticks(document.querySelector(".verdict"));
    observer?.disconnect();
    observer = new IntersectionObserver(seen, { rootMargin: `${-Math.ceil(top)}px 0px ${-Math.ceil(bottom)}px 0px`, threshold: [0.97, 1] });
    watched.forEach((_, mark) => observer.observe(mark));
  };
  addEventListener("resize", observe);

  // A group is done when all that is watched of it has been in view.
  const group = (done) => ({ left: new Set(), done });
  const watch = (of, el) => {
    const n = Math.max(1, Math.ceil(el.getBoundingClientRect().height / part));
    const holder = el.tagName === "IFRAME" ? el.parentElement : el;
    for (let i = 0; i < n; i++) {
      const mark = document.createElement("div");
      mark.className = "watch";
      mark.style.top = `${(100 * i) / n}%`;
      mark.style.height = `${100 / n}%`;
      holder.append(mark);
      of.left.add(mark);
      watched.set(mark, of);
      observer.observe(mark);
    }
  };
  // What was not in view of a group is watched no more.
  const drop = (of) => {
    of.left.forEach(forget);
    of.left.clear();
  };

  // A preview is as high as its mail, up to a bound that only a mail with a flag reaches. While one of the page has not
  // come, what is in view is not where it is going to be, and nothing of it counts.
  const highest = 12000;
  // A mail that is wider than its preview is made smaller, as programs for mail do: to half of its size at the least, and never so
  // small that a letter of it cannot be read (body.Size has the same). Then it scrolls.
  const smallest = 0.5, readable = 6;
  const least = (frame) => {
    const texts = frame.contentDocument.createTreeWalker(frame.contentDocument.body, NodeFilter.SHOW_TEXT);
    let scale = smallest;
    while (scale < 1 && texts.nextNode()) {
      if (!texts.currentNode.data.trim()) continue;
      scale = Math.max(scale, readable / parseFloat(frame.contentWindow.getComputedStyle(texts.currentNode.parentElement).fontSize));
    }
    return Math.min(scale, 1);
  };
  const unmeasured = () => document.querySelector("iframe.preview:not([data-measured])") !== null;
  const measure = (frame) => {
    const root = frame.contentDocument?.documentElement; // an error of the network shows none
    if (root) {
      const fit = (px) => { frame.style.height = `${Math.min(Math.ceil(px), highest)}px`; };
      const shown = frame.closest("#ahead") ? [frame] : frame.parentElement.querySelectorAll("iframe"); // marks lie over it
      const shrink = (scale) => shown.forEach((el) => el.style.setProperty("--scale", scale));
      shrink(1);
      fit(highest); // a bar beside the mail would make it narrower
      const scale = root.scrollWidth > root.clientWidth ? Math.max(root.clientWidth / (root.scrollWidth + 1), least(frame)) : 1;
      shrink(scale);
      fit(root.getBoundingClientRect().height);
      const bar = frame.contentWindow.innerHeight - root.clientHeight; // to scroll sideways by
      if (bar > 0) fit(frame.clientHeight + bar);
      if (root.scrollHeight > root.clientHeight) fit(root.scrollHeight + bar);
      frame.style.marginBottom = `${frame.offsetHeight * (scale - 1)}px`; // it keeps the place of its whole size
    }
    frame.setAttribute("data-measured", "");
  };
  const measured = (frame) => {
    measure(frame);
    observe();
  };
  addEventListener("resize", () => document.querySelectorAll("iframe.preview[data-measured]").forEach(measure));
  // Whether all of the mail is in its frame: nothing of it lies beside or below.
  const whole = (frame) => {
    const root = frame.contentDocument?.documentElement;
    return Boolean(root) && root.scrollWidth <= root.clientWidth && root.scrollHeight <= root.clientHeight;
  };

  // Whether the preview's document is the content that the page was made for: its bytes are those of the mail and
  // name nothing, but the answer has left a cookie. What came ahead has one of its own (ahead.js), as both may come at once.
  const isRight = (frame) => {
    const cookie = frame.closest("#ahead") ? "hub-ahead" : "hub-shown";
    const right = document.cookie.split("; ").includes(`${cookie}=${frame.dataset.of}`);
    document.cookie = `${cookie}=; Path=/drafts; Max-Age=0`;
    return right;
  };
  const right = new WeakSet(); // previews whose document has come, and is the right one
  const loaded = new WeakSet(); // those in which anything has come
  const listeners = [];
  // Before the first frame is there: load does not bubble, and comes once.
  document.addEventListener("load", (e) => {
    if (!e.target.matches?.("iframe.preview[src]")) return; // one without an address waits for a frame that came ahead
    loaded.add(e.target);
    measured(e.target);
    if (!isRight(e.target)) return;
    right.add(e.target);
    listeners.forEach((heard) => heard(e.target));
  }, true);

  // What goes with a form is remembered until a page says that it was done: a refusal, or a session that has ended, costs nobody what
  // they have read. What is decided meanwhile the pages leave out by themselves.
  const sending = (key, what) => {
    try { sessionStorage.setItem(`${key}-sent`, JSON.stringify(what)); } catch { /* it is gone with the page */ }
  };
  const returned = (key) => {
    try {
      const what = JSON.parse(sessionStorage.getItem(`${key}-sent`));
      sessionStorage.removeItem(`${key}-sent`);
      return document.querySelector(".notice.done") ? null : what;
    } catch { return null; }
  };

  return { sending, returned, group, watch, drop, observe, whole, measure, came: (frame) => right.has(frame), loaded: (frame) => loaded.has(frame), onPreview: (heard) => listeners.push(heard) };
})();
