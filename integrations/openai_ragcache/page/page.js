// Three views on one page; the address says which.
import { beginAsking, learnModel } from "/page/ask.js";
import { beginDocuments, endDocuments, showDocuments } from "/page/documents.js";
import { beginHistory, endHistory, showBelow, showHistory } from "/page/history.js";
import { clearError, find, request, showError } from "/page/shared.js";

const SHOW = { ask: () => {}, documents: showDocuments, history: showHistory };

async function show() {
  const name = location.hash.slice(1) in SHOW ? location.hash.slice(1) : "ask";
  endDocuments();
  endHistory();
  clearError();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const view of Object.keys(SHOW)) find(`${view}-view`).hidden = view !== name;
  document.title = name === "ask" ? "ragcache" : `${name[0].toUpperCase()}${name.slice(1)} · ragcache`;
  try {
    await SHOW[name]();
  } catch (error) {
    showError(error);
  }
}

async function begin() {
  try {
    await learnModel();
    showBelow(await (await request("/v1/ragcache/agreement")).json());
  } catch (error) {
    find("served").textContent = find("keyed").hidden ? error.message : "An API key is needed.";
  }
}

beginAsking();
beginDocuments();
beginHistory();
find("key").addEventListener("change", () => begin().then(show));
window.addEventListener("hashchange", show);
begin().then(show);
