"""The object client's errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from deltaworks.errors import StorageError

_CODE = re.compile(r"<Code>(\w+)</Code>")
_REASONS = (
    ("NoSuchBucket", "the bucket does not exist", "make the bucket, or correct its name"),
    ("SignatureDoesNotMatch", "the secret key is wrong", "correct the credential of the bucket"),
    ("InvalidAccessKeyId", "the access key is not known there", "correct the credential"),
    ("AccessDenied", "this credential may not do that", "give it the right, or use another one"),
    ("403 Forbidden", "this credential may not do that", "give it the right, or use another one"),
    ("InternalError", "the store has a problem of its own", "try again later"),
    ("ServiceUnavailable", "the store is busy", "try again later"),
    ("SlowDown", "the store is busy", "try again later"),
    ("onnection refused", "nothing listens there", "start the store, or correct `endpoint`"),
    ("ConnectionRefused", "nothing listens there", "start the store, or correct `endpoint`"),
    ("dns error", "its address is not known", "correct `endpoint` or `region`"),
    ("TimedOut", "it does not answer in time", "try again later, or look at the network"),
    ("timed out", "it does not answer in time", "try again later, or look at the network"),
    ("error sending request", "it cannot be reached", "look at the network, or at `endpoint`"),
)


@contextmanager
def reaching(location: str) -> Iterator[None]:
    """Whatever the client raises inside becomes one of our errors; a missing object stays one."""
    from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise unreachable(location, str(error)) from error
        raise
    except (BaseError, OSError) as error:
        raise unreachable(location, str(error)) from error


def unreachable(location: str, text: str) -> StorageError:
    """The error for a store that does not do what is asked, with the reason it gives."""
    for mark, reason, hint in _REASONS:
        if mark in text:
            return StorageError(f'"{location}" cannot be used: {reason}', hint=hint)
    told = _CODE.search(text)
    lines = (line.strip() for line in text.splitlines())
    first = told[1] if told else next((line for line in lines if line), "unknown error")
    return StorageError(f'"{location}" cannot be used: {first[:200]}')
