// Which view is shown, and the keys that work in all of them.

import * as api from "./api.js";
import { DocumentView } from "./document_view.js";
import { ListView } from "./list_view.js";

const byId = (id) => document.getElementById(id);
const views = ["key-view", "list-view", "document-view"];
let shown = null; // the view that runs; it has stop()

export function notice(error) {
  if (error?.name === "AbortError") return;
  byId("notice").textContent = error ? error.message : "";
  if (error?.status === 401) { api.key.forget(); show(); }
}

let pauseShown = "";
api.pause.tell = (message) => {
  // Nothing else that was told meanwhile is taken away.
  if (message || byId("notice").textContent === pauseShown) byId("notice").textContent = message || "";
  pauseShown = message || "";
};

function reveal(id) {
  for (const each of views) byId(each).hidden = each !== id;
  byId("forget-key").hidden = id === "key-view";
}

function takeKeyFromAddress() {
  // In the part of an address that is never sent; taken out of it, and of the history, at once.
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!given) return;
  api.key.set(given);
  history.replaceState(null, "", "#/");
}

function show() {
  takeKeyFromAddress();
  const [, kind, id, page] = location.hash.slice(1).split("/");
  const number = Number.parseInt(page, 10) || 1;
  if (kind === "documents" && shown?.documentId === id && api.key.get()) return shown.showPage(number);
  shown?.stop();
  shown = null;
  if (!api.key.get()) {
    reveal("key-view");
    return byId("key").focus();
  }
  if (kind === "documents" && id) {
    reveal("document-view");
    shown = new DocumentView(id, number, notice);
  } else {
    reveal("list-view");
    shown = new ListView(notice);
  }
  return undefined;
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  api.key.set(byId("key").value.trim());
  byId("key").value = "";
  notice(null);
  show();
});
byId("forget-key").addEventListener("click", () => { api.key.forget(); notice(null); show(); });
byId("show-help").addEventListener("click", () => byId("help").showModal());
addEventListener("hashchange", () => { notice(null); show(); });
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (event.target.matches("input, textarea, select")) return;
  if (event.key === "?") byId("help").showModal();
  else if (!shown?.onKey?.(event.key)) return;
  event.preventDefault();
});

show();
