// Keys, live matches, and local times. The page works without them.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (text) => { const status = $("#status"); if (status) status.textContent = text; };

  // Times in the zone of the reader.
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const times = (within) => {
    for (const time of $$("time[datetime]:not([title])", within)) {
      time.title = time.dateTime;
      time.textContent = format.format(new Date(time.dateTime));
    }
  };

  // Live matches.
  const follow = (list) => {
    const source = new EventSource(list.dataset.live);
    const pulse = $("[data-pulse]");
    source.addEventListener("open", () => { if (pulse) pulse.hidden = false; });
    source.addEventListener("error", () => { if (pulse) pulse.hidden = true; });
    source.addEventListener("match", (event) => {
      const holder = document.createElement("template");
      holder.innerHTML = event.data;
      const row = holder.content.firstElementChild;
      if (!row) return;
      const isNew = !document.getElementById(row.id);
      const isSame = (old) => old.id === row.id || (row.dataset.link && old.dataset.link === row.dataset.link);
      $$(".match", list).filter(isSame).forEach((old) => old.remove());
      list.prepend(row);
      while (list.children.length > 100) list.lastElementChild.remove();
      const counted = $("[data-count]");
      if (counted && isNew) {
        const count = counted.dataset.count = Number(counted.dataset.count) + 1;
        counted.textContent = `${count.toLocaleString("en")} ${count === 1 ? "match" : "matches"}`;
      }
      const empty = $("[data-empty]");
      if (empty) empty.remove();
      times(row);
      if (window.htmx) window.htmx.process(row);
      say(`New match: ${$(".title", row).textContent}`);
    });
    addEventListener("pagehide", () => source.close());
  };

  // The place of a problem in a query.
  const goTo = (box) => {
    const text = $("#query-text");
    if (!text || !box.dataset.line) return;
    const lines = text.value.split("\n");
    const at = lines.slice(0, box.dataset.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + Number(box.dataset.column) - 1;
    const word = /^\S*/.exec(text.value.slice(at))[0].length || 1;
    text.focus();
    text.setSelectionRange(at, at + word);
  };

  const keys = { n: "/subscriptions/new", "?": "/help" };
  const after = { h: "/", s: "/subscriptions", i: "/items", o: "/ontology", f: "/feeds", d: "/deliveries" };
  let wasG = false;
  const typed = (event) => {
    const isField = event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select");
    const chip = event.key === "ArrowDown" && event.target.id === "topics" && $("#suggest button");
    if (chip) { event.preventDefault(); chip.focus(); return; }
    if (event.key === "Escape" && isField) { event.target.blur(); return; }
    if (isField || event.ctrlKey || event.metaKey || event.altKey) return;
    const go = wasG ? after[event.key] : keys[event.key];
    wasG = event.key === "g" && !wasG;
    if (go) { event.preventDefault(); location.href = go; return; }
    if (event.key === "/") {
      const field = $("[data-search]") || $("main input:not([type=hidden], [type=radio]), main textarea");
      event.preventDefault();
      if (field) { field.focus(); field.select(); } else location.href = "/items";
    }
    if (event.key === "j" || event.key === "k") {
      const rows = $$(".rows .title, .cards .main a");
      const next = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      if (rows[next]) rows[next].focus();
    }
  };

  const clicked = (event) => {
    const target = event.target;
    const menu = target.closest(".menu");
    if (menu) {
      const isOpen = $("#nav").classList.toggle("open");
      menu.setAttribute("aria-expanded", String(isOpen));
    }
    const goto = target.closest("[data-goto]");
    if (goto) goTo(goto.closest("[data-line]"));
    const add = target.closest("[data-add]");
    const topics = $("#topics");
    if (add && topics) {
      topics.value = topics.value.match(/.*(?:,|\sor\s)\s*|/i)[0] + add.dataset.add;
      $("#suggest").replaceChildren();
      topics.dispatchEvent(new Event("change", { bubbles: true }));
      topics.focus();
    }
  };

  const submitted = (event) => {
    const sure = event.target.dataset.sure;
    if (sure && !confirm(sure)) event.preventDefault();
  };

  const swapped = () => {
    times(document);
    const text = $("#query-text"), summary = $("#preview [data-say]");
    if (text) text.setAttribute("aria-invalid", String(Boolean($("#query-problem .problem"))));
    if (summary && summary.textContent !== swapped.last) say(swapped.last = summary.textContent);
  };

  document.addEventListener("keydown", typed);
  document.addEventListener("click", clicked);
  document.addEventListener("submit", submitted);
  document.addEventListener("htmx:after:swap", swapped);
  document.addEventListener("DOMContentLoaded", () => {
    times(document);
    $$("[data-live]").forEach(follow);
  });
})();
