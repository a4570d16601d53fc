// The mails that a reader may come to next are fetched ahead, with their previews, and are there at once when they are asked for.
// What is shown so is only looked at: the answer to the request always comes and takes its place, and until then nothing is decided
// on it (hub.js). So what was fetched may be old, and a decision is lost as little as without it.
(() => {
  "use strict";

  // A browser that cannot move a frame without loading it anew does without.
  if (!("moveBefore" in Element.prototype)) return;

  const articles = new Map(); // by the address of its page: a mail as the server has made it
  const shown = () => document.querySelector("#triage > article.target:not([hidden])");
  const preview = (el) => el?.querySelector("iframe.preview") ?? null;

  // Previews that came ahead wait out of sight, as wide as they are going to be.
  const most = 3;
  const widths = new WeakMap(); // how wide each was when it was measured: so wide it is as high as it was then
  const holder = () => {
    let el = document.getElementById("ahead");
    if (!el) {
      el = document.createElement("div");
      el.id = "ahead";
      el.inert = true;
      document.body.append(el);
    }
    const now = preview(shown());
    if (now) el.style.width = `${now.parentElement.clientWidth}px`;
    return el;
  };
  const held = (of) => [...holder().children].find((frame) => frame.dataset.of === of && hubSeen.came(frame)) ?? null;
  // One that has not come yet must not get in the way of the one that is asked for.
  const stop = () => [...holder().children].filter((frame) => !hubSeen.came(frame)).forEach((frame) => frame.remove());
  const load = (own) => new Promise((done) => {
    stop();
    const frame = document.importNode(own, true);
    frame.setAttribute("data-measured", ""); // nothing waits for it
    frame.src = `${own.getAttribute("src")}&ahead=1`;
    frame.addEventListener("load", () => {
      widths.set(frame, frame.clientWidth);
      done();
    });
    holder().append(frame);
    while (holder().children.length > most) holder().firstElementChild.remove();
  });
  // A mail that is put on the page gets the preview that came ahead of it: the one of its very content.
  const adopt = (article) => {
    const own = preview(article);
    if (!own || own.hasAttribute("src")) return;
    const frame = held(own.dataset.of);
    if (!frame) return void (own.src = own.dataset.src);
    frame.title = own.title;
    own.parentElement.moveBefore(frame, own);
    own.remove();
    if (frame.clientWidth !== widths.get(frame)) hubSeen.measure(frame);
  };
  const waits = (own) => {
    if (!own || !held(own.dataset.of)) return false;
    own.dataset.src = own.getAttribute("src");
    own.removeAttribute("src");
    return true;
  };

  const get = async (href) => {
    const response = await fetch(href, { headers: { "HX-Request": "true", "Purpose": "prefetch" } });
    return response.ok ? new DOMParser().parseFromString(await response.text(), "text/html").querySelector("article.target") : null;
  };
  let turn = 0; // who has gone on meanwhile needs others
  const look = async () => {
    const mine = turn += 1;
    const links = [...document.querySelectorAll(".ways [data-later], .ways [rel=next]")].map((link) => link.getAttribute("href"));
    [...articles.keys()].filter((href) => !links.includes(href)).forEach((href) => articles.delete(href));
    for (const href of new Set(links)) {
      const article = articles.get(href) ?? await get(href);
      if (mine !== turn || !preview(article)) return;
      articles.set(href, article);
      if (!held(preview(article).dataset.of)) await load(preview(article));
      if (mine !== turn) return;
    }
  };
  const lookAround = () => look().catch(() => { /* what was not fetched ahead is fetched when it is asked for */ });
  hubSeen.onPreview((frame) => { if (shown()?.contains(frame)) lookAround(); });

  // The mail that stands there until the answer comes, the one that it hides, the request, and what was pressed meanwhile.
  let early;
  const step = (ctx, href) => {
    const old = shown(), own = preview(articles.get(href));
    if (!old || early || !own || !held(own.dataset.of)) return;
    const article = document.importNode(articles.get(href), true);
    article.setAttribute("data-early", "");
    article.setAttribute("data-current", "");
    waits(preview(article));
    old.before(article);
    old.hidden = true;
    adopt(article);
    article.querySelector(".grounds > details").open = old.querySelector(".grounds > details").open;
    if (document.scrollingElement.scrollTop > 0) article.scrollIntoView({ block: "start" });
    early = { article, old, ctx };
  };
  document.addEventListener("htmx:before:request", (e) => {
    const { ctx } = e.detail, by = ctx.sourceElement;
    if (e.defaultPrevented || ctx.target?.id !== "triage") return;
    turn += 1;
    stop();
    step(ctx, by.matches("a") ? by.getAttribute("href") : by.closest(".verdict") && document.querySelector(".ways [data-later]")?.getAttribute("href"));
  });
  // A link of a mail that is not the server's yet is followed when that has come.
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.("[data-early] a");
    if (!link || !early) return;
    e.preventDefault();
    e.stopImmediatePropagation();
    early.then = link.getAttribute("href");
  }, true);

  const scrolls = (article) => [...article.querySelectorAll(":scope > .mail, :scope > .grounds")];
  document.addEventListener("htmx:before:swap", (e) => {
    const { ctx, tasks } = e.detail;
    if (ctx.target?.id !== "triage") return;
    if (early?.ctx === ctx) {
      early.tops = scrolls(early.article).map((el) => el.scrollTop);
      holder().moveBefore(preview(early.article), null);
    }
    tasks.forEach(({ fragment }) => waits(preview(fragment)));
  });
  document.addEventListener("htmx:after:swap", () => {
    const article = shown();
    if (!article || article.hasAttribute("data-early")) return;
    adopt(article);
    const { tops, then } = early ?? {};
    if (tops && early.article.id === article.id) {
      article.setAttribute("data-stays", ""); // it is in view already, as its reader has scrolled it
      scrolls(article).forEach((el, i) => { el.scrollTop = tops[i]; });
    }
    early = undefined;
    if (then) setTimeout(() => [...article.querySelectorAll("a")].find((a) => a.getAttribute("href") === then)?.click());
    else if (preview(article) && hubSeen.came(preview(article))) lookAround();
  });
  // Where no answer has come its reader is at the mail that is still to be decided on.
  document.addEventListener("htmx:finally:request", (e) => {
    if (!early || early.ctx !== e.detail.ctx) return;
    if (preview(early.article)) holder().moveBefore(preview(early.article), null);
    early.article.remove();
    early.old.hidden = false;
    early = undefined;
  });
})();
