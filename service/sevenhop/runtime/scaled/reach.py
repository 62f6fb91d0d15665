"""Why Kafka does not take us: each broker that the settings name is spoken to once, and what it says put in words."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from sevenhop.settings_scaled import KafkaSettings

ANSWER_WITHIN_S = 5.0
MOST_ASKED = 5

_NO_SUCH_NAME = frozenset((62, 64))
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL."""

_WANTS_CERTIFICATE = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE", "UNKNOWN_CA")
"""Alerts of a server that does not like our certificate, or that we have none (names as OpenSSL says them)."""


class Why(msgspec.Struct, frozen=True):
    """
    Attributes:
        text: One line without a secret, with the setting to look at.
        is_settings: The broker answers, and will never take these settings; else it may come by itself.
    """

    text: str
    is_settings: bool


@contextmanager
def only_our_words() -> Iterator[None]:
    """Without the lines that aiokafka logs while it tries: what went wrong is said once, by us."""
    loggers = [logging.getLogger(name) for name in ("aiokafka", "aiokafka.conn", "aiokafka.client")]
    for logger in loggers:
        logger.addFilter(_nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_nothing)


def _nothing(_record: logging.LogRecord) -> bool:
    return False


async def why_unreachable(settings: KafkaSettings, options: Mapping[str, Any]) -> Why | None:
    """
    What stands between us and the brokers; None where one of them takes us after all.

    Args:
        options: How any client speaks to them (`topics.client_options`).
    """
    from aiokafka.conn import collect_hosts

    hosts = [(host, port) for host, port, _ in collect_hosts(settings.servers, randomize=False)][:MOST_ASKED]
    found = await asyncio.gather(*(_ask(settings, options, host, port) for host, port in hosts))
    if not found or any(why is None for why in found):
        return None
    # A broker that answers tells more than one that does not.
    return min((why for why in found if why is not None), key=lambda why: not why.is_settings)


async def _ask(settings: KafkaSettings, options: Mapping[str, Any], host: str, port: int) -> Why | None:
    from aiokafka.conn import create_conn
    from aiokafka.protocol.metadata import MetadataRequest

    how = {name: value for name, value in options.items() if name != "bootstrap_servers"}
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            connection = await create_conn(host, port, request_timeout_ms=int(ANSWER_WITHIN_S * 1000), **how)
            try:
                await connection.send(MetadataRequest([]))  # who has to say who it is may ask for versions, no more
            finally:
                connection.close()
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        is_settings, text = _words(settings, error)
        return Why(f"kafka: {host}:{port}: {text}", is_settings)
    return None


def _words(settings: KafkaSettings, error: Exception) -> tuple[bool, str]:
    """(no use to wait, what is wrong and what to look at)."""
    from aiokafka import errors

    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _NO_SUCH_NAME:
            return True, f"its certificate is made for other names ({error.verify_message}); check kafka.servers"
        return True, f"its certificate is not trusted ({error.verify_message}); check kafka.ca"
    if isinstance(error, ssl.SSLError) and any(word in (error.reason or "") for word in _WANTS_CERTIFICATE):
        return True, "it does not take our certificate; check kafka.certificate and kafka.key"
    if isinstance(error, errors.SaslAuthenticationFailed):
        return True, f"{settings.sasl} refuses the user or the password; check kafka.user and kafka.password"
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        return True, f"it does not offer {settings.sasl}; check kafka.sasl"
    if isinstance(error, errors.IllegalSaslStateError):
        return True, "this listener takes no SASL; check kafka.sasl, or the port in kafka.servers"
    if isinstance(error, ssl.SSLError):
        return True, "it does not speak TLS on this port; check kafka.security, or the port in kafka.servers"
    if isinstance(error, TimeoutError):
        return False, f"no answer within {ANSWER_WITHIN_S:g} s; check kafka.servers"
    if isinstance(error, errors.KafkaConnectionError | ConnectionResetError | ConnectionAbortedError):
        return True, f"it ends the connection at our first word: {_why_ended(settings, error)}"
    if isinstance(error, OSError):
        # asyncio puts words of its own around the system's
        said = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
        return False, f"{said or type(error).__name__}; check kafka.servers"
    return True, f"{type(error).__name__}; check kafka.servers, kafka.security and kafka.sasl"


def _why_ended(settings: KafkaSettings, error: Exception) -> str:
    """A broker that does not like how it is spoken to says nothing and goes."""
    if settings.security != "tls":
        return "it may want TLS or SASL; check kafka.security and kafka.sasl"
    if isinstance(error, OSError):  # still in the handshake
        return "it may not speak TLS on this port; check kafka.security"
    if settings.sasl:
        return "it may take no SASL there, or want a client certificate; check kafka.sasl and kafka.certificate"
    if settings.certificate is None:
        return "it may want SASL or a client certificate; check kafka.sasl and kafka.certificate"
    return "it may not take our certificate, or want SASL; check kafka.certificate and kafka.sasl"
