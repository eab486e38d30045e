"""Required contents of the Secrets with etcd's certificates.

A certificate authority is replaced in three steps, so that nobody is ever shown a certificate that
it does not trust:

1. *introduced*: the next authority is made and added to every bundle (``ca.crt``). It signs
   nothing.
2. *signing*: when every member of etcd has been seen to accept a certificate of the next authority,
   and clients have had ``trust_seconds`` to read the bundle, it signs all certificates. The
   previous one is still trusted.
3. *retired*: when no certificate of the previous authority can be valid any more, it leaves the
   bundles.

The Secret of the authority holds all that is needed to go on after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import BadCertificate, KeyPair, Request

BUNDLE, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
NEXT_CERTIFICATE, NEXT_KEY, PREVIOUS = "next.crt", "next.key", "previous.crt"
SIGNING_SINCE = "hudioperator.io/signing-since"
"""Annotation: since when the present authority signs."""
TRUSTED_SINCE = "hudioperator.io/trusted-since"
"""Annotation: when the bundle was changed last. Members of etcd that started before are restarted:
etcd reads its certificate for each connection, but the bundle only when it starts.
"""
ROTATE = "hudioperator.io/rotate"
"""Annotation that a person sets, to any new value, to have the authority replaced now."""
ROTATED = "hudioperator.io/rotated"
"""Annotation: the value of ROTATE that has been obeyed."""
RENEW_BELOW = 1 / 3
"""The part of a certificate's life at which it is renewed."""

USERS = {"server": "hudi-operator-etcd", "operator": "hudi-operator", "gateway": "hudi-gateway", "root": "root"}
"""Identity to the common name of its certificate."""


@dataclass(frozen=True)
class Settings:
    """Names and durations, in seconds."""

    name: str
    """Name of the StatefulSet and the Service of etcd; Secrets are called ``<name>-<identity>``."""
    namespace: str
    members: int = 1
    gateway: str = "hudi-operator-gateway"
    """Name of the StatefulSet and the Service of the gateway, which pods see in the place of etcd.
    """
    authority_seconds: int = 5 * 365 * 86400
    server_seconds: int = 30 * 86400
    client_seconds: int = 7 * 86400
    trust_seconds: int = 3600
    """Seconds for which the next authority is trusted but does not sign, so that every client has
    read the bundle.
    """

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the server.

        Each member by the name of its Service, which clients use, and by its own, with which etcd
        compares its peers. Three, however many members there are, so that a change of their
        number is no change here.
        """
        service = f"{self.name}.{self.namespace}.svc"
        return (
            "localhost",
            self.name,
            f"{self.name}.{self.namespace}",
            service,
            *(f"{self.name}-{number}.{self.namespace}.svc" for number in range(3)),
            *(f"{self.name}-{number}.{service}" for number in range(3)),
        )

    @property
    def gateway_hosts(self) -> tuple[str, ...]:
        """Names of the Services of the gateway's replicas, as many as there may be."""
        return tuple(f"{self.gateway}-{number}.{self.namespace}.svc" for number in range(9))

    def request(self, identity: str) -> Request:
        """Required contents of the certificate of an identity."""
        if identity == "server":
            return Request(USERS[identity], self.server_seconds, names=self.hosts, addresses=("127.0.0.1",))
        if identity == "gateway":
            # It is shown to etcd, as a client, and to pods, as a server.
            return Request(USERS[identity], self.client_seconds, names=self.gateway_hosts)
        return Request(USERS[identity], self.client_seconds)

    def secret(self, identity: str) -> str:
        """Name of an identity's Secret; ``ca`` is the authority."""
        return f"{self.name}-{identity}"


@dataclass(frozen=True)
class Stored:
    """One Secret: its data, and of its annotations ours."""

    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """Required Secrets, by identity, and the next step as a text."""

    secrets: Mapping[str, Stored]
    note: str = ""
    ask_members: bool = False
    """Whether the next step needs to know that all members accept the next authority."""


def plan(
    settings: Settings, found: Mapping[str, Stored], now: datetime, *, members_accept_next: bool = False
) -> Wanted:
    """The Secrets as they must be; one that is already right is returned as it was found.

    ``found`` has the Secrets that exist, by identity, ``ca`` among them. Raises BadCertificate for
    an authority that cannot be read: making another one would lock everybody out.
    """
    ca, note, ask = _authority(settings, found, now, members_accept_next=members_accept_next)
    present = KeyPair(ca.data[CERTIFICATE], ca.data[KEY])
    wanted = {"ca": ca}
    for identity in USERS:
        wanted[identity] = _leaf(settings.request(identity), found.get(identity), present, ca.data[BUNDLE], now)
    return Wanted(wanted, note, ask)


def next_authority(ca: Stored) -> KeyPair | None:
    """The authority that is introduced; None when there is none."""
    if NEXT_CERTIFICATE not in ca.data or NEXT_KEY not in ca.data:
        return None
    return KeyPair(ca.data[NEXT_CERTIFICATE], ca.data[NEXT_KEY])


def trusted_since(ca: Stored) -> datetime | None:
    """Members of etcd that are older do not know the present bundle; None: all do."""
    return _time(ca.annotations.get(TRUSTED_SINCE))


def _authority(
    settings: Settings, found: Mapping[str, Stored], now: datetime, *, members_accept_next: bool
) -> tuple[Stored, str, bool]:
    """The authority's Secret after at most one step, a note, and whether to ask members."""
    ca = found.get("ca")
    if ca is None:
        return _first(settings, found, now), "made an authority", False
    try:
        present = KeyPair(ca.data[CERTIFICATE], ca.data[KEY])
    except KeyError as error:
        raise BadCertificate(f"no {error.args[0]}") from error
    authority.check(present)
    following = next_authority(ca)
    left = authority.remaining(present.certificate, now)
    asked = ca.annotations.get(ROTATE, "")
    if left == 0:
        # Nobody accepts it any more, and it can sign nothing: waiting only lengthens the outage.
        return _bundled(_promoted(ca, following or _made(settings, now), now), now), "the authority had ended", False
    if following is None and (left < RENEW_BELOW or asked != ca.annotations.get(ROTATED, "")):
        made = _made(settings, now)
        data = {**ca.data, NEXT_CERTIFICATE: made.certificate, NEXT_KEY: made.key}
        annotations = {**ca.annotations, ROTATED: asked}
        return _bundled(Stored(data, annotations), now), "made the next authority", False
    if following is not None:
        begin = authority.validity(following.certificate)[0] + authority.BACKDATE
        if now < begin + timedelta(seconds=settings.trust_seconds):
            return _bundled(ca, now), "the next authority is trusted, and signs when all clients know it", False
        if not members_accept_next:
            return _bundled(ca, now), "the next authority waits for every member of etcd to accept it", True
        return _bundled(_promoted(ca, following, now), now), "the next authority signs now", False
    return _bundled(_without_previous(settings, ca, now), now), "", False


def _made(settings: Settings, now: datetime) -> KeyPair:
    return authority.make_authority(f"{settings.name} CA", seconds=settings.authority_seconds, now=now)


def _promoted(ca: Stored, following: KeyPair, now: datetime) -> Stored:
    """The next authority signs; the trusted ones stay: replacements may follow each other."""
    trusted = authority.bundle([ca.data[CERTIFICATE], ca.data.get(PREVIOUS, b"")])
    data = {CERTIFICATE: following.certificate, KEY: following.key, PREVIOUS: trusted, BUNDLE: ca.data.get(BUNDLE, b"")}
    return Stored(data, {**ca.annotations, SIGNING_SINCE: _text(now)})


def _first(settings: Settings, found: Mapping[str, Stored], now: datetime) -> Stored:
    """A new authority.

    When its Secret was lost, the authorities that the other Secrets trust stay trusted until their
    certificates have ended: clients keep their access to an etcd that has read the new bundle.
    """
    made = _made(settings, now)
    before = authority.bundle(stored.data.get(BUNDLE, b"") for stored in found.values())
    data = {CERTIFICATE: made.certificate, KEY: made.key, **({PREVIOUS: before} if before else {})}
    data[BUNDLE] = _bundle(data)
    annotations = {SIGNING_SINCE: _text(now), **({TRUSTED_SINCE: _text(now)} if before else {})}
    return Stored(data, annotations)


def _without_previous(settings: Settings, ca: Stored, now: datetime) -> Stored:
    since = _time(ca.annotations.get(SIGNING_SINCE))
    longest = timedelta(seconds=max(settings.server_seconds, settings.client_seconds))
    if PREVIOUS not in ca.data or since is None or now < since + longest:
        return ca
    return replace(ca, data={name: value for name, value in ca.data.items() if name != PREVIOUS})


def _bundled(ca: Stored, now: datetime) -> Stored:
    """With the bundle that belongs to what it holds; a new one is dated."""
    bundle = _bundle(ca.data)
    if ca.data.get(BUNDLE) == bundle:
        return ca
    # The order of a bundle means nothing: nobody has to be restarted for it.
    same = set(authority.split(ca.data.get(BUNDLE, b""))) == set(authority.split(bundle))
    annotations = ca.annotations if same else {**ca.annotations, TRUSTED_SINCE: _text(now)}
    return Stored({**ca.data, BUNDLE: bundle}, annotations)


def _bundle(data: Mapping[str, bytes]) -> bytes:
    return authority.bundle(data[name] for name in (CERTIFICATE, NEXT_CERTIFICATE, PREVIOUS) if name in data)


def _leaf(request: Request, stored: Stored | None, signer: KeyPair, bundle: bytes, now: datetime) -> Stored:
    """A certificate that is right stays; only its bundle may change."""
    kept = _usable(request, stored, signer, now)
    if kept is not None and stored is not None:
        return stored if stored.data.get(BUNDLE) == bundle else replace(stored, data={**stored.data, BUNDLE: bundle})
    made = authority.issue(signer, request, now=now)
    return Stored({BUNDLE: bundle, CERTIFICATE: made.certificate, KEY: made.key}, stored.annotations if stored else {})


def _usable(request: Request, stored: Stored | None, signer: KeyPair, now: datetime) -> KeyPair | None:
    try:
        if stored is None or CERTIFICATE not in stored.data or KEY not in stored.data:
            return None
        pair = KeyPair(stored.data[CERTIFICATE], stored.data[KEY])
        right = authority.answers(pair, request) and authority.is_signed_by(pair.certificate, signer.certificate)
        begin, end = authority.validity(pair.certificate)
        fits = (end - begin) <= timedelta(seconds=request.seconds) + authority.BACKDATE
        return pair if right and fits and authority.remaining(pair.certificate, now) >= RENEW_BELOW else None
    except BadCertificate:
        # One that nobody can use is made again.
        return None


def _text(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) if text else None
    except ValueError:
        return None
