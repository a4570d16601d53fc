// Draws plots from the tables below them: the numbers are in the page once, and all there is without this.
(() => {
  "use strict";

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const two = (n) => String(n).padStart(2, "0");
  const day = (at, zone) => {
    if (!zone) return `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    return new Date(at.getTime() + zone * 1000).toISOString().slice(5, 10);
  };
  const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;
  const short = (n) => (n >= 1e6 ? `${n / 1e6}M` : n >= 1e3 ? `${n / 1e3}k` : String(n));
  const won = (n) => (n >= 1e6 ? `₩${n / 1e6}M` : n >= 1e3 ? `₩${n / 1e3}k` : `₩${n}`);
  const span = (n) => (n >= 1000 ? `${n / 1000} s` : `${n} ms`);

  const read = (figure) => {
    const heads = [...figure.querySelectorAll("thead th[data-color]")];
    const rows = [...figure.querySelectorAll("tbody tr")];
    return {
      series: heads.map((th) => ({ label: th.textContent.trim(), color: th.dataset.color, rest: th.dataset.rest ?? "–", share: "share" in th.dataset })),
      hrefs: rows.map((tr) => tr.querySelector("th a")?.href),
      texts: rows.map((tr) => [...tr.querySelectorAll("td")].map((td) => td.textContent.trim())),
      data: [
        rows.map((tr) => Number(tr.querySelector("th").dataset.at) || Date.parse(tr.querySelector("time").dateTime) / 1000),
        ...heads.map((_, i) => rows.map((tr) => {
          const raw = tr.querySelectorAll("td")[i].dataset.value;
          return raw === "" ? null : Number(raw);
        })),
      ],
    };
  };

  const make = (figure) => {
    const drawing = figure.querySelector(".drawing");
    const said = figure.querySelector("[role=status]");
    const { series, texts, hrefs, data } = read(figure);
    const step = Number(figure.dataset.step);
    const bars = figure.dataset.kind === "bars";
    const zone = Number(figure.dataset.zone) || 0;
    const text = { ms: span, won }[figure.dataset.unit] || short;
    const moment = (at) => (step < 86400 ? `${day(at, zone)} ${clock(at)}` : day(at, zone));
    // What the legend leaves: in a narrow drawing it has two lines.
    const size = () => ({ width: drawing.clientWidth, height: drawing.clientHeight - (drawing.clientWidth < 560 ? 60 : 32) });
    const axis = () => ({ stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } });

    const plot = new uPlot({
      ...size(),
      cursor: { y: false, drag: { x: false, y: false } },
      legend: { markers: { width: 0, fill: (_, i) => (i ? color(series[i - 1].color) : null) } },
      scales: {
        x: { range: (_, from, to) => [from, to + step] },
        y: { range: (_, __, most) => [0, Math.max(most * 1.08, bars ? 5 : 10)] },
        share: { range: (_, __, most) => [0, Math.min(Math.max(most * 1.3, 5), 100)] },
      },
      axes: [
        { ...axis(), space: 70, values: (_, at) => at.map((t, i) => {
          const d = new Date(t * 1000);
          if (step >= 21600) return day(d, zone);
          return i === 0 || clock(d) === "00:00" ? `${clock(d)}\n${day(d)}` : clock(d);
        }) },
        { ...axis(), size: 58, values: (_, all) => all.map((n) => (bars && n % 1 ? "" : text(n))) },
        ...(series.some((s) => s.share) ? [{ ...axis(), grid: { show: false }, side: 1, scale: "share", size: 50, values: (_, all) => all.map((n) => `${n} %`) }] : []),
      ],
      series: [
        { label: say("From"), value: (_, t) => (t == null ? say("all") : moment(new Date(t * 1000))) },
        ...series.map((s, i) => ({
          label: s.label,
          scale: s.share ? "share" : "y",
          stroke: color(s.color),
          fill: bars && !s.share ? color(s.color) : undefined,
          width: bars && !s.share ? 0 : 2,
          paths: bars && !s.share ? uPlot.paths.bars({ size: [0.75, 60], align: 1 }) : undefined,
          points: { show: !bars || s.share, size: 5, fill: color(s.color) },
          value: (_, n, __, at) => (at == null ? s.rest : texts[at][i]),
        })),
      ],
    }, data, drawing);


    const show = (at) => {
      plot.setCursor({ left: plot.valToPos(data[0][at], "x") + 1, top: 0 });
      said.textContent = [moment(new Date(data[0][at] * 1000)), ...series.map((s, i) => `${s.label} ${texts[at][i]}`)].join(", ");
    };
    const keys = (e) => {
      const last = data[0].length - 1;
      const at = plot.cursor.idx ?? last;
      if (e.key === "Enter" && plot.cursor.idx != null && hrefs[at]) location.assign(hrefs[at]);
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[e.key];
      if (to === undefined || e.ctrlKey || e.altKey || e.metaKey) return;
      e.preventDefault();
      show(Math.min(Math.max(to, 0), last));
    };
    drawing.addEventListener("keydown", keys);
    // A bar leads to what it counts. Where a finger points, it asks for the numbers first: the table has the same links.
    if (hrefs.some(Boolean) && matchMedia("(hover: hover)").matches) {
      plot.over.style.cursor = "pointer";
      plot.over.addEventListener("click", () => { if (hrefs[plot.cursor.idx]) location.assign(hrefs[plot.cursor.idx]); });
    }
    const watch = new ResizeObserver(() => plot.setSize(size()));
    watch.observe(drawing);
    return () => {
      watch.disconnect();
      drawing.removeEventListener("keydown", keys);
      plot.destroy();
    };
  };

  const figures = [...document.querySelectorAll("figure[data-kind]")];
  let drawn = figures.map(make);
  // Canvases do not follow the colours of the page by themselves.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawn.forEach((destroy) => destroy());
    drawn = figures.map(make);
  });
})();
