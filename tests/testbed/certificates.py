"""Certificates for servers on loopback, made by openssl: one authority, and what it signs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.binaries import BuildFailed

_FOR = "127.0.0.1"


@dataclass(frozen=True)
class Signed:
    """
    A certificate for 127.0.0.1, of a server or of a client.

    Attributes:
        both: Key and certificate in one PEM file, as Kafka wants them.
    """

    certificate: Path
    key: Path
    both: Path


class Authority:
    """
    Signs certificates; `ca` is what clients trust.

    Raises:
        BuildFailed: No openssl, or its last words.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.ca = folder / "ca.crt"
        self._key = folder / "ca.key"
        made = ["req", "-x509", *_NEW_KEY, "-days", "2", "-subj", f"/CN={folder.name}", "-keyout", str(self._key)]
        _openssl(*made, "-out", str(self.ca))

    def sign(self, name: str) -> Signed:
        """A new key, and a certificate for it."""
        key, request, certificate, extension, both = (
            self._folder / f"{name}.{suffix}" for suffix in ("key", "csr", "crt", "ext", "pem")
        )
        _openssl("req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request))
        extension.write_text(f"subjectAltName=IP:{_FOR}\nextendedKeyUsage=serverAuth,clientAuth\n")
        signs = ["-CA", str(self.ca), "-CAkey", str(self._key), "-CAcreateserial", "-extfile", str(extension)]
        _openssl("x509", "-req", "-days", "2", "-in", str(request), *signs, "-out", str(certificate))
        both.write_text(key.read_text() + certificate.read_text() + self.ca.read_text())
        both.chmod(0o600)
        return Signed(certificate, key, both)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*words: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise BuildFailed("certificates: no openssl on PATH")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailed(f"certificates: openssl {words[0]} failed\n{done.stderr[-1500:]}")
