"""Errors of a run speak of options as the pipeline's own file spells them (P13)."""

from __future__ import annotations

import json

import pytest

from deltaworks.config.classic_messages import reworded
from deltaworks.errors import InputError
from tests.workbench import Workbench

WORDS = {
    "merge_keys": "mergeKeys",
    "merge_schema": "mergeSchema",
    "duplicates": "duplicates",
    "change_feed": "enableChangeDataFeed",
    "mode": "writeMode",
    "append": "Append",
    "overwrite": "Overwrite",
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('merge_keys names column "idd"', 'mergeKeys names column "idd"'),
        ('there is no column "merge_keys"', 'there is no column "merge_keys"'),
        ("say `merge_schema: true` here", 'say `"mergeSchema": "true"` here'),
        ("say `merge_keys` here", "say `mergeKeys` here"),
        ("or `mode: overwrite`", 'or `"writeMode": "Overwrite"`'),
        ("`duplicates: {keep: newest}`", "`duplicates: {keep: newest}`"),
        ("`change_feed: true`", '`"enableChangeDataFeed": "true"`'),
        ("use mode append or overwrite", "use writeMode Append or Overwrite"),
        ("mode ignore", "mode ignore"),
        ("a check and `on_fail: quarantine`", "a check and `on_fail: quarantine`"),
        ("my_column = 1", "my_column = 1"),
    ],
)
def test_options_are_spelled_as_the_file_spells_them(text: str, said: str) -> None:
    assert reworded(text, WORDS) == said
    assert reworded(text, {}) == text


def test_what_fails_before_spark_is_asked_speaks_so_too(desk: Workbench) -> None:
    source = {"sourceType": "Local", "connectionParams": {"format": "csv", "path": "nowhere"}}
    sink = {"sinkType": "DeltaLake", "connectionParams": {"path": "out", "mergeKeys": "id"}}
    classic = {"pipelineId": "p", "extract": source, "load": sink, "writeMode": "Upsert"}
    desk.write("pipelines/p.json", json.dumps(classic, indent=1))
    origin = desk.open().catalog("p").plans[0].pipeline.origin
    with pytest.raises(InputError) as caught, origin.wording():
        raise InputError("merge_keys are NULL", hint="say `partition_by`")
    assert (caught.value.message, caught.value.hint) == ("mergeKeys are NULL", "say `partitionBy`")
