(() => {
  const control = (id) => document.getElementById(id);
  if (!control("controls")) return;

  // Filters: engines by parts of their names, columns by workload, tables by level and machine.
  const filter = () => {
    const wanted = control("find").value.toLowerCase().split(/[\s,]+/).filter((part) => part);
    const [workload, level, machine] = ["workload", "level", "machine"].map((id) => control(id).value);
    for (const section of all("[data-machine]")) {
      section.classList.toggle("off", machine !== "" && section.dataset.machine !== machine);
    }
    for (const part of all("[data-level]")) part.classList.toggle("off", level !== "" && part.dataset.level !== level);
    for (const table of all("table.figures")) {
      const heads = Array.from(table.tHead.rows[0].cells);
      const hidden = heads.map((head) => workload !== "" && "w" in head.dataset && head.dataset.w !== workload);
      heads.forEach((head, place) => head.classList.toggle("off", hidden[place]));
      for (const row of table.tBodies[0].rows) {
        const name = row.dataset.e.toLowerCase();
        row.classList.toggle("off", wanted.length > 0 && !wanted.some((part) => name.includes(part)));
        Array.from(row.cells).forEach((cell, place) => cell.classList.toggle("off", hidden[place]));
      }
    }
  };
  for (const id of ["find", "workload", "level", "machine"]) control(id).addEventListener("input", filter);
  control("controls").hidden = false;

  // Comparison of two engines: one is called faster only if their ranks in the same run do not overlap.
  const add = (parent, name, text) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const verdict = (one, other, names) => {
    if (one.dataset.run !== other.dataset.run) return "from different runs";
    if (!("best" in one.dataset && "best" in other.dataset)) return "not ranked";
    if (Number(one.dataset.worst) < Number(other.dataset.best)) return `${names[0]} is faster`;
    if (Number(other.dataset.worst) < Number(one.dataset.best)) return `${names[1]} is faster`;
    return "inconclusive";
  };
  const compare = () => {
    const names = [control("one").value, control("other").value];
    const pairs = control("pairs");
    pairs.replaceChildren();
    const table = add(pairs, "table");
    const head = add(add(table, "thead"), "tr");
    for (const title of ["machine", "durability level", "phase", ...names, "ratio", "verdict"]) add(head, "th", title).scope = "col";
    const body = add(table, "tbody");
    for (const matrix of all("table.figures")) {
      const rows = names.map((name) => all("tbody tr", matrix).find((row) => row.dataset.e === name));
      if (!rows[0] || !rows[1]) continue;
      const heads = Array.from(matrix.tHead.rows[0].cells);
      heads.forEach((column, place) => {
        const [one, other] = rows.map((row) => row.cells[place]);
        if (!("v" in one.dataset && "v" in other.dataset)) return;
        const row = add(body, "tr");
        add(row, "td", matrix.closest("[data-machine]").querySelector("h2").textContent.split(",")[0]);
        add(row, "td", matrix.closest("[data-level]").dataset.level);
        add(row, "td", column.textContent);
        for (const cell of [one, other]) add(row, "td", cell.querySelector("a").textContent).className = "r";
        add(row, "td", (Number(other.dataset.v) / Number(one.dataset.v)).toFixed(2)).className = "r";
        add(row, "td", verdict(one, other, names));
      });
    }
    if (!body.rows.length) pairs.replaceChildren("These engines were never measured in the same phase, at the same durability level, on the same machine.");
  };
  for (const id of ["one", "other"]) control(id).addEventListener("input", compare);
  if (control("other").options.length > 1) control("other").selectedIndex = 1;
  control("compare").hidden = false;
  compare();
})();
