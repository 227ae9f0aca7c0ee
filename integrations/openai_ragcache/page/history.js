// Hits over time, agreement with full prefill, memory and disk.
import { count, element, find, milliseconds, openingRow, percent, request, size, showError } from "/page/shared.js";

const STATES = ["exact", "hit", "recomputed", "miss"];
const BARS = 60;
const SECONDS = 5;
let timer = 0;

export async function showHistory() {
  clearTimeout(timer);
  const [history, agreement] = await Promise.all(
    ["history", "agreement"].map(async (name) => (await request(`/v1/ragcache/${name}`)).json()),
  );
  showTokens(history.minutes);
  showAgreement(agreement);
  showRoom(history);
  timer = setTimeout(() => showHistory().catch(showError), 1000 * SECONDS);
}

export function endHistory() {
  clearTimeout(timer);
}

function showTokens(minutes) {
  const range = Number(document.querySelector("[name=range]:checked").value);
  const end = Math.floor(Date.now() / 60000) + 1;
  const recent = minutes.filter((one) => one.minute >= end - range);
  const bars = Array.from({ length: BARS }, () => ({ exact: 0, hit: 0, recomputed: 0, miss: 0 }));
  const sums = { exact: 0, hit: 0, recomputed: 0, miss: 0 };
  for (const one of recent) {
    const bar = Math.floor((one.minute - end + range) / (range / BARS));
    for (const state of STATES) {
      bars[bar][state] += one[state];
      sums[state] += one[state];
    }
  }
  const all = STATES.reduce((sum, state) => sum + sums[state], 0);
  const answers = recent.reduce((sum, one) => sum + one.answers, 0);
  setFigure("hits", all ? percent((sums.exact + sums.hit) / all) : "–",
    answers ? `of ${count(all, "token")} reused, in ${count(answers, "answer")}` : "nothing was answered yet");
  find("axis").firstElementChild.textContent = range === 60 ? "an hour ago" : "a day ago";
  const most = Math.max(1, ...bars.map((bar) => STATES.reduce((sum, state) => sum + bar[state], 0)));
  find("chart").replaceChildren(...bars.map((bar) => {
    const column = element("span");
    column.append(...STATES.filter((state) => bar[state]).map((state) => {
      const part = element("i", "", state);
      part.style.height = `${(100 * bar[state]) / most}%`;
      return part;
    }));
    return column;
  }));
  find("minutes").replaceChildren(...recent.toReversed().map(showMinute));
}

function showMinute(one) {
  const row = element("tr");
  const when = new Date(60000 * one.minute).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const head = element("th", when);
  head.scope = "row";
  const cells = [one.answers, one.hit, one.exact, one.recomputed, one.miss].map((value) => value.toLocaleString("en"));
  row.append(head, ...[...cells, milliseconds(one.first_token_ms)].map((text) => element("td", text)));
  return row;
}

function showAgreement(found) {
  const { recent } = found;
  const checked = found.share_verified ? `${percent(found.share_verified)} of the answers are verified` : "start the server with --verify 0.02";
  setFigure("agreed", recent.verified ? percent(recent.share) : "–",
    recent.verified
      ? `of the last ${count(recent.verified, "verified answer")} (95 % interval ${percent(recent.low)} to ${percent(recent.high)})`
      : `no answer was verified yet; ${checked}`);
  find("marks").replaceChildren(...found.marks.map((one) => element("i", "", one.confirmed ? "same" : "other")));
  find("worst").replaceChildren(...found.worst.map(showCase));
  showBelow(found);
}

export function showBelow(found) {
  find("below").hidden = !found.below;
  find("below").textContent =
    `Full prefill confirmed ${percent(found.recent.share)} of the last verified answers; ${percent(found.bound)} are wanted.`;
}

function showCase(one) {
  const state = one.confirmed ? "same answer" : "another answer";
  const head = [element("mark", state, one.confirmed ? "hit" : "miss"), element("b", one.question.split("\n").at(-1)),
    element("span", `KL of the first token ${one.first_token_kl?.toFixed(3) ?? "∞"}`)];
  return openingRow(head, (details) => {
    details.append(element("p", one.answer, "text"));
    if (!one.confirmed) {
      const other = one.instead ? `goes on with “${one.instead.trim()}”` : "ends";
      details.append(element("p", `Behind ${count(one.agreed_tokens, "token")} full prefill ${other}.`, "quiet"));
    }
  });
}

function showRoom(history) {
  const { learnt } = history;
  const facts = [
    ["KV in memory", size(history.memory_bytes), "of documents"],
    ["Learnt texts", size(learnt.bytes), learnt.limit ? `${count(learnt.texts, "text")}, of ${size(learnt.limit)}` : "not asked for (--learn)"],
    ["KV on disk", size(history.disk_bytes), `${size(history.free_bytes)} are free`],
  ];
  find("room").replaceChildren(...facts.map(([name, value, more]) => {
    const card = element("div", "", "card");
    const said = element("dd", "", "figure");
    said.append(element("b", value), ` ${more}`);
    card.append(element("dt", name), said);
    return card;
  }));
}

function setFigure(id, value, words) {
  find(id).replaceChildren(element("b", value), ` ${words}`);
}

export function beginHistory() {
  find("range").addEventListener("change", () => showHistory().catch(showError));
}
