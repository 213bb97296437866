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

function reveal(id) {
  for (const each of views) byId(each).hidden = each !== id;
  byId("forget-key").hidden = id === "key-view";
}

const OWN_MACHINE = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Take the key of a link out of the address, where it is never sent, and out of the history. */
function takeKeyFromAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!given) return null;
  history.replaceState(null, "", "#/");
  if (given === api.key.get()) return null;
  // Anybody can send a link: what is dropped here would be theirs who made the key.
  if (api.key.get() || !OWN_MACHINE.test(location.hostname)) return given;
  api.key.set(given);
  return null;
}

function offer(key) {
  shown?.stop();
  shown = null;
  reveal("key-view");
  byId("key").value = key;
  byId("key").focus();
  notice(new Error("The link brings an API key, and what you send would belong to its owner. "
    + "Continue only if it is yours; to leave it, reload the page."));
}

function show() {
  const offered = takeKeyFromAddress();
  if (offered) return offer(offered);
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
