"""A record of Avro, as the sources of Kafka need to know it."""

from __future__ import annotations

import json

import pytest

from deltaworks.engines.spark.read.kafka import _avro_record
from deltaworks.errors import InputError


def record(**kinds: object) -> str:
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def test_a_record_of_nulls_has_bytes_of_its_own_where_all_may_be_null() -> None:
    assert _avro_record(record(a=["null", "long"], b=["string", "null"])) == (["a", "b"], b"\0\2")
    assert _avro_record(record(a="long")) == (["a"], None)


@pytest.mark.parametrize("schema", ["{", "[]", "{}", '{"fields": [1]}'])
def test_what_is_no_record_is_refused(schema: str) -> None:
    with pytest.raises(InputError, match="no record of Avro"):
        _avro_record(schema)
