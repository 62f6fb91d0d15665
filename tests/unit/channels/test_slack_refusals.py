"""What Slack refuses while an incident goes on: nothing is lost, nothing stands twice, and the words say what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sevenhop.channels.channel import PermanentDeliveryError, RetryableDeliveryError
from sevenhop.channels.slack.channel import SlackChannel
from sevenhop.channels.slack.settings import SlackSettings
from tests.fakes.slack_server import CHANNEL, TOKEN, SlackServer
from tests.unit.channels.notifies import message, notify, resolved

OTHER = "C0OTHER"


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer(channels=(CHANNEL, OTHER)) as server:
        yield server


@pytest.fixture
async def channel(slack: SlackServer) -> AsyncIterator[SlackChannel]:
    built = build(slack)
    yield built
    await built.close()


def build(slack: SlackServer, channel: str = CHANNEL) -> SlackChannel:
    return SlackChannel(
        SlackSettings.model_validate(
            {"type": "slack", "token": TOKEN, "channel": channel, "base_url": slack.base_url, "signing_secret": "s"}
        )
    )


BLOCKS = ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_arguments")


@pytest.mark.parametrize("word", BLOCKS)
async def test_a_page_is_not_lost_for_its_looks(
    slack: SlackServer, channel: SlackChannel, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What Slack does not take as it is built is told in a sentence, once, and the next one in full again."""
    slack.fail("chat.postMessage", "error", error=word)
    first = await channel.deliver(notify(), uncertain=False)

    (parent,) = slack.parents
    assert (parent.blocks, parent.payload["key"], parent.payload["title"]) == ([], "k1", message().title)
    assert "llama-70b/decode waits for 2 × H100" in parent.text
    assert word in parent.text
    assert f"chat.postMessage: {word}" in caplog.text

    await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    assert slack.parents == [parent]
    assert parent.blocks


@pytest.mark.parametrize("word", BLOCKS)
async def test_an_edit_that_is_refused_is_made_in_short(slack: SlackServer, channel: SlackChannel, word: str) -> None:
    """The message that is there must not go on firing when all is over."""
    first = await channel.deliver(notify(), uncertain=False)
    slack.fail("chat.update", "error", error=word)
    await channel.deliver(notify(2, reference=first.reference, message=resolved()), uncertain=False)

    (parent,) = slack.parents
    assert (parent.payload["status"], parent.blocks) == ("resolved", [])


@pytest.mark.parametrize("word", ["metadata_too_large", "invalid_metadata_format"])
async def test_metadata_that_are_refused_are_cut(slack: SlackServer, channel: SlackChannel, word: str) -> None:
    """With what it is found again by, and all that people see."""
    slack.fail("chat.postMessage", "error", error=word)
    await channel.deliver(notify(), uncertain=False)
    again = build(slack)
    await again.deliver(notify(), uncertain=True)
    await again.close()

    (parent,) = slack.parents
    assert parent.blocks
    assert "title" not in parent.payload


async def test_what_is_refused_in_short_too_is_refused(slack: SlackServer, channel: SlackChannel) -> None:
    """No third attempt, and the words are Slack's."""
    slack.fail("chat.postMessage", "error", error="invalid_blocks", times=2)
    with pytest.raises(PermanentDeliveryError, match="invalid_blocks; this is a mistake of ours"):
        await channel.deliver(notify(), uncertain=False)
    assert len(slack.calls("chat.postMessage")) == 2


@pytest.mark.parametrize("length", [10, 3_400, 100_000])
async def test_in_short_is_short(slack: SlackServer, channel: SlackChannel, length: int) -> None:
    """However long the title is: far below every limit of Slack's on a text."""
    slack.fail("chat.postMessage", "error", error="msg_too_long")
    await channel.deliver(notify(message=message(title="<!channel> " * (length // 10))), uncertain=False)
    assert len(slack.parents[0].text) < 1_200
    assert slack.parents[0].mentions == []


CLOSED = ("is_archived", "channel_not_found", "not_in_channel")


@pytest.mark.parametrize("word", CLOSED)
async def test_a_channel_that_closes_is_said(slack: SlackServer, channel: SlackChannel, word: str) -> None:
    """Archived, or the app was removed: refused for good, with what to do; nothing is posted beside."""
    first = await channel.deliver(notify(), uncertain=False)
    slack.fail("chat.update", "error", error=word)
    with pytest.raises(PermanentDeliveryError, match=f"chat.update: {word}; (choose|check|invite)"):
        await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    assert len(slack.parents) == 1
    await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    assert [len(parent.edits) for parent in slack.parents] == [1]


@pytest.mark.parametrize("word", CLOSED)
async def test_another_channel_takes_over(
    slack: SlackServer, channel: SlackChannel, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was begun in a channel that closed goes on in the one that the receiver has been given, once."""
    first = await channel.deliver(notify(), uncertain=False)
    moved = build(slack, OTHER)
    slack.fail("chat.update", "error", error=word)
    second = await moved.deliver(notify(2, reference=first.reference), uncertain=False)
    third = await moved.deliver(notify(3, reference=second.reference, message=resolved()), uncertain=False)
    await moved.close()

    assert second.reference.startswith(f"{OTHER}/")
    assert third.reference.split("/")[:2] == second.reference.split("/")[:2]
    assert [(parent.channel, parent.payload["status"]) for parent in slack.parents] == [
        (CHANNEL, "firing"),
        (OTHER, "resolved"),
    ]
    assert word in caplog.text


async def test_a_channel_that_still_takes_keeps_its_message(slack: SlackServer, channel: SlackChannel) -> None:
    """An incident is not told twice because the next ones go elsewhere."""
    first = await channel.deliver(notify(), uncertain=False)
    moved = build(slack, OTHER)
    await moved.deliver(notify(2, reference=first.reference), uncertain=False)
    await moved.close()
    assert [parent.channel for parent in slack.parents] == [CHANNEL]


@pytest.mark.parametrize("word", ["token_revoked", "account_inactive"])
async def test_a_token_that_was_taken_back(slack: SlackServer, channel: SlackChannel, word: str) -> None:
    """Refused with what to do, and without the token."""
    first = await channel.deliver(notify(), uncertain=False)
    slack.fail("chat.update", "error", error=word)
    with pytest.raises(PermanentDeliveryError, match=f"{word}; reinstall the app") as caught:
        await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    assert TOKEN not in str(caught.value)


async def test_an_edit_that_has_to_wait(slack: SlackServer, channel: SlackChannel) -> None:
    """As long as Slack says; then it is made in place."""
    first = await channel.deliver(notify(), uncertain=False)
    slack.fail("chat.update", "429", retry_after=30)
    with pytest.raises(RetryableDeliveryError) as caught:
        await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    await channel.deliver(notify(2, reference=first.reference), uncertain=False)

    assert caught.value.retry_after == 30
    assert [len(parent.edits) for parent in slack.parents] == [1]


async def test_a_message_that_a_person_deleted(slack: SlackServer, channel: SlackChannel) -> None:
    """Between two edits: it is posted again, once, with its thread, and edited from then on."""
    first = await channel.deliver(notify(), uncertain=False)
    slack.delete(CHANNEL, slack.parents[0].ts)
    second = await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    await channel.deliver(notify(3, reference=second.reference, message=resolved()), uncertain=False)

    (parent,) = slack.parents
    assert parent.payload["status"] == "resolved"
    assert len(slack.thread_of(parent)) == 1
