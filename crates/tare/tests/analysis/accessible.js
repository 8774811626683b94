"use strict";
// What a reader of screens, a keyboard or tired eyes would stumble over, as a list; run in a copy of a page.
const found = [];
const say = (what, element) => found.push(`${what}: ${element ? element.outerHTML.slice(0, 160) : ""}`);
const all = (selector) => [...document.querySelectorAll(selector)];
const text = (element) => (element.getAttribute("aria-label") || element.textContent || "").trim();

if (!document.documentElement.lang) say("no language");
if (!document.title.trim()) say("no title");
if (all("h1").length !== 1) say("not one h1");
if (all("main").length !== 1) say("not one main");
let level = 0;
for (const heading of all("h1, h2, h3, h4, h5, h6")) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) say(`heading after h${level}`, heading);
  if (!text(heading)) say("empty heading", heading);
  level = own;
}
for (const svg of all("svg")) {
  if (svg.closest("[aria-hidden=true]") || svg.parentElement.closest("svg")) continue;
  const title = svg.querySelector("title");
  if (!(svg.getAttribute("aria-label") || (title && title.textContent.trim()))) say("figure without text", svg);
}
for (const svg of all("svg[viewBox]")) {
  const room = svg.getBoundingClientRect();
  for (const label of svg.querySelectorAll("text")) {
    const own = label.getBoundingClientRect();
    const isCut = own.left < room.left - 1 || own.right > room.right + 1 || own.top < room.top - 1 || own.bottom > room.bottom + 1;
    if (own.width > 0 && isCut) say("label beyond its figure", label);
  }
}
for (const figure of all("figure")) {
  if (!figure.querySelector("figcaption, title, svg[aria-label]")) say("figure without caption", figure);
}
for (const head of all("th")) {
  if (!["col", "row", "rowgroup", "colgroup"].includes(head.scope)) say("header without scope", head);
}
for (const head of all("th")) {
  if (!head.textContent.trim()) say("header without text", head);
}
const landmarks = all("nav, main, form[role=search], [role=region], section[aria-label]");
const named = landmarks.map((element) => `${element.tagName} ${element.getAttribute("aria-label") || ""}`);
for (const [at, name] of named.entries()) {
  if (named.indexOf(name) !== at) say("two landmarks of one name", landmarks[at]);
}
for (const table of all("table")) {
  if (!table.querySelector("th")) say("table without headers", table);
  const widths = [...table.rows].map((row) => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0));
  if (widths.some((width) => width !== widths[0])) say("ragged table", table);
}
for (const control of all("input, button, select, textarea, progress, output")) {
  const named = control.labels && [...control.labels].some((label) => label.textContent.trim());
  if (control.tagName === "OUTPUT" || named) continue;
  if (!(control.getAttribute("aria-label") || control.textContent.trim())) say("control without label", control);
}
for (const link of all("a[href]")) {
  if (!text(link)) say("link without text", link);
  const anchor = link.getAttribute("href");
  if (anchor.startsWith("#") && !document.getElementById(anchor.slice(1))) say("link to nowhere", link);
}
const ids = all("[id]").map((element) => element.id);
for (const id of ids.filter((id, at) => ids.indexOf(id) !== at)) say(`id twice: ${id}`);
for (const pointer of all("[aria-controls]")) {
  if (!document.getElementById(pointer.getAttribute("aria-controls"))) say("controls nothing", pointer);
}
for (const box of all("details")) box.open = true;
const page = document.scrollingElement;
if (page.scrollWidth > page.clientWidth) say(`wider than its window: ${page.scrollWidth} of ${page.clientWidth}`);
for (const box of all("*")) {
  const style = getComputedStyle(box);
  const scrolls = ["auto", "scroll"].includes(style.overflowX) && box.scrollWidth > box.clientWidth + 1;
  if (scrolls && box.tabIndex < 0) say("no way for the keyboard to scroll", box);
}

// Contrast after WCAG 2: of every text with what lies behind it.
const parsed = (colour) => {
  const parts = colour.match(/[\d.]+/g);
  if (!colour.startsWith("rgb") || !parts) return null;
  const [red, green, blue, alpha = 1] = parts.map(Number);
  return { rgb: [red, green, blue], alpha };
};
const laid = (above, below) => above.rgb.map((part, at) => part * above.alpha + below[at] * (1 - above.alpha));
const behind = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const colour = parsed(getComputedStyle(at).backgroundColor);
    if (colour && colour.alpha > 0) layers.push(colour);
    if (colour && colour.alpha === 1) break;
  }
  return layers.reverse().reduce((below, layer) => laid(layer, below), [255, 255, 255]);
};
const light = (rgb) => {
  const [red, green, blue] = rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const contrast = (one, other) => {
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
// What is printed at the head of each page instead of a control.
for (const button of all("thead th button")) {
  const head = button.closest("th");
  if (head.dataset.name !== button.textContent || !head.dataset.name) say("a head that is not printed", head);
}
const pale = new Map();
let measured = 0;
for (const element of all("body, body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  if (!own || ["SCRIPT", "STYLE", "TITLE", "title"].includes(element.tagName)) continue;
  const style = getComputedStyle(element);
  const colour = parsed(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
  if (!colour) continue;
  const below = behind(element);
  const size = parseFloat(style.fontSize);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const ratio = contrast(laid(colour, below), below);
  measured += 1;
  const key = `${element.tagName}.${element.getAttribute("class")} ${style.color} ${below}`;
  if (ratio < (isLarge ? 3 : 4.5) && !pale.has(key)) {
    pale.set(key, 1);
    say(`contrast ${ratio.toFixed(2)} of ${colour.rgb} on ${below}`, element);
  }
}
if (measured < 10) say(`only ${measured} texts were measured`);
const tell = () => {
  const told = document.createElement("pre");
  told.id = "found";
  told.textContent = found.length ? found.join("\n") : "nothing";
  document.body.replaceChildren(told);
};
addEventListener("load", async () => {
  const loaded = new Set(performance.getEntriesByType("resource").map((entry) => entry.name));
  for (const element of all("[src], link[href], [srcset], [poster], object[data]")) loaded.add(element.src || element.href || element.outerHTML);
  for (const address of loaded) say(`loads ${address}`);
  if (!window.axe) return tell();
  const { violations } = await window.axe.run(document);
  for (const { id, help, nodes } of violations) say(`axe, ${id}, ${nodes.length} times: ${help}: ${nodes[0].html.slice(0, 160)}`);
  tell();
});
