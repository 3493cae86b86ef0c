"""`deltaworks secrets`: stores, lists, opens and removes, and never shows a value."""

from __future__ import annotations

import io
import json
import sys

import pytest
import typer

from tests.workbench import Answer, Workbench

SECRET = "canary-66-secret"  # noqa: S105


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTAWORKS_KEY", "a long passphrase")


def told(desk: Workbench, *words: str, code: int = 0) -> Answer:
    answer = desk.cli("secrets", *words)
    assert answer.code == code, answer.stdout + answer.stderr
    assert SECRET not in answer.stdout + answer.stderr
    return answer


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def stored(desk: Workbench, name: str) -> dict[str, object]:
    return desk.open().project_ctx.credential(name).values()


def test_a_credential_is_stored_changed_listed_opened_and_removed(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", SECRET)
    set_it = ("set", "lake", "region=eu-1", "--from-env", "secret_key=MY_SECRET")
    assert told(desk, *set_it).stdout == "lake: secret_key, region (file)\n"
    feed(monkeypatch, "the-access-key\n")
    told(desk, "set", "lake", "access_key", "region=", "--stdin")
    assert stored(desk, "lake") == {"access_key": "the-access-key", "secret_key": SECRET}
    assert told(desk, "list").stdout.split() == ["name", "backend", "lake", "file"]
    assert told(desk, "test", "lake").stdout == "lake (file): access_key, secret_key\n"
    shown = told(desk, "rm", "lake").stdout
    assert shown == "lake (file) would be removed; --apply removes it\n"
    assert stored(desk, "lake")
    assert told(desk, "rm", "lake", "--apply").stdout == "lake (file) is removed\n"
    assert told(desk, "list").stdout == "no credential is stored\n"
    assert (desk.root / "credentials.json").stat().st_mode & 0o777 == 0o600


def test_every_answer_has_a_json_form(desk: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, json.dumps({"user": "bob", "password": SECRET, "options": {"ssl": "on"}}))
    set_it = told(desk, "set", "crm", "--stdin", "--json").json
    fields = ["user", "password", "options.ssl"]
    assert set_it == {"name": "crm", "backend": "file", "fields": fields}
    assert told(desk, "test", "crm", "--json").json == set_it
    listed = told(desk, "list", "--json").json
    assert listed == {"credentials": [{"name": "crm", "backend": "file"}]}
    shown = told(desk, "rm", "crm", "--json").json
    assert shown == {"name": "crm", "applied": False, "backends": ["file"]}
    error = told(desk, "test", "crn", "--json", code=2).json["error"]
    assert error["hint"] == 'did you mean "crm"?'


def test_a_secret_on_the_command_line_is_refused(desk: Workbench) -> None:
    answer = told(desk, "set", "crm", "user=bob", f"password={SECRET}", code=2)
    assert '"password" is a secret, and others can read a command line' in answer.stderr
    told(desk, "set", "crm", f"options.ssl.password={SECRET}", code=2)
    assert told(desk, "list").stdout == "no credential is stored\n"


def test_a_field_is_asked_for_without_echo(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []

    def prompt(text: str, *, hide_input: bool, err: bool) -> str:
        assert err
        asked.append((text, hide_input))
        return SECRET if hide_input else "bob"

    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    told(desk, "set", "crm", "user", "password")
    assert asked == [("user", False), ("password", True)]
    assert stored(desk, "crm") == {"user": "bob", "password": SECRET}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "crm"), "say which fields the credential has"),
        (("set", "crm", "pasword"), 'a credential has no field "pasword"'),
        (("set", "crm", f"pasword={SECRET}"), 'did you mean "password"?'),
        (("set", "a/b", "user=x"), '"a/b" is not the name of a credential'),
        (("set", "crm", "password"), 'there is no terminal to ask for "password"'),
        (("set", "crm", "--from-env", "password=NOT_SET"), '"NOT_SET" is not set'),
        (("set", "crm", "user=x", "--backend", "keyring"), 'stored in backend "keyring"'),
        (("set", "crm", "port=http"), 'the value of "port" is wrong'),
        (("rm", "crm"), 'there is no credential "crm"'),
        (("test", "crm"), "store it: deltaworks secrets set crm"),
    ],
)
def test_a_mistake_gets_one_short_message(
    desk: Workbench, words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, "")
    assert message in told(desk, *words, code=2).stderr


@pytest.mark.parametrize("text", ["[1]", SECRET, '{"pasword": "canary-66-secret"}'])
def test_what_stdin_holds_is_not_repeated(
    desk: Workbench, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, text)
    answer = told(desk, "set", "crm", "--stdin", "--debug", code=2)
    assert text not in answer.stdout + answer.stderr


def test_the_wrong_key_and_a_torn_file_are_told(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, SECRET)
    told(desk, "set", "crm", "password", "--stdin")
    monkeypatch.setenv("DELTAWORKS_KEY", "another passphrase")
    assert "was encrypted with another key" in told(desk, "test", "crm", code=2).stderr
    desk.write("credentials.json", "{")
    assert "is damaged" in told(desk, "list", code=2).stderr


def test_a_cloud_identity_has_no_field(desk: Workbench) -> None:
    desk.write("deltaworks.yaml", "project: p\nwarehouse: w\ncredentials: {backend: cloud}\n")
    assert "the cloud's own identity is used" in told(desk, "test", "x").stdout
