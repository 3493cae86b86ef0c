"""Pipelines whose warehouse, sources and sinks are on a real S3 server (P8)."""

from __future__ import annotations

import json

import pytest

from deltaworks.storage.folder_manifest import MANIFEST
from tests.services.lakes import Lake
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("jvm")]

UPSERT = """
extract: {{type: csv, path: "{source}", schema: "id bigint, name string, amount double"}}
checks: [{{type: expression, rule: "amount >= 0", on_fail: quarantine}}]
load: {{type: delta, table: orders, mode: upsert, merge_keys: [id]}}
"""
COPY = """
extract: {{type: {kind}, path: "{source}"{more}}}
load: {{type: {to}, {target}, mode: {mode}}}
"""


def test_the_orders_job_runs_on_s3_and_is_looked_at_without_a_jvm(lake: Lake) -> None:
    lake.put("in/a.csv", "id,name,amount\n1,a,1.5\n2,b,-1\n3,c,3\n")
    lake.pipeline("orders", UPSERT.format(source=lake.at("in")))
    assert lake.cli("plan", "orders", "--json").json["outputs"][0]["rows_to_insert"] == 2
    assert lake.names("wh") == []
    first = lake.run("orders")
    assert first["batches"][0]["rows_quarantined"] == 1
    lake.put("in/b.csv", "id,name,amount\n1,new,2\n4,d,4\n")
    lake.put("in/a.csv", "id,name,amount\n3,c,3\n")
    lake.run("orders")
    names = [(row["id"], row["name"]) for row in lake.rows("orders")]
    assert names == [(1, "new"), (3, "c"), (4, "d")]
    assert lake.cli("table", "show", "orders", "--json").json["rows"] == 3
    assert len(lake.cli("table", "history", "orders", "--json").json["commits"]) == 2
    assert len(lake.cli("runs", "list", "--json").json["runs"]) == 2
    assert "1" in lake.cli("quarantine", "list").stdout
    locks = [lake.text(f"wh/{name}") for name in lake.names("wh") if name.endswith(".lock")]
    assert [json.loads(text).get("free") for text in locks] == [True, True]  # nobody has them
    back = lake.cli("table", "restore", "orders", "--version", "0", "--apply", "--json")
    assert back.json["pipelines"] == [{"pipeline": "orders", "batches": [2]}]
    assert [row["name"] for row in lake.rows("orders")] == ["a", "c"]
    lake.run("orders")
    assert [row["name"] for row in lake.rows("orders")] == ["new", "c", "d"]
    rule = ("--rule", "amount >= 0", "--reason", "it's old", "--apply", "--json")
    gone = lake.cli("quarantine", "discard", "orders", *rule)
    assert gone.code == 0, gone.stderr
    assert lake.rows("orders__quarantine") == []


def test_every_file_format_is_written_and_read_there(lake: Lake) -> None:
    lake.put("in/a.csv", "id,name\n1,a\n2,b\n")
    for kind in ("csv", "json", "parquet", "avro", "orc"):
        target = f'path: "{lake.at(kind)}"'
        source = {
            "kind": "csv",
            "source": lake.at("in/*.csv"),
            "more": ', schema: "id int, name string"',
        }
        lake.pipeline(f"to_{kind}", COPY.format(**source, to=kind, target=target, mode="append"))
        more = ', schema: "id int, name string"' if kind in ("csv", "json") else ""
        target = f"table: {kind}s"
        back = {"kind": kind, "source": lake.at(kind), "more": more}
        lake.pipeline(f"from_{kind}", COPY.format(**back, to="delta", target=target, mode="append"))
    done = lake.cli("run", "--all", "--json", "--quiet")
    assert done.code == 0, done.stdout + done.stderr
    for kind in ("csv", "json", "parquet", "avro", "orc"):
        assert lake.rows(f"{kind}s") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], kind
    lake.put("notes/a.txt", "one\ntwo\n")
    text = {"kind": "text", "source": lake.at("notes/a.txt"), "more": ""}
    lake.pipeline("text", COPY.format(**text, to="delta", target="table: lines", mode="append"))
    lake.run("text")
    assert [row["value"] for row in lake.rows("lines")] == ["one", "two"]


def test_readers_of_a_folder_see_whole_batches_at_every_moment(lake: Lake) -> None:
    source = {"kind": "csv", "source": lake.at("in"), "more": ""}
    target = f'path: "{lake.at("out")}", partition_by: [day]'
    lake.put("in/a.csv", "id,day\n1,mon\n2,tue\n")
    lake.pipeline("add", COPY.format(**source, to="csv", target=target, mode="append"))
    lake.pipeline("swap", COPY.format(**source, to="csv", target=target, mode="overwrite"))
    more = {"kind": "csv", "source": lake.at("out"), "more": ""}
    lake.pipeline("read", COPY.format(**more, to="delta", target="table: t", mode="overwrite"))
    lake.run("add")
    first = [name for name in lake.names("out") if name != MANIFEST]
    mark = first[0].rpartition("/")[2].split("-")[1]
    half = lake.put(f"out/day=mon/batch00000009-{mark}-part-0.csv", "id\n99\n")
    lake.run("read")
    assert [row["id"] for row in lake.rows("t")] == ["1", "2"]
    lake.put("in/a.csv", "id,day\n3,wed\n")
    lake.run("add")
    assert half.rpartition("/")[2] not in str(lake.names("out"))
    lake.put("in/a.csv", "id,day\n4,thu\n")
    lake.run("swap")
    lake.run("read")
    assert [row["id"] for row in lake.rows("t")] == ["4"]
    left = [name for name in lake.names("out") if name != MANIFEST]
    assert len(left) == 1
    assert left[0].startswith("day=thu/batch")
    for name in first:  # as if the run had died before it removed what it had replaced
        lake.put(f"out/{name}", "id\n1\n")
    lake.run("read")
    assert [row["id"] for row in lake.rows("t")] == ["4"]
    lake.put("in/a.csv", "id,day\n5,fri\n")
    lake.put("out/_theirs", "hidden")
    lake.run("swap")
    assert not set(first) & set(lake.names("out"))
    assert "_theirs" in lake.names("out")
    lake.put("out/day=fri/notes.csv", "id\n7\n")
    assert 'did not write, such as "day=fri/notes.csv"' in lake.fail("swap").stderr
    assert "day=fri/notes.csv" in lake.names("out")


def test_a_folder_of_others_is_not_replaced_and_a_file_is_no_folder(lake: Lake) -> None:
    lake.put("in/a.csv", "id\n1\n")
    lake.put("theirs/x.csv", "id\n7\n")
    source = {"kind": "csv", "source": lake.at("in"), "more": ""}
    for name, place, said in (
        ("theirs", "theirs", "holds files that Deltaworks did not write"),
        ("file", "theirs/x.csv", "is a file"),
    ):
        target = f'path: "{lake.at(place)}"'
        lake.pipeline(name, COPY.format(**source, to="csv", target=target, mode="overwrite"))
        assert said in lake.fail(name).stderr
    assert lake.names("theirs") == [".x.csv.lock", "x.csv"]  # a lock stays, and is free
    target = f'path: "{lake.at("theirs")}"'
    lake.pipeline("table", COPY.format(**source, to="delta", target=target, mode="append"))
    assert "is not a Delta table" in lake.fail("table").stderr


def test_wrong_text_is_found_by_file_and_line(lake: Lake) -> None:
    lake.put("in/a.csv", b"id,name\n1,a\n2,\xff\n")
    source = {"kind": "csv", "source": lake.at("in"), "more": ""}
    lake.pipeline("read", COPY.format(**source, to="delta", target="table: t", mode="append"))
    assert f"{lake.at('in/a.csv')}:3 is not UTF-8 text" in lake.fail("read").stderr
    lake.put("in/a.csv", "id,name\n1,a\nx,b\n")
    more = ', schema: "id int, name string"'
    source = {**source, "more": more}
    lake.pipeline("read", COPY.format(**source, to="delta", target="table: t", mode="append"))
    assert f'{lake.at("in/a.csv")}:3: column "id": "x" is not int' in lake.fail("read").stderr
    lake.put("in/a.csv", "")
    source = {"kind": "avro", "source": lake.at("in/a.csv"), "more": ""}
    lake.pipeline("read", COPY.format(**source, to="delta", target="table: t", mode="append"))
    assert "is not an Avro file" in lake.fail("read").stderr
    source = {"kind": "parquet", "source": lake.at("nothing"), "more": ""}
    lake.pipeline("read", COPY.format(**source, to="delta", target="table: t", mode="append"))
    assert "there is no file at" in lake.fail("read").stderr


def test_increments_time_travel_feed_and_undo_work_there(lake: Lake) -> None:
    lake.put("in/a.csv", "id,name\n1,a\n")
    feed = "table: t, change_feed: true"
    files = {"kind": "csv", "source": lake.at("in"), "more": ", incremental: true"}
    lake.pipeline("load", COPY.format(**files, to="delta", target=feed, mode="append"))
    lake.run("load")
    lake.put("in/b.csv", "id,name\n2,b\n")
    second = lake.run("load")
    assert second["batches"][0]["rows_read"] == 1
    at = lake.cli("table", "history", "t", "--json").json["commits"][-1]["timestamp"]
    for name, more in (
        ("past", f'{{type: delta, table: t, timestamp_as_of: "{at}"}}'),
        ("changes", "{type: delta_changes, table: t, incremental: true}"),
        ("news", "{type: delta, table: t, incremental: true}"),
    ):
        lake.pipeline(name, f"extract: {more}\nload: {{type: delta, table: {name}}}\n")
        lake.run(name)
    assert [row["id"] for row in lake.rows("past")] == ["1"]
    assert len(lake.rows("changes")) == len(lake.rows("news")) == 2
    undone = lake.cli("table", "undo", second["run_id"], "--apply")
    assert undone.code == 0, undone.stderr
    assert [row["id"] for row in lake.rows("t")] == ["1"]


def test_a_pipeline_names_the_credential_of_its_bucket_and_a_local_warehouse_stays(
    lake: Lake,
) -> None:
    endpoint = f"endpoint: '{lake.server.endpoint}', path_style: true"
    lake.settle(endpoint, warehouse="./warehouse", credential="nowhere")
    lake.keep("mine", access_key=ACCESS_KEY, secret_key=SECRET_KEY, region="us-east-1")
    lake.put("in/a.csv", "id,name\n1,a\n")
    place = f"s3a://{lake.corner}/out"
    document = {
        "pipelineId": "copy",
        "extract": {
            "sourceType": "S3",
            "connectionParams": {
                "format": "csv",
                "path": f"s3a://{lake.corner}/in/",
                "header": "true",
            },
            "credentialId": "mine",
        },
        "load": {
            "sinkType": "DeltaLake",
            "connectionParams": {"path": place},
            "credentialId": "mine",
        },
        "writeMode": "Append",
    }
    lake.write("pipelines/copy.json", json.dumps(document))
    lake.write("local.csv", "id\n1\n")
    lake.pipeline(
        "local", "extract: {type: csv, path: local.csv}\nload: {type: delta, table: here}"
    )
    lake.run("local")  # needs no bucket, and asks for no credential
    lake.run("copy")
    assert lake.rows(lake.at("out")) == [{"id": "1", "name": "a"}]
    assert (lake.root / "warehouse" / "_deltaworks" / "batches").is_dir()
