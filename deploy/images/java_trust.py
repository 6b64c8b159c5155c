"""Writes the authorities that Java trusts from a file in PEM, the same bytes each time: `java_trust.py PEM KEYSTORE`.

Debian's own hook makes the same file with the time of day in it, so that no two images would be equal. The format is
Java's "JKS", as sun.security.provider.JavaKeyStore reads it, with Java's usual password. Runs while an image is built:
standard library of Python 3.11 only.
"""

import hashlib
import re
import ssl
import struct
import sys
from pathlib import Path

PASSWORD = "changeit"  # noqa: S105 - no secret: every Java has it; it guards against damage, not against people
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
_WHITENER = b"Mighty Aphrodite"  # what Java's authors put between password and content
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def keystore(pem: str) -> bytes:
    """A JKS key store that trusts every certificate of a text in PEM. Raises ValueError when there is none."""
    certificates = sorted({ssl.PEM_cert_to_DER_cert(text) for text in _PEM.findall(pem)})
    if not certificates:
        raise ValueError("no certificate in PEM found")
    content = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for certificate in certificates:
        name = hashlib.sha256(certificate).hexdigest()
        made_ms = 0
        content += struct.pack(">I", _TRUSTED) + _text(name) + struct.pack(">Q", made_ms)
        content += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    # SHA-1 is what the format asks for.
    return content + hashlib.sha1(PASSWORD.encode("utf-16-be") + _WHITENER + content).digest()  # noqa: S324


def _text(text: str) -> bytes:
    """As Java's DataOutput.writeUTF writes ASCII."""
    return struct.pack(">H", len(text)) + text.encode()


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(keystore(Path(sys.argv[1]).read_text()))
