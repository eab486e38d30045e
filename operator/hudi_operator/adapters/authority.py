"""X.509: certificate authorities, the certificates that they sign, and what a certificate says.

Keys are elliptic-curve keys (P-256) in PKCS #8: Go, Python and Java's TLS library all read them.
Certificates begin a few minutes before now, for hosts whose clock is behind.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE = timedelta(minutes=5)
_BEGIN = b"-----BEGIN CERTIFICATE-----"


class BadCertificate(ValueError):
    """A certificate or key that cannot be read; the message says why, never what is in it."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"KeyPair({common_name(self.certificate)})"


@dataclass(frozen=True)
class Request:
    """Contents of a certificate that is asked for.

    ``common_name`` is the user in etcd. Only servers have ``names`` (DNS) and ``addresses``; they
    may also be clients, because members of etcd talk to each other with the same certificate.
    """

    common_name: str
    seconds: int
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def server(self) -> bool:
        """Whether it is for a server."""
        return bool(self.names or self.addresses)


def make_authority(common_name: str, *, seconds: int, now: datetime) -> KeyPair:
    """A certificate authority that signs itself.

    Its name ends with a random number, so that two generations are never mistaken for each other
    when a chain is built by name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    name = _name(f"{common_name} {serial & 0xFFFFFFFF:08x}")
    usage = _usage(sign_certificates=True)
    builder = (
        _builder(name, name, key.public_key(), serial, now, now + timedelta(seconds=seconds))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(authority: KeyPair, request: Request, *, now: datetime) -> KeyPair:
    """A certificate signed by ``authority``, with a new key.

    It ends no later than the authority itself. Raises BadCertificate.
    """
    ca, ca_key = _certificate(authority.certificate), _key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + timedelta(seconds=request.seconds), ca.not_valid_after_utc)
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if request.server else [])
    builder = (
        _builder(_name(request.common_name), ca.subject, key.public_key(), x509.random_serial_number(), now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
            critical=False,
        )
    )
    if request.server:
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in request.names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in request.addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return _pair(builder.sign(ca_key, hashes.SHA256()), key)


def check(authority: KeyPair) -> None:
    """Raises BadCertificate when it cannot sign: unreadable, no authority, or another one's key."""
    read, key = _certificate(authority.certificate), _key(authority.key)
    if read.public_key() != key.public_key():
        raise BadCertificate("the private key is not the certificate's")
    try:
        constraints = read.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        raise BadCertificate("the certificate is not an authority's") from None
    if not constraints.ca:
        raise BadCertificate("the certificate is not an authority's")


def bundle(certificates: Iterable[bytes]) -> bytes:
    """Certificates in one file, each once, in the order given."""
    seen: list[bytes] = []
    for text in certificates:
        seen += [block for block in split(text) if block not in seen]
    return b"".join(seen)


def split(text: bytes) -> list[bytes]:
    """The certificates of a bundle, each as PEM with a line end."""
    return [_BEGIN + part.rstrip() + b"\n" for part in text.split(_BEGIN)[1:]]


def common_name(certificate: bytes) -> str:
    """The common name; raises BadCertificate."""
    found = _certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """Begin and end of a certificate's validity; raises BadCertificate."""
    read = _certificate(certificate)
    return read.not_valid_before_utc, read.not_valid_after_utc


def remaining(certificate: bytes, now: datetime) -> float:
    """The part of its life that a certificate has left, from 1 to 0.

    0 when it has ended or has not begun: a clock that jumped makes it as useless as one that ended.
    """
    begin, end = validity(certificate)
    if not begin <= now < end:
        return 0.0
    return (end - now) / (end - begin)


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    """Whether the authority's key has signed it; raises BadCertificate."""
    ca, signed = _certificate(authority), _certificate(certificate)
    try:
        signed.verify_directly_issued_by(ca)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def answers(pair: KeyPair, request: Request) -> bool:
    """Whether a certificate is what ``request`` asks for, whatever its dates.

    Raises BadCertificate when certificate or key cannot be read.
    """
    read, key = _certificate(pair.certificate), _key(pair.key)
    if read.public_key() != key.public_key():
        return False
    names: set[str] = set()
    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = {str(n) for n in found.get_values_for_type(x509.DNSName)}
        names |= {str(a) for a in found.get_values_for_type(x509.IPAddress)}
    except x509.ExtensionNotFound:
        pass
    return common_name(pair.certificate) == request.common_name and names == {*request.names, *request.addresses}


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    serial: int,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial)
        .not_valid_before(now - BACKDATE)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _certificate(text: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(text)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificate("not a certificate in PEM") from error


def _key(text: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadCertificate("not a private key in PEM without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadCertificate("the private key is not an elliptic-curve key")
    return key
