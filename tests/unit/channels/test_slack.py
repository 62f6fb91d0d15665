"""The Slack channel against a local server that behaves like Slack, through the real slack-sdk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from sevenhop.channels.channel import (
    DeliveryError,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)
from sevenhop.channels.slack.channel import SlackChannel
from sevenhop.channels.slack.errors import ClosedChannelError, bad_status
from sevenhop.channels.slack.settings import SlackSettings
from tests.fakes.slack_server import CHANNEL, TOKEN, Posted, SlackServer
from tests.unit.channels.notifies import NOON, message, notify, resolved

TIMEOUT_S = 3.0


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
async def channel(slack: SlackServer) -> AsyncIterator[SlackChannel]:
    built = build(slack)
    yield built
    await built.close()


def build(slack: SlackServer, token: str = TOKEN) -> SlackChannel:
    return SlackChannel(
        SlackSettings.model_validate(
            {
                "type": "slack",
                "token": token,
                "channel": CHANNEL,
                "base_url": slack.base_url,
                "timeout": timedelta(seconds=TIMEOUT_S),
            }
        )
    )


def firing(slack: SlackServer) -> list[Posted]:
    return [parent for parent in slack.parents if parent.payload["status"] == "firing"]


async def test_post_once_edit_in_place(slack: SlackServer, channel: SlackChannel) -> None:
    """A change and the end of an incident change the message that is there, and notify nobody."""
    first = await channel.deliver(notify(1), uncertain=False)
    second = await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    await channel.deliver(notify(3, reference=second.reference, message=resolved()), uncertain=False)

    (parent,) = slack.parents
    assert parent.payload["revision"] == 3
    assert len(parent.edits) == 2
    assert parent.blocks[0]["text"]["text"].startswith("🟢 RECOVERED")
    assert second.reference.startswith(f"{CHANNEL}/{parent.ts}")


@pytest.mark.parametrize(
    ("end_reason", "head"),
    [
        ("recovered", "🟢 RECOVERED"),
        ("subject_gone", "⚪ ENDED: the object is gone"),
        ("moved_on", "⚪ ENDED: moved on"),
    ],
)
async def test_only_recovered_is_green(slack: SlackServer, channel: SlackChannel, end_reason: str, head: str) -> None:
    """What ended for another reason says so."""
    await channel.deliver(notify(message=resolved(end_reason=end_reason)), uncertain=False)

    assert slack.parents[0].blocks[0]["text"]["text"].startswith(head)


async def test_details_are_one_reply(slack: SlackServer, channel: SlackChannel) -> None:
    """Evidence and history stand in one reply, edited in place, and only when they change."""
    first = await channel.deliver(notify(1), uncertain=False)
    same = await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    calls = len(slack.calls("chat.update"))
    more = message(details=("12:00 first told", "12:01 edited"))
    await channel.deliver(notify(3, reference=same.reference, message=more), uncertain=False)

    (reply,) = slack.thread_of(slack.parents[0])
    assert calls == 1
    assert "12:01 edited" in reply.shown
    assert len(reply.edits) == 1


async def test_details_are_found_again(slack: SlackServer, channel: SlackChannel) -> None:
    """A reference that does not name the reply does not make a second one."""
    await channel.deliver(notify(1), uncertain=False)
    parent = slack.parents[0]
    await channel.deliver(
        notify(2, reference=f"{CHANNEL}/{parent.ts}", message=message(details=("new",))), uncertain=False
    )

    (reply,) = slack.thread_of(parent)
    assert reply.shown == "new"


async def test_anew_posts_and_retires_the_older(slack: SlackServer, channel: SlackChannel) -> None:
    """Severity up is a new post; the earlier one points to it and no longer claims to be current."""
    first = await channel.deliver(notify(1), uncertain=False)
    await channel.deliver(notify(2, anew=True, reference=first.reference), uncertain=False)

    older, newer = slack.parents
    assert older.payload["status"] == "superseded"
    assert f"p{newer.ts.replace('.', '')}" in older.shown
    assert [parent.ts for parent in firing(slack)] == [newer.ts]
    assert older.payload["effect"] == ""


async def test_anew_without_a_reference_retires_the_older(slack: SlackServer, channel: SlackChannel) -> None:
    """A crash that lost the reference does not leave a message firing for ever."""
    await channel.deliver(notify(1), uncertain=False)
    await channel.deliver(notify(2, anew=True), uncertain=False)

    assert [parent.payload["revision"] for parent in firing(slack)] == [2]


async def test_an_edit_without_a_reference_finds_the_message(slack: SlackServer, channel: SlackChannel) -> None:
    """By key and episode in the metadata; another episode's message is left alone."""
    await channel.deliver(notify(1, episode=1, message=resolved()), uncertain=False)
    await channel.deliver(notify(1, episode=2), uncertain=False)
    await channel.deliver(notify(2, episode=2, message=resolved()), uncertain=False)

    assert [(p.payload["episode"], p.payload["revision"]) for p in slack.parents] == [(1, 1), (2, 2)]


async def test_an_edit_of_what_is_not_there_posts(slack: SlackServer, channel: SlackChannel) -> None:
    """Nothing is lost because a person deleted the message, or it is older than what is looked through."""
    first = await channel.deliver(notify(1), uncertain=False)
    slack.delete(CHANNEL, slack.parents[0].ts)
    again = await channel.deliver(notify(2, reference=first.reference), uncertain=False)
    await channel.deliver(notify(2, key="other"), uncertain=False)

    assert [parent.payload["key"] for parent in slack.parents] == ["k1", "other"]
    assert again.reference != first.reference


@pytest.mark.parametrize("kind", ["timeout_after", "drop_after", "html", "garbage"])
@pytest.mark.parametrize("revision", [pytest.param(1, id="a post"), pytest.param(2, id="an edit that must post")])
async def test_accepted_but_unanswered_is_posted_once(
    slack: SlackServer, channel: SlackChannel, kind: str, revision: int
) -> None:
    """Where Slack took a message and the answer was lost, the channel is asked and nothing is posted again."""
    slack.fail("chat.postMessage", kind)

    with pytest.raises(UncertainDeliveryError):
        await channel.deliver(notify(revision), uncertain=False)
    delivery = await channel.deliver(notify(revision), uncertain=True)

    (parent,) = slack.parents
    assert delivery.reference.startswith(f"{CHANNEL}/{parent.ts}")
    assert len(slack.thread_of(parent)) == 1


@pytest.mark.parametrize("kind", ["timeout_before", "drop_before"])
async def test_unanswered_and_not_accepted_is_posted(slack: SlackServer, channel: SlackChannel, kind: str) -> None:
    """Where the call was lost instead, the page still comes."""
    slack.fail("chat.postMessage", kind)

    with pytest.raises(UncertainDeliveryError):
        await channel.deliver(notify(), uncertain=False)
    await channel.deliver(notify(), uncertain=True)

    assert len(slack.parents) == 1


async def test_another_process_asks_too(slack: SlackServer, channel: SlackChannel) -> None:
    """kill -9 after Slack accepted: the next process finds the message, also behind two hundred others."""
    await channel.deliver(notify(), uncertain=False)
    for number in range(201):
        slack.messages.append(Posted(CHANNEL, f"9.{number:06d}", "chat", [], None))

    after_crash = build(slack)
    delivery = await after_crash.deliver(notify(), uncertain=True)
    await after_crash.close()

    assert len([parent for parent in slack.parents if parent.metadata]) == 1
    assert delivery.reference.split("/")[1] == slack.parents[0].ts


async def test_the_same_number_of_another_time_is_not_the_same(slack: SlackServer, channel: SlackChannel) -> None:
    """After our state was lost, key, episode and revision begin again: an old message is no proof of a new one."""
    await channel.deliver(notify(message=resolved()), uncertain=False)
    later = message(at=NOON + timedelta(days=1))
    await channel.deliver(notify(adopt=True, message=later), uncertain=True)

    assert [parent.payload["status"] for parent in slack.parents] == ["resolved", "firing"]


async def test_an_emptied_store_adopts_what_still_fires(slack: SlackServer, channel: SlackChannel) -> None:
    """No second page for what is still true: the earlier message is edited, whatever its episode."""
    await channel.deliver(notify(1, episode=7), uncertain=False)
    later = message(at=NOON + timedelta(hours=1))
    delivery = await channel.deliver(notify(1, episode=1, adopt=True, message=later), uncertain=False)

    (parent,) = slack.parents
    assert parent.payload["episode"] == 1
    assert delivery.reference.startswith(f"{CHANNEL}/{parent.ts}")


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([notify(1, episode=7, message=resolved())], id="it had ended"),
        pytest.param([notify(1, key="other")], id="another incident"),
        pytest.param([notify(1, episode=6), notify(1, episode=7, message=resolved())], id="its last episode had ended"),
        pytest.param([], id="nothing"),
    ],
)
async def test_nothing_to_adopt_posts(slack: SlackServer, channel: SlackChannel, before: list[object]) -> None:
    """What does not fire any more in the channel is no page about what fires now."""
    for earlier in before:
        await channel.deliver(earlier, uncertain=False)  # type: ignore[arg-type]
    await channel.deliver(notify(1, adopt=True, message=message(at=NOON + timedelta(hours=1))), uncertain=False)

    assert len(slack.parents) == len(before) + 1


async def test_a_page_that_arrived_is_not_posted_again_for_its_thread(
    slack: SlackServer, channel: SlackChannel
) -> None:
    """A failure in the thread is tried again without touching the page."""
    slack.fail("chat.postMessage", "pass")
    slack.fail("chat.postMessage", "429")

    with pytest.raises(UncertainDeliveryError, match="told, but not all"):
        await channel.deliver(notify(), uncertain=False)
    await channel.deliver(notify(), uncertain=True)

    (parent,) = slack.parents
    assert len(slack.thread_of(parent)) == 1
    assert parent.edits == []


@pytest.mark.parametrize(
    ("fault", "expected", "retry_after"),
    [
        pytest.param({"kind": "429", "retry_after": 7}, RetryableDeliveryError, 7.0, id="429"),
        pytest.param({"kind": "ratelimited"}, RetryableDeliveryError, None, id="ratelimited in a 200"),
        pytest.param({"kind": "error", "error": "rate_limited"}, RetryableDeliveryError, None, id="the other spelling"),
        pytest.param({"kind": "status", "status": 503, "retry_after": 3}, RetryableDeliveryError, 3.0, id="503"),
        pytest.param({"kind": "status", "status": 500}, UncertainDeliveryError, None, id="500"),
        pytest.param({"kind": "error", "error": "fatal_error"}, UncertainDeliveryError, None, id="half done"),
        pytest.param({"kind": "error", "error": "is_archived"}, ClosedChannelError, None, id="archived"),
        pytest.param({"kind": "error", "error": "<b>?"}, PermanentDeliveryError, None, id="no word"),
    ],
)
async def test_failures_are_told_apart(
    slack: SlackServer,
    channel: SlackChannel,
    fault: dict[str, object],
    expected: type[DeliveryError],
    retry_after: float | None,
) -> None:
    """Surely not arrived, perhaps arrived, and refused for good are three things."""
    slack.fail("chat.postMessage", **fault)  # type: ignore[arg-type]

    with pytest.raises(expected) as caught:
        await channel.deliver(notify(), uncertain=False)

    assert type(caught.value) is expected
    assert getattr(caught.value, "retry_after", None) == retry_after
    assert "<b>" not in str(caught.value)


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        pytest.param(3.0, RetryableDeliveryError, id="with a time to come back"),
        pytest.param(None, UncertainDeliveryError, id="bare, as a proxy says of a broken connection"),
    ],
)
def test_a_503_is_certain_only_with_a_time(retry_after: float | None, expected: type[DeliveryError]) -> None:
    """A proxy in between may say it after Slack has posted."""
    assert type(bad_status("chat.postMessage", 503, retry_after)) is expected


async def test_a_refused_token_names_the_fix(slack: SlackServer) -> None:
    """A wrong token is refused for good, with what to do, and without the token."""
    channel = build(slack, token="xoxb-wrong")

    with pytest.raises(PermanentDeliveryError, match="invalid_auth; give the receiver the bot token") as caught:
        await channel.deliver(notify(), uncertain=False)

    await channel.close()
    assert "xoxb-wrong" not in str(caught.value)


async def test_nobody_listens() -> None:
    """A refused connection surely delivered nothing."""
    async with SlackServer() as slack:
        channel = build(slack)
    with pytest.raises(RetryableDeliveryError, match="cannot connect"):
        await channel.deliver(notify(), uncertain=False)
    await channel.close()


async def test_another_page_in_between_makes_no_double(slack: SlackServer, channel: SlackChannel) -> None:
    """Of another cluster, by the same channel: what is half done of one is not forgotten for it."""
    slack.scopes = ("chat:write",)  # nor can the history be asked
    slack.fail("chat.postMessage", "pass")
    slack.fail("chat.postMessage", "429")
    with pytest.raises(UncertainDeliveryError):
        await channel.deliver(notify(), uncertain=False)
    await channel.deliver(notify(key="k2"), uncertain=False)
    await channel.deliver(notify(), uncertain=True)

    assert [parent.payload["key"] for parent in slack.parents] == ["k1", "k2"]


async def test_a_closed_history_loses_nothing_and_marks_the_double(
    slack: SlackServer, channel: SlackChannel, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the history is closed, an uncertain page is posted again and says so; the log names the scope, once."""
    slack.scopes = ("chat:write",)
    slack.fail("chat.postMessage", "timeout_after")

    with pytest.raises(UncertainDeliveryError):
        await channel.deliver(notify(), uncertain=False)
    await channel.deliver(notify(), uncertain=True)
    await channel.deliver(notify(3, key="k2"), uncertain=False)

    first, second, third = slack.parents
    assert "may be a repeat" not in first.shown + third.shown
    assert "may be a repeat" in second.shown
    assert caplog.text.count("channels:history") == 1


async def test_without_memory_and_history_a_page_says_that_it_may_be_a_repeat(
    slack: SlackServer, channel: SlackChannel
) -> None:
    """The state was lost and the channel cannot be asked what it shows: told, and marked."""
    slack.scopes = ("chat:write",)

    await channel.deliver(notify(1, key="a", anew=True, adopt=True), uncertain=False)
    await channel.deliver(notify(1, key="b", anew=True), uncertain=False)

    assert ["may be a repeat" in parent.shown for parent in slack.parents] == [True, False]


async def test_a_failing_history_is_not_taken_for_an_empty_one(slack: SlackServer, channel: SlackChannel) -> None:
    """Nothing is posted while it is not known whether it is there."""
    slack.fail("conversations.history", "status", status=500)

    with pytest.raises(RetryableDeliveryError):
        await channel.deliver(notify(), uncertain=True)

    assert slack.parents == []


async def test_what_the_channel_shows_can_be_recalled(slack: SlackServer, channel: SlackChannel) -> None:
    """An emptied store is told of each incident once, as its newest message shows it."""
    first = await channel.deliver(notify(1, key="a"), uncertain=False)
    await channel.deliver(notify(2, key="a", anew=True, reference=first.reference), uncertain=False)
    await channel.deliver(notify(1, key="b", message=resolved()), uncertain=False)

    recalled = {one.key: one for one in await channel.recall("ops", NOON)}

    assert {key: (one.is_open, one.revision) for key, one in recalled.items()} == {"a": (True, 2), "b": (False, 1)}
    assert recalled["a"].reference == f"{CHANNEL}/{slack.parents[1].ts}"
    assert recalled["a"].causes == ("component-short-of-gpus",)
    assert recalled["a"].opened_at == NOON - timedelta(minutes=2)


async def test_a_broken_message_of_another_app_is_passed_over(slack: SlackServer, channel: SlackChannel) -> None:
    """Metadata that only look like ours do not end the reading of the history."""
    payloads: list[object] = [None, [], {"key": 1}, {"key": "k1", "episode": "x"}]
    for number, payload in enumerate(payloads):
        metadata = {"event_type": "sevenhop_incident", "event_payload": payload}
        slack.messages.append(Posted(CHANNEL, f"1.{number:06d}", "x", [], metadata))

    await channel.deliver(notify(2), uncertain=True)

    assert len(slack.parents) == len(payloads) + 1


async def test_another_episode_is_not_edited(slack: SlackServer, channel: SlackChannel) -> None:
    """What ended is history: an edit that finds no message of its own episode posts."""
    await channel.deliver(notify(3, episode=1, message=resolved()), uncertain=False)
    await channel.deliver(notify(2, episode=2), uncertain=False)

    assert [(p.payload["episode"], p.payload["status"]) for p in slack.parents] == [(1, "resolved"), (2, "firing")]


async def test_a_reply_that_was_accepted_unanswered_is_not_posted_twice(
    slack: SlackServer, channel: SlackChannel
) -> None:
    """The thread is asked as well before it is answered again."""
    slack.fail("chat.postMessage", "pass")
    slack.fail("chat.postMessage", "drop_after")

    with pytest.raises(UncertainDeliveryError, match="told, but not all"):
        await channel.deliver(notify(), uncertain=False)
    await channel.deliver(notify(), uncertain=True)

    (parent,) = slack.parents
    assert len(slack.thread_of(parent)) == 1


async def test_a_retired_message_is_not_recalled(slack: SlackServer, channel: SlackChannel) -> None:
    """It points to another one; if a person deleted that, the channel shows nothing of the incident."""
    first = await channel.deliver(notify(1), uncertain=False)
    await channel.deliver(notify(2, anew=True, reference=first.reference), uncertain=False)
    slack.delete(CHANNEL, slack.parents[1].ts)

    assert await channel.recall("ops", NOON) == []


async def test_two_receivers_in_one_channel(slack: SlackServer, channel: SlackChannel) -> None:
    """Each has its own message: one that arrived is no proof of the other, and is not edited for it."""
    other = build(slack)
    await channel.deliver(notify(1), uncertain=False)
    await other.deliver(notify(1, receiver="sre", id="k1-1/sre/1"), uncertain=True)
    await other.deliver(notify(2, receiver="sre", id="k1-1/sre/2", message=resolved()), uncertain=False)
    recalled = await channel.recall("ops", NOON)
    await other.close()

    assert [(p.payload["receiver"], p.payload["status"]) for p in slack.parents] == [
        ("ops", "firing"),
        ("sre", "resolved"),
    ]
    assert [one.reference for one in recalled] == [f"{CHANNEL}/{slack.parents[0].ts}"]


async def test_two_messages_of_one_moment_are_told_apart(slack: SlackServer, channel: SlackChannel) -> None:
    """A page that replaces another of the same moment is not taken for it."""
    await channel.deliver(notify(1), uncertain=False)
    await channel.deliver(notify(2, anew=True), uncertain=True)

    assert [parent.payload["status"] for parent in slack.parents] == ["superseded", "firing"]
