// One page: its image with the polygons of its lines over it, and its text.

import * as api from "./api.js";
import { trust } from "./texts.js";

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const ZOOM_STEP = 1.25;
const MOST_ZOOM = 8;

export class PageView {
  constructor(address, documentId, signal, notice) {
    this.address = address;
    this.documentId = documentId;
    this.notice = notice;
    this.turning = null; // ends what is under way for the page before
    this.zoom = 1;
    byId("lines").addEventListener("keydown", (event) => this.onLineKey(event), { signal });
    for (const [name, isOn] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
      for (const id of ["lines", "polygons"]) {
        byId(id).addEventListener(name, (event) => this.mark(event.target.closest("[data-line]"), isOn, name), { signal });
      }
    }
    byId("polygons").addEventListener("click", (event) => this.focusLine(event.target.closest("[data-line]")?.dataset.line), { signal });
    this.clear();
  }

  clear() {
    this.turning?.abort();
    byId("frame").hidden = true;
    byId("lines").replaceChildren();
    byId("polygons").replaceChildren();
    const image = byId("page-image");
    if (image.src) URL.revokeObjectURL(image.src);
    image.removeAttribute("src");
    byId("page-status").textContent = "";
  }

  async show(number) {
    this.clear();
    this.turning = new AbortController();
    const { signal } = this.turning;
    try {
      const { page, result } = await api.read(`${this.address}/pages/${number}`, { signal });
      if (page.state === "queued") { byId("page-status").textContent = "This page is not read yet."; return; }
      this.drawText(page, result);
      const blob = await api.pageImage(this.documentId, number, signal);
      if (signal.aborted) return;
      byId("page-image").alt = `Page ${number}`;
      byId("page-image").src = URL.createObjectURL(blob);
      byId("frame").hidden = false;
    } catch (error) {
      if (signal.aborted) return;
      // Before the document is split there are no pages; the list of pages calls again.
      if (error.status === 404) byId("page-status").textContent = "There is no such page yet.";
      else if (error.code === "no_image") byId("page-status").textContent = error.message;
      else this.notice(error);
    }
  }

  drawText(page, result) {
    const status = [];
    if (page.error) status.push(`Not read: ${page.error.message}`);
    if (result && !result.lines.length) status.push("No text was found on this page.");
    if (page.truncated) status.push(`Only ${page.crops_kept} of ${page.crops_found} lines of this page were read.`);
    byId("page-status").textContent = status.join(" ");
    if (!result) return;
    const drawing = byId("polygons");
    drawing.setAttribute("viewBox", `0 0 ${result.width_px} ${result.height_px}`);
    const byLine = new Map(result.lines.map((line) => [line.id, line]));
    for (const id of result.reading_order) this.addLine(byLine.get(id), drawing);
    byId("lines").firstElementChild?.setAttribute("tabindex", "0");
  }

  addLine(line, drawing) {
    const item = document.createElement("li");
    item.textContent = line.text;
    item.dir = "auto";
    item.tabIndex = -1;
    item.className = trust(line.confidence);
    item.title = `confidence ${line.confidence.toFixed(2)}`;
    item.dataset.line = line.id;
    byId("lines").append(item);
    const polygon = document.createElementNS(SVG, "polygon");
    polygon.setAttribute("points", line.polygon.map((point) => point.join(",")).join(" "));
    polygon.setAttribute("class", trust(line.confidence));
    polygon.dataset.line = line.id;
    const title = document.createElementNS(SVG, "title");
    title.textContent = line.text;
    polygon.append(title);
    drawing.append(polygon);
  }

  mark(element, isOn, cause) {
    if (!element) return;
    for (const each of document.querySelectorAll(`[data-line="${CSS.escape(element.dataset.line)}"]`)) {
      each.classList.toggle("is-marked", isOn);
      if (isOn && !each.contains(element) && each !== element) each.scrollIntoView({ block: "nearest", behavior: cause === "focusin" ? "auto" : "smooth" });
    }
  }

  focusLine(id) {
    const item = byId("lines").querySelector(id === undefined ? "[tabindex='0']" : `[data-line="${CSS.escape(id)}"]`);
    if (!item) return;
    byId("lines").querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    item.tabIndex = 0;
    item.focus();
  }

  onLineKey(event) {
    const item = event.target.closest("li");
    const next = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling,
      Home: byId("lines").firstElementChild, End: byId("lines").lastElementChild }[event.key];
    if (!next) return;
    event.preventDefault();
    this.focusLine(next.dataset.line);
  }

  onKey(name) {
    const zooms = { "+": this.zoom * ZOOM_STEP, "=": this.zoom * ZOOM_STEP, "-": this.zoom / ZOOM_STEP, 0: 1 };
    if (name === "t") { this.focusLine(); return true; }
    if (!(name in zooms)) return false;
    this.zoom = Math.min(MOST_ZOOM, Math.max(1 / MOST_ZOOM, zooms[name]));
    byId("frame").style.setProperty("--zoom", this.zoom);
    return true;
  }
}
