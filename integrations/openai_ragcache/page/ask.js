// Asks twice, from the cache and by full prefill, and shows what became of every token of the chunks.
import { clearError, element, find, milliseconds, openingRow, percent, request, showError } from "/page/shared.js";

const STAGES = ["queue", "retrieve", "match", "load", "place", "select", "prefill"];
let model = "";
let moved = false; // until then the method's own share is recomputed

export async function learnModel() {
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
  const body = {
    model,
    messages: [{ role: "user", content: find("question").value }],
    stream: true,
    ragcache: { retrieve: Number(find("count").value), ...options },
  };
  let about = null;
  for await (const event of eventsOf(await request("/v1/chat/completions", { body }))) {
    if (event.error) throw new Error(event.error.message);
    answer.textContent += event.choices[0]?.delta?.content ?? "";
    about = event.ragcache ?? about;
  }
  section.querySelector("b").textContent = milliseconds(about.ms.first_token);
  return about;
}

function showReport(about) {
  const tokens = about.tokens;
  find("summary").textContent =
    `${about.hit + about.exact} of ${about.chunks.length} chunks from the cache by the method ${about.method}; ` +
    `${tokens.recomputed} of their ${tokens.context} tokens recomputed, ${tokens.question} others computed`;
  const spent = STAGES.map((name) => [name, about.ms[name] ?? 0]).filter(([, value]) => value >= 0.05);
  const total = spent.reduce((sum, [, value]) => sum + value, 0);
  find("bar").replaceChildren(...spent.map(([, value]) => {
    const part = element("span");
    part.style.width = `${(100 * value) / total}%`;
    return part;
  }));
  find("stages").replaceChildren(...spent.map(([name, value]) => {
    const row = element("div");
    row.append(element("dt", name), element("dd", milliseconds(value)));
    return row;
  }));
  const states = new Map(about.chunks.map((chunk) => [chunk.id, chunk]));
  find("chunks").replaceChildren(...about.texts.map((text) => showChunk(text, states.get(text.id))));
  find("notes").replaceChildren(...about.notes.map((note) => element("li", note)));
  find("report").hidden = false;
}

function showChunk(text, chunk) {
  const where = [text.page === null ? "" : `page ${text.page}`, text.heading].filter(Boolean).join(", ");
  const score = text.score === null ? "" : `similarity ${text.score.toFixed(2)}`;
  const said = [where, `${chunk.tokens} tokens`, score].filter(Boolean).map((one) => element("span", one));
  return openingRow([element("mark", chunk.cache, chunk.cache), element("b", text.source), ...said], (details) => {
    const body = element("p", "", "text");
    text.runs.at(-1).text = text.runs.at(-1).text.trimEnd();
    for (const run of text.runs) {
      const reused = chunk.cache !== "miss";
      body.append(element("mark", run.text, run.recomputed && reused ? "recomputed" : chunk.cache));
    }
    const behind = chunk.left && `, made behind ${chunk.left}`;
    const made = chunk.cache === "miss" ? `computed: ${chunk.reason}` : `KV: ${chunk.reason}${behind}`;
    details.append(element("p", made, "quiet"), body);
  });
}

function clear() {
  clearError();
  for (const id of ["empty", "report"]) find(id).hidden = true;
  find("full").hidden = !find("compare").checked;
  for (const answer of document.querySelectorAll(".answer")) answer.textContent = "";
  for (const time of document.querySelectorAll("#answers b")) time.textContent = "–";
  find("answers").hidden = false;
}

async function ask(event) {
  event.preventDefault();
  find("send").disabled = true;
  clear();
  try {
    if (!model) await learnModel();
    const share = moved ? { recompute: Number(find("ratio").value) } : {};
    showReport(await answerInto(find("reused"), { ...share, texts: true }));
    if (find("compare").checked) await answerInto(find("full"), { method: "full" });
  } catch (error) {
    showError(error);
    find("answers").hidden = find("report").hidden;
  } finally {
    find("send").disabled = false;
  }
}

export function beginAsking() {
  find("ask").addEventListener("submit", ask);
  find("ratio").addEventListener("input", () => {
    moved = true;
    find("share").textContent = percent(find("ratio").value);
  });
}
