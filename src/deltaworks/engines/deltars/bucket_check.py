"""A look into a bucket or container, by delta-rs and as delta-rs would: no JVM is needed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from deltaworks.config.object_stores import StoreAccess, store_place
from deltaworks.errors import StorageError
from deltaworks.model.probe import Reason
from deltaworks.storage.engine_options import delta_rs_options
from deltaworks.storage.tcp_check import unreached

_QUICK = {"timeout": "20s", "connect_timeout": "10s", "max_retries": "0", "retry_timeout": "20s"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CODE = re.compile(r"<Code>(\w+)</Code>|\"(?:code|error)\"\s*:\s*\"(\w+)\"")
_STATUS = re.compile(r"\b(40[134])\b (?:Unauthorized|Forbidden|Not Found)")
_METADATA = ("169.254.169.254", "metadata.google.internal", "IMDS")
_BY_CODE: Mapping[str, Reason] = {
    **dict.fromkeys(("NoSuchBucket", "ContainerNotFound"), "missing_bucket"),
    **dict.fromkeys(
        (
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "ExpiredToken",
            "InvalidToken",
            "AuthenticationFailed",
            "invalid_client",
            "invalid_grant",
        ),
        "auth",
    ),
    **dict.fromkeys(
        ("AccessDenied", "AuthorizationFailure", "AuthorizationPermissionMismatch"),
        "no_permission",
    ),
}
_BY_STATUS: Mapping[str, Reason] = {
    "401": "auth",
    "403": "no_permission",
    "404": "missing_bucket",
}
_BY_WORDS: tuple[tuple[str, Reason], ...] = (
    ("dns error", "dns"),
    ("Connection refused", "refused"),
    ("timed out", "timeout"),
    ("certificate", "tls"),
    ("corrupt message", "tls"),
    ("handshake", "tls"),
)
_HINTS: Mapping[Reason, str] = {
    "dns": "correct `endpoint` in `storage`, or the region",
    "refused": "start the server, or correct `endpoint` in `storage`",
    "timeout": "check `endpoint`, and that no firewall is in between",
    "tls": "check that `endpoint` speaks https, and trust its certificate: SSL_CERT_FILE",
    "auth": "correct the keys: deltaworks secrets set NAME access_key secret_key",
    "missing_bucket": "make the bucket, or correct its name and region",
    "no_permission": "let this key list the bucket",
}
_SAYINGS: Mapping[Reason, str] = {
    "dns": "there is no machine of that name",
    "refused": "nothing listens there",
    "timeout": "it does not answer in time",
    "tls": "there is no TLS that can be trusted",
    "auth": "the keys are not accepted",
    "missing_bucket": "there is no such bucket",
    "no_permission": "the key is right, and may not list it",
}


def first_key(location: str, access: StoreAccess) -> str:
    """The first key at a location, empty when there is none; or the reason it cannot be listed."""
    from deltalake.exceptions import DeltaError
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import FileSelector

    options = {**_QUICK, **delta_rs_options(access)}
    try:
        handler = DeltaStorageHandler(_spelled(location), options)
        listed = handler.get_file_info_selector(FileSelector("", allow_not_found=True))
    except (OSError, ValueError, DeltaError) as problem:
        raise refusal(location, str(problem), access) from problem
    return next((info.path for info in listed), "")


def refusal(location: str, said: str, access: StoreAccess) -> StorageError:
    """Why a store turns a request down, from what delta-rs says about it."""
    said = _COLOURS.sub("", said)
    if any(place in said for place in _METADATA):
        return unreached(
            "auth",
            f'"{location}": no keys were found, and this machine has no identity of the cloud',
            "name a `credential` in `storage`, or set the cloud's environment variables",
        )
    code = next((first or second for first, second in _CODE.findall(said)), "")
    reason = _reason(code, said)
    if reason == "other":
        return unreached(reason, f'"{location}" cannot be listed: {code or _last_words(said)}')
    where = f" at {endpoint}" if (endpoint := access.values.get("endpoint")) else ""
    named = f" ({code})" if code else ""
    return unreached(reason, f'"{location}"{where}: {_SAYINGS[reason]}{named}', _HINTS[reason])


def _reason(code: str, said: str) -> Reason:
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status := _STATUS.search(said):
        return _BY_STATUS[status[1]]
    return next((reason for words, reason in _BY_WORDS if words in said), "other")


def _last_words(said: str) -> str:
    """The innermost cause, which delta-rs tells last."""
    lines = [line.strip().lstrip("↳ ") for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason was given"


def _spelled(location: str) -> str:
    """A location in a scheme that delta-rs knows."""
    place = store_place(location)
    assert place is not None
    kind, bucket, rest = place
    return f"s3://{bucket}{rest}" if kind == "s3" else location
