// The console: which view is shown, and who is signed in.

import * as api from "./api.js";
import { address, append, button, el, link, replace } from "./dom.js";
import { overviewView } from "./overview.js";
import { typeView, zoneView } from "./zone.js";
import { recordView } from "./record.js";
import { changesView } from "./changes.js";
import { devicesView } from "./devices.js";
import { usageView } from "./usage.js";
import { liveView } from "./live.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const account = document.getElementById("account");
const places = [["", "Zones"], ["devices", "Devices"], ["usage", "Usage"], ["live", "Live"]];
let shown = null;

// What a view may do with its part of the page.
class View {
  constructor() {
    this.main = el("div");
    this.leaving = [];
  }

  isShown() { return shown === this; }

  // Heads the page; `above` are links to what is above it.
  title(text, above = []) {
    document.title = `${text} · Cairn`;
    const heading = el("h1", { tabindex: "-1" }, text);
    const path = above.flatMap((step, i) => [i > 0 ? el("span", { "aria-hidden": "true" }, " / ") : null, step]);
    replace(this.main, above.length ? el("nav", { class: "path", "aria-label": "Path" }, ...path) : null, heading);
    if (!this.isShown()) return;
    replace(main, this.main);
    heading.focus();
  }

  whenLeft(action) { this.isShown() ? this.leaving.push(action) : action(); }

  leave() { this.leaving.forEach((action) => action()); }

  // Does something and says so where it fails; `again` is what does it once more, by default showing the view anew.
  async attempt(action, again) {
    try {
      await action();
    } catch (failure) {
      if (failure.code === "AUTHENTICATION_FAILED" || failure.code === "SIGNED_OUT" || !this.isShown()) return;
      // A view that has shown nothing yet says at least where one is, and the way out.
      if (!this.main.isConnected) {
        this.title(/NOT_FOUND$/.test(failure.code) ? "Not found" : failure.code === "NO_ANSWER" ? "No connection"
          : "Something is wrong", [link([""], "Zones")]);
      }
      const text = failure instanceof api.Failure ? sentence(failure.message) : "The page failed.";
      const note = el("div", { role: "alert" }, el("p", { class: "failure" }, text));
      this.main.append(note);
      if (/NOT_FOUND$/.test(failure.code) === false) {
        note.append(button("Try again", () => { note.remove(); again ? again() : show(); }, { class: "quiet" }));
      }
      if (!(failure instanceof api.Failure)) throw failure;
    } finally {
      if (this.isShown()) main.removeAttribute("aria-busy");
    }
  }
}

// The server's reasons are sentences without their end.
const sentence = (text) => (/[.!?)]$/.test(text) ? text : `${text}.`);

// `#/zone/CONTAINER/ENVIRONMENT/DATABASE/ZONE[/type/TYPE | /record/NAME | /changes]` and the places of the menu.
function route(words) {
  const [place, container, environment, database, zone, part, name] = words;
  if (place === "devices") return devicesView;
  if (place === "usage") return usageView;
  if (place === "live") return liveView;
  if (place !== "zone" || zone === undefined) return overviewView;
  const scope = { container, environment, database };
  if (part === "type") return (view) => typeView(view, scope, zone, name ?? "");
  if (part === "record") return (view) => recordView(view, scope, zone, name ?? "");
  if (part === "changes") return (view) => changesView(view, scope, zone);
  return (view) => zoneView(view, scope, zone);
}

function words() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""];
  }
}

function show() {
  shown?.leave();
  const view = (shown = new View());
  if (!api.isSignedIn()) return signIn(view);
  const path = words();
  frame(path[0]);
  main.setAttribute("aria-busy", "true");
  view.attempt(() => route(path)(view));
}

function frame(place) {
  nav.hidden = account.hidden = false;
  const current = places.some(([name]) => name === place) ? place : "";
  replace(nav, places.map(([name, text]) => {
    const node = link([name], text);
    if (name === current) node.setAttribute("aria-current", "page");
    return node;
  }));
  if (account.childElementCount === 0) {
    append(account, [button("Sign out", () => { api.setToken(null); leave(); }, { class: "quiet" })]);
  }
}

function leave(failure) {
  shown?.leave();
  shown = new View();
  replace(account);
  signIn(shown, failure);
}

function signIn(view, failure) {
  nav.hidden = account.hidden = true;
  document.title = "Sign in · Cairn";
  const field = el("input", { id: "token", name: "token", type: "password", required: true, autocomplete: "off",
    autocapitalize: "none", spellcheck: "false", "aria-describedby": "token-hint" });
  const note = el("p", { class: "failure", role: "alert" }, failure ? "The token is not known. Sign in again." : "");
  const submit = el("button", { type: "submit" }, "Sign in");
  const form = el("form", { class: "sign-in" }, el("h1", {}, "Sign in"), el("label", { for: "token" }, "Token"), field,
    el("p", { id: "token-hint", class: "faint" },
      "The one that your devices use. Whoever runs the server makes another with ", el("code", {}, "cairn user token NAME"),
      ". It is kept in this tab until you close it."),
    note, submit);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    api.setToken(field.value.trim());
    try {
      const { user } = await api.overview();
      name(user);
      if (view.isShown()) show();
    } catch (error) {
      api.setToken(null);
      if (error.code !== "AUTHENTICATION_FAILED") replace(note, error.message);
    }
    submit.disabled = false;
  });
  replace(main, form);
  main.removeAttribute("aria-busy");
  field.focus();
}

function name(user) {
  replace(account, el("span", { class: "user" }, user),
    button("Sign out", () => { api.setToken(null); leave(); }, { class: "quiet" }));
}

// The link jumps over the menu without changing the view.
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
api.onSignedOut((failure) => leave(failure));
addEventListener("hashchange", show);
if (location.hash === "") history.replaceState(null, "", address([""]));
show();
if (api.isSignedIn()) api.overview().then(({ user }) => name(user), () => {});
