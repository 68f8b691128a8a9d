"""pyicloud's CloudKitContainerClient in `forbid` mode against a Cairn server (web-services W43).

    python pyicloud_strict.py strict|throttle URL CA_FILE API_TOKEN WEB_AUTH_TOKEN

URL is the server's address. Prints a line per check; the first that fails ends it with exit code 1.
"""

import base64
import sys

import requests
from pyicloud.common.cloudkit import client as ck
from pyicloud.common.cloudkit import models as m

CONTAINER = "iCloud.org.example.strict"
ZONE = m.CKZoneIDReq(zoneName="Strict", zoneType="REGULAR_CUSTOM_ZONE")


def check(name, condition, detail=""):
    if not condition:
        print(f"failed: {name}: {detail}")
        sys.exit(1)
    print(f"ok: {name}")


def raises(kind, body):
    try:
        body()
    except kind as error:
        return error
    return None


def connect(url, ca, api_token, token):
    session = requests.Session()
    # The environment's authorities would come before these.
    session.trust_env = False
    session.verify = ca
    return ck.CloudKitContainerClient(
        f"{url}/database/1/{CONTAINER}/production/private",
        session,
        {"ckAPIToken": api_token, "ckWebAuthToken": token, "remapEnums": True, "getCurrentSyncToken": True},
        validation_extra="forbid",
    )


def record(name, fields=None, tag=None, kind="Thing", **more):
    return m.CKWriteRecord(recordName=name, recordType=kind, fields=fields or {}, recordChangeTag=tag, **more)


def modify(client, *operations, atomic=None):
    return client.modify(
        operations=[m.CKModifyOperation(operationType=kind, record=what) for kind, what in operations],
        zone_id=ZONE, atomic=atomic,
    ).records


def changes(client, token=None, limit=None, **more):
    request = m.CKZoneChangesZoneReq(zoneID=m.CKZoneID(zoneName=ZONE.zoneName), syncToken=token, **more)
    return list(client.iter_changes(zone_req=request, results_limit=limit))


def names(pages):
    return [entry.recordName for page in pages for entry in page.records]


def zones(client):
    client.raw_post("/zones/modify", {"operations": [
        {"operationType": "create", "zone": {"zoneID": {"zoneName": name}}} for name in ("Strict", "Other")]})
    listed = {zone.zoneID.zoneName: zone for zone in client.zones_list().zones}
    check("W2 zones/list by POST", set(listed) == {"_defaultZone", "Strict", "Other"}, listed)
    first = client.database_changes()
    check("W25 changes/database lists the custom zones",
          {zone.zoneID.zoneName for zone in first.zones} == {"Strict", "Other"} and first.syncToken, first)
    quiet = client.database_changes(sync_token=first.syncToken)
    check("W25 a quiet call gives no zones", quiet.zones == [] and quiet.syncToken == first.syncToken, quiet)
    client.raw_post("/zones/modify", {"operations": [
        {"operationType": "delete", "zone": {"zoneID": {"zoneName": "Other"}}}]})
    gone = client.database_changes(sync_token=first.syncToken)
    check("W25 a deleted zone is reported", [(z.zoneID.zoneName, z.deleted) for z in gone.zones] == [("Other", True)], gone)


FIELDS = {
    "text": ("STRING", "Hütte <b> ✓"), "empty": ("STRING", ""), "number": ("INT64", -(2**53) - 7),
    "real": ("DOUBLE", 2.5), "when": ("TIMESTAMP", 1700000000123),
    "bytes": ("BYTES", base64.b64encode(bytes(range(256))).decode()),
    "noteEncrypted": ("ENCRYPTED_BYTES", base64.b64encode(b"secret").decode()),
    "refers": ("REFERENCE", {"recordName": "target", "action": "NONE"}),
    "place": ("LOCATION", {"latitude": 47.5, "longitude": 8.25, "altitude": 400}),
    "texts": ("STRING_LIST", ["a", "b"]), "numbers": ("INT64_LIST", [1, 2]), "reals": ("DOUBLE_LIST", [1.5]),
    "refs": ("REFERENCE_LIST", [{"recordName": "a", "action": "NONE"}]),
    "days": ("TIMESTAMP_LIST", [1700000000000]), "blobs": ("BYTES_LIST", ["AAE="]),
    "places": ("LOCATION_LIST", [{"latitude": 1, "longitude": 2}]),
}


def fields(client):
    wire = {name: {"type": kind, "value": value} for name, (kind, value) in FIELDS.items()}
    wire["sealedEncrypted"] = {"type": "STRING", "value": "sealed", "isEncrypted": True}
    modify(client, ("create", record("all", wire)))
    found = client.lookup(["all"], zone_id=ZONE).records[0]
    for name, (kind, _) in FIELDS.items():
        check(f"W13 {kind} keeps its type", found.fields[name].type_tag == kind, found.fields[name])
    check("W13 STRING", found.fields.text.value == FIELDS["text"][1])
    check("W13 empty STRING", found.fields.empty.value == "")
    check("W13 INT64 beyond 53 bits", found.fields.number.value == FIELDS["number"][1], found.fields.number)
    check("W13 DOUBLE", found.fields.real.value == 2.5)
    check("W13 TIMESTAMP to the ms", round(found.fields.when.value.timestamp() * 1000) == 1700000000123)
    check("W13 BYTES", found.fields.bytes.value == bytes(range(256)))
    check("W13 ENCRYPTED_BYTES", found.fields.noteEncrypted.value == b"secret")
    check("W13 encrypted STRING", found.fields.sealedEncrypted.unwrap().isEncrypted is True)
    check("W13 REFERENCE", found.fields.refers.value.recordName == "target")
    check("W13 lists", found.fields.texts.value == ["a", "b"] and found.fields.numbers.value == [1, 2])
    check("W13 LOCATION", found.fields.place.value["latitude"] == 47.5, found.fields.place)
    check("stamps", found.created is not None and found.modified.userRecordName.startswith("_"))


def conflicts(client):
    made = modify(client, ("create", record("c", {"t": {"type": "STRING", "value": "1"}})))[0]
    changed = modify(client, ("update", record("c", {"t": {"type": "STRING", "value": "2"}}, made.recordChangeTag)))[0]
    check("an update with the right tag", changed.recordChangeTag != made.recordChangeTag)
    stale = raises(ck.CloudKitApiError, lambda: modify(
        client, ("update", record("c", {"t": {"type": "STRING", "value": "3"}}, made.recordChangeTag))))
    check("a stale tag is CONFLICT", stale is not None and "CONFLICT" in str(stale), stale)
    entry = stale.payload["records"][0]
    check("a strict error entry", set(entry) == {"recordName", "serverErrorCode", "reason"}, entry)
    twice = raises(ck.CloudKitApiError, lambda: modify(client, ("create", record("c"))))
    check("create on an existing record is CONFLICT", twice is not None and "already exists" in str(twice), twice)
    atomic = raises(ck.CloudKitApiError, lambda: modify(
        client, ("create", record("d")), ("create", record("c")), atomic=True))
    check("W10 atomic", "ATOMIC_ERROR" in str(atomic) and "CONFLICT" in str(atomic), atomic)
    found = client.lookup(["c", "d", "nowhere"], zone_id=ZONE, desired_keys=[]).records
    check("W31 hit and miss in one call", [type(entry).__name__ for entry in found] == ["CKRecord", "CKErrorItem", "CKErrorItem"], found)
    check("W31 desiredKeys [] gives no fields", dict(found[0].fields) == {} and found[1].serverErrorCode == "NOT_FOUND", found)


def queries(client):
    modify(client, *[("forceReplace", record(f"q{i:02}", {"n": {"type": "INT64", "value": i}}, kind="Q")) for i in range(7)])
    query = m.CKQueryObject(
        recordType="Q", sortBy=[m.CKQuerySortBy(fieldName="n", ascending=False)],
        filterBy=[m.CKQueryFilterBy(comparator="GREATER_THAN", fieldName="n", fieldValue={"type": "INT64", "value": 1})])
    seen, marker = [], None
    while True:
        page = client.query(query=query, zone_id=ZONE, results_limit=2, continuation=marker)
        seen += [entry.fields.n.value for entry in page.records]
        marker = page.continuationMarker
        if not marker:
            break
    check("W29 a sorted query in pages of two", seen == [6, 5, 4, 3, 2], seen)
    check("W30 zoneWide", len(client.query(query=query, zone_wide=True).records) == 5)
    check("W32 getCurrentSyncToken", client.query_sync_token(query=query, zone_id=ZONE) is not None)


def feeds(client):
    whole = changes(client)
    check("W19 pages of one equal one page", names(changes(client, limit=1)) == names(whole), names(whole))
    check("section 8 reverse, in pages of two", names(changes(client, limit=2, reverse=True)) == names(whole)[::-1])
    token = whole[-1].syncToken
    check("W19 the same token gives the same answer", changes(client, token)[0].syncToken == token)
    for i in range(5):
        modify(client, ("forceReplace", record("five", {"n": {"type": "INT64", "value": i}})))
    again = changes(client, token)
    check("W20 a record changed five times appears once", names(again) == ["five"], again)
    check("W20 with its last state", again[0].records[0].fields.n.value == 4)
    modify(client, ("delete", record("five", tag=again[0].records[0].recordChangeTag)), ("forceDelete", record("q00")))
    gone = [entry for page in changes(client, again[-1].syncToken) for entry in page.records]
    check("W21 deletions are tombstones", [type(entry).__name__ for entry in gone] == ["CKTombstoneRecord"] * 2, gone)
    fresh = [entry for page in changes(client) for entry in page.records]
    check("W21 a fetch without token shows none of them", all(isinstance(entry, m.CKRecord) for entry in fresh), fresh)
    pages = client.iter_changes(
        zone_req=m.CKZoneChangesZoneReq(zoneID=m.CKZoneID(zoneName="Strict")), results_limit=3)
    first = next(pages)
    modify(client, ("forceDelete", record(first.records[0].recordName, kind=first.records[0].recordType)))
    rest = [entry for page in pages for entry in page.records]
    check("W21 a deletion between pages does show",
          [entry.recordName for entry in rest if isinstance(entry, m.CKTombstoneRecord)] == [first.records[0].recordName], rest)
    typed = changes(client, desiredRecordTypes=["Q"], desiredKeys=["n"])
    check("desiredRecordTypes and desiredKeys", {entry.recordType for page in typed for entry in page.records} == {"Q"})
    missing = raises(ck.CloudKitApiError, lambda: client.changes(
        zone_req=m.CKZoneChangesZoneReq(zoneID=m.CKZoneID(zoneName="Nowhere"))))
    check("W26 a missing zone", missing is not None and "ZONE_NOT_FOUND" in str(missing), missing)
    garbage = raises(ck.CloudKitApiError, lambda: changes(client, "garbage"))
    check("W22 a token that is none", garbage is not None and "BAD_REQUEST" in str(garbage), garbage)


def assets(client):
    data = bytes(range(256)) * 4000
    token = client.upload_asset(record_type="File", field_name="file", record_name="asset", data=data, zone_id=ZONE)
    value = token.model_dump(mode="json", exclude_none=True)
    modify(client, ("create", record("asset", {"file": {"type": "ASSETID", "value": value}}, kind="File")))
    found = client.lookup(["asset"], zone_id=ZONE).records[0].fields.file.value
    check("W33 an asset over TLS comes back", client.download_asset_bytes(found.downloadURL) == data)
    check("W33 as a stream too", b"".join(client.download_asset_stream(found.downloadURL)) == data)
    value["receipt"] = value["receipt"][:-6] + "AAAAAA"
    forged = raises(ck.CloudKitApiError, lambda: modify(
        client, ("create", record("forged", {"file": {"type": "ASSETID", "value": value}}, kind="File"))))
    check("W33 a forged receipt is refused", forged is not None and "did_not_validate" in str(forged), forged)
    stolen = raises(ck.CloudKitAuthError, lambda: client.download_asset_bytes(found.downloadURL[:-6] + "AAAAAA"))
    check("W33 a forged address is refused", stolen is not None)


def strict(url, ca, api_token, token):
    client = connect(url, ca, api_token, token)
    for part in (zones, fields, conflicts, queries, feeds, assets):
        part(client)
    wrong = raises(ck.CloudKitAuthError, lambda: connect(url, ca, api_token, "wrong").zones_list())
    check("a wrong token is an error of authentication", wrong is not None)
    unknown = raises(ck.CloudKitAuthError, lambda: connect(url, ca, "0" * 64, token).zones_list())
    check("an unknown API token is one too", unknown is not None)
    print("all passed")


def throttle(url, ca, api_token, token):
    client = connect(url, ca, api_token, token)

    def many():
        for _ in range(50):
            client.zones_list()

    limited = raises(ck.CloudKitRateLimited, many)
    check("W40 too many requests raise rate-limited", limited is not None and limited.retry_after > 0, limited)
    print("all passed")


if __name__ == "__main__":
    {"strict": strict, "throttle": throttle}[sys.argv[1]](*sys.argv[2:])
