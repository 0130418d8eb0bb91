"""A certificate authority of a test's own.

Law: makes keys and certificates into a folder and checks nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates into a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = generate_private_key(SECP256R1())
        self.file = folder / f"{name}.pem"
        certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.file.write_bytes(certificate.public_bytes(Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """A certificate for the loopback and its key, in files of this name."""
        key = generate_private_key(SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate, secret = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(self._signed(subject, key, address).public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate, secret

    def _signed(
        self, subject: x509.Name, key: EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self._key, SHA256())
        )
