"""Clicks in Slack: who may be heard, what each one asks for, and what the person is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.channels import build_channel
from sevenhop.channels.door import RefusedError
from sevenhop.channels.slack.buttons import DETAILS, PREFIX, SILENCE, Value
from sevenhop.channels.slack.clicks import ClickError, parse_click, parse_command
from sevenhop.channels.slack.door import SlackDoor
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.core.effects import Message, PlanCard, Reply
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet, Verb
from sevenhop.core.remediation.states import PlanState
from tests.fakes.slack_server import APP_TOKEN, CHANNEL, SECRET, TEAM, TOKEN, SlackServer, signed
from tests.unit.channels.notifies import NOON, message, notify, resolved

APPROVE = f"{PREFIX}approve"
CARD = PlanCard(
    plan_id="7f3a0001",
    plan_hash="h" * 64,
    state=PlanState.PROPOSED,
    question="summarizer 4 → 3 through its InferenceService; frees 2 H100 on gpu-07; lease 2 h",
    buttons=("approve", "reject"),
    expires_at=NOON + timedelta(minutes=15),
)


class Core:
    """The service behind the door: answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Decided | SwitchSet | BreakerReset] = []
        self.silences: list[Silenced] = []
        self.reply: Callable[[Any], Reply] = lambda event: Reply(request_id=event.request_id, accepted=True, text="")
        self.messages: dict[str, Message] = {"k1-1": message(plan=CARD)}

    async def ask(self, event: Decided | SwitchSet | BreakerReset, cluster: str = "") -> Reply:
        self.asked.append(event)
        return self.reply(event)

    async def silence(self, event: Silenced) -> None:
        self.silences.append(event)

    async def message(self, incident_id: str) -> Message | None:
        return self.messages.get(incident_id)

    async def status(self) -> str:
        return "Nothing runs."


class Scene:
    door: SlackDoor
    address: str

    def __init__(self, slack: SlackServer, core: Core) -> None:
        self.slack = slack
        self.core = core
        self.stands_at: datetime | None = None
        """What the door takes for now; the real time if None."""

    @property
    def now(self) -> datetime:
        return self.stands_at or datetime.now(tz=UTC)

    async def until(self, is_true: Callable[[], Any]) -> None:
        async with asyncio.timeout(30):
            while not is_true():  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.005)

    async def post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.address}{path}", data=body, headers=headers) as answer,
        ):
            return answer.status, await answer.text()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A message with a plan in the channel, a door over Socket Mode and over HTTP."""
    async with SlackServer() as slack:
        settings = SlackSettings.model_validate(
            {
                "type": "slack",
                "token": TOKEN,
                "channel": CHANNEL,
                "app_token": APP_TOKEN,
                "signing_secret": SECRET,
                "base_url": slack.base_url,
            }
        )
        channel = build_channel(settings, clock=lambda: NOON)
        await channel.deliver(notify(message=message(plan=CARD)), uncertain=False)
        core = Core()
        scene = Scene(slack, core)
        door = SlackDoor(settings, core, ("slack-group:S0ONCALL", "slack:U0ROOT"), lambda: scene.now)
        scene.door = door
        app = web.Application()
        for path, handler in door.routes().items():
            app.router.add_post(path, handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        running = asyncio.create_task(door.run())
        scene.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await scene.until(lambda: slack.is_connected)
        yield scene
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await door.close()
        await channel.close()
        await runner.cleanup()


async def test_an_approval_over_socket_mode(scene: Scene) -> None:
    """The core hears who it is by Slack's own word, which group allows it, and exactly which plan was seen."""
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.core.asked)

    [asked] = scene.core.asked
    assert isinstance(asked, Decided)
    assert (asked.verb, asked.plan_id, asked.plan_hash, asked.via) == (Verb.APPROVE, "7f3a0001", "h" * 64, "slack")
    assert asked.person.id == "slack:U0KIM"
    assert asked.person.name == "Kim"
    assert asked.person.groups == ("slack-group:S0ONCALL",)
    assert asked.person.is_same_as == ("email:kim@example.com",)
    assert not scene.slack.unanswered
    assert max(scene.slack.answered_after_s) < 3


async def test_the_answer_comes_before_the_work(scene: Scene) -> None:
    """Slack's three seconds do not wait for a core that is slow, nor for Slack's own answers."""
    going = asyncio.Event()

    async def slow(event: Any, cluster: str = "") -> Reply:
        await going.wait()
        return Reply(request_id=event.request_id, accepted=True, text="")

    scene.core.ask = slow  # type: ignore[method-assign]
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.slack.answered_after_s)
    going.set()

    assert not scene.slack.unanswered


async def test_an_approval_over_http(scene: Scene) -> None:
    """The same click over HTTP, signed by Slack, is the same decision."""
    payload = scene.slack.clicked("U0KIM", APPROVE)
    status, text = await scene.post("/slack/actions", *signed({"payload": json.dumps(payload)}))
    await scene.until(lambda: scene.core.asked)

    assert (status, text) == (200, "")
    assert scene.core.asked[0].person.id == "slack:U0KIM"


async def test_who_is_in_no_group_is_heard_as_such(scene: Scene) -> None:
    """The door does not decide: it says who it is, and the core's refusal is told to that person alone."""
    scene.core.reply = lambda e: Reply(request_id=e.request_id, accepted=False, text="You may not approve this.")
    await scene.slack.click("U0GUEST", APPROVE)
    await scene.until(lambda: scene.slack.whispers)

    assert scene.core.asked[0].person.groups == ()
    assert scene.slack.whispers == [{"channel": CHANNEL, "user": "U0GUEST", "text": "You may not approve this."}]
    assert len(scene.slack.parents) == 1


async def test_removed_from_the_group_a_minute_ago(scene: Scene) -> None:
    """What Slack says now counts, not what it said when the person last clicked."""
    await scene.slack.click("U0KIM", f"{PREFIX}reject")
    await scene.until(lambda: len(scene.core.asked) == 1)
    scene.slack.people.groups["S0ONCALL"] = ["U0LEE"]
    scene.door._people._clock = lambda: datetime.now(tz=UTC) + timedelta(minutes=1)
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: len(scene.core.asked) == 2)

    assert [each.person.groups for each in scene.core.asked] == [("slack-group:S0ONCALL",), ()]


@pytest.mark.parametrize("method", ["users.info", "usergroups.users.list", "auth.test"])
async def test_who_cannot_be_verified_decides_nothing(scene: Scene, method: str) -> None:
    """Slack is silent, or refuses: nothing reaches the core, and the person is told why."""
    scene.slack.fail(method, "error", error="missing_scope")
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.slack.whispers)

    assert not scene.core.asked
    assert "could not be verified" in scene.slack.whispers[0]["text"]


@pytest.mark.parametrize("flag", ["deleted", "is_bot"])
async def test_only_members_decide(scene: Scene, flag: str) -> None:
    """A deactivated account, or a bot, decides nothing."""
    scene.slack.people.users["U0KIM"][flag] = True
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.slack.whispers)

    assert not scene.core.asked


@pytest.mark.parametrize("action", [APPROVE, DETAILS])
@pytest.mark.parametrize("foreign", [{"team": "T0OTHER"}, {"app": "A0OTHER"}], ids=["workspace", "app"])
async def test_a_click_from_elsewhere(scene: Scene, action: str, foreign: dict[str, str]) -> None:
    """From another workspace, or another app: it is counted, and nothing else happens, not even a look."""
    await scene.slack.click("U0KIM", action, **foreign)
    await scene.until(lambda: scene.door.refused)

    assert not scene.core.asked
    assert not scene.slack.whispers
    assert not scene.slack.views


@pytest.mark.parametrize("foreign", [{"team": "T0OTHER"}, {"app": "A0OTHER"}], ids=["workspace", "app"])
async def test_a_command_from_elsewhere(scene: Scene, foreign: dict[str, str]) -> None:
    """It turns nothing."""
    await scene.slack.send("slash_commands", scene.slack.commanded("U0KIM", "resume", **foreign))
    await scene.until(lambda: scene.door.refused)

    assert not scene.core.asked
    assert not scene.slack.whispers


@pytest.mark.parametrize(
    ("fault", "asked"), [({"error": "missing_scope"}, 1), ({"error": "internal_error"}, 2)], ids=["never", "not now"]
)
async def test_slack_does_not_say_which_app_this_is(scene: Scene, fault: dict[str, str], asked: int) -> None:
    """That is no reason to be deaf: what is signed with its secret, or comes over its socket, is its own."""
    scene.slack.fail("bots.info", "error", **fault)
    await scene.slack.click("U0KIM", f"{PREFIX}reject")
    await scene.until(lambda: len(scene.core.asked) == 1)
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: len(scene.core.asked) == 2)

    assert len(scene.slack.calls("bots.info")) == asked


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        pytest.param({"team_id": "T0OTHER"}, False, id="of another company, in a shared channel"),
        pytest.param({"team_id": "T0OTHER", "enterprise_user": {"teams": [TEAM]}}, True, id="of the same organisation"),
        pytest.param({"is_restricted": True}, True, id="a guest of the workspace"),
    ],
)
async def test_whose_home_is_elsewhere(scene: Scene, told: dict[str, Any], counts: bool) -> None:
    """Who comes through a shared channel is no member, whatever the payload says of the team."""
    scene.slack.people.users["U0KIM"].update(told)
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.core.asked or scene.slack.whispers)

    assert bool(scene.core.asked) == counts


async def test_the_same_click_twice_is_one(scene: Scene) -> None:
    """Slack sends an envelope again if it is in doubt, and once over each way."""
    payload = await scene.slack.click("U0KIM", APPROVE)
    await scene.slack.send("interactive", payload)
    await scene.post("/slack/actions", *signed({"payload": json.dumps(payload)}))
    await scene.until(lambda: not scene.slack.unanswered and scene.core.asked)
    await asyncio.sleep(0.05)

    assert len(scene.core.asked) == 1


async def test_a_double_is_disarmed(scene: Scene) -> None:
    """A message that still offers what is decided loses its buttons at the first click on it."""
    scene.core.reply = lambda e: Reply(
        request_id=e.request_id, accepted=False, text="Lee rejected it at 12:01.", is_over=True
    )
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.slack.parents[0].edits)

    assert "actions" not in [block["type"] for block in scene.slack.parents[0].blocks]
    assert scene.slack.whispers[0]["text"] == "Lee rejected it at 12:01."


async def test_silence(scene: Scene) -> None:
    """The incident is silenced for as long as was chosen, by who chose it."""
    await scene.slack.click("U0LEE", SILENCE, option="2h")
    await scene.until(lambda: scene.slack.whispers)

    [silence] = scene.core.silences
    assert silence.matchers == {"incident": "k1"}
    assert silence.author == "Lee"
    assert silence.expires_at - silence.at == timedelta(hours=2)
    assert silence.silence_id in scene.slack.whispers[0]["text"]


@pytest.mark.parametrize("stamp", ["1700000000.123456", "not a number", "1e400"])
async def test_an_old_silence_is_not_set_again(scene: Scene, stamp: str) -> None:
    """What was clicked before a restart may have been ended by a person since; a click without a time is a new one."""
    payload = scene.slack.clicked("U0LEE", SILENCE, option="2h")
    payload["actions"][0]["action_ts"] = stamp
    status, _ = await scene.post("/slack/actions", *signed({"payload": json.dumps(payload)}))
    await scene.until(lambda: scene.slack.whispers)

    is_old = stamp.startswith("17")
    assert (status, len(scene.core.silences)) == (200, 0 if is_old else 1)
    assert ("before a restart" in scene.slack.whispers[0]["text"]) is is_old


async def test_details(scene: Scene) -> None:
    """A window with the whole message, within the trigger's three seconds."""
    await scene.slack.click("U0GUEST", DETAILS)
    await scene.until(lambda: scene.slack.views)

    shown = json.dumps(scene.slack.views[0], ensure_ascii=False)
    assert "node gpu-07: 8 of 8 bound" in shown


async def test_the_kill_switch_by_command(scene: Scene) -> None:
    """Over both ways; the reason and the person reach the core, and the answer is private."""
    scene.core.reply = lambda e: Reply(request_id=e.request_id, accepted=True, text="Stopped by Kim.")
    await scene.slack.send("slash_commands", scene.slack.commanded("U0KIM", "stop the nodes are in maintenance"))
    await scene.until(lambda: scene.slack.whispers)
    await scene.post("/slack/commands", *signed(scene.slack.commanded("U0KIM", "resume")))
    await scene.until(lambda: len(scene.core.asked) == 2)

    first, second = scene.core.asked
    assert isinstance(first, SwitchSet)
    assert (first.is_on, first.comment, first.person.id) == (True, "the nodes are in maintenance", "slack:U0KIM")
    assert isinstance(second, SwitchSet)
    assert not second.is_on


async def test_the_same_command_twice_is_one(scene: Scene) -> None:
    """A `resume` that Slack sends again, or that comes over both ways, does not end a `stop` said in between."""
    resume = scene.slack.commanded("U0KIM", "resume")
    await scene.slack.send("slash_commands", resume)
    await scene.until(lambda: len(scene.core.asked) == 1)
    await scene.slack.send("slash_commands", scene.slack.commanded("U0KIM", "stop now"))
    await scene.until(lambda: len(scene.core.asked) == 2)
    await scene.slack.send("slash_commands", resume)
    await scene.post("/slack/commands", *signed(resume))
    await scene.until(lambda: not scene.slack.unanswered)
    await asyncio.sleep(0.05)

    assert [event.is_on for event in scene.core.asked if isinstance(event, SwitchSet)] == [False, True]


async def test_nobody_fills_the_trail(scene: Scene) -> None:
    """Clicks of one person beyond so many a minute are answered in private, and not handed on."""
    for number in range(40):
        payload = scene.slack.clicked("U0KIM", APPROVE)
        payload["actions"][0]["action_ts"] = f"{number}.0"
        await scene.slack.send("interactive", payload)
    await scene.until(lambda: any("wait a minute" in whisper["text"] for whisper in scene.slack.whispers))

    assert len(scene.core.asked) <= 30


@pytest.mark.parametrize("what", ["status", "details"])
async def test_nobody_looks_without_end(scene: Scene, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Each look asks all workers; whoever has looked too often can stop everything all the same."""
    looks: list[str] = []

    async def status() -> str:
        looks.append("status")
        return "Nothing runs."

    async def message(incident_id: str) -> Message | None:
        looks.append(incident_id)
        return None

    monkeypatch.setattr(scene.core, "status", status)
    monkeypatch.setattr(scene.core, "message", message)
    for number in range(40):
        if what == "status":
            await scene.slack.send("slash_commands", scene.slack.commanded("U0KIM", "status"))
        else:
            payload = scene.slack.clicked("U0KIM", DETAILS)
            payload["actions"][0]["action_ts"] = f"{number}.0"
            await scene.slack.send("interactive", payload)
    await scene.until(lambda: len(scene.slack.whispers) == 40)
    assert len(looks) == 30

    await scene.slack.send("slash_commands", scene.slack.commanded("U0KIM", "stop all"))
    await scene.until(lambda: scene.core.asked)


async def test_a_click_that_comes_in_pieces(scene: Scene) -> None:
    """A message of many lines makes a payload of many packets; all of it is what Slack signed."""
    body, headers = signed({"payload": json.dumps(scene.slack.clicked("U0KIM", APPROVE))})

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), len(body) // 3 + 1):
            yield body[start : start + len(body) // 3 + 1]
            await asyncio.sleep(0.02)

    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{scene.address}/slack/actions", data=pieces(), headers=headers) as answer,
    ):
        assert answer.status == 200
    await scene.until(lambda: scene.core.asked)


@pytest.mark.parametrize(("said", "heard"), [("status", "Nothing runs."), ("", "Say"), ("stopp it", "Say")])
async def test_other_commands(scene: Scene, said: str, heard: str) -> None:
    """What is not understood changes nothing and says what there is."""
    await scene.slack.send("slash_commands", scene.slack.commanded("U0GUEST", said))
    await scene.until(lambda: scene.slack.whispers)

    assert heard in scene.slack.whispers[0]["text"]
    assert not scene.core.asked


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda body, head: (body, {**head, "X-Slack-Signature": "v0=" + "0" * 64}), id="wrong signature"),
        pytest.param(lambda body, head: (body + b"&x=1", head), id="changed body"),
        pytest.param(lambda body, head: (body, {}), id="no headers"),
        pytest.param(lambda body, head: (body, {**head, "X-Slack-Request-Timestamp": "abc"}), id="no time"),
        pytest.param(lambda body, head: (body, {**head, "X-Slack-Request-Timestamp": "1e9"}), id="float time"),
        pytest.param(lambda body, head: (body, {**head, "X-Slack-Request-Timestamp": "²"}), id="strange digit"),
        pytest.param(lambda body, head: (body, {**head, "X-Slack-Signature": "v0=é"}), id="not ascii"),
        pytest.param(lambda body, head: (b"\xff\xfe", head), id="not text"),
        pytest.param(lambda body, head: (b"x" * 600_000, head), id="too large"),
        pytest.param(lambda body, head: (body + b"&z=" + b"x" * 600_000, head), id="too large, and begins as signed"),
    ],
)
async def test_forged_requests(scene: Scene, forge: Callable[[bytes, dict[str, str]], Any]) -> None:
    """401 for whatever is not exactly what Slack signed, however hostile; never an error of ours."""
    body, headers = forge(*signed({"payload": json.dumps(scene.slack.clicked("U0KIM", APPROVE))}))
    status, _ = await scene.post("/slack/actions", body, headers)
    await asyncio.sleep(0.02)

    assert status == 401
    assert not scene.core.asked


@pytest.mark.parametrize(
    ("age_s", "expected"), [(300, 200), (301, 401), (3_600, 401), (-300, 200), (-301, 401), (-3_600, 401)]
)
async def test_late_requests(scene: Scene, age_s: int, expected: int) -> None:
    """A request whose time is more than five minutes away may be a replay, though its signature is right."""
    scene.stands_at = datetime.now(tz=UTC).replace(microsecond=0)
    payload = {"payload": json.dumps(scene.slack.clicked("U0KIM", APPROVE))}
    status, _ = await scene.post("/slack/actions", *signed(payload, at=scene.stands_at.timestamp() - age_s))

    assert status == expected
    assert expected == 200 or not scene.core.asked


async def test_replayed_requests(scene: Scene) -> None:
    """The very same request again, within the five minutes, is refused."""
    request = signed({"payload": json.dumps(scene.slack.clicked("U0KIM", APPROVE))})
    first, _ = await scene.post("/slack/actions", *request)
    second, _ = await scene.post("/slack/actions", *request)

    assert (first, second) == (200, 401)


@pytest.mark.parametrize(
    ("number", "expected"),
    [("1", 200), ("3", 200), ("", 401), ("x", 401)],
    ids=["first retry", "last retry", "none", "no number"],
)
async def test_what_slack_sends_again(scene: Scene, number: str, expected: int) -> None:
    """A retry of the very same request is told that it has arrived, and is not taken twice; a replay is refused."""
    body, headers = signed({"payload": json.dumps(scene.slack.clicked("U0KIM", APPROVE))})
    first, _ = await scene.post("/slack/actions", body, headers)
    second, _ = await scene.post("/slack/actions", body, {**headers, "X-Slack-Retry-Num": number})
    await scene.until(lambda: scene.core.asked)
    await asyncio.sleep(0.05)

    assert (first, second) == (200, expected)
    assert len(scene.core.asked) == 1


async def test_a_forged_retry_is_no_retry(scene: Scene) -> None:
    """The header is not signed: it opens nothing."""
    body, headers = signed({"payload": json.dumps(scene.slack.clicked("U0KIM", APPROVE))}, secret="another")
    status, _ = await scene.post("/slack/actions", body, {**headers, "X-Slack-Retry-Num": "1"})
    await asyncio.sleep(0.05)

    assert (status, scene.core.asked) == (401, [])


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "error", "error": "expired_trigger_id"},
        {"kind": "429", "retry_after": 30},
        {"kind": "error", "error": "token_revoked"},
    ],
    ids=["too late", "rate limited", "revoked"],
)
async def test_details_that_cannot_be_opened(scene: Scene, fault: dict[str, Any]) -> None:
    """A window cannot be opened later: the person is told where else it stands, and nobody waits for Slack."""
    scene.slack.fail("views.open", **fault)
    await scene.slack.click("U0LEE", DETAILS)
    await scene.until(lambda: scene.slack.whispers)

    assert "in the thread" in scene.slack.whispers[0]["text"]
    assert len(scene.slack.calls("views.open")) == 1


@pytest.mark.parametrize("word", ["token_revoked", "account_inactive"])
async def test_a_token_that_was_taken_back(scene: Scene, word: str) -> None:
    """Nobody can be verified any more: nothing is decided, and what to do is said."""
    scene.slack.fail("users.info", "error", error=word)
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.slack.whispers)

    assert scene.core.asked == []
    assert "reinstall the app" in scene.slack.whispers[0]["text"]


async def test_a_connection_that_slack_refreshes(scene: Scene) -> None:
    """Slack closes a socket now and then; clicks go on over the next one."""
    await scene.slack.disconnect()
    async with asyncio.timeout(20):
        while not scene.slack.is_connected:  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.05)
    await scene.slack.click("U0KIM", APPROVE)
    await scene.until(lambda: scene.core.asked)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "user", "team", "id", "channel", "message", "ts", "trigger_id", "actions",
                             "action_id", "action_ts", "value", "selected_option"]) | st.text(max_size=5),
            inner | st.sampled_from(["block_actions", APPROVE, SILENCE, DETAILS, "{}", '{"i":"k"}']),
            max_size=8,
        ),
        max_leaves=30,
    )
)  # fmt: skip
def test_any_payload(payload: Any) -> None:
    """Whatever comes in is a click, nothing of ours, or refused; nothing else is raised."""
    for parse in (parse_click, parse_command):
        with contextlib.suppress(ClickError):
            parse(payload)


async def test_messages_without_ears_have_no_buttons() -> None:
    """Where no click could be heard none is offered."""
    async with SlackServer() as slack:
        settings = SlackSettings.model_validate(
            {"type": "slack", "token": TOKEN, "channel": CHANNEL, "base_url": slack.base_url}
        )
        channel = build_channel(settings, clock=lambda: NOON)
        await channel.deliver(notify(message=message(plan=CARD)), uncertain=False)
        await channel.close()

        assert "actions" not in [block["type"] for block in slack.parents[0].blocks]


async def test_what_is_over_has_no_buttons(scene: Scene) -> None:
    """A resolved incident, and a plan that is decided, offer nothing any more."""
    settings = scene.door._settings
    channel = build_channel(settings, clock=lambda: NOON)
    decided = msgspec.structs.replace(CARD, state=PlanState.RUNNING, buttons=())
    await channel.deliver(notify(key="k2", message=message(plan=decided)), uncertain=False)
    await channel.deliver(notify(key="k3", message=resolved(plan=decided)), uncertain=False)
    await channel.close()

    running, ended = scene.slack.parents[-2:]
    assert [e["action_id"] for b in running.blocks if b["type"] == "actions" for e in b["elements"]] == [
        SILENCE, DETAILS,
    ]  # fmt: skip
    assert "actions" not in [block["type"] for block in ended.blocks]


def test_a_value_is_names_only() -> None:
    """What a button carries fits Slack's limit and holds nothing but names."""
    value = msgspec.json.encode(Value("k" * 20, "p" * 8, "h" * 64, 12))

    assert len(value) < 2_000
    assert set(json.loads(value)) == {"i", "p", "h", "r"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RefusedError("late: the decision came after 130 s, and nothing was done"), "late: the decision came"),
        (ZeroDivisionError("a fault of ours"), "went wrong here"),
    ],
    ids=["refused", "failed"],
)
async def test_whose_click_was_not_followed_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    """Not that it is silenced, and not nothing."""

    async def silence(_event: Silenced) -> None:
        raise error

    monkeypatch.setattr(scene.core, "silence", silence)
    await scene.slack.click("U0LEE", SILENCE, option="2h")
    await scene.until(lambda: scene.slack.whispers)
    [whisper] = scene.slack.whispers
    assert said in whisper["text"]
    assert "Silenced" not in whisper["text"]
