// The list of documents, and sending new ones.

import * as api from "./api.js";
import { ArrivalTime, isFinal, progressOf, stateText } from "./texts.js";

const byId = (id) => document.getElementById(id);
const POLL_S = 1.5;
const PAGE = 50;
const AT_ONCE = 2;
// Files by their documents' ids, for as long as this tab is open: one may have to be sent again, with its password.
const sent = new Map();

export class ListView {
  constructor(notice) {
    document.title = "Pagefleet";
    this.notice = notice;
    this.stopping = new AbortController();
    this.rows = new Map(); // document id → row
    this.limit = PAGE;
    this.waiting = [];
    this.sending = 0;
    this.mayList = true;
    byId("documents").replaceChildren();
    const { signal } = this.stopping;
    const drop = byId("drop");
    byId("files").addEventListener("change", (event) => { this.send(event.target.files); event.target.value = ""; }, { signal });
    byId("more-documents").addEventListener("click", () => { this.limit += PAGE; this.refresh(); }, { signal });
    // On the whole window: a file that misses the field would otherwise replace this page.
    addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("is-over"); }, { signal });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("is-over"); }, { signal });
    addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("is-over");
      this.send(event.dataTransfer.files);
    }, { signal });
    this.poll();
  }

  stop() { this.stopping.abort(); }

  async poll() {
    const { signal } = this.stopping;
    while (!signal.aborted && this.mayList) {
      await this.refresh();
      await api.sleep(POLL_S, signal).catch(() => {});
    }
  }

  async refresh() {
    const { signal } = this.stopping;
    try {
      const found = [];
      let cursor = "";
      do {
        const size = Math.min(PAGE, this.limit - found.length);
        const list = await api.read(`/v1/documents?limit=${size}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, { signal });
        found.push(...list.documents);
        cursor = list.next_cursor;
      } while (cursor && found.length < this.limit);
      this.draw(found);
      byId("more-documents").hidden = !cursor;
    } catch (error) {
      if (signal.aborted) return;
      this.notice(error);
      // A key that may not see documents may send some.
      if (error.code === "missing_scope") this.mayList = false;
    }
  }

  draw(found) {
    const body = byId("documents");
    const there = new Set(found.map((each) => each.id));
    for (const [id, row] of this.rows) if (!there.has(id)) { row.remove(); this.rows.delete(id); }
    let before = body.firstElementChild;
    for (const each of found) {
      const known = this.rows.get(each.id);
      const row = known || this.addRow(each);
      this.fill(row, each);
      // Rows stay where they are, and with them the focus.
      if (row === before) before = before.nextElementSibling;
      else body.insertBefore(row, before);
    }
    byId("no-documents").hidden = found.length > 0;
  }

  addRow(each) {
    const row = document.createElement("tr");
    for (let column = 0; column < 4; column += 1) row.insertCell();
    const link = document.createElement("a");
    link.href = `#/documents/${each.id}/1`;
    link.dir = "auto";
    link.textContent = each.filename;
    const reason = document.createElement("small");
    reason.className = "is-bad";
    row.cells[0].append(link, reason);
    row.cells[3].textContent = ArrivalTime.format(new Date(each.timings.created_at));
    this.rows.set(each.id, row);
    return row;
  }

  fill(row, each) {
    row.cells[1].textContent = stateText(each);
    row.cells[1].className = each.state === "failed" ? "is-bad" : "";
    row.querySelector("small").textContent = each.error ? each.error.message : "";
    if (each.error?.code === "encrypted" && sent.has(each.id)) this.askForPassword(row, each);
    else if (isFinal(each)) sent.delete(each.id);
    const { done, all } = progressOf(each);
    if (isFinal(each) || !all) row.cells[2].textContent = all ?? "";
    else {
      const bar = row.cells[2].querySelector("progress") || document.createElement("progress");
      bar.max = all;
      bar.value = done;
      bar.textContent = `${done} of ${all}`;
      bar.setAttribute("aria-label", "pages read");
      if (!bar.isConnected) row.cells[2].replaceChildren(bar);
    }
  }

  askForPassword(row, each) {
    if (row.querySelector("form")) return;
    const [form, label, field, button] = ["form", "label", "input", "button"].map((tag) => document.createElement(tag));
    Object.assign(field, { type: "password", autocomplete: "off", required: true, maxLength: 127 });
    label.append("Password ", field);
    button.textContent = "Send again";
    form.append(label, " ", button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.remove();
      const file = sent.get(each.id);
      sent.delete(each.id);
      this.send([file], field.value);
    });
    row.cells[0].append(form);
  }

  send(files, password = "") {
    this.waiting.push(...[...files].map((file) => ({ file, password })));
    while (this.sending < AT_ONCE && this.waiting.length) this.sendNext();
  }

  async sendNext() {
    const { file, password } = this.waiting.shift();
    this.sending += 1;
    const item = document.createElement("li");
    const [name, state, bar] = ["span", "span", "progress"].map((tag) => document.createElement(tag));
    name.textContent = file.name;
    name.dir = "auto";
    bar.max = 1;
    bar.setAttribute("aria-label", `sending ${file.name}`);
    item.append(name, bar, state);
    byId("uploads").append(item);
    try {
      const made = await api.upload(file, password, {
        onProgress: (share) => { bar.value = share; state.textContent = ""; },
        onWait: (reason) => { state.textContent = reason; },
      });
      bar.remove();
      sent.set(made.id, file);
      state.textContent = "sent";
      if (!this.mayList) return;
      item.remove();
      await this.refresh();
    } catch (error) {
      bar.remove();
      state.className = "is-bad";
      state.textContent = error.message;
    } finally {
      this.sending -= 1;
      if (this.waiting.length) this.sendNext();
    }
  }
}
