"""One signed request to an S3 store, and what its answer says of the credentials.

AWS Signature Version 4, path style. The request deletes an object that never exists: with valid
credentials nothing changes, and it needs a right to write.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from yarl import URL

from hudi_operator.model.store_access import Credentials, StoreAnswer, Verdict

NEVER = ".hoodie/.hudi-operator-never-exists"
"""Below the table's path; nothing ever writes it."""
_REFUSALS = ("InvalidAccessKeyId", "AccessDenied", "ExpiredToken", "InvalidToken", "InvalidClientTokenId")
"""Codes of S3 by which a store refuses an identity. A wrong signature or clock is not among them:
it is a fault of the request.
"""
_EMPTY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Signed:
    """A request that is ready to be sent."""

    url: str
    headers: dict[str, str] = field(repr=False)


def signed(credentials: Credentials, *, endpoint: str, region: str, path: str, now: datetime | None = None) -> Signed:
    """DELETE of the object that never exists, below ``path`` (``s3a://BUCKET/DIRECTORY``)."""
    at = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    base = endpoint.rstrip("/")
    name = f"{path.partition('://')[2].rstrip('/')}/{NEVER}"
    where = urlsplit(base)
    resource = quote(f"{where.path}/{name}", safe="/-_.~")
    headers = {"host": where.netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": at}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"DELETE\n{resource}\n\n{lines}\n{names}\n{_EMPTY}"
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in (at[:8], region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return Signed(f"{where.scheme}://{where.netloc}{resource}", headers)


def exactly(url: str) -> URL:
    """The URL as it was signed: nothing is quoted again."""
    return URL(url, encoded=True)


def judge(status: int, body: bytes) -> StoreAnswer:
    """Verdict on the credentials that follows from an answer of the store."""
    found = re.search(rb"<Code>([A-Za-z]{1,64})</Code>", body)
    code = found.group(1).decode() if found else ""
    told = f"{status} {code}".strip()
    if status in (200, 204) or (status == 404 and code == "NoSuchKey"):
        return StoreAnswer(Verdict.ACCEPTED, told)
    if status in (400, 401, 403) and code in _REFUSALS:
        return StoreAnswer(Verdict.REFUSED, told)
    return StoreAnswer(Verdict.UNKNOWN, told)
