"""Generates a certificate authority with one certificate for 127.0.0.1 and localhost."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject, issuer, key, days=(-1, 1)):
    now = datetime.datetime.now(datetime.timezone.utc)
    first, last = (now + datetime.timedelta(days=count) for count in days)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(first).not_valid_after(last)


def make(folder, days=(-1, 1)):
    """Writes `ca.pem` and `server.pem` (certificate and key); returns their paths.

    The certificate is valid from and to so many days from now."""
    folder = Path(folder)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("Test authority")
    ca = _builder(ca_name, ca_name, ca_key)
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    ca = ca.sign(ca_key, hashes.SHA256())
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    leaf = _builder(_name("localhost"), ca_name, key, days)
    leaf = leaf.add_extension(x509.SubjectAlternativeName(names), critical=False)
    leaf = leaf.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
    )
    leaf = leaf.sign(ca_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    ca_path, server_path = folder / "ca.pem", folder / "server.pem"
    ca_path.write_bytes(ca.public_bytes(pem))
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    server_path.write_bytes(private + leaf.public_bytes(pem))
    return str(ca_path), str(server_path)
