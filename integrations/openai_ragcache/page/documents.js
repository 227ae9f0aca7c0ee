// Documents, their chunks, and the KV that each has; uploads by drag and drop.
import { askForKey, authorization, clearError, count, element, find, openingRow, request, showError, size } from "/page/shared.js";

const STORE = "Uploaded on the page";
const PAGE = 100;
const POLL = 500; // milliseconds
let after = null;
let asked = 0; // answers that are waited for come in any order, and only the last one asked for is shown
let polling = 0;

export async function showDocuments() {
  after = null;
  find("documents-list").replaceChildren();
  find("more").hidden = true; // nothing is behind a list that is not there yet
  await showMore();
}

async function showMore() {
  const own = ++asked;
  const behind = after ? `&after=${encodeURIComponent(after)}` : "";
  const found = await (await request(`/v1/ragcache/documents?order=asc&limit=${PAGE}${behind}`)).json();
  if (own !== asked) return;
  find("documents-list").append(...found.data.map(showDocument));
  after = found.last_id;
  find("more").hidden = !found.has_more;
  const { documents, chunks, bytes } = found.totals;
  find("totals").textContent = documents
    ? `${count(documents, "document")}, ${count(chunks, "chunk")}, ${size(bytes)} of KV on disk`
    : "";
  find("documents-empty").hidden = documents > 0 || found.pending.length > 0;
  showPending(found.pending);
}

function showDocument(one) {
  const facts = [count(one.chunks, "chunk"), count(one.tokens, "token"), `${size(one.bytes)} of KV`];
  const head = [element("b", one.source), ...facts.map((fact) => element("span", fact))];
  return openingRow(head, async (details) => {
    const list = element("ol", "", "rows");
    details.append(...(one.file_id ? [removeButton(one)] : []), list);
    try {
      const { chunks } = await (await request(`/v1/ragcache/documents/${encodeURIComponent(one.id)}`)).json();
      list.append(...chunks.map(showChunk));
    } catch (error) {
      showError(error);
    }
  });
}

function showChunk(chunk) {
  const row = element("li", "", "chunk");
  const where = [chunk.page === null ? "" : `page ${chunk.page}`, chunk.heading].filter(Boolean).join(", ");
  row.append(element("p", [count(chunk.tokens, "token"), where].filter(Boolean).join(" · "), "quiet"));
  row.append(element("p", chunk.text, "text"));
  const made = chunk.kv.map((kv) => element("li", `${kv.encoding}: ${size(kv.bytes)}, made behind ${kv.made_behind || "nothing"}`));
  const list = element("ul", "", "quiet");
  list.append(...(made.length ? made : [element("li", "no KV yet; it is made when it is first asked over")]));
  row.append(list);
  return row;
}

function removeButton(one) {
  const button = element("button", `Remove ${one.source}`, "plain");
  button.type = "button";
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await request(`/v1/files/${one.file_id}`, { method: "DELETE" });
      await showDocuments();
      find("files").focus();
    } catch (error) {
      showError(error);
    }
  });
  return button;
}

// Uploads on their way, and those that are ingested or could not be.
function showPending(pending) {
  for (const old of document.querySelectorAll("#uploads [data-file]")) {
    if (!pending.some((one) => one.file_id === old.dataset.file)) old.remove();
  }
  for (const one of pending) {
    const row = document.querySelector(`#uploads [data-file="${one.file_id}"]`) ?? uploadRow(one.source);
    row.dataset.file = one.file_id;
    const failed = one.status === "failed";
    const stage = one.total ? `${one.stage} ${one.done} of ${one.total}` : "waits until nothing is asked";
    tell(row, failed ? `not ingested: ${one.error}` : stage, failed ? null : one.done / (one.total || 1), failed);
    if (failed && !row.querySelector("button")) row.append(removeButton(one));
  }
  clearTimeout(polling);
  const working = pending.filter((one) => one.status === "in_progress").length;
  if (working) polling = setTimeout(() => look(working).catch(showError), POLL);
}

// Rows that are open stay so as long as no upload is done.
async function look(working) {
  const own = asked;
  const { pending } = await (await request("/v1/ragcache/documents?limit=1")).json();
  if (own !== asked) return;
  if (pending.filter((one) => one.status === "in_progress").length < working) await showDocuments();
  else showPending(pending);
}

function uploadRow(name) {
  const row = element("li", "", "upload");
  const progress = element("progress");
  progress.max = 1;
  progress.setAttribute("aria-label", `Progress of ${name}`);
  row.append(element("b", name), progress, element("span"));
  find("uploads").append(row);
  return row;
}

function tell(row, text, share, failed = false) {
  row.querySelector("span").textContent = text;
  row.classList.toggle("failed", failed);
  const progress = row.querySelector("progress");
  progress.hidden = share === null;
  if (share !== null) progress.value = share;
}

function send(file, row) {
  return new Promise((resolve, reject) => {
    const form = new FormData();
    form.append("purpose", "assistants");
    form.append("file", file);
    const sending = new XMLHttpRequest(); // fetch tells nothing of how far it is
    sending.open("POST", "/v1/files");
    for (const [name, value] of Object.entries(authorization())) sending.setRequestHeader(name, value);
    sending.responseType = "json";
    sending.upload.onprogress = (event) => tell(row, `${size(event.loaded)} of ${size(event.total)} sent`, event.loaded / event.total);
    sending.onload = () => {
      askForKey(sending.status);
      const said = sending.response?.error?.message ?? `the server answered ${sending.status}`;
      if (sending.status < 300) resolve(sending.response);
      else reject(new Error(said));
    };
    sending.onerror = () => reject(new Error("the server cannot be reached"));
    sending.send(form);
  });
}

async function storeId() {
  const { data } = await (await request("/v1/vector_stores")).json();
  const known = data.find((one) => one.name === STORE);
  return (known ?? (await (await request("/v1/vector_stores", { body: { name: STORE } })).json())).id;
}

async function upload(files) {
  clearError();
  for (const file of files) {
    const row = uploadRow(file.name);
    try {
      const { id } = await send(file, row);
      row.dataset.file = id;
      await request(`/v1/vector_stores/${await storeId()}/files`, { body: { file_id: id } });
      await showDocuments();
    } catch (error) {
      delete row.dataset.file;
      tell(row, error.message, null, true);
    }
  }
}

export function beginDocuments() {
  const drop = find("drop");
  find("files").addEventListener("change", async () => {
    await upload([...find("files").files]);
    find("files").value = "";
  });
  find("more").addEventListener("click", () => showMore().catch(showError));
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragenter" || name === "dragover");
      if (name === "drop") upload([...event.dataTransfer.files]);
    });
  }
}

export function endDocuments() {
  asked += 1;
  clearTimeout(polling);
}
