// What moved is read anew from the page's own address. Without this script everything works; a page is then as old as it is.
"use strict";
(() => {
  const news = document.getElementById("news");
  const letter = document.querySelector("article[data-tip]");
  let reading = false;
  let again = false;

  const say = (words) => {
    if (news.textContent !== words) news.textContent = words;
    news.hidden = words === "";
  };

  // The first line that is to be seen, and where: it stays there, whatever comes or goes above it.
  const place = (live) => {
    const lines = [...live.querySelectorAll("li[id]")];
    const held = document.activeElement && document.activeElement.closest("li[id]");
    const line = held || lines.find((one) => one.getBoundingClientRect().bottom > 0);
    return line ? { id: line.id, top: line.getBoundingClientRect().top, focused: line === held } : null;
  };

  const showList = (page) => {
    const live = document.getElementById("live");
    const kept = place(live);
    live.replaceChildren(...page.getElementById("live").childNodes);
    document.title = page.title;
    const line = kept && document.getElementById(kept.id);
    if (!line) return;
    if (kept.focused) line.querySelector("a").focus({ preventScroll: true });
    window.scrollBy(0, line.getBoundingClientRect().top - kept.top);
  };

  // What was typed stays. What the page shows is what an answer holds for, so that the rest is not exchanged by itself.
  const showLetter = (page) => {
    const now = page.querySelector("article[data-tip]");
    if (!now || now.dataset.tip === letter.dataset.tip) return;
    document.getElementById("state").replaceChildren(...page.getElementById("state").childNodes);
    say(now.dataset.became || "This gate has changed since you opened it: open it again before you answer.");
    const again = document.createElement("a");
    again.href = location.pathname;
    again.textContent = " Show it as it is now";
    news.append(again);
    for (const button of letter.querySelectorAll("form button")) button.disabled = true;
  };

  const read = async () => {
    if (reading) {
      again = true;
      return;
    }
    reading = true;
    try {
      const headers = { "gitgate-live": "1" }; // What is said once waits for a page that somebody opens.
      const reply = await fetch(location.pathname, { credentials: "same-origin", cache: "no-store", headers });
      if (reply.status === 401) say("You are logged out.");
      if (reply.ok) {
        const page = new DOMParser().parseFromString(await reply.text(), "text/html");
        if (letter) showLetter(page);
        else if (document.getElementById("live") && page.getElementById("live")) showList(page);
      }
    } catch {
      say("The desk does not answer; what you see may be old.");
    } finally {
      reading = false;
    }
    if (again) {
      again = false;
      read();
    }
  };

  const source = new EventSource("/events");
  let first = true;
  source.onmessage = () => {
    if (!first) read();
    first = false;
  };
  source.onerror = () => {
    first = false; // whatever was missed meanwhile is read when it is back
  };
})();
