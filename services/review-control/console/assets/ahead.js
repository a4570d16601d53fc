// The mails that a reader may come to next are fetched ahead, with their previews: the next one is there at once. What is
// shown is as the server said within the last seconds, and every decision is still the server's to take: a mail that is shown
// while the decision before it is under way cannot be decided on until that is kept.
(() => {
  "use strict";

  // How long a page that was fetched ahead is good for, in milliseconds.
  const fresh = 10_000;
  let pages = new Map(); // by address: { at, response, html }
  const shown = () => document.querySelector("#triage > article.target:not([hidden])");

  // Previews that came ahead wait out of sight, as wide as they are going to be. Browsers that cannot move a frame without
  // loading it anew do without.
  const moves = "moveBefore" in Element.prototype;
  const holder = () => {
    let el = document.getElementById("ahead");
    if (!el) {
      el = document.createElement("div");
      el.id = "ahead";
      el.inert = true;
      document.body.append(el);
    }
    const view = shown()?.querySelector(".view");
    if (view) el.style.width = `${view.clientWidth}px`;
    return el;
  };
  const held = (of) => [...holder().children].find((frame) => frame.dataset.of === of && hubSeen.came(frame));
  const preload = (html) => {
    const of = html.querySelector("article.target iframe.preview");
    if (!moves || !of || [...holder().children].some((frame) => frame.dataset.of === of.dataset.of)) return;
    const frame = document.importNode(of, true);
    frame.setAttribute("data-measured", ""); // nothing waits for it
    frame.src = `${of.getAttribute("src")}&ahead=1`;
    holder().append(frame);
    while (holder().children.length > 3) holder().firstElementChild.remove();
  };
  // A mail that comes gets the preview that came ahead of it, and no other than that of its very content.
  const adopt = (article) => {
    const own = article?.querySelector("iframe.preview"), frame = own && held(own.dataset.of);
    if (!frame) return;
    frame.title = own.title;
    own.parentElement.moveBefore(frame, own);
    own.remove();
    hubSeen.measure(frame);
  };

  const fetchAhead = async (href) => {
    if (!href || Date.now() - (pages.get(href)?.at ?? 0) < fresh) return;
    const known = pages, response = await fetch(href, { headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
    if (!response.ok || known !== pages) return;
    const copy = response.clone();
    const html = new DOMParser().parseFromString(await response.text(), "text/html");
    if (known !== pages) return;
    known.set(href, { at: Date.now(), response: copy, html });
    preload(html);
  };
  const look = () => [...document.querySelectorAll(".ways [data-later], .ways [rel=next]")].reduce(
    (before, link) => before.then(() => fetchAhead(link.getAttribute("href"))), Promise.resolve()).catch(() => {});
  hubSeen.onPreview((frame) => { if (shown()?.contains(frame)) look(); });
  const answer = (href) => {
    const page = pages.get(href);
    return page && Date.now() - page.at < fresh ? page : undefined;
  };

  // The next mail in the place of the one that is being decided on, which is kept until the answer is there.
  let leaving, deciding; // the article that was decided on, and the request that says so
  const step = (ctx, href) => {
    const next = answer(href)?.html.querySelector("article.target"), old = shown();
    if (!next || !old || !held(next.querySelector("iframe.preview")?.dataset.of)) return;
    const article = document.importNode(next, true);
    old.before(article);
    old.hidden = true;
    leaving = old;
    deciding = ctx;
    adopt(article);
    if (old.ownerDocument.scrollingElement.scrollTop > 0) article.scrollIntoView({ block: "start" });
    article.querySelectorAll(".grounds > details").forEach((el) => { el.open = old.querySelector(".grounds > details").open; });
  };
  const back = () => {
    if (leaving?.isConnected) {
      leaving.previousElementSibling.remove();
      leaving.hidden = false;
    }
    leaving = undefined;
  };

  document.addEventListener("htmx:before:request", (e) => {
    const { ctx } = e.detail;
    if (e.defaultPrevented || ctx.target?.id !== "triage") return;
    // A preview that has not come yet does not get in the way of the one that is asked for.
    [...holder().children].filter((frame) => !hubSeen.came(frame)).forEach((frame) => frame.remove());
    if (ctx.request.method === "GET") {
      const page = answer(new URL(ctx.request.action, location).pathname + new URL(ctx.request.action, location).search);
      if (page) ctx.fetch = async () => page.response.clone();
      return;
    }
    if (ctx.sourceElement.matches(".verdict form")) step(ctx, document.querySelector(".ways [data-later]")?.getAttribute("href"));
    pages = new Map();
  });
  document.addEventListener("htmx:before:swap", (e) => {
    const frame = moves && e.detail.ctx === deciding && leaving && shown()?.querySelector("iframe.preview");
    if (frame) holder().moveBefore(frame, null);
  });
  document.addEventListener("htmx:after:swap", () => {
    if (!shown()?.querySelector("iframe.preview[data-measured]")) adopt(shown());
    if (leaving && !leaving.isConnected) leaving = undefined;
    const frame = shown()?.querySelector("iframe.preview");
    if (frame && hubSeen.came(frame)) look();
  });
  document.addEventListener("htmx:finally:request", (e) => { if (leaving && e.detail.ctx === deciding) back(); });
})();
