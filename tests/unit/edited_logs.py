"""Tables that other writers made, by changing what a first commit says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Edit = Callable[[dict[str, Any]], None]


def edit_log(table: Path, edit: Edit) -> None:
    """Change what the first commit of a table says."""
    log = table / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        edit(action)
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def with_feature(action: dict[str, Any]) -> None:
    if "protocol" in action:
        action["protocol"] = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["variantType"],
            "writerFeatures": ["variantType"],
        }


def with_mapping(action: dict[str, Any]) -> None:
    if "protocol" in action:
        action["protocol"] |= {"minReaderVersion": 2, "minWriterVersion": 5}
    if "metaData" in action:
        action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
        schema = json.loads(action["metaData"]["schemaString"])
        for n, field in enumerate(schema["fields"]):
            field["metadata"]["delta.columnMapping.id"] = n + 1
            field["metadata"]["delta.columnMapping.physicalName"] = field["name"]
        action["metaData"]["schemaString"] = json.dumps(schema)


def with_note(name: str, value: object) -> Edit:
    def edit(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"][0]["metadata"][name] = value
            action["metaData"]["schemaString"] = json.dumps(schema)

    return edit
