"""Secrets are known by their values, and no spelling of one gets out."""

from __future__ import annotations

import base64
import html
import json
import random
import string
import time
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaworks.redact import (
    MASK,
    forget_secrets,
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


@pytest.mark.parametrize(
    "text",
    [
        "the password is postgres.",
        "no such user: postgres...",
        json.dumps({"said": "who?\npostgres\nfatal"}),
        repr("who?\tpostgres\r\nfatal"),
    ],
)
def test_a_password_that_is_a_word_is_found_at_the_end_of_a_sentence_or_line(text: str) -> None:
    know_secret("postgres")
    assert "postgres" not in scrub(text)


def test_a_run_of_backslashes_costs_no_more_than_other_text() -> None:
    know_secret("canary-99-secret")
    start = time.perf_counter()
    assert scrub("\\" * 200_000)
    assert time.perf_counter() - start < 2


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


def in_json(text: str, levels: int) -> str:
    return text if levels == 0 else in_json(json.dumps(text), levels - 1)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "XML": html.escape,
    "XML in XML": lambda s: html.escape(html.escape(s)),
    "numbers of XML": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "repr": lambda s: repr(s)[1:-1],
    "ascii": lambda s: ascii(s)[1:-1],
    "repr of bytes": lambda s: repr(s.encode())[2:-1],
    "libpq": lambda s: s.replace("'", "\\'").replace('"', '\\"'),
    "SQL": lambda s: s.replace("'", "''"),
    "CSV": lambda s: s.replace('"', '""'),
    "a shell": lambda s: s.replace("'", "'\\''"),
    "JSON": lambda s: in_json(s, 1),
    "JSON in JSON": lambda s: in_json(s, 2),
    "four levels of JSON": lambda s: in_json(s, 4),
    "JSON in a URL": lambda s: quote(in_json(s, 1), safe=""),
    "JSON in XML": lambda s: html.escape(in_json(s, 1)),
    "Java": lambda s: "".join(c if c.isascii() else f"\\u{ord(c):04X}" for c in s),
    "all of it in a URL": lambda s: "".join(f"%{b:02x}" for b in s.encode()),
    "half of it in a URL": lambda s: s[:4] + "".join(f"%{b:02X}" for b in s[4:].encode()),
    "a URL in a URL": lambda s: quote(quote(s, safe=""), safe=""),
    "a form": quote_plus,
    "hex": lambda s: s.encode().hex(),
    "capital hex": lambda s: s.encode().hex().upper(),
    "a terminal without its letters": lambda s: s.encode("ascii", "replace").decode(),
    "the wrong letters": lambda s: s.encode().decode("latin-1"),
    "hex with colons": lambda s: s.encode().hex(":"),
    "a dump in hex": lambda s: s.encode().hex(" "),
    "bytes of Java": lambda s: ", ".join(f"0x{b:02X}" for b in s.encode()),
    "a list of bytes": lambda s: str(list(s.encode())),
    "a list of letters": ", ".join,
    "two bytes for a letter": lambda s: base64.b64encode(s.encode("utf-16-le")).decode(),
    "two bytes for a letter, in hex": lambda s: s.encode("utf-16-be").hex(),
    "JSON in base64": lambda s: base64.b64encode(json.dumps({"p": s}).encode()).decode(),
    "a form in base64": lambda s: base64.b64encode(f"p={quote_plus(s)}".encode()).decode(),
    "letters taken apart": lambda s: unicodedata.normalize("NFD", s),
    "eight digits for a letter": lambda s: "".join(f"\\U{ord(c):08x}" for c in s),
    "braces around a letter": lambda s: "".join(f"\\u{{{ord(c):x}}}" for c in s),
    "colours of a terminal": lambda s: f"{s[:4]}\x1b[31m{s[4:]}\x1b[0m",
    "wrapped": lambda s: f"{s[:5]}\n    {s[5:]}",
    "wrapped in a shell": lambda s: f"{s[:5]}\\\n{s[5:]}",
}


@pytest.mark.parametrize(
    "secret", ["p&ss<W0rd>9", "pa's\"s-W0rd 9", "päßW0rd-9+", "plain-S3cret-77"]
)
@pytest.mark.parametrize("how", SPELLINGS)
def test_a_secret_is_found_in_whatever_spells_it(how: str, secret: str) -> None:
    know_secret(secret)
    said = scrub(f"before {SPELLINGS[how](secret)} after")
    assert MASK in said
    assert not any(secret[i : i + 5] in said for i in range(len(secret) - 4))
    assert holds_secret(SPELLINGS[how](secret))


@given(
    secret=st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=12
    ),
    ways=st.lists(st.sampled_from([html.escape, quote, lambda s: in_json(s, 1)]), max_size=3),
)
@settings(max_examples=150, deadline=None)
def test_no_text_hides_a_secret_by_escapes_on_top_of_each_other(
    secret: str, ways: list[Callable[[str], str]]
) -> None:
    forget_secrets()
    secret = f"k3y-{secret.strip()}-9"
    know_secret(secret)
    text = secret
    for way in ways:
        text = way(text)
    assert holds_secret(f"({text})")
    assert scrub(f"({text})") != f"({text})"


@given(st.binary(max_size=9), st.binary(max_size=90), st.integers(20, 76))
@settings(max_examples=100, deadline=None)
def test_base64_hides_it_nowhere_in_a_longer_text(before: bytes, after: bytes, width: int) -> None:
    know_secret("canary-99-secret")
    whole = base64.b64encode(before + b"canary-99-secret" + after).decode()
    text = "\n".join(whole[i : i + width] for i in range(0, len(whole), width))
    assert MASK in scrub(text)
    assert holds_secret(text)


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        ("got plain-S3cret", "got ***"),
        ("got plain-S3c... and so on", "got ***... and so on"),
        ("got 'plain-S3cr' ", "got '***' "),
        ("one plain-S3cr\ntwo", "one ***\ntwo"),
        ("S3cret-77 was the rest", "*** was the rest"),
        ("from ...n-S3cret-77", "from ...***"),
        ("a plain-old text", "a plain-old text"),
    ],
)
def test_a_secret_that_was_cut_is_one_as_far_as_it_goes(cut: str, said: str) -> None:
    know_secret("plain-S3cret-77")
    assert scrub(cut) == said
    assert not holds_secret("got plain-S3cret")  # half of one is no reason to refuse a path


def test_a_long_secret_is_found_in_lines_that_are_written_one_by_one() -> None:
    token = "eyJ" + "".join(f"{n:x}Qz_" for n in range(100, 140))
    know_secret(token)
    lines = [token[i : i + 29] for i in range(0, len(token), 29)]
    assert [scrub(f"  {line}\n") for line in lines] == [f"  {MASK}\n"] * len(lines)


@pytest.mark.parametrize("value", ["true", "1", "dev", "Production", "password", "localhost"])
def test_common_words_are_no_secrets_unless_the_user_says_so(value: str) -> None:
    know_secret(value)
    assert scrub(f"it is {value} here") == f"it is {value} here"
    know_secret(value, marked=True)
    hidden = len(value) > 2
    assert (scrub(f"it is {value} here") == f"it is {MASK} here") is hidden


def test_a_document_stays_what_it_is_without_its_secrets() -> None:
    know_secret('"quoted-S3cret-9"', "p&ss<W0rd>9")
    text = json.dumps({"plan": '"quoted-S3cret-9" p&ss<W0rd>9\n', "n": [1, 2]})
    assert json.loads(scrub(text)) == {"plan": "*** ***\n", "n": [1, 2]}


def test_a_long_log_is_read_as_quickly_with_many_secrets_as_with_few() -> None:
    words = random.Random(1)  # noqa: S311 - the same text at every run
    log = "".join(
        f'INFO stage {words.random()} finished: "{words.random()}"\n' for _ in range(2000)
    )

    def seconds() -> float:
        started = time.process_time()
        assert scrub(log) == log
        return time.process_time() - started

    know_secret("first-S3cret-of-all")
    few = min(seconds() for _ in range(3))
    letters = string.ascii_letters + string.digits
    know_secret(*("".join(words.choices(letters, k=24)) for _ in range(100)))
    scrub(log)
    assert min(seconds() for _ in range(3)) < max(40 * few, 1.0)
