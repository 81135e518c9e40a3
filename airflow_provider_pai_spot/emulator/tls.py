"""A certificate for https on this machine; the same file is the CA file for the client."""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

LIFETIME = timedelta(days=30)
_ADDRESSES = ("127.0.0.1", "::1")


def self_signed(folder: Path) -> tuple[Path, Path]:
    """
    Write a new certificate and key for 127.0.0.1, localhost and ::1 and return (certificate, key).

    The key is readable by its owner only. The certificate is no CA: whoever trusts it trusts this one server.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate_path, key_path = folder / "emulator-cert.pem", folder / "emulator-key.pem"
    _write(certificate_path, _certificate(key).public_bytes(serialization.Encoding.PEM), mode=0o644)
    _write(key_path, _pem(key), mode=0o600)
    return certificate_path, key_path


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "DLC emulator on this machine")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A day back: the clocks of a virtual machine and its host differ more often than one thinks.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LIFETIME)
    )
    for extension, critical in _extensions(key):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256())


def _extensions(key: ec.EllipticCurvePrivateKey) -> list[tuple[x509.ExtensionType, bool]]:
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return [
        (x509.SubjectAlternativeName(names), False),
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        # Python 3.13 verifies strictly and asks for both identifiers.
        (identifier, False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False),
    ]


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Replace the file; O_EXCL gives it its mode from the first byte on and follows no planted link."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
