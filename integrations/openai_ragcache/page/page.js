// Asks twice, from the cache and by full prefill, and shows what became of every token of the chunks.
"use strict";

const find = (id) => document.getElementById(id);
const STAGES = ["queue", "retrieve", "match", "load", "place", "select", "prefill"];
let model = "";

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text; // documents are text here, whatever they hold
  if (className) made.className = className;
  return made;
}

async function request(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (find("key").value) headers.Authorization = `Bearer ${find("key").value}`;
  const how = body ? { method: "POST", headers, body: JSON.stringify(body), signal } : { headers };
  const response = await fetch(path, how);
  if (response.ok) return response;
  find("keyed").hidden = response.status !== 401 && find("keyed").hidden;
  const said = await response.json().catch(() => null);
  throw new Error(said?.error?.message ?? `the server answered ${response.status}`);
}

async function learnModel() {
  const { data } = await (await request("/v1/models")).json();
  model = data[0].id;
  find("served").textContent = `${model} answers at ${location.origin}/v1`;
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (waiting + value).split("\n\n");
    waiting = lines.pop();
    for (const line of lines) {
      const data = line.replace(/^data: /, "");
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

async function answerInto(section, options) {
  const answer = section.querySelector(".answer");
  const time = section.querySelector("b");
  const body = {
    model,
    messages: [{ role: "user", content: find("question").value }],
    stream: true,
    ragcache: { retrieve: Number(find("count").value), ...options },
  };
  let about = null;
  for await (const event of eventsOf(await request("/v1/chat/completions", body))) {
    if (event.error) throw new Error(event.error.message);
    answer.textContent += event.choices[0]?.delta?.content ?? "";
    about = event.ragcache ?? about;
  }
  time.textContent = milliseconds(about.ms.first_token);
  return about;
}

function milliseconds(value) {
  return `${value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`;
}

function showReport(about) {
  const tokens = about.tokens;
  find("summary").textContent =
    `${about.hit + about.exact} of ${about.chunks.length} chunks from the cache by the method ${about.method}; ` +
    `${tokens.recomputed} of their ${tokens.context} tokens recomputed, ${tokens.question} others computed`;
  const spent = STAGES.map((name) => [name, about.ms[name] ?? 0]).filter(([, value]) => value >= 0.05);
  const total = spent.reduce((sum, [, value]) => sum + value, 0);
  find("bar").replaceChildren(...spent.map(([, value]) => {
    const part = element("span", "");
    part.style.width = `${(100 * value) / total}%`;
    return part;
  }));
  find("stages").replaceChildren(...spent.map(([name, value]) => {
    const row = element("div", "");
    row.append(element("dt", name), element("dd", milliseconds(value)));
    return row;
  }));
  const states = new Map(about.chunks.map((chunk) => [chunk.id, chunk]));
  find("chunks").replaceChildren(...about.texts.map((text) => showChunk(text, states.get(text.id))));
  find("notes").replaceChildren(...about.notes.map((note) => element("li", note)));
  find("report").hidden = false;
}

function showChunk(text, chunk) {
  const row = element("li", "");
  const details = element("details", "");
  const head = element("summary", "");
  const where = [text.page === null ? "" : `page ${text.page}`, text.heading].filter(Boolean).join(", ");
  const score = text.score === null ? "" : `similarity ${text.score.toFixed(2)}`;
  head.append(element("mark", chunk.cache, chunk.cache), element("b", text.source));
  for (const said of [where, `${chunk.tokens} tokens`, score]) if (said) head.append(element("span", said));
  const body = element("p", "");
  text.runs.at(-1).text = text.runs.at(-1).text.trimEnd();
  for (const run of text.runs) {
    const reused = chunk.cache !== "miss";
    body.append(element("mark", run.text, run.recomputed && reused ? "recomputed" : chunk.cache));
  }
  const made = chunk.cache === "miss" ? `computed: ${chunk.reason}` : `KV: ${chunk.reason}${chunk.left && `, made behind ${chunk.left}`}`;
  details.append(head, element("p", made, "made"), body);
  row.append(details);
  return row;
}

function clear() {
  for (const id of ["error", "empty", "report"]) find(id).hidden = true;
  find("full").hidden = !find("compare").checked;
  for (const answer of document.querySelectorAll(".answer")) answer.textContent = "";
  for (const time of document.querySelectorAll(".time b")) time.textContent = "–";
  find("answers").hidden = false;
}

async function ask(event) {
  event.preventDefault();
  const button = document.querySelector("button");
  button.disabled = true;
  clear();
  try {
    if (!model) await learnModel();
    showReport(await answerInto(find("reused"), { recompute: Number(find("ratio").value), texts: true }));
    if (find("compare").checked) await answerInto(find("full"), { method: "full" });
  } catch (error) {
    find("error").textContent = error.message;
    find("error").hidden = false;
    find("answers").hidden = find("report").hidden;
  } finally {
    button.disabled = false;
  }
}

find("ask").addEventListener("submit", ask);
find("ratio").addEventListener("input", () => {
  find("share").textContent = `${Math.round(100 * find("ratio").value)} %`;
});
learnModel().catch((error) => {
  find("served").textContent = find("keyed").hidden ? error.message : "An API key is needed.";
});
