"use strict";
const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

// Sorting: a click on a column title sorts by the values of the cells, with unknown values last.
const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
  PiB: 2 ** 50, k: 1e3, M: 1e6, G: 1e9, "=": 1, "": 1 };
const value = (text) => {
  const found = /^(-?[\d.,]+)\s*([A-Za-z=]*)/.exec(text);
  return found && found[2] in units ? Number(found[1].replace(/,/g, "")) * units[found[2]] : null;
};
const compare = (one, other) => {
  const [left, right] = [value(one), value(other)];
  if (left !== null && right !== null) return left - right;
  return one < other ? -1 : one > other ? 1 : 0;
};
const sort = (head) => {
  const table = head.closest("table");
  const column = Array.from(head.parentNode.children).indexOf(head);
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const text = (row) => row.children[column].textContent.trim();
  // The rows of each body stay in it, below its title.
  for (const body of table.tBodies) {
    const rows = Array.from(body.rows).filter((row) => !row.matches(".level"));
    rows.sort((one, other) => {
      const unknown = /^-($| )/.test(text(one)) - /^-($| )/.test(text(other));
      return unknown || compare(text(one), text(other)) * (down ? -1 : 1);
    });
    body.append(...rows);
  }
};
for (const head of all("thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => sort(head));
}

