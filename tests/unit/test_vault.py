"""Credentials: kept in one of six places, found by name, and never shown."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.errors
import pytest
from cryptography.fernet import Fernet

from deltaworks.config.cache import write_atomically
from deltaworks.config.credentials.cloud import CloudVault
from deltaworks.config.credentials.credential import Credential, parse_credential
from deltaworks.config.credentials.encrypted_file import FileVault
from deltaworks.config.credentials.environment import EnvironmentVault
from deltaworks.config.credentials.memory import MemoryVault
from deltaworks.config.credentials.system_keyring import KeyringVault
from deltaworks.config.credentials.vault import Backend, CanKeep, Vault
from deltaworks.config.project import load_project
from deltaworks.errors import DeltaworksError, MissingDependencyError
from deltaworks.redact import MASK, scrub

SECRET = "canary-77-secret"  # noqa: S105
LAKE = {"access_key": "AK-canary-77", "secret_key": SECRET, "region": "eu-1"}
KEY = {"DELTAWORKS_KEY": "a long passphrase"}


class Ring(keyring.backend.KeyringBackend):
    """A keyring in memory, as an operating system would offer one."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class LockedRing(Ring):
    """A keyring that nobody unlocked."""

    def get_password(self, service: str, username: str) -> str | None:
        raise keyring.errors.KeyringLocked("the collection is locked\nmore")


@pytest.fixture
def ring() -> Iterator[Ring]:
    before, mine = keyring.get_keyring(), Ring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


def file_vault(tmp_path: Path, environ: Mapping[str, str] = KEY) -> FileVault:
    path = tmp_path / "credentials.json"
    return FileVault(path, project="shop", key_variable="DELTAWORKS_KEY", environ=environ)


def lake(**more: Any) -> Credential:
    return parse_credential({**LAKE, **more}, name="lake")


def refused(do: Any) -> DeltaworksError:
    with pytest.raises(DeltaworksError) as caught:
        do()
    assert SECRET not in str(caught.value)
    return caught.value


def test_a_record_shows_no_secret_and_gives_it_on_request() -> None:
    record = lake(**{"options.fetchsize": "10"})
    assert SECRET not in repr(record) + str(record) + record.model_dump_json()
    assert record.secret("secret_key") == SECRET
    assert record.present() == ("access_key", "secret_key", "region", "options.fetchsize")
    assert record.secret("password") == ""
    assert scrub(f"{SECRET} AK-canary-77 eu-1") == f"{MASK} {MASK} eu-1"


def test_the_key_of_a_service_account_may_be_a_document() -> None:
    record = parse_credential({"service_account": {"private_key": "pk"}}, name="g")
    assert json.loads(record.secret("service_account")) == {"private_key": "pk"}


def test_secret_options_of_a_driver_are_hidden_too() -> None:
    parse_credential({"options": {"ssl.password": SECRET, "fetchsize": "10000"}}, name="db")
    assert scrub(f"{SECRET} 10000") == f"{MASK} 10000"


def test_a_wrong_field_is_named_with_the_right_one_and_without_its_value() -> None:
    error = refused(lambda: parse_credential({"pasword": SECRET}, name="db"))
    assert str(error).splitlines() == [
        'credential "db": there is no field "pasword"',
        '  fix: did you mean "password"?',
    ]
    error = refused(lambda: parse_credential({"port": "http", "password": SECRET}, name="db"))
    assert 'the value of "port" is wrong: it must be a valid integer' in str(error)


def test_the_environment_holds_records_and_fields() -> None:
    vault = EnvironmentVault(
        {
            "DELTAWORKS_CREDENTIAL__LAKE_EU": json.dumps({**LAKE, "region": "eu-9"}),
            "DELTAWORKS_CREDENTIAL__LAKE_EU__REGION": "eu-2",
            "DELTAWORKS_CREDENTIAL__LAKE_EU__NONSENSE": "x",
            "DELTAWORKS_CREDENTIAL__CRM__PASSWORD": SECRET,
            "HOME": "/",
        }
    )
    assert vault.names() == ("crm", "lake_eu")
    found = vault.get("lake-eu")
    assert found is not None
    assert (found.region, found.secret("secret_key")) == ("eu-2", SECRET)
    assert vault.has("Lake-EU")
    assert vault.get("lake") is None
    assert not isinstance(vault, CanKeep)


def test_a_variable_that_is_no_record_is_named_without_its_value() -> None:
    vault = EnvironmentVault({"DELTAWORKS_CREDENTIAL__LAKE": SECRET})
    error = refused(lambda: vault.get("lake"))
    assert "DELTAWORKS_CREDENTIAL__LAKE is not a JSON object" in str(error)


def kept_in(vault: Any) -> None:
    assert (vault.get("lake"), vault.names(), vault.has("lake")) == (None, (), False)
    vault.put("lake", lake())
    vault.put("crm", parse_credential({"user": "bob", "password": SECRET}, name="crm"))
    assert vault.get("lake") == lake()
    assert set(vault.names()) == {"lake", "crm"}
    vault.put("lake", lake(region="eu-2"))
    assert vault.get("lake").region == "eu-2"
    assert vault.remove("lake")
    assert not vault.remove("lake")
    assert (vault.get("lake"), vault.names()) == (None, ("crm",))


def test_every_place_that_keeps_keeps_replaces_and_forgets(tmp_path: Path, ring: Ring) -> None:
    places: list[Backend] = [file_vault(tmp_path), MemoryVault("kept"), KeyringVault("shop")]
    for place in places:
        assert isinstance(place, CanKeep)
        kept_in(place)
    assert ring.kept


def test_the_file_hides_its_records_from_everybody_and_its_bytes_from_others(
    tmp_path: Path,
) -> None:
    vault = file_vault(tmp_path)
    vault.put("lake", lake())
    text = vault.path.read_text(encoding="utf-8")
    assert SECRET not in text
    assert "lake" in text  # names may be seen
    assert vault.path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".lock")] == [
        ".credentials.json.lock"
    ]


def test_another_key_is_told_from_a_damaged_file(tmp_path: Path) -> None:
    vault = file_vault(tmp_path)
    vault.put("lake", lake())
    vault.put("crm", lake())
    wrong = file_vault(tmp_path, {"DELTAWORKS_KEY": "wrong-key-99"})
    assert wrong.names() == ("crm", "lake")
    error = refused(lambda: wrong.get("lake"))
    assert "was encrypted with another key" in str(error)
    assert refused(lambda: wrong.put("x", lake())).message == error.message
    document = json.loads(vault.path.read_text())
    document["credentials"]["lake"] = document["credentials"]["crm"]
    vault.path.write_text(json.dumps(document))
    assert "is damaged" in str(refused(lambda: vault.get("lake")))
    document["credentials"]["lake"] = "torn"
    vault.path.write_text(json.dumps(document))
    assert "is damaged" in str(refused(lambda: vault.get("lake")))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "x"}', '{"format": 1}', '"x"'])
def test_what_is_no_file_of_credentials_is_told_so(tmp_path: Path, text: str) -> None:
    vault = file_vault(tmp_path)
    vault.path.write_text(text)
    assert "is damaged, or is no file of credentials" in str(refused(vault.names))


def test_a_file_that_cannot_be_read_or_written_says_why(tmp_path: Path) -> None:
    vault = file_vault(tmp_path)
    vault.path.mkdir()
    error = refused(vault.names)
    assert (error.code, "cannot be read: Is a directory" in str(error)) == ("storage", True)
    (tmp_path / "file").write_text("")
    below = FileVault(
        tmp_path / "file" / "c.json", project="p", key_variable="DELTAWORKS_KEY", environ=KEY
    )
    assert "cannot be written: " in str(refused(lambda: below.put("lake", lake())))


def test_the_key_of_the_file_comes_from_the_keyring_when_no_variable_has_it(
    tmp_path: Path, ring: Ring
) -> None:
    vault = file_vault(tmp_path, {})
    vault.put("lake", lake())
    assert file_vault(tmp_path, {}).get("lake") == lake()
    ((key_name, key),) = ring.kept.items()
    assert key_name == ("deltaworks/shop", "file-key")
    assert scrub(key) == MASK
    ring.kept.clear()
    assert "the keyring has none" in str(refused(lambda: vault.get("lake")))


def test_without_a_key_anywhere_the_variable_is_named(tmp_path: Path) -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(LockedRing())
    try:
        error = refused(lambda: file_vault(tmp_path, {}).put("lake", lake()))
        locked = refused(lambda: KeyringVault("shop").get("lake"))
    finally:
        keyring.set_keyring(before)
    assert "DELTAWORKS_KEY is not set" in error.message
    assert "the collection is locked" in error.message
    assert error.hint == "set DELTAWORKS_KEY to a long passphrase, and keep it safe"
    assert locked.message == "the keyring of this system cannot be used: the collection is locked"


@pytest.mark.parametrize("package", ["cryptography", "keyring"])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    place: Any = file_vault(tmp_path) if package == "cryptography" else KeyringVault("shop")
    with pytest.raises(MissingDependencyError) as caught:
        place.put("lake", lake())
    assert f"needs the package {package}" in caught.value.message
    assert caught.value.hint == "pip install 'deltaworks[vault]'"


def test_the_first_place_that_has_a_name_wins() -> None:
    environ = {"DELTAWORKS_CREDENTIAL__LAKE__REGION": "from-env"}
    memory = MemoryVault("order")
    memory.put("lake", lake())
    memory.put("crm", lake())
    vault = Vault((EnvironmentVault(environ), memory))
    assert vault.get("lake").region == "from-env"
    assert vault.find("crm").backend == "memory"
    assert vault.names() == (("crm", "memory"), ("lake", "env"))
    assert vault.keeper().name == "memory"
    assert vault.remove("lake") == ("memory",)
    assert vault.get("lake").region == "from-env"


def test_an_unknown_name_is_told_with_the_right_one() -> None:
    memory = MemoryVault("names")
    vault = Vault((memory,))
    error = refused(lambda: vault.get("lake"))
    assert error.hint == "store it: deltaworks secrets set lake"
    memory.put("lake", lake())
    assert refused(lambda: vault.get("lakes")).hint == 'did you mean "lake"?'
    assert vault.problem("lakes") == ('there is no credential "lakes"', 'did you mean "lake"?')
    assert vault.problem("lake") is None
    assert "is not the name of a credential" in refused(lambda: vault.get("a/b")).message
    assert (vault.problem("a b") or ("",))[0] == '"a b" is not the name of a credential'


def test_cloud_names_no_secret_and_knows_every_name() -> None:
    vault = Vault((CloudVault(),))
    assert vault.get("anything") == Credential()
    assert vault.names() == ()
    assert vault.problem("anything") is None
    assert CloudVault().has("anything")
    error = refused(vault.keeper)
    assert "cannot be stored" in error.message
    assert 'backend "keyring"' in refused(lambda: vault.keeper("keyring")).message


def test_the_project_file_chooses_the_places(tmp_path: Path) -> None:
    def places(text: str) -> list[str]:
        (tmp_path / "deltaworks.yaml").write_text(f"project: shop\nwarehouse: w\n{text}")
        return [place.name for place in load_project(tmp_path, environ={}).vault.backends]

    assert places("") == ["env", "file"]
    assert places("credentials: {backend: cloud}\n") == ["cloud"]
    several = "credentials: [{backend: keyring}, {backend: hashicorp, folder: x}]\n"
    assert places(several) == ["keyring", "hashicorp"]
    with pytest.raises(DeltaworksError) as caught:
        places("credentials: {backend: fil}\n")
    assert 'did you mean "file"?' in str(caught.value)
    with pytest.raises(DeltaworksError) as caught:
        places("credentials: {backend: env, path: x}\n")
    assert '"path" is for the backend file, not env' in str(caught.value)


def test_a_file_of_credentials_lies_in_the_project(tmp_path: Path) -> None:
    text = "project: shop\nwarehouse: w\ncredentials: {backend: file, path: keys/c.json}\n"
    (tmp_path / "deltaworks.yaml").write_text(text)
    vault = load_project(tmp_path, environ=KEY).vault
    vault.keeper().put("lake", lake())
    assert (tmp_path / "keys" / "c.json").is_file()
    assert load_project(tmp_path, environ=KEY).vault.get("lake") == lake()


def first_format(vault: FileVault, **records: str) -> None:
    """A file as releases before this one wrote it."""
    salt = "5a17" * 8
    key = hashlib.scrypt(KEY["DELTAWORKS_KEY"].encode(), salt=salt.encode(), n=2**14, r=8, p=1)
    cipher = Fernet(base64.urlsafe_b64encode(key[:32]))
    kept = {
        name: json.dumps({"name": inside, "values": {"password": SECRET, "user": name}})
        for name, inside in records.items()
    }
    document = {
        "format": "deltaworks-credentials-1",
        "salt": salt,
        "check": cipher.encrypt(b"is this the key?").decode(),
        "credentials": {n: cipher.encrypt(text.encode()).decode() for n, text in kept.items()},
    }
    vault.path.write_text(json.dumps(document))


def stored(vault: FileVault) -> dict[str, Any]:
    return dict(json.loads(vault.path.read_text()))


def test_one_record_cannot_be_put_back_left_out_or_added(tmp_path: Path) -> None:
    vault = file_vault(tmp_path)
    vault.put("crm", lake(region="eu-1"))
    vault.put("lake", lake())
    old = stored(vault)
    vault.put("crm", lake(region="eu-2"))
    new = stored(vault)
    assert (old["revision"], new["revision"]) == (2, 3)
    rolled_back = {**new["credentials"], "crm": old["credentials"]["crm"]}
    without = {"crm": new["credentials"]["crm"]}
    added = {**new["credentials"], "other": new["credentials"]["lake"]}
    for changed in (
        {"credentials": rolled_back},
        {"credentials": without},
        {"credentials": added},
        {"revision": 2},
        {"seal": old["seal"]},
        {"seal": ""},
    ):
        vault.path.write_text(json.dumps({**new, **changed}))
        said = "is damaged: its records do not belong together"
        assert said in refused(lambda: vault.get("crm")).message
        assert said in refused(lambda: vault.put("x", lake())).message
        assert said in refused(lambda: vault.remove("crm")).message
        assert stored(vault) == {**new, **changed}
    vault.path.write_text(json.dumps(new))
    kept = vault.get("crm")
    assert kept is not None
    assert kept.region == "eu-2"


def test_a_file_of_the_first_format_opens_and_is_sealed_when_it_is_written(tmp_path: Path) -> None:
    vault = file_vault(tmp_path)
    first_format(vault, crm="crm", lake="lake")
    before = stored(vault)
    kept = vault.get("crm")
    assert kept is not None
    assert (kept.user, kept.secret("password")) == ("crm", SECRET)
    assert stored(vault) == before
    vault.put("new", lake())
    after = stored(vault)
    assert (after["format"], after["revision"]) == ("deltaworks-credentials-2", 1)
    assert after["scrypt"] == {"n": 2**17, "r": 8, "p": 1}
    assert after["salt"] != before["salt"]
    assert vault.get("crm") == kept
    assert vault.get("new") == lake()
    first_format(vault, crm="crm", lake="lake")
    assert vault.remove("lake")
    assert (stored(vault)["format"], vault.names()) == ("deltaworks-credentials-2", ("crm",))


def test_a_file_of_the_first_format_is_not_sealed_with_a_swapped_record(tmp_path: Path) -> None:
    vault = file_vault(tmp_path)
    first_format(vault, crm="lake", lake="lake")
    before = stored(vault)
    assert "is damaged" in refused(lambda: vault.put("new", lake())).message
    assert stored(vault) == before


@pytest.mark.parametrize(
    "cost",
    [{"n": 2**40}, {"n": 1000}, {"n": 2, "r": 0}, {"n": 2**17, "p": 99}, {"n": 2**17, "q": 1}, {}],
)
def test_a_file_cannot_ask_for_more_than_a_machine_has(
    tmp_path: Path, cost: dict[str, int]
) -> None:
    vault = file_vault(tmp_path)
    empty = {"salt": "s", "check": "c", "revision": 1, "credentials": {"a": "b"}, "seal": "x"}
    vault.path.write_text(
        json.dumps({"format": "deltaworks-credentials-2", "scrypt": cost, **empty})
    )
    assert "is damaged" in refused(lambda: vault.get("a")).message


def test_a_file_is_on_disk_before_its_name_and_its_name_before_we_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "kept.json"
    done: list[tuple[str, bool]] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        done.append((kind, target.exists()))
        if kind == "file":
            assert os.fstat(handle).st_size == len(b"content")
            assert stat.S_IMODE(os.fstat(handle).st_mode) == 0o600
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write_atomically(target, b"content", mode=0o600)
    assert done == [("file", False), ("folder", True)]
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]
