"use strict";
// Sorting and filtering of the tables of costs, and opening what a link leads to. The page is complete without it.
for (const tools of document.querySelectorAll(".tools")) {
  const table = document.getElementById(tools.dataset.table);
  const text = tools.querySelector("input[type=search]");
  const shown = tools.querySelector("output");
  const rows = () => [...table.querySelectorAll("tbody tr:not(.group)")];
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    const groups = new Set([...tools.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
    let count = 0;
    for (const row of rows()) {
      row.hidden = !(groups.has(row.parentNode.dataset.group) && row.textContent.toLowerCase().includes(wanted));
      count += row.hidden ? 0 : 1;
    }
    for (const body of table.tBodies) body.hidden = ![...body.rows].some((row) => !row.hidden && !row.classList.contains("group"));
    shown.value = `${count} of ${rows().length} shown`;
  };
  tools.addEventListener("input", filter);
  tools.hidden = false;
  filter();
  for (const head of table.querySelectorAll("thead th[data-key]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.dataset.name = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = "k" + head.dataset.key;
      const value = (row) => (key === "k0" ? row.cells[0].textContent : parseFloat(row.dataset[key]));
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (key === "k0") return down ? y.localeCompare(x) : x.localeCompare(y);
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return down ? y - x : x - y;
      };
      for (const body of table.tBodies) body.append(...[...body.rows].filter((row) => !row.classList.contains("group")).sort(order));
    });
  }
}
const open = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const box = target && target.closest("details");
  if (box && !box.open) {
    box.open = true;
    target.scrollIntoView();
  }
};
addEventListener("hashchange", open);
open();
