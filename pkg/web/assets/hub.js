// What the console adds where there is JavaScript. Everything works without it.
(() => {
  "use strict";

  const typing = (el) => el instanceof HTMLElement && (el.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) && el.type !== "checkbox");
  // What is folded away is not there to be pressed.
  const shown = (el) => !el.disabled && (el.checkVisibility?.() ?? el.getClientRects().length > 0);

  // The current one of a list: [data-list] holds [data-item]s, j and k move between them.
  const items = () => [...document.querySelectorAll("[data-list] [data-item]")].filter(shown);
  const current = () => document.querySelector("[data-item][data-current]");
  const mark = (el) => {
    current()?.removeAttribute("data-current");
    el.setAttribute("data-current", "");
  };
  const choose = (el) => {
    if (!el) return;
    mark(el);
    if (!el.hasAttribute("tabindex")) el.setAttribute("tabindex", "-1");
    el.focus({ preventScroll: true });
    const box = el.getBoundingClientRect();
    el.scrollIntoView({ block: box.top < 0 || box.height > innerHeight / 2 ? "start" : "nearest" });
  };
  const step = (by) => {
    const all = items();
    const at = all.indexOf(current());
    choose(all[Math.min(Math.max(at + by, 0), all.length - 1)]);
  };

  // An item with work left holds a [data-todo]. Whoever comes to a list begins there, or at
  // the item that the address names.
  const todo = (el) => el.matches("[data-todo]") || el.querySelector("[data-todo]") !== null;
  const named = document.getElementById(location.hash.slice(1));
  const all = items();
  const alone = document.querySelectorAll("[data-item]");
  const first = all.find((el) => el === named) ?? all.find(todo) ?? (alone.length === 1 ? alone[0] : null);
  if (first) mark(first);

  // When the current item's work is done, the next one with work becomes current: the first
  // below it, or else above. When none is left here, the way on is the next page.
  const working = new Set();
  const itemOf = (e) => e.target.closest?.("[data-item]");
  document.addEventListener("htmx:before:request", (e) => {
    const item = itemOf(e);
    if (item && todo(item)) working.add(item);
  });
  document.addEventListener("htmx:after:swap", (e) => {
    const item = itemOf(e);
    const alone = items().length === 0 ? document.querySelectorAll("[data-item]") : [];
    if (alone.length === 1 && !current()) mark(alone[0]); // the page has one item, and now it is another one
    if (!working.delete(item) || todo(item) || item !== current()) return;
    // Somebody else did it, and the item says so.
    if (item.querySelector("[role=alert]")) return item.focus({ preventScroll: true });
    const all = items();
    const at = all.indexOf(item);
    const next = [...all.slice(at + 1), ...all.slice(0, at)].find(todo);
    const onward = document.querySelector("main a[rel=next]");
    if (next || !onward) choose(next ?? item);
    else onward.focus();
  });

  // A key must not press what nobody sees: neither a button that is covered nor one whose item's subject is. It
  // brings that into view first.
  const uncovered = (el) => {
    const box = el.getBoundingClientRect();
    const top = document.elementFromPoint(box.left + Math.min(box.width / 2, 40), box.top + Math.min(box.height / 2, 12));
    return top !== null && el.contains(top);
  };
  const inView = (button, item) => uncovered(button) && [...item.querySelectorAll("[data-subject]")].every(uncovered);

  // Single keys can be switched off, by each person in each browser (WCAG 2.1.4).
  const help = document.getElementById("help");
  const setting = `hub-keys-${help?.dataset.user}`;
  const switchedOff = () => {
    try { return localStorage.getItem(setting) === "off"; } catch { return false; }
  };
  const keysOn = document.getElementById("keys-on");
  if (keysOn) {
    keysOn.checked = !switchedOff();
    keysOn.addEventListener("change", () => {
      try { localStorage.setItem(setting, keysOn.checked ? "on" : "off"); } catch { keysOn.checked = true; }
    });
  }
  document.querySelectorAll("[data-help]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => help?.showModal());
  });

  // The field of the header; where there is none, or no room for it, the first one of the page.
  const seek = () => [...document.querySelectorAll("input[type=search]")].find(shown);
  // A keyboard that is set to Korean gives letters of Hangul outside of fields, too: what is printed on the key counts.
  const letterOf = (e) => (/^[\u3131-\u3163\uac00-\ud7a3]$/.test(e.key) && /^Key([A-Z])$/.exec(e.code)?.[1].toLowerCase()) || e.key;
  document.addEventListener("keydown", (e) => {
    const key = letterOf(e);
    if (key === "Escape" && leaving()) stopped();
    // Not a single key: it works in fields, and where those are switched off.
    if (key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey && !help?.open && seek()) {
      e.preventDefault();
      seek().select();
      return;
    }
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    // Whoever leaves a field by Escape can use the keys again.
    if (typing(e.target) && key === "Escape") return e.target.blur();
    if (typing(e.target) || help?.open) return;
    if (switchedOff() && key !== "?") return;
    if (key === "?") help?.showModal();
    else if (key === "/") seek()?.select();
    else if ((key === "j" || key === "k") && items().length) step(key === "j" ? 1 : -1);
    else {
      // Any other key presses the button that names it: the current item's, or one of no item.
      const named = [...document.querySelectorAll(`[data-key~="${CSS.escape(key)}"]`)].filter(shown);
      const item = current();
      const button = named.find((b) => item?.contains(b)) ?? named.find((b) => !b.closest("[data-item]"));
      if (!button || e.repeat) return;
      if (item?.contains(button) && button.closest("form[method=post]") && !inView(button, item)) {
        item.scrollIntoView({ block: "start" });
        item.querySelectorAll("[data-subject]").forEach((el) => el.scrollIntoView({ block: "nearest" }));
      } else button.click();
    }
    e.preventDefault();
  });

  document.addEventListener("focusin", (e) => {
    const item = itemOf(e);
    if (item && item !== current()) mark(item);
  });

  // The second click of a double click means what the first one pressed. By then something else
  // may lie below the pointer, and must not be pressed unread. Whoever meant it presses again.
  document.addEventListener("click", (e) => {
    if (e.detail > 1 && e.target.closest?.("form[method=post] button")) {
      e.preventDefault();
      e.stopImmediatePropagation();
      tell("notice warn", say("Too quick: that counted once. Press again for the next."));
    }
  }, true);

  // A secret that is shown once is copied by a button, or selected as a whole.
  document.querySelectorAll("[data-copy]").forEach((button) => {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
        button.textContent = say("Copied");
      } catch { document.getElementById(button.dataset.copy).select(); }
    });
  });
  document.addEventListener("focusin", (e) => { if (e.target.matches?.("[data-select]")) e.target.select(); });

  // What came back because of a field begins there.
  document.querySelector("[aria-invalid=true]")?.focus();

  // Whoever has asked for another page, or for another item, means that one with what they press now: until it has
  // come, nothing is decided on what it takes the place of.
  const busy = (el) => el.setAttribute("aria-busy", "true");
  const rest = (el) => el.removeAttribute("aria-busy");
  // By hand, and not by a part that refreshes itself; the back button asks for the body.
  const byHand = (ctx) => ctx.sourceElement.matches?.("a, form, body") ?? false;
  const leaving = () => document.querySelector("body[aria-busy=true], form[aria-busy=true]") !== null;
  let asked; // the last request by hand, and what its answer takes the place of: a failure's goes elsewhere
  document.addEventListener("htmx:before:request", (e) => {
    const { ctx } = e.detail;
    if (byHand(ctx)) {
      asked = { ctx, place: ctx.target };
      busy(asked.place);
    } else if (ctx.request.method === "GET" && leaving()) e.preventDefault();
  });
  // What a part has to say, reload above all, is of the page before.
  document.addEventListener("htmx:before:response", (e) => {
    const { ctx } = e.detail;
    if (!byHand(ctx) && ctx.request.method === "GET" && leaving()) e.preventDefault();
  });
  const leave = () => {
    busy(document.body);
    // A page does not hear that its reader has stopped the next one. What only reads can be asked for again.
    setTimeout(() => {
      rest(document.body);
      free(sent().filter((form) => form.method === "get"));
    }, 10_000);
  };
  const sent = () => [...document.querySelectorAll("form[aria-busy]")];
  const free = (forms) => forms.forEach((form) => {
    rest(form);
    form.querySelectorAll("button").forEach((b) => { b.disabled = false; });
  });
  // Escape stops the page that was to come. What was typed is still there.
  const stopped = () => {
    if (sent().some((form) => form.method === "post")) {
      tell("notice warn", say("You have stopped this on its way, and it may be done. See whether it is before you send it again."));
    }
    rest(document.body);
    free(sent());
  };
  document.addEventListener("htmx:finally:request", (e) => {
    const { ctx } = e.detail;
    if (ctx.hx?.redirect) leave();
    if (ctx === asked?.ctx) rest(asked.place);
  });
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.("a[href]");
    if (!link || e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || link.target || link.hasAttribute("download")) return;
    const here = link.hash && link.pathname + link.search === location.pathname + location.search;
    if (link.origin === location.origin && !here) leave();
  });

  // Nor is a form sent twice. The window hears of it before any part of the page does.
  addEventListener("submit", (e) => {
    if (e.target.method === "dialog" || !e.target.closest("[aria-busy=true]")) return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true);
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (e.defaultPrevented || form.method === "dialog") return;
    busy(form);
    leave();
    setTimeout(() => form.querySelectorAll("button").forEach((b) => { b.disabled = true; }));
  });
  // Coming back by the back button finds the page as it was left.
  addEventListener("pageshow", () => {
    rest(document.body);
    free(sent());
  });

  // Whoever asked for a part of a page has to hear that none came. Parts that refresh
  // themselves just ask again.
  const toast = () => document.getElementById("toast");
  const tell = (kind, text) => {
    const p = document.createElement("p");
    p.className = kind;
    p.textContent = text;
    toast()?.replaceChildren(p);
    return p;
  };
  document.addEventListener("htmx:error", (e) => {
    if (!e.detail.ctx?.sourceEvent?.isTrusted || !toast()) return;
    const p = tell("notice wrong", `${say("Hub did not answer. Check the connection, reload the page and see whether it was done.")} `);
    const close = document.createElement("button");
    close.type = "button";
    close.className = "small";
    close.textContent = say("Close");
    close.setAttribute("data-dismiss", "");
    p.append(close);
  });
  document.addEventListener("click", (e) => {
    if (e.target.closest?.("[data-dismiss]")) toast()?.replaceChildren();
  });
})();
