// One document: its pages, the image of one, and the text beside it.

import * as api from "./api.js";
import { isFinal, progressOf, stateText } from "./texts.js";
import { PageView } from "./page_view.js";

const byId = (id) => document.getElementById(id);
const POLL_S = 1.5;
const PAGES_AT_ONCE = 1000;

export class DocumentView {
  constructor(documentId, number, notice) {
    this.documentId = documentId;
    this.notice = notice;
    this.stopping = new AbortController();
    this.address = `/v1/documents/${documentId}`;
    this.document = null;
    this.pages = []; // of the ledger, by index
    this.number = number;
    this.isPolling = false;
    this.page = new PageView(this.address, documentId, this.stopping.signal, notice);
    byId("pages").firstElementChild.replaceChildren();
    byId("document-name").textContent = "";
    const { signal } = this.stopping;
    byId("document-actions").addEventListener("click", (event) => this.onButton(event.target), { signal });
    byId("pages").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.go(Number(button.dataset.number));
    }, { signal });
    byId("document-name").focus();
    this.poll();
  }

  stop() { this.stopping.abort(); this.page.clear(); }

  /** Follow the document until it is final; after a retry once more. */
  async poll() {
    const { signal } = this.stopping;
    if (this.isPolling) return;
    this.isPolling = true;
    try {
      while (!signal.aborted && !(await this.refresh())) await api.sleep(POLL_S, signal);
    } catch (error) {
      if (!signal.aborted) this.notice(error);
    } finally {
      this.isPolling = false;
    }
  }

  async refresh() {
    const { signal } = this.stopping;
    this.document = await api.read(this.address, { signal });
    this.drawHead();
    let cursor = "";
    const pages = [];
    do {
      const query = cursor && `&cursor=${encodeURIComponent(cursor)}`;
      const list = await api.read(`${this.address}/pages?limit=${PAGES_AT_ONCE}${query}`, { signal });
      pages.push(...list.pages);
      cursor = list.next_cursor;
    } while (cursor);
    this.drawPages(pages);
    return isFinal(this.document);
  }

  drawHead() {
    const each = this.document;
    const { done, all } = progressOf(each);
    const final = isFinal(each);
    document.title = `${each.filename} – Pagefleet`;
    byId("document-name").textContent = each.filename;
    byId("document-state").textContent = all ? `${stateText(each)}: ${done} of ${all} pages` : stateText(each);
    byId("document-error").textContent = each.error ? each.error.message : "";
    byId("document-error").className = "is-bad";
    const bar = byId("document-progress");
    bar.hidden = final || !all;
    bar.max = all || 1;
    bar.value = done;
    for (const button of byId("document-actions").children) {
      const hidden = { retry: !final || each.state === "succeeded", cancel: final, delete: !final };
      // What is no button of these goes with the saving: the choice of a format.
      button.hidden = hidden[button.dataset.action] ?? !each.links.result;
    }
  }

  drawPages(pages) {
    const list = byId("pages").firstElementChild;
    pages.forEach((page, index) => {
      if (this.pages[index]?.state === page.state) return;
      let item = list.children[index];
      if (!item) {
        item = document.createElement("li");
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.number = page.page_number;
        item.append(button);
        list.append(item);
      }
      const marks = { failed: " ✗ failed", queued: " …", skipped: " skipped" };
      item.firstElementChild.textContent = `${page.page_number}${marks[page.state] || ""}`;
      item.firstElementChild.className = { failed: "is-bad", queued: "is-queued" }[page.state] || "";
      item.firstElementChild.title = page.error ? page.error.message : "";
      if (page.page_number === this.number) this.page.show(this.number);
    });
    this.pages = pages;
    this.markCurrent();
  }

  markCurrent() {
    for (const item of byId("pages").firstElementChild.children) {
      const button = item.firstElementChild;
      if (Number(button.dataset.number) !== this.number) button.removeAttribute("aria-current");
      else if (!button.hasAttribute("aria-current")) {
        button.setAttribute("aria-current", "page");
        button.scrollIntoView({ block: "nearest" });
      }
    }
  }

  showPage(number) {
    this.number = number;
    this.markCurrent();
    this.page.show(number);
  }

  go(number) {
    if (number >= 1 && number <= Math.max(1, this.pages.length)) location.hash = `#/documents/${this.documentId}/${number}`;
  }

  onKey(name) {
    switch (name) {
      case "n": case "PageDown": this.go(this.number + 1); return true;
      case "p": case "PageUp": this.go(this.number - 1); return true;
      case "f": {
        const failed = this.pages.filter((page) => page.state === "failed").map((page) => page.page_number);
        const next = failed.find((number) => number > this.number) ?? failed[0];
        if (next) this.go(next);
        return true;
      }
      case "u": location.hash = "#/"; return true;
      default: return this.page.onKey(name);
    }
  }

  async onButton(button) {
    const { action } = button.dataset;
    const { signal } = this.stopping;
    try {
      if (action === "save") {
        button.disabled = true;
        await api.save(`${this.address}/result?format=${byId("format").value}`, signal);
      } else if (action === "delete") {
        if (!confirm("Delete this document, its file and its results for good?")) return;
        await api.act(this.address, "DELETE");
        location.hash = "#/";
      } else if (action) {
        await api.act(`${this.address}/${action}`, "POST");
        this.notice(null);
        this.poll();
      }
    } catch (error) {
      if (!signal.aborted) this.notice(error);
    } finally { button.disabled = false; }
  }
}
