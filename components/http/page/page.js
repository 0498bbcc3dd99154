// The operators' page: it refreshes itself, and asks before each change. Without this file, the page can be read.

const refreshEvery = 2000; // milliseconds
const longestRefresh = 20000;
const leastPart = 1000; // messages in one part of a change
const mostParts = 60; // each counts the whole group again
const main = document.getElementById("main");
const said = document.getElementById("said");
// The address of the page can have a name and a password, with which fetch would fail.
const root = location.origin + document.body.dataset.path;
const address = location.origin + location.pathname + location.search;
document.documentElement.classList.add("js");

let tag = null;
let isAsking = false;

// The page says what the latest change has done, and why it cannot be refreshed. A refresh does not remove the first.
const says = { change: { text: "" }, refresh: { text: "" } };

function say(about, text, isWrong) {
  says[about] = { text, isWrong };
  const all = Object.values(says).filter((each) => each.text);
  const joined = all.map((each) => each.text).join(" ");
  if (said.textContent !== joined) said.textContent = joined; // a screen reader does not read the same text again
  const isAnyWrong = all.some((each) => Boolean(each.isWrong));
  said.classList.toggle("wrong", isAnyWrong);
}

// What the operator is about to use must not move away.
function isInUse() {
  const selection = document.getSelection();
  const selects = selection && !selection.isCollapsed && main.contains(selection.anchorNode);
  const inputs = [...main.querySelectorAll("form.filter input")];
  const hasTyped = inputs.some((each) => each.value !== each.defaultValue);
  return isAsking || selects || hasTyped || Boolean(main.querySelector("form :focus"));
}

// Says which of the links and buttons an element is.
function nameOf(element) {
  return element.matches("a, button.change") ? (element.href || "") + element.dataset.action + element.dataset.body : "";
}

// Shows the new content. The focus and the places to which tables are scrolled stay.
function replaceMain(page) {
  const fresh = page.getElementById("main");
  if (fresh.innerHTML === main.innerHTML) return;
  const focused = main.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  const scrolled = [...main.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  main.replaceChildren(...fresh.childNodes);
  [...main.querySelectorAll(".scroll")].forEach((each, i) => (each.scrollLeft = scrolled[i] || 0));
  if (focused === null) return;
  const same = [...main.querySelectorAll("a, button.change")].find((each) => nameOf(each) === focused);
  (same || main).focus({ preventScroll: true });
}

let running = null; // the refresh that has not ended

async function refresh(always) {
  if (!always && (running || document.hidden || isInUse())) return;
  if (running) running.abort();
  const mine = (running = new AbortController());
  const timer = setTimeout(() => mine.abort(), longestRefresh);
  try {
    const headers = tag ? { "If-None-Match": tag } : {};
    const answer = await fetch(address, { headers, cache: "no-store", signal: mine.signal });
    const text = await answer.text();
    if (running !== mine) return;
    if (answer.status === 401) {
      say("refresh", "Sign in again: load the page again.", true);
    } else if (answer.status !== 304 && !answer.ok) {
      say("refresh", "The page could not be refreshed: status " + answer.status + ".", true);
    } else {
      say("refresh", "");
      if (answer.status === 304 || (!always && isInUse())) return;
      tag = answer.headers.get("ETag");
      replaceMain(new DOMParser().parseFromString(text, "text/html"));
    }
  } catch {
    if (running === mine) say("refresh", "The server does not answer. The page shows what it showed last.", true);
  } finally {
    clearTimeout(timer);
    if (running === mine) running = null;
  }
}

function field(label, name, isRequired) {
  const text = document.createElement("label");
  text.textContent = label;
  const input = document.createElement("input");
  input.name = name;
  input.required = isRequired;
  text.append(input);
  return text;
}

function ask(button) {
  const dialog = document.createElement("dialog");
  const form = document.createElement("form");
  form.method = "dialog";
  const question = document.createElement("p");
  question.textContent = button.dataset.question;
  question.id = "question";
  dialog.setAttribute("aria-labelledby", question.id);
  form.append(question);
  if (button.dataset.action === "failed/redrive") form.append(field("Topic", "to", true));
  const needsReason = button.dataset.action === "pause" || button.dataset.action.endsWith("/discard");
  form.append(field("Reason, for the audit", "reason", needsReason));
  const yes = document.createElement("button");
  yes.value = "yes";
  yes.textContent = button.textContent;
  const no = document.createElement("button");
  no.value = "no";
  no.textContent = "Cancel";
  no.formNoValidate = true;
  form.append(yes, " ", no);
  dialog.append(form);
  document.body.append(dialog);
  isAsking = true;
  dialog.addEventListener("close", () => {
    isAsking = false;
    const given = Object.fromEntries(new FormData(form));
    dialog.remove();
    if (dialog.returnValue === "yes") change(button, given);
  });
  dialog.showModal();
}

// The answer to a change. It has an `error` if it is not known that the change was made. A proxy can answer with
// something else than the server: with HTML, with nothing, or with JSON of its own.
async function post(action, body) {
  const unknown = ". It is not known whether something has changed";
  let answer;
  let text;
  try {
    answer = await fetch(root + "/api/" + action, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Txinbox": "1" },
      body: JSON.stringify(body),
    });
    text = await answer.text();
  } catch {
    return { error: "the server does not answer" + unknown };
  }
  try {
    const result = JSON.parse(text);
    if (answer.ok ? Number.isInteger(result.changed) : result.error?.length > 0) return result;
  } catch {
    // It is no JSON.
  }
  return { error: "the server has answered with status " + answer.status + unknown };
}

const stop = document.createElement("button"); // there while a change of several parts goes on
stop.type = "button";
let isStopped = false;
stop.addEventListener("click", () => {
  isStopped = true;
  stop.textContent = "Stopping"; // after the present part
});

function beginParts() {
  stop.textContent = "Stop";
  said.after(stop);
  document.documentElement.classList.add("changing"); // until its end, the other buttons make no change
}

function endParts() {
  if (document.activeElement === stop) main.focus({ preventScroll: true });
  stop.remove();
  document.documentElement.classList.remove("changing");
}

// The form in which the page shows numbers.
function grouped(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

// A group is changed in parts, each with the number of messages that the operator expects then.
async function change(button, given) {
  const name = button.textContent + ": ";
  const body = { ...JSON.parse(button.dataset.body), ...given };
  const all = body.expected; // none for one message
  const part = Math.max(leastPart, Math.ceil(all / mostParts));
  if (all) body.at_most = part;
  isStopped = false;
  if (all > part) beginParts();
  let changed = 0;
  let left = all;
  let result;
  do {
    if (all > part) say("change", name + grouped(changed) + " of " + grouped(all) + " changed.");
    result = await post(button.dataset.action, body);
    if (result.error) break;
    changed += result.changed;
    body.expected = result.left;
    left = result.left - (result.without_payload || 0);
  } while (left > 0 && result.changed > 0 && !isStopped);
  if (all > part) endParts();
  const rest = left > 0 ? " of " + grouped(all) + " changed, " + grouped(left) + " left." : " changed.";
  const sum = grouped(changed) + rest;
  if (result.error) {
    say("change", name + result.error + "." + (changed > 0 ? " Before: " + sum : ""), true);
  } else {
    const stopped = left > 0 && isStopped ? " Stopped." : "";
    const without = result.without_payload ? " " + grouped(result.without_payload) + " have no stored payload." : "";
    say("change", name + sum + stopped + without);
  }
  await refresh(true);
}

main.addEventListener("click", (event) => {
  const button = event.target.closest("button.change");
  if (button && !stop.isConnected) ask(button);
});
document.addEventListener("visibilitychange", () => refresh(false));
setInterval(() => refresh(false), refreshEvery);
