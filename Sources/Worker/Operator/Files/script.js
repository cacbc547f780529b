// SPDX-License-Identifier: Apache-2.0
// Keeps the operator's page up to date: it requests the page every two seconds and changes only the differences, so that
// focus, selection and scroll position remain. It makes no other request and stores nothing. The page is complete without it.
"use strict";
(() => {
  const everyMs = 2000;
  const patienceMs = 5000;
  const link = document.getElementById("link");
  const pause = document.getElementById("pause");
  if (!document.querySelector("[data-live]")) return;
  let isPaused = false;

  function say(words) {
    if (link.textContent !== words) link.textContent = words;
  }

  // Whether a part is folded is the reader's choice, until it has something to say.
  function takeAttributes(old, fresh) {
    if (old.hasAttribute("data-well") && !fresh.hasAttribute("data-well")) old.open = true;
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && name !== "open") old.setAttribute(name, value);
    }
  }

  // The old node becomes equal to the fresh one; equal parts remain the same nodes.
  function renew(old, fresh) {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(document.importNode(fresh, true));
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    takeAttributes(old, fresh);
    const [olds, freshes] = [[...old.childNodes], [...fresh.childNodes]];
    freshes.forEach((child, index) => {
      if (index < olds.length) renew(olds[index], child);
      else old.append(document.importNode(child, true));
    });
    for (const child of olds.slice(freshes.length)) child.remove();
  }

  async function look() {
    try {
      const answer = await fetch("./", { cache: "no-store", signal: AbortSignal.timeout(patienceMs) });
      if (!answer.ok) throw new Error("answered with " + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (isPaused) return;
      document.title = page.title;
      for (const part of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(part.id);
        if (fresh) renew(part, fresh);
      }
      say("as of " + new Date().toISOString().slice(11, 19) + " UTC");
    } catch (fault) {
      if (!isPaused) say("These numbers are old: the worker does not answer (" + fault.message + ").");
    }
  }

  async function turn() {
    if (!isPaused && !document.hidden) await look();
    setTimeout(turn, everyMs);
  }

  if (matchMedia("(width < 700px)").matches) for (const part of document.querySelectorAll("[data-well]")) part.open = false;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    say(isPaused ? "paused" : "");
  });
  say("as of " + new Date().toISOString().slice(11, 19) + " UTC");
  setTimeout(turn, everyMs);
})();
