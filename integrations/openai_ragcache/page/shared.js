// What the views have in common: requests, elements whose content is text, and figures.

export const find = (id) => document.getElementById(id);

export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text; // documents are text here, whatever they hold
  if (className) made.className = className;
  return made;
}

export function authorization() {
  return find("key").value ? { Authorization: `Bearer ${find("key").value}` } : {};
}

export async function request(path, { method, body } = {}) {
  const headers = { ...authorization(), ...(body && { "Content-Type": "application/json" }) };
  const how = { method: method ?? (body ? "POST" : "GET"), headers, body: body && JSON.stringify(body) };
  const response = await fetch(path, how);
  if (response.ok) return response;
  askForKey(response.status);
  const said = await response.json().catch(() => null);
  throw new Error(said?.error?.message ?? `the server answered ${response.status}`);
}

export function askForKey(status) {
  find("keyed").hidden = status !== 401 && find("keyed").hidden;
}

export function showError(error) {
  find("error").textContent = error.message;
  find("error").hidden = false;
}

export function clearError() {
  find("error").hidden = true;
}

export function milliseconds(value) {
  return `${value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`;
}

export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; bytes >= 1000 && unit < units.length - 1; unit += 1) bytes /= 1000;
  return `${bytes < 10 && unit ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

export function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

// A row that opens: its head is a line of facts, and its inside is made when it is first opened.
export function openingRow(head, fill) {
  const row = element("li");
  const details = element("details");
  const summary = element("summary");
  summary.append(...head);
  details.append(summary);
  details.addEventListener("toggle", () => {
    if (details.open && !details.dataset.filled) {
      details.dataset.filled = "yes";
      fill(details);
    }
  });
  row.append(details);
  return row;
}
