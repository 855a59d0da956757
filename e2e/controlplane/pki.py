"""Keys and certificates of one control plane, made on the fly: a CA, a server certificate, a token-signing key."""

import datetime as dt
import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = dt.timedelta(days=7)
_SKEW = dt.timedelta(hours=1)  # a clock set back while a test runs


class Pki(NamedTuple):
    """PEM files."""

    ca_certificate: Path
    server_certificate: Path
    server_key: Path
    token_key: Path  # signs ServiceAccount tokens; the API server takes a private key for checking them too


def make_pki(folder: Path, server_names: Iterable[str]) -> Pki:
    """Files in `folder`, which is made. `server_names` are DNS names and IP addresses, each once in the certificate."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pki = Pki(*(folder / f"{name}.pem" for name in ("ca", "server", "server-key", "token-key")))
    ca_key, server_key, token_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca = _sign_ca(ca_key)
    server = _sign_server(ca, ca_key, server_key, sorted(set(server_names)))
    pki.ca_certificate.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    pki.server_certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    for path, key in ((pki.server_key, server_key), (pki.token_key, token_key)):
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
        )
    return pki


def _sign_ca(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return (
        _certificate(_name("closeby-e2e-ca"), _name("closeby-e2e-ca"), key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _sign_server(
    ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey, names: list[str]
) -> x509.Certificate:
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _certificate(_name("kube-apiserver"), ca.subject, key)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFE)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
