"""Certificates are made once, renewed in time, and an authority is replaced without a gap.

The certificates are real ones; the clock is a number.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import BadCertificate, Request
from hudi_operator.etcd_certificates.plan import (
    BUNDLE,
    CERTIFICATE,
    KEY,
    PREVIOUS,
    ROTATE,
    USERS,
    Settings,
    Stored,
    next_authority,
    plan,
    trusted_since,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86400
S = Settings("hudi-operator-etcd", "system", client_seconds=3 * DAY, server_seconds=9 * DAY, trust_seconds=600)
Secrets = dict[str, Stored]


def made(now: datetime = START) -> Secrets:
    return dict(plan(S, {}, now).secrets)


def verified(secrets: Secrets, shown_by: str, trusted_by: Secrets, now: datetime) -> bool:
    """As a TLS library does: whether a client of ``trusted_by`` accepts etcd's certificate."""
    store = Store(x509.load_pem_x509_certificates(trusted_by["operator"].data[BUNDLE]))
    certificate = x509.load_pem_x509_certificate(secrets[shown_by].data[CERTIFICATE])
    builder = PolicyBuilder().store(store).time(now)
    try:
        if shown_by == "server":
            builder.build_server_verifier(x509.DNSName("localhost")).verify(certificate, [])
        else:
            names = {str(a.value) for a in certificate.subject}
            assert names == {USERS[shown_by]}
            _chain(certificate, trusted_by["server"].data[BUNDLE], now)
    except (VerificationError, ValueError):
        return False
    return True


def _chain(certificate: x509.Certificate, bundle: bytes, now: datetime) -> None:
    """A client's certificate has no alternative names, which cryptography's verifier requires; etcd
    (Go) does not.
    """
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise ValueError("not valid now")
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    if not any(authority.is_signed_by(pem, ca) for ca in authority.split(bundle)):
        raise ValueError("signed by nobody known")


def all_verified(secrets: Secrets, trusted_by: Secrets, now: datetime) -> bool:
    return all(verified(secrets, identity, trusted_by, now) for identity in USERS)


def test_all_identities_are_made_once() -> None:
    first = made()
    assert sorted(first) == ["ca", *sorted(USERS)]
    assert all_verified(first, first, START)
    again = plan(S, first, START + timedelta(minutes=1))
    assert again.secrets == first
    assert not again.ask_members


def test_only_certificates_of_servers_have_names_and_serve() -> None:
    """The gateway is a server to pods."""
    servers = {
        "server": "hudi-operator-etcd-2.system.svc",
        "gateway": "hudi-operator-gateway-8.system.svc",
    }
    for identity, stored in made().items():
        read = x509.load_pem_x509_certificate(stored.data[CERTIFICATE])
        if identity == "ca":
            assert read.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
            continue
        usages = list(read.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        assert (ExtendedKeyUsageOID.SERVER_AUTH in usages) == (identity in servers)
        assert not read.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        if identity in servers:
            names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            assert servers[identity] in names.get_values_for_type(x509.DNSName)


def test_a_leaf_is_renewed_when_a_third_of_its_life_is_left() -> None:
    first = made()
    early = plan(S, first, START + timedelta(days=1.9)).secrets
    assert early == first
    due = plan(S, first, START + timedelta(days=2.1)).secrets
    assert {name for name in due if due[name] != first[name]} == {"operator", "gateway", "root"}
    assert all_verified(dict(due), first, START + timedelta(days=2.1))


@pytest.mark.parametrize("days", [3.5, 30, -30], ids=["clients-ended", "all-ended", "not-begun"])
def test_a_clock_that_jumps_past_an_end_renews_at_once(days: float) -> None:
    first, now = made(), START + timedelta(days=days)
    assert not all_verified(first, first, now)
    secrets = dict(plan(S, first, now).secrets)
    # Where the authority has not begun either, nobody accepts it: another one signs at once.
    assert all_verified(secrets, secrets if days < 0 else first, now)


@pytest.mark.parametrize(
    "damage",
    [
        {CERTIFICATE: b"nonsense"},
        {KEY: b"nonsense"},
        {CERTIFICATE: b""},
        {KEY: authority.make_authority("x", seconds=DAY, now=START).key},
    ],
    ids=["certificate", "key", "empty", "another-key"],
)
def test_a_damaged_leaf_is_made_again(damage: dict[str, bytes]) -> None:
    first = made()
    broken = {**first, "gateway": Stored({**first["gateway"].data, **damage})}
    secrets = dict(plan(S, broken, START).secrets)
    assert all_verified(secrets, first, START)
    assert {name for name in secrets if secrets[name] != broken[name]} == {"gateway"}


@pytest.mark.parametrize(
    "damage",
    [
        {CERTIFICATE: b"nonsense"},
        {KEY: b"nonsense"},
        {KEY: authority.make_authority("x", seconds=DAY, now=START).key},
        {CERTIFICATE: made()["root"].data[CERTIFICATE], KEY: made()["root"].data[KEY]},
    ],
)
def test_a_damaged_authority_is_not_replaced(damage: dict[str, bytes]) -> None:
    """Another one would lock out every writer that runs."""
    first = made()
    broken = {**first, "ca": Stored({**first["ca"].data, **damage})}
    with pytest.raises(BadCertificate):
        plan(S, broken, START)


def test_a_lost_authority_leaves_the_old_certificates_trusted() -> None:
    first = made()
    without = {name: stored for name, stored in first.items() if name != "ca"}
    secrets = dict(plan(S, without, START + timedelta(hours=1)).secrets)
    assert secrets["ca"].data[CERTIFICATE] != first["ca"].data[CERTIFICATE]
    # What running clients show is accepted by an etcd that has read the new bundle.
    assert verified(first, "operator", secrets, START + timedelta(hours=1))
    assert trusted_since(secrets["ca"]) is not None


def test_an_authority_is_replaced_without_a_gap() -> None:
    """Whoever has the Secrets of one step accepts whoever has those of the step before or after."""
    steps, now = [made()], START + timedelta(hours=1)
    old_ca = steps[0]["ca"].data[CERTIFICATE]
    asked = {**steps[0], "ca": replace(steps[0]["ca"], annotations={**steps[0]["ca"].annotations, ROTATE: "leaked"})}

    introduced = dict(plan(S, asked, now).secrets)
    steps.append(introduced)
    following = next_authority(introduced["ca"])
    assert following is not None
    assert all(len(authority.split(stored.data[BUNDLE])) == 2 for stored in introduced.values())
    assert all(introduced[i].data[CERTIFICATE] == steps[0][i].data[CERTIFICATE] for i in USERS), "signs nothing yet"
    assert trusted_since(introduced["ca"]) == now

    # Clients have had no time yet; then the members have not been seen to accept it.
    assert plan(S, introduced, now + timedelta(seconds=599), members_accept_next=True).secrets == introduced
    later = now + timedelta(seconds=601)
    waits = plan(S, introduced, later)
    assert waits.secrets == introduced
    assert waits.ask_members

    signing = dict(plan(S, introduced, later, members_accept_next=True).secrets)
    steps.append(signing)
    assert signing["ca"].data[CERTIFICATE] == following.certificate
    assert all(authority.is_signed_by(signing[i].data[CERTIFICATE], following.certificate) for i in USERS)
    assert trusted_since(signing["ca"]) == now, "the same authorities are trusted: nobody is restarted"

    # The longest certificate of the old authority may still be in use.
    used = later + timedelta(days=8.9)
    kept = dict(plan(S, signing, used).secrets)
    assert PREVIOUS in kept["ca"].data
    retired = dict(plan(S, kept, used + timedelta(days=0.2)).secrets)
    assert authority.split(retired["ca"].data[BUNDLE]) == authority.split(following.certificate)
    assert not any(old_ca in authority.split(stored.data[BUNDLE]) for stored in retired.values())

    pairs = [(*steps[0:2], now), (*steps[1:3], later), (kept, retired, used + timedelta(days=0.2))]
    for before, after, moment in pairs:
        assert all_verified(before, after, moment)
        assert all_verified(after, before, moment)
    # And the request has been obeyed once.
    assert plan(S, retired, used + timedelta(days=0.3)).secrets["ca"] == retired["ca"]


def test_two_replacements_close_together_keep_all_that_is_in_use() -> None:
    secrets, now = made(), START
    old = secrets["ca"].data[CERTIFICATE]
    for word in ("first", "second"):
        ca = secrets["ca"]
        secrets["ca"] = replace(ca, annotations={**ca.annotations, ROTATE: word})
        secrets = dict(plan(S, secrets, now).secrets)
        now += timedelta(seconds=601)
        secrets = dict(plan(S, secrets, now, members_accept_next=True).secrets)
    assert len(authority.split(secrets["server"].data[BUNDLE])) == 3
    assert old in authority.split(secrets["server"].data[BUNDLE])


def test_the_authority_is_replaced_before_it_ends() -> None:
    settings = replace(S, authority_seconds=90 * DAY)
    first = dict(plan(settings, {}, START).secrets)
    assert next_authority(plan(settings, first, START + timedelta(days=59)).secrets["ca"]) is None
    assert next_authority(plan(settings, first, START + timedelta(days=61)).secrets["ca"]) is not None


def test_an_authority_that_has_ended_is_followed_at_once() -> None:
    settings = replace(S, authority_seconds=90 * DAY)
    now = START + timedelta(days=91)
    secrets = dict(plan(settings, dict(plan(settings, {}, START).secrets), now).secrets)
    assert all_verified(secrets, secrets, now)


def test_no_certificate_outlives_its_authority() -> None:
    ca = authority.make_authority("x", seconds=DAY, now=START)
    pair = authority.issue(ca, Request("root", 9 * DAY), now=START)
    assert authority.validity(pair.certificate)[1] == START + timedelta(days=1)


def test_keys_are_not_shown() -> None:
    ca = made()["ca"]
    pair = authority.make_authority("x", seconds=DAY, now=START)
    assert "PRIVATE" not in f"{ca!r}{pair!r}"
    with pytest.raises(BadCertificate) as refused:
        authority.issue(authority.KeyPair(pair.certificate, b"-----BEGIN secret"), Request("x", 1), now=START)
    assert "secret" not in str(refused.value)
