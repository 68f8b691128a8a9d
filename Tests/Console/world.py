"""A server of its own with users, devices and records, some of which try to run."""

import datetime
import json
import os
import sqlite3
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

# What would run, load or break out if any of it became more than text.
HOSTILE = '"><img src=x onerror="window.owned=1"><script>window.owned=1</script><svg onload=window.owned=1>'
LINK = "javascript:window.owned=1"
CONTAINER = "iCloud.org.example.hostile"


class World:
    def __init__(self, cairn):
        self.cairn = cairn
        self.folder = tempfile.TemporaryDirectory(prefix="cairn-console-", ignore_cleanup_errors=True)
        self.environment = dict(
            os.environ, XDG_CONFIG_HOME=self.path("config"), CAIRN_TOKEN="", CAIRN_DEVICE_NAME="ada's laptop")
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def serve(self, *words):
        output = open(self.path("server.out"), "w+")
        listen = () if "--listen" in words else ("--listen", "127.0.0.1:0")
        self.process = subprocess.Popen(
            [self.cairn, "serve", "--data", self.path("data"), *listen, *words],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            with open(output.name) as file:
                for line in file:
                    if line.startswith("listening on "):
                        self.url = line.split()[-1]
                        return
            time.sleep(0.05)
        raise RuntimeError("the server does not start: " + open(output.name).read())

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def run(self, *words, device=None):
        environment = dict(self.environment, **({"CAIRN_DEVICE_NAME": device} if device else {}))
        result = subprocess.run([self.cairn, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=120)
        if result.returncode != 0:
            raise RuntimeError(f"cairn {words[0]}: {result.returncode} {result.stderr}")
        return result.stdout

    def user(self, name):
        return json.loads(self.run("user", "add", "--data", self.path("data"), "--json", "--", name))["token"]

    # Devices

    def device(self, name, token, mode):
        """A database file that syncs; its host calls itself `name`."""
        file = self.path(f"{name}.db")
        if mode == "create":
            self.sql(file, """
                CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT, stars INTEGER, done INTEGER);
                CREATE TABLE lists (name TEXT PRIMARY KEY, colour TEXT);
                INSERT INTO lists VALUES ('Home', 'green'), ('Work', 'blue');
                """)
            rows = [(f"Note {i}", f"What note {i} says, in a sentence that goes on for a while.", i % 5, i % 2)
                    for i in range(1, 121)]
            with sqlite3.connect(file) as connection:
                connection.executemany("INSERT INTO notes (title, body, stars, done) VALUES (?, ?, ?, ?)", rows)
        self.run("init", "--server", self.url, "--token", token, "--mode", mode, "--zone", "notes", "--", file)
        self.run("sync", "--", file, device=name)
        return file

    def sql(self, file, text):
        connection = sqlite3.connect(file, timeout=20)
        try:
            connection.executescript(text)
        finally:
            connection.close()

    def past(self, user, megabytes):
        """Usage of days gone by, as visits would have noted it."""
        today = (datetime.datetime.now(datetime.timezone.utc) - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)).days
        connection = sqlite3.connect(self.path("data/cairn.db"), timeout=20)
        key = connection.execute("SELECT key FROM user WHERE name = ?", (user,)).fetchone()[0]
        for i, size in enumerate(reversed(megabytes), 1):
            connection.execute("INSERT INTO usage_day VALUES (?, ?, ?)", (key, today - 2 * i, int(size * 1e6)))
        connection.commit()
        connection.close()

    # The protocol

    def post(self, token, operation, body, device=None, container=CONTAINER, database="private"):
        request = urllib.request.Request(
            f"{self.url}/database/1/{container}/production/{database}/{operation}", json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json",
             **({"X-Cairn-Device": urllib.parse.quote(device)} if device else {})})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)

    def hostile(self, token):
        """A record that is hostile in every string, in a zone that is; and one that is gone."""
        zone = {"zoneName": HOSTILE}
        self.post(token, "zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": zone}}]},
                  device=HOSTILE[:90])
        fields = {
            HOSTILE: {"value": HOSTILE, "type": "STRING"}, LINK: {"value": LINK, "type": "STRING"},
            "long": {"value": HOSTILE * 20, "type": "STRING"}, "list": {"value": [HOSTILE, LINK], "type": "STRING_LIST"},
            "bytes": {"value": "PHNjcmlwdD4=", "type": "BYTES"}, "at": {"value": 1700000000000, "type": "TIMESTAMP"},
            "place": {"value": {"latitude": 47.1, "longitude": 8.5}, "type": "LOCATION"},
            "other": {"value": {"recordName": LINK, "action": "NONE"}, "type": "REFERENCE"},
            "cairn_clocks": {"value": json.dumps({"1700000000000": [HOSTILE], HOSTILE: [LINK], "x": HOSTILE}), "type": "STRING"},
        }
        names = [HOSTILE, LINK, "__proto__", "gone"]
        operations = [{"operationType": "create", "record": {"recordName": name, "recordType": HOSTILE, "fields": fields}}
                      for name in names if not name.startswith("_")]
        answer = self.post(token, "records/modify", {"zoneID": zone, "operations": operations, "atomic": False})
        failed = [entry for entry in answer["records"] if "serverErrorCode" in entry]
        if failed:
            raise RuntimeError(f"the server takes no hostile records: {failed}")
        self.post(token, "records/modify", {"zoneID": zone, "operations": [
            {"operationType": "forceDelete", "record": {"recordName": "gone"}}]})

    def share(self, token):
        """A trip that is shared with somebody who is to read it."""
        zone = {"zoneName": "trips"}
        self.post(token, "zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": zone}}]})
        root = {"recordName": "trip", "recordType": "Trip", "fields": {"place": {"value": "Hut"}}, "createShortGUID": True}
        share = {
            "recordName": "share", "recordType": "cloudkit.share", "forRecord": {"recordName": "trip"}, "publicPermission": "NONE",
            "participants": [{"type": "USER", "permission": "READ_ONLY", "acceptanceStatus": "INVITED",
                              "userIdentity": {"lookupInfo": {"emailAddress": "ben@example.org"}}}]}
        answer = self.post(token, "records/modify", {"zoneID": zone, "operations": [
            {"operationType": "create", "record": record} for record in (root, share)]})
        failed = [entry for entry in answer["records"] if "serverErrorCode" in entry]
        if failed:
            raise RuntimeError(f"the server does not share: {failed}")

    def accept(self, token):
        """Somebody who takes part in that trip; his token."""
        ben = self.user("ben")
        self.run("user", "set", "ben", "--email", "ben@example.org", "--data", self.path("data"))
        root = self.post(token, "records/lookup", {"zoneID": {"zoneName": "trips"}, "records": [{"recordName": "trip"}]})
        guid = root["records"][0]["shortGUID"]
        answer = self.post(ben, "records/accept", {"shortGUIDs": [{"value": guid}]}, database="public")
        if answer["results"][0].get("participantStatus") != "ACCEPTED":
            raise RuntimeError(f"the share can't be accepted: {answer}")
        return ben

    def rename(self, token):
        self.post(token, "records/modify", {"zoneID": {"zoneName": "trips"}, "operations": [
            {"operationType": "forceUpdate",
             "record": {"recordName": "trip", "recordType": "Trip", "fields": {"place": {"value": "Lake"}}}}]})

    def unseen(self, token, zones):
        """Many zones, and a record of texts that are not what they look like."""
        self.post(token, "zones/modify", {"operations": [
            {"operationType": "create", "zone": {"zoneID": {"zoneName": name}}} for name in zones]})
        fields = {
            "turned": {"value": "\u202egnp.tihs\u202c", "type": "STRING"}, "bell": {"value": "a\u0007b", "type": "STRING"},
            "nothing": {"value": "", "type": "STRING"}, "texts": {"value": ["", "a"], "type": "STRING_LIST"},
            "faces": {"value": "\U0001f642" * 500, "type": "STRING"}, "bytes": {"value": "MTIzNDU2Nzg5MDEy", "type": "BYTES"},
            "a_field_whose_name_goes_on_and_on_" + "and_on" * 15: {"value": 1},
        }
        answer = self.post(token, "records/modify", {"zoneID": {"zoneName": zones[0]}, "operations": [
            {"operationType": "create", "record": {"recordName": "odd", "recordType": "Odd", "fields": fields}}]})
        if "serverErrorCode" in answer["records"][0]:
            raise RuntimeError(f"the server does not take it: {answer}")
