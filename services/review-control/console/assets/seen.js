// What has been in view: each part of it at once, and none below what sticks to the top or to the bottom of the window.
const hubSeen = (() => {
  "use strict";

  // How high a part is that has to be in view at once, in pixels. What is looked at may be higher than the window.
  const part = 60;

  let observer;
  const watched = new Map(); // what is laid over each part that was not in view, with the group that it is of
  const seen = (entries) => entries.forEach((e) => {
    const group = watched.get(e.target);
    if (e.intersectionRatio < 0.97 || !group) return;
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

  // Whether the preview's document is the content that the page was made for: a frame tells nothing
  // about what is in it, but the answer has left a cookie.
  const isRight = (frame) => {
    const right = document.cookie.split("; ").includes(`hub-shown=${frame.dataset.of}`);
    document.cookie = "hub-shown=; Path=/drafts; Max-Age=0";
    return right;
  };
  const right = new WeakSet(); // previews whose document has come, and is the right one
  const loaded = new WeakSet(); // those in which anything has come
  const listeners = [];
  // Before the first frame is there: load does not bubble, and comes once.
  document.addEventListener("load", (e) => {
    if (e.target.tagName !== "IFRAME") return;
    loaded.add(e.target);
    if (!isRight(e.target)) return;
    right.add(e.target);
    listeners.forEach((heard) => heard(e.target));
  }, true);

  return { group, watch, drop, observe, came: (frame) => right.has(frame), loaded: (frame) => loaded.has(frame), onPreview: (heard) => listeners.push(heard) };
})();
