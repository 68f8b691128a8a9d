"""Drives Chromium over the HTTP protocol of WebDriver, with the standard library alone."""

import base64
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class DriverError(Exception):
    pass


class Browser:
    """One Chromium with one page. Use it in a `with` block: it ends what it has started."""

    def __init__(self, limit=90.0):
        self.limit = limit
        self.profile = tempfile.TemporaryDirectory(prefix="cairn-chromium-", ignore_cleanup_errors=True)
        self.log = open(os.path.join(self.profile.name, "driver.log"), "w+")
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.session = None
        try:
            self.base = f"http://127.0.0.1:{self._port()}"
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _port(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with open(self.log.name) as log:
                found = re.search(r"started successfully on port (\d+)", log.read())
            if found:
                return found.group(1)
            if self.driver.poll() is not None:
                break
            time.sleep(0.05)
        raise DriverError("chromedriver does not start")

    def _open(self):
        options = {
            # Containers have neither the sandbox's rights nor room in /dev/shm; the pages are the test's own.
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--lang=en-US", f"--user-data-dir={self.profile.name}/profile"],
        }
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}, 90)
        self.session = answer["sessionId"]

    def close(self):
        if self.session:
            try:
                self.call("DELETE", f"/session/{self.session}")
            except (DriverError, OSError):
                pass
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            self.driver.wait()
        self.log.close()
        self.profile.cleanup()

    def call(self, method, path, body=None, limit=90):
        data = None if method in ("GET", "DELETE") else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=limit) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error).get("value", {})
            raise DriverError(f"{value.get('error')}: {value.get('message', '')[:400]}") from None

    def do(self, method, path, body=None):
        return self.call(method, f"/session/{self.session}{path}", body)

    # Words of the test

    def go(self, url):
        self.do("POST", "/url", {"url": url})

    def run(self, script, *values):
        return self.do("POST", "/execute/sync", {"script": script, "args": list(values)})

    def size(self, width, height):
        # The window's own frame counts in rect; this sets the page's size exactly, with a phone's pixels.
        self.do("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 2 if width < 600 else 1, "mobile": width < 600}})

    def media(self, **features):
        self.do("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]}})

    def until(self, what, script, *values):
        """Waits until the script gives something true, and returns it."""
        end = time.monotonic() + self.limit
        while True:
            found = self.run(script, *values)
            if found:
                return found
            if time.monotonic() > end:
                text = self.run("return document.body.innerText.slice(0, 1500)")
                raise DriverError(f"waited in vain for {what}; the page says:\n{text}\nlog: {self.messages()}")
            time.sleep(0.05)

    def text(self):
        return self.run("return document.body.innerText")

    def press(self, keys):
        """Keys as a keyboard sends them, to whatever has the focus."""
        actions = []
        for key in keys:
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.do("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def messages(self):
        return [f"{entry['level']}: {entry['message']}" for entry in self.do("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path):
        height = self.run("return Math.min(4000, document.documentElement.scrollHeight)")
        width = self.run("return document.documentElement.clientWidth")
        picture = self.do("POST", "/goog/cdp/execute", {"cmd": "Page.captureScreenshot", "params": {
            "format": "png", "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": width, "height": max(height, 400), "scale": 1}}})
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
