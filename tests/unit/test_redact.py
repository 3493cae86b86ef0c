"""Secrets are known by their values, and no spelling of one gets out."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from deltaworks.redact import (
    MASK,
    holds_secret,
    know_secret,
    scrub,
    scrub_document,
)

CANARY = 'c4nary+/"9 ä=%x'


@pytest.mark.parametrize(
    "spelled",
    [
        CANARY,
        quote(CANARY, safe=""),
        quote(CANARY),
        quote_plus(CANARY),
        quote(quote(CANARY, safe=""), safe=""),
        quote(CANARY, safe="").lower(),
        json.dumps(CANARY)[1:-1],
        json.dumps(CANARY, ensure_ascii=False)[1:-1],
    ],
)
def test_no_spelling_of_a_secret_gets_out(spelled: str) -> None:
    know_secret(CANARY)
    assert scrub(f"a{spelled}b") == f"a{MASK}b"
    assert holds_secret(spelled)


@pytest.mark.parametrize("before", ["", "u:", "us:", "user:"])
def test_base64_of_a_secret_and_its_neighbours_does_not_get_out(before: str) -> None:
    know_secret("canary-99-secret")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(f"{before}canary-99-secret@host".encode()).decode()
        assert MASK in scrub(text)
        assert not any(text[i : i + 12] in scrub(text) for i in range(4, 20))


def test_every_line_of_a_long_secret_is_one() -> None:
    know_secret("-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----")
    assert scrub("log: MIIEvQIBADANBg") == f"log: {MASK}"


def test_what_is_not_known_stays() -> None:
    know_secret("canary-99-secret")
    assert scrub("a harmless text") == "a harmless text"
    assert not holds_secret("a harmless text")


def test_a_password_that_is_a_word_leaves_names_and_paths_alone() -> None:
    know_secret("orders")
    assert scrub("the password is orders") == f"the password is {MASK}"
    assert scrub("data/orders.csv, orders_daily") == "data/orders.csv, orders_daily"
    assert not holds_secret("orders")


def test_very_short_values_are_left_alone() -> None:
    know_secret("abc", "", "   ")
    assert scrub("abcdef abc") == "abcdef abc"


def test_a_password_in_a_url_needs_not_be_known() -> None:
    assert scrub("at https://bob:hunter2@host/x") == f"at https://{MASK}@host/x"
    assert scrub("at https://host:80/x@y") == "at https://host:80/x@y"


def test_documents_are_scrubbed_in_their_texts_and_keys_only() -> None:
    know_secret("12345678", "canary-99-secret")
    document = {"n": 12345678, "a": ["canary-99-secret", ("x",)], "canary-99-secret": None}
    assert scrub_document(document) == {"n": 12345678, "a": [MASK, ["x"]], MASK: None}
