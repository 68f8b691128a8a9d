#!/usr/bin/env python3
"""Uses the console of a real server in a real browser (web-services W44 to W47).

    Tests/Console/console.py CAIRN

Screenshots go into the folder CAIRN_ARTIFACTS, else into one that goes with the test. Ends with 1 and a sentence where
something is wrong, with 77 where there is no Chromium.
"""

import os
import shutil
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from webdriver import Browser, DriverError  # noqa: E402
from world import CONTAINER, HOSTILE, LINK, World  # noqa: E402

TAB, ENTER = "\ue004", "\ue007"
PHONE, DESKTOP = (360, 740), (1280, 800)


class Check:
    def __init__(self, browser, url, pictures):
        self.browser, self.url, self.pictures = browser, url, pictures

    def expect(self, holds, what):
        if not holds:
            raise DriverError(f"{what}; the page says:\n{self.browser.text()[:1500]}")

    def heading(self, text):
        self.browser.until(f"the heading '{text[:60]}'", """
            const h1 = document.querySelector('h1');
            return h1 && h1.textContent === arguments[0] && !document.querySelector('[aria-busy]')""", text)

    def says(self, text):
        self.browser.until(f"'{text}'", "return document.body.innerText.includes(arguments[0])", text)

    def open(self, *words):
        path = "/".join(urllib.parse.quote(word, safe="") for word in words)
        self.browser.run("location.hash = arguments[0]", "#/" + path)

    def sign_in(self, token):
        self.browser.go(self.url + "/console")
        # As closing the tab does.
        self.browser.run("sessionStorage.clear()")
        self.browser.go("about:blank")
        self.browser.go(self.url + "/console")
        self.heading("Sign in")
        # Keyboard only: the field has the focus.
        self.browser.press(token)
        self.browser.press(ENTER)
        self.heading("Zones")

    def picture(self, name):
        """Both widths: nothing sticks out of the page, nothing has run, the console has said nothing."""
        for label, size in (("phone", PHONE), ("desktop", DESKTOP)):
            self.browser.size(*size)
            wide = self.browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            self.expect(wide <= 0, f"{name} is {wide} pixels too wide for {size[0]}")
            self.browser.screenshot(os.path.join(self.pictures, f"{name}-{label}.png"))
        self.clean(name)

    def clean(self, name):
        self.expect(self.browser.run("""
            return window.owned === undefined
              && document.querySelectorAll('img, iframe, object, embed, script:not([src]), base, style').length === 0
              && [...document.querySelectorAll('*')].every((node) =>
                [...node.attributes].every((a) => !a.name.startsWith('on') && a.name !== 'style'
                  && !(a.name === 'href' && a.value.trim().startsWith('javascript:'))))"""),
            f"something of a record became more than text in {name}")
        messages = self.browser.messages()
        self.expect(not messages, f"the browser's console says in {name}: {messages}")
        self.expect("ckWebAuthToken" not in self.browser.run("return location.href"), "the token is in the address")


def unknown_token(check):
    check.browser.go(check.url + "/console")
    check.heading("Sign in")
    check.picture("sign-in")
    check.browser.press("nobody" + ENTER)
    check.says("The token is not known")
    messages = check.browser.messages()
    check.expect(all("401" in text for text in messages), f"the browser's console says: {messages}")


def look_around(check, token, world, laptop):
    check.sign_in(token)
    check.says("iCloud.cairn")
    check.browser.until("the number of records", """
        const row = [...document.querySelectorAll('tr')].find((tr) => tr.textContent.startsWith('notes'));
        return row && row.cells[1].textContent === '124'""")
    check.picture("zones")
    zone = ("zone", "iCloud.cairn", "production", "private", "notes")
    check.open(*zone)
    check.heading("notes")
    check.says("cairn_table")
    check.picture("zone")
    check.open(*zone, "type", "notes")
    check.heading("notes")
    check.says("The first 50 records.")
    rows = "return document.querySelectorAll('tbody tr').length"
    check.picture("records")
    for count in (100, 120):
        check.browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Show more').click()")
        check.browser.until(f"{count} rows", rows + f" === {count}")
    # By keyboard: a record's link takes Enter.
    world.sql(laptop, "UPDATE notes SET stars = 4, body = 'Changed, and sent again.' WHERE title = 'Note 7'")
    world.run("sync", "--", laptop)
    name = check.browser.run("""
        const row = [...document.querySelectorAll('tbody tr')].find((tr) => tr.textContent.includes('Note 7'));
        row.querySelector('a').focus();
        return row.querySelector('a').textContent""")
    check.browser.press(ENTER)
    check.heading(name)
    check.says("Changed, and sent again.")
    check.says("Edited: body, stars")
    check.picture("record")
    world.sql(laptop, "DELETE FROM notes WHERE title = 'Note 8'")
    world.run("sync", "--", laptop)
    check.open(*zone, "changes")
    check.heading("History of changes")
    first = check.browser.until("the deletion first", """
        const row = document.querySelector('tbody tr');
        return row && row.cells[1].textContent === 'deleted' && row.cells[2].textContent""")
    check.expect(first == "notes", f"the deleted record's type is {first}")
    check.picture("changes")
    check.open("devices")
    check.heading("Devices")
    check.says("ada's laptop")
    check.says("tablet")
    check.picture("devices")
    check.open("usage")
    check.heading("Usage")
    check.browser.until("the plot", "return document.querySelectorAll('svg .dot').length === 13")
    check.picture("usage")


def live(check, world, laptop):
    check.open("live")
    check.heading("Live")
    check.says("Waiting for changes.")
    world.sql(laptop, "INSERT INTO notes (title, stars) VALUES ('Just now', 5)")
    world.run("sync", "--", laptop)
    check.browser.until("the new record in the live view", """
        const entry = document.querySelector('.live li');
        return entry && entry.textContent.includes('created') && entry.textContent.includes('notes')""")
    world.sql(laptop, "UPDATE notes SET stars = 1 WHERE title = 'Just now'")
    world.run("sync", "--", laptop)
    check.browser.until("the changed field in the live view", """
        const entry = document.querySelector('.live li');
        return entry.textContent.includes('changed') && entry.textContent.includes('stars')""")
    check.picture("live")
    # A page that can't be seen waits for nothing.
    check.browser.run("""
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
        document.dispatchEvent(new Event('visibilitychange'))""")
    check.says("Paused while the page is hidden.")
    check.browser.run("""
        delete document.hidden;
        document.dispatchEvent(new Event('visibilitychange'))""")
    check.says("Waiting for changes.")


def shares(check, token, world):
    """The root leads to its share, and that says who takes part."""
    world.share(token)
    check.sign_in(token)
    check.open("zone", CONTAINER, "production", "private", "trips", "record", "trip")
    check.heading("trip")
    check.says("Short GUID")
    check.open("zone", CONTAINER, "production", "private", "trips", "record", "share")
    check.heading("share")
    for text in ("Participants", "ben@example.org", "READ_ONLY", "INVITED", "Public permission"):
        check.says(text)
    check.picture("share")
    # Who takes part sees the records, under the zone's own name.
    ben = world.accept(token)
    check.sign_in(ben)
    check.browser.until("the number of shared records", """
        const row = [...document.querySelectorAll('tr')].find((tr) => tr.querySelector('a')?.textContent === 'trips');
        return row && row.cells[1].textContent === '2'""")
    check.browser.run("[...document.querySelectorAll('tbody a')].find((a) => a.textContent === 'trips').click()")
    check.heading("trips")
    check.says("cloudkit.share")
    check.browser.run("[...document.querySelectorAll('tbody a')].find((a) => a.textContent === 'Trip').click()")
    check.heading("Trip")
    check.browser.run("[...document.querySelectorAll('tbody a')].find((a) => a.textContent === 'trip').click()")
    check.heading("trip")
    check.says("Hut")
    check.browser.run("location.hash = location.hash.replace('/record/trip', '/changes')")
    check.heading("History of changes")
    check.browser.until("both records", "return document.querySelectorAll('tbody tr').length === 2")
    check.open("live")
    check.says("Waiting for changes.")
    world.rename(token)
    check.browser.until("the shared change in the live view", """
        const entry = document.querySelector('.live li');
        return entry && entry.textContent.includes('changed') && entry.textContent.includes('Trip')""")
    check.picture("share-live")


def unseen(check, token, world):
    """What can't be seen is shown by its number, and turns no text around; many zones are narrowed down."""
    names = [f"zone {i}" for i in range(20)]
    world.unseen(token, names)
    check.sign_in(token)
    check.heading("Zones")
    check.browser.run("document.getElementById('zone-filter').focus()")
    check.browser.press("ZONE 1" + ENTER)
    shown = "return [...document.querySelectorAll('tbody tr')].filter((tr) => tr.checkVisibility()).length"
    check.browser.until("the zones that match", shown + " === 11")
    check.says("11 zones")
    check.picture("zones-found")
    check.open("zone", CONTAINER, "production", "private", "zone 0", "type", "Odd")
    check.heading("Odd")
    check.picture("unseen-records")
    check.browser.run("document.querySelector('tbody a').click()")
    check.heading("odd")
    # Half of a pair of surrogates would be shown as a question mark; an empty text is not nothing.
    for text in ("U+202E", "U+0007", "empty text", '["", "a"]', "500 characters", "12 B"):
        check.says(text)
    check.expect("\ufffd" not in check.browser.text(), "a character was cut in two")
    check.expect("\u202e" not in check.browser.run("return document.body.innerText"), "a text can be turned around")
    check.picture("unseen")


def away(check, token, world):
    """A server that goes while the page is open: told, and the way on."""
    check.sign_in(token)
    world.stop()
    check.open("devices")
    check.heading("No connection")
    check.says("Try again")
    refused = check.browser.messages()
    check.expect(all("Failed to load" in text for text in refused), f"the browser's console says: {refused}")
    check.picture("away")
    world.serve("--listen", check.url.split("//")[1])
    check.browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Try again').click()")
    check.heading("Devices")
    check.open("zone", CONTAINER, "production", "private", "no such zone")
    check.heading("Not found")
    check.browser.messages()


def hostile(check, token):
    check.sign_in(token)
    check.says(HOSTILE)
    check.picture("hostile-zones")
    zone = ("zone", "iCloud.org.example.hostile", "production", "private", HOSTILE)
    for words, heading, name in (
        ((), HOSTILE, "zone"), (("type", HOSTILE), HOSTILE, "type"), (("record", HOSTILE), HOSTILE, "record"),
        (("record", LINK), LINK, "link"), (("record", "none" + HOSTILE), "none" + HOSTILE, "missing"),
        (("changes",), "History of changes", "changes"),
    ):
        check.open(*zone, *words)
        check.heading(heading)
        check.picture("hostile-" + name)
    check.open("devices")
    check.heading("Devices")
    check.says(HOSTILE[:90])
    check.picture("hostile-devices")
    # What a link of another page could put there.
    for address in ("zone/%E0%A4%A/x", "zone/" + "/".join(urllib.parse.quote(word, safe="") for word in (HOSTILE,) * 6)):
        check.browser.run("location.hash = arguments[0]", "#/" + address)
        check.browser.until("an answer", "return !document.querySelector('[aria-busy]')")
        check.expect(check.browser.run("return window.owned === undefined"), "an address ran")
    refused = check.browser.messages()
    check.expect(all("status of 4" in text for text in refused), f"the browser's console says: {refused}")


def keyboard(check, token):
    """Everything is reached by Tab, and shows that it has the focus."""
    check.sign_in(token)
    reached = []
    for _ in range(40):
        check.browser.press(TAB)
        found = check.browser.run("""
            const node = document.activeElement;
            if (node === document.body) return null;
            const style = getComputedStyle(node);
            return [node.textContent.trim() || node.getAttribute('aria-label'), style.outlineStyle, style.outlineWidth]""")
        # After the last one comes the browser's own frame, then the first again.
        if found is None:
            continue
        if found[0] in reached:
            break
        check.expect(found[1] != "none" and found[2] != "0px", f"'{found[0]}' does not show that it has the focus")
        reached.append(found[0])
    for name in ("Skip to the content", "Cairn", "Zones", "Devices", "Usage", "Live", "Sign out", "notes"):
        check.expect(name in reached, f"'{name}' is not reached by Tab: {reached}")
    check.expect(check.browser.run("""
        return document.documentElement.lang === 'en' && document.querySelectorAll('main').length === 1
          && document.querySelectorAll('h1').length === 1 && document.querySelector('header nav') !== null"""),
        "landmarks or headings are missing")
    check.browser.media(prefers_color_scheme="dark")
    check.picture("zones-dark")
    check.open("usage")
    check.heading("Usage")
    check.picture("usage-dark")
    check.browser.media(prefers_color_scheme="light")
    check.browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Sign out').click()")
    check.heading("Sign in")
    check.expect(check.browser.run("return sessionStorage.length") == 0, "the token stays after signing out")


def rotating(check, world):
    """A server whose tokens serve one request."""
    world.stop()
    world.serve("--single-use-tokens")
    check.url = world.url
    token = world.user("eva")
    check.sign_in(token)
    check.open("devices")
    check.heading("Devices")
    check.open("usage")
    check.heading("Usage")
    check.clean("single-use tokens")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: console.py CAIRN")
    if not shutil.which("chromedriver") or not (shutil.which("chromium") or shutil.which("google-chrome")):
        print("skipped: there is no Chromium: apt-get install chromium chromium-driver", file=sys.stderr)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="cairn-pictures-") as temporary, World(sys.argv[1]) as world:
        pictures = os.environ.get("CAIRN_ARTIFACTS") or temporary
        os.makedirs(pictures, exist_ok=True)
        world.serve()
        ada, eve = world.user("ada"), world.user(HOSTILE)
        world.run("user", "quota", "ada", "2M", "--data", world.path("data"))
        laptop = world.device("laptop", ada, "create")
        world.device("tablet", ada, "join")
        world.run("sync", "--", laptop)
        world.past("ada", [0.02, 0.05, 0.21, 0.24, 0.32, 0.33, 0.61, 0.64, 0.58, 0.71, 0.9, 1.02])
        world.hostile(eve)
        with Browser() as browser:
            browser.size(*DESKTOP)
            check = Check(browser, world.url, pictures)
            unknown_token(check)
            look_around(check, ada, world, laptop)
            live(check, world, laptop)
            keyboard(check, ada)
            hostile(check, eve)
            shares(check, ada, world)
            unseen(check, ada, world)
            away(check, ada, world)
            rotating(check, world)
    print("the console works")


if __name__ == "__main__":
    try:
        main()
    except (DriverError, RuntimeError) as error:
        sys.exit(f"console.py: {error}")
