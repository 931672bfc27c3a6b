(() => {
  const tip = document.getElementById("tip");

  // Filtering: rows of bars move together, and the names of lines are spread so that they do not overlap.
  const chips = all("[data-pick]");
  const find = document.getElementById("find");
  const stack = (svg) => {
    const rows = all(".r[transform], .p", svg);
    if (!rows.length) return;
    let y = 47;
    rows.forEach((row, place) => {
      const next = rows.slice(place + 1).findIndex((other) => other.matches(".p"));
      const own = next < 0 ? rows.slice(place + 1) : rows.slice(place + 1, place + 1 + next);
      if (row.matches(".p")) row.classList.toggle("off", !own.some((other) => !other.matches(".off")));
      if (row.matches(".off")) return;
      row.setAttribute("transform", `translate(0 ${y})`);
      y += 19;
    });
    const box = svg.viewBox.baseVal;
    svg.setAttribute("viewBox", `0 0 ${box.width} ${y - 9}`);
  };
  const spread = (svg) => {
    for (const scale of [".lin", ".log"]) {
      const lines = all(`.r:not([transform]) ${scale}`, svg);
      const seen = lines.filter((line) => {
        const row = line.parentNode;
        return !row.matches(".off") && (!row.matches(".extra") || row.closest(".picked"));
      });
      const names = seen.map((line) => [line.querySelector("text.n"), line.querySelector("path.k")]);
      const moved = names.filter(([text]) => text).map(([text, lead]) => {
        const from = /^M([\d.]+) ([\d.]+)L([\d.]+)/.exec(lead.getAttribute("d"));
        return { text, lead, from, y: Number(from[2]) };
      });
      moved.sort((one, other) => one.y - other.y);
      let above = -Infinity;
      for (const name of moved) above = name.y = Math.max(name.y, above + 12.5);
      let below = 212.5;
      for (const name of moved.reverse()) below = name.y = Math.min(name.y, below - 12.5);
      for (const { text, lead, from, y } of moved) {
        text.setAttribute("y", y + 4);
        lead.setAttribute("d", `M${from[1]} ${from[2]}L${from[3]} ${y}`);
      }
    }
  };
  const filter = () => {
    const wanted = find.value.trim().toLowerCase();
    const picked = new Set(chips.filter((chip) => chip.getAttribute("aria-pressed") === "true")
      .map((chip) => chip.dataset.pick));
    const isOpen = !picked.size && !wanted;
    // In a table without options, a plain engine name matches all cells of the engine.
    const bare = new Set([...picked].map((name) => name.split(" (")[0]));
    const shows = (name) => isOpen || picked.has(name) || bare.has(name) || (wanted !== "" && name.toLowerCase().includes(wanted));
    document.body.classList.toggle("picked", !isOpen);
    for (const row of all("svg [data-e]")) row.classList.toggle("off", !shows(row.dataset.e));
    for (const table of all("table")) {
      const column = all("thead th", table).findIndex((head) => head.textContent === "engine");
      if (column < 0) continue;
      for (const row of all("tbody tr:not(.level)", table)) row.classList.toggle("off", !shows(row.cells[column].textContent));
    }
    for (const svg of all("svg.chart")) { stack(svg); spread(svg); }
  };
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  find.addEventListener("input", filter);
  document.getElementById("all").addEventListener("click", () => {
    find.value = "";
    for (const chip of chips) chip.setAttribute("aria-pressed", "false");
    filter();
  });
  document.getElementById("controls").hidden = false;

  // Tooltips: the nearest point of a line, or the text of a row. They replace the browser's own tooltips.
  for (const title of all("svg title")) {
    title.parentNode.dataset.t = title.textContent;
    title.remove();
  }
  const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  dot.setAttribute("class", "dot");
  dot.setAttribute("r", "5");
  const nearest = (svg, event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = null;
    for (const row of all(".r:not([transform])", svg)) {
      const lines = all("polyline", row).filter((line) => line.getClientRects().length);
      const points = lines.flatMap((line) => Array.from(line.points));
      points.forEach((point, number) => {
        const far = Math.hypot(point.x - place.x, point.y - place.y);
        if (far < 24 && (!best || far < best.far)) best = { far, point, number, row };
      });
    }
    return best;
  };
  const hide = () => { tip.hidden = true; dot.remove(); };
  const show = (event) => {
    const svg = event.target.closest("svg.chart");
    if (!svg) return hide();
    const best = nearest(svg, event);
    const row = best ? best.row : event.target.closest(".r");
    if (!row) return hide();
    dot.remove();
    if (best) {
      const v = best.row.dataset.v.split("|")[best.number];
      const x = (best.row.dataset.x || svg.dataset.x).split("|")[best.number];
      tip.textContent = `${row.dataset.e}: ${v} at ${x}`;
      dot.setAttribute("cx", best.point.x);
      dot.setAttribute("cy", best.point.y);
      svg.append(dot);
    } else {
      tip.textContent = row.dataset.t || `${row.dataset.e}: ${row.dataset.v}`;
    }
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, room))}px`;
    tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", hide, { passive: true });
})();
