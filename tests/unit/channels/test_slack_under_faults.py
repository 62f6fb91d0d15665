"""Whatever goes wrong on the way, each transition stands in the channel once, and the last word is the right one."""

from __future__ import annotations

import random
from datetime import timedelta

import msgspec
import pytest

from sevenhop.channels.channel import RetryableDeliveryError, UncertainDeliveryError
from sevenhop.channels.slack.channel import SlackChannel
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.core.effects import Notify
from tests.fakes.slack_server import CHANNEL, TOKEN, Fault, SlackServer
from tests.unit.channels.notifies import NOON, message, notify, resolved

METHODS = ("chat.postMessage", "chat.update", "conversations.history", "conversations.replies", "chat.getPermalink")
KINDS = ("429", "ratelimited", "drop_before", "drop_after", "html", "pass", "pass", "pass")


class Sender:
    """The outbox's part: in order, again until it is done, and sometimes killed."""

    def __init__(self, slack: SlackServer, dice: random.Random) -> None:
        self._slack = slack
        self._dice = dice
        self._channel = self._build()
        self.kills = 0

    async def send(self, asked: Notify) -> str:
        """The reference; empty where the process died before it was stored."""
        uncertain = False
        for _ in range(200):
            try:
                delivery = await self._channel.deliver(asked, uncertain=uncertain)
            except RetryableDeliveryError:
                pass
            except UncertainDeliveryError:
                uncertain = True
            else:
                if self._dice.random() < 0.8:
                    return delivery.reference
                # Told, and killed before the outbox knew.
                uncertain = True
            if self._dice.random() < 0.3:
                self.kills += 1
                uncertain = True
                await self.close()
                self._channel = self._build()
        raise AssertionError("never delivered")

    async def close(self) -> None:
        await self._channel.close()

    def _build(self) -> SlackChannel:
        return SlackChannel(
            SlackSettings.model_validate(
                {
                    "type": "slack",
                    "token": TOKEN,
                    "channel": CHANNEL,
                    "base_url": self._slack.base_url,
                    "timeout": timedelta(seconds=5),
                }
            )
        )


def story(dice: random.Random, key: str) -> list[Notify]:
    """A first page, some edits, perhaps a louder one, the end; the reference is filled in where it is known."""
    kinds = ["first", *dice.choices(["edit", "edit", "louder"], k=dice.randint(0, 4)), "end"]
    return [
        notify(
            number,
            key=key,
            anew=kind in {"first", "louder"},
            message=(resolved if kind == "end" else message)(
                at=NOON + timedelta(seconds=number), details=(f"detail {number}",)
            ),
        )
        for number, kind in enumerate(kinds, 1)
    ]


@pytest.mark.parametrize("seed", range(25))
async def test_each_transition_once(seed: int) -> None:
    """Over faults before and after Slack took a call, rate limits, and kills at any point."""
    dice = random.Random(seed)
    async with SlackServer() as slack:
        slack.faults = [Fault(dice.choice(METHODS), dice.choice(KINDS)) for _ in range(60)]
        sender = Sender(slack, dice)
        stories = [story(dice, f"k{number}") for number in range(3)]
        references = ["", "", ""]
        for step in range(6):
            for number, told in enumerate(stories):
                if step < len(told):
                    # The reference is what the desk heard of the last outcome; a crash may have lost it.
                    asked = told[step]
                    known = references[number] if dice.random() < 0.8 else ""
                    references[number] = await sender.send(notify_with(asked, known))
        await sender.close()

    for number, told in enumerate(stories):
        parents = [parent for parent in slack.parents if parent.payload["key"] == f"k{number}"]
        loud = [asked for asked in told if asked.anew]
        assert len(parents) == len(loud)
        assert [parent.payload["status"] for parent in parents] == ["superseded"] * (len(loud) - 1) + ["resolved"]
        assert parents[-1].payload["revision"] == len(told)
        replies = slack.thread_of(parents[-1])
        assert [reply.shown for reply in replies] == [f"detail {len(told)}"]


def notify_with(asked: Notify, reference: str) -> Notify:
    return msgspec.structs.replace(asked, reference=reference)
