"""What is said of a broker, or a Redis, that does not take us: nobody there, and who ends the connection at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sevenhop.runtime.scaled.reach import Why, why_unreachable
from sevenhop.runtime.scaled.topics import KafkaAwayError, TopicsError, client_options, prepare
from sevenhop.settings_scaled import KafkaSettings, RedisSettings
from sevenhop.stores.redis_fence import connect
from sevenhop.stores.redis_reach import check, why_refused
from sevenhop.stores.store import StoreError

NOBODY = "127.0.0.1:1"

Answer = Callable[[bytes], bytes | None]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    """Takes what comes and answers it; ends the connection where the answer is None."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (said := await reader.read(1000)) and (reply := answer(said)) is not None:
            writer.write(reply)
        writer.close()

    made = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with made:
        yield f"127.0.0.1:{made.sockets[0].getsockname()[1]}"


def ends(_said: bytes) -> None:
    """Says nothing, and goes."""


async def asked(*servers: str, **more: Any) -> Why | None:
    settings = KafkaSettings.model_validate({"servers": list(servers), **more})
    return await why_unreachable(settings, client_options(settings))


async def test_nobody_there_may_come_yet() -> None:
    """Which is no fault of the settings' form, and has another exit code."""
    why = await asked(NOBODY)
    assert why == Why(f"kafka: {NOBODY}: Connection refused; check kafka.servers", is_settings=False)
    with pytest.raises(KafkaAwayError):
        await prepare(KafkaSettings(servers=[NOBODY]))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param({}, "it may want TLS or SASL; check kafka.security and kafka.sasl", id="plain"),
        pytest.param({"security": "tls"}, "check kafka.s", id="TLS"),
    ],
)
async def test_a_broker_that_answers_tells_more_than_one_that_does_not(more: dict[str, str], says: str) -> None:
    """Whichever stands first."""
    async with server(ends) as there:
        for order in ((NOBODY, there), (there, NOBODY)):
            why = await asked(*order, **more)
            assert why is not None
            assert why.is_settings
            assert why.text.startswith(f"kafka: {there}: ")
            assert says in why.text


@pytest.mark.parametrize("what", ["ca", "certificate", "key"])
async def test_a_file_that_is_not_there_is_named(what: str, tmp_path: Path) -> None:
    """With the setting that names it."""
    for name in ("certificate", "key"):
        (tmp_path / name).write_text("x")
    files: dict[str, Path] = {"certificate": tmp_path / "certificate", "key": tmp_path / "key"}
    files |= {what: tmp_path / "nothing"}
    settings = KafkaSettings.model_validate({"servers": [NOBODY], "security": "tls", **files})
    with pytest.raises(TopicsError, match=rf"^kafka\.{what}: .*nothing: No such file or directory$"):
        await prepare(settings)


async def test_a_file_that_holds_something_else_is_named(tmp_path: Path) -> None:
    """It was read, and is no certificate."""
    (tmp_path / "ca").write_text("x")
    settings = KafkaSettings(servers=[NOBODY], security="tls", ca=tmp_path / "ca")
    with pytest.raises(TopicsError, match=r"^kafka\.ca: .*: no certificate in PEM form"):
        await prepare(settings)


async def test_a_redis_that_is_away_is_waited_for() -> None:
    """It is no reason to end."""
    assert await why_refused(connect(f"redis://{NOBODY}"), f"redis://{NOBODY}") == ""


@pytest.mark.parametrize(
    ("scheme", "answer", "says"),
    [
        pytest.param("redis", ends, "it may want TLS; check redis.url (rediss://)", id="plain to one that ends it"),
        pytest.param(
            "rediss", lambda said: b"+PONG\r\n" if said == b"PING\r\n" else b"", "it does not speak TLS on this port",
            id="TLS to one that waits for a line",
        ),
        pytest.param(
            "redis", lambda _: b"-NOAUTH Authentication required.\r\n", "it wants a password; check redis.password",
            id="no password",
        ),
        pytest.param(
            "redis", lambda _: b"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
            "it refuses the user or the password; check redis.password", id="wrong password",
        ),
    ],
)  # fmt: skip
async def test_a_redis_that_will_never_take_us(
    monkeypatch: pytest.MonkeyPatch, scheme: str, answer: Answer, says: str
) -> None:
    """One line with the setting, and not what stands before the host."""
    monkeypatch.setattr("sevenhop.stores.redis_fence.ANSWER_WITHIN_S", 0.5)
    async with server(answer) as there:
        url = f"{scheme}://:geheim@{there}/0"
        with pytest.raises(StoreError) as caught:
            await check(connect(url), url)
    assert str(caught.value).startswith(f"redis: {there}: ")
    assert says in str(caught.value)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"url": "redis://redis:6379", "ca": "ca.crt"}, id="a CA without TLS"),
        pytest.param({"url": "rediss://:geheim/x@redis:6379/0"}, id="a password with a slash"),
        pytest.param({"url": "redis://redis:geheim"}, id="no port"),
    ],
)
def test_a_url_that_cannot_be_right_is_refused(settings: dict[str, str]) -> None:
    """Before anything is asked, and without repeating it."""
    with pytest.raises(ValueError, match="redis") as caught:
        RedisSettings.model_validate(settings)
    assert "geheim" not in str(caught.value)
