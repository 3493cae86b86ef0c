"""`run --select`: pipelines by name, by tag, and with what is before or after them."""

from __future__ import annotations

import pytest

from deltaworks.errors import ConfigError
from deltaworks.pipeline.selection import selected
from tests.workbench import Workbench

COPY = "extract: {type: delta, table: %s}\nload: {type: delta, table: %s}\n"


@pytest.fixture
def shop(desk: Workbench) -> Workbench:
    """raw -> clean -> sums and clean -> mail; alone is beside them."""
    desk.pipeline("raw", "tags: [daily, ingest]\n" + COPY % ("outside", "raw"))
    desk.pipeline("clean", "tags: daily\n" + COPY % ("raw", "clean"))
    desk.pipeline("sums", "tags: [weekly]\n" + COPY % ("clean", "sums"))
    desk.pipeline("mail", COPY % ("clean", "mail"))
    desk.pipeline("alone", COPY % ("other", "alone"))
    return desk


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", {"raw", "clean", "sums", "mail", "alone"}),
        ("*a*", {"raw", "clean", "mail", "alone"}),
        ("clean", {"clean"}),
        ("+clean", {"raw", "clean"}),
        ("clean+", {"clean", "sums", "mail"}),
        ("+clean+", {"raw", "clean", "sums", "mail"}),
        ("+sums", {"raw", "clean", "sums"}),
        ("tag:daily", {"raw", "clean"}),
        ("tag:week*", {"sums"}),
        ("+tag:weekly", {"raw", "clean", "sums"}),
        ("tag:ingest+", {"raw", "clean", "sums", "mail"}),
        ("alone,tag:weekly", {"alone", "sums"}),
        ("alone, mail", {"alone", "mail"}),
    ],
)
def test_a_pattern_selects_by_name_tag_and_graph(
    shop: Workbench, pattern: str, names: set[str]
) -> None:
    assert set(selected(shop.open().catalog(), pattern)) == names


def test_what_is_selected_is_in_the_order_to_run_it(shop: Workbench) -> None:
    found = selected(shop.open().catalog(), "+sums+")
    assert found == ("raw", "clean", "sums")


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("claen", 'no pipeline matches "claen"', 'did you mean "clean"?'),
        ("+claen+", 'no pipeline matches "+claen+"', 'did you mean "clean"?'),
        ("tag:dayly", 'no pipeline matches "tag:dayly"', 'did you mean "tag:daily"?'),
        ("clean,zzz", 'no pipeline matches "zzz"', "available: "),
    ],
)
def test_a_pattern_without_a_match_is_refused(
    shop: Workbench, pattern: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        selected(shop.open().catalog(), pattern)
    assert refused.value.message == message
    assert refused.value.hint.startswith(hint)


def test_pipelines_that_read_each_other_are_selected_once(desk: Workbench) -> None:
    desk.pipeline("one", COPY % ("b", "a"))
    desk.pipeline("two", COPY % ("a", "b"))
    assert set(selected(desk.open().catalog(), "+one+")) == {"one", "two"}


@pytest.mark.parametrize("tags", ["[a b]", "[1]", "{a: 1}", "[a, a]", "['']"])
def test_wrong_tags_are_refused(desk: Workbench, tags: str) -> None:
    desk.pipeline("p", f"tags: {tags}\n" + COPY % ("a", "b"))
    (found,) = desk.cli("validate", "--json").json["problems"]
    assert (found["line"], found["code"]) == (2, "wrong_value")
    assert '"tags"' in found["message"]


def test_a_tag_changes_no_fingerprint(desk: Workbench) -> None:
    desk.pipeline("p", COPY % ("a", "b"))
    before = desk.open().catalog().plans[0].pipeline.fingerprint()
    desk.pipeline("p", "tags: [daily]\n" + COPY % ("a", "b"))
    plan = desk.open().catalog().plans[0]
    assert (plan.pipeline.tags, plan.pipeline.fingerprint()) == (("daily",), before)
