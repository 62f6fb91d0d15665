"""What Slack is sent is inside its limits, and text from the cluster stays text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.channels.slack.blocks import Post, details_of, parent_of, superseded_of
from sevenhop.channels.slack.markup import code, cut_escaped, escaped, literal
from sevenhop.channels.slack.metadata import Place, describe
from sevenhop.channels.text import word_of
from sevenhop.core.effects import Line, Role
from sevenhop.core.incidents.message import ENDINGS
from tests.fakes.slack_limits import MAX_TEXT, mentions_in, refusal_of
from tests.unit.channels.notifies import LINES, message, notify, resolved

MENTIONS = "<!channel> <@U123> <#C1> <https://evil.example|click>"
HOSTILE = f"{MENTIONS} *b* _i_ ~s~ `c` ```x``` :fire: & \x1b[31m \u202e \ud800\n> q"

texts = st.one_of(
    st.text(max_size=200),
    st.sampled_from([HOSTILE, "", "&" * 2_999, "<" * 5_000, "é" * 4_000, "word " * 3_000]),
)
lines = st.builds(Line, st.sampled_from(list(Role)), texts, texts)


def body(post: Post, **more: Any) -> dict[str, Any]:
    return {"text": post.text, "blocks": post.blocks, **more}


@given(title=texts, cluster=texts, shown=st.lists(lines, max_size=70), details=st.lists(texts, max_size=30), end=texts)
def test_any_message_is_taken(title: str, cluster: str, shown: list[Line], details: list[str], end: str) -> None:
    """However long or hostile the texts are, Slack takes the message and nobody is mentioned."""
    said = resolved(title=title, cluster=cluster, lines=tuple(shown), details=tuple(details), end_reason=end)
    asked = notify(message=said, causes=(title,), cause=cluster, family=title, incident=title)

    posts = [parent_of(asked, in_doubt=True), superseded_of(asked, "https://fake.example/p1")]
    thread = details_of(said, posts[0].left_out)
    posts += [thread] if thread else []

    for post in posts:
        sent = body(post, metadata=describe(asked))
        assert refusal_of(sent) == ""
        assert mentions_in(sent) == []
        assert len(post.text) <= min(MAX_TEXT, 4_000)


def test_what_has_no_room_is_in_the_thread() -> None:
    """A line that was cut or left out stands in full in the thread, and the message says so."""
    long = tuple(Line(Role.NOTE, f"n{number}", f"{number} " + "x" * 1_500) for number in range(9))

    post = parent_of(notify(message=message(lines=long)))
    thread = details_of(message(lines=long, details=()), post.left_out)

    assert post.left_out
    assert "in full in the thread" in str(post.blocks)
    assert thread is not None
    for left_out in post.left_out:
        assert left_out in str(thread.blocks)


def test_the_thread_keeps_the_newest() -> None:
    """Of a history that is too long the beginning goes, and that is said."""
    post = details_of(message(details=tuple(f"event {number} " + "x" * 100 for number in range(300))))

    assert post is not None
    assert "event 299 " in post.blocks[-1]["text"]["text"]
    assert post.blocks[0]["text"]["text"].startswith("… ")
    assert "earlier lines left out" in post.blocks[0]["text"]["text"]


def test_order_is_the_messages() -> None:
    """Channels do not reorder what the desk wrote."""
    shown = str(parent_of(notify()).blocks)

    places = [shown.index(literal(line.label)) for line in LINES]
    assert places == sorted(places)


def test_the_text_alone_says_it() -> None:
    """Screen readers and notifications read the top-level text only: whole sentences, severity as a word."""
    text = parent_of(notify()).text

    assert "CRITICAL, prod-eu: llama-70b/decode waits for 2 × H100." in text
    assert "First broken hop:" in text
    assert "If you do nothing: stays slow, no spare." in text


def test_no_actions_unless_given() -> None:
    """The place for buttons is empty until something can be decided."""
    button = {"type": "button", "text": {"type": "plain_text", "text": "Approve"}, "action_id": "a", "value": "v"}

    without = parent_of(notify())
    with_one = parent_of(notify(), buttons=[button])

    assert "actions" not in [block["type"] for block in without.blocks]
    assert with_one.blocks[-2] == {"type": "actions", "block_id": "sevenhop/k1-1/ops/1", "elements": [button]}
    assert refusal_of(body(with_one)) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("a & b", "a &amp; b"),
        ("&lt;", "&amp;lt;"),
        ("*bold*", "∗bold∗"),
        ("_it_ my_pod_0 a_", "＿it＿ my_pod_0 a＿"),
        (":fire: at 10.0.0.1:8000: image:tag", "꞉fire: at 10.0.0.1:8000: image:tag"),
        ("two\nlines\r\n> quoted", "two lines &gt; quoted"),
    ],
)
def test_text_stays_text(text: str, shown: str) -> None:
    """What Slack would read as its own markup shows as it is."""
    assert literal(text) == shown


def test_a_command_can_be_copied_and_not_left() -> None:
    """Nothing in a code block ends it; the rest is as it was."""
    assert code("kubectl get pods -l a_b=c*").strip("`") == "kubectl get pods -l a_b=c*"
    assert code("``` <!here>").count("```") == 2


@given(st.text("&<>a ", max_size=60), st.integers(1, 60))
def test_no_entity_is_cut_in_two(text: str, limit: int) -> None:
    """A cut escape would show as rubbish, or as another character."""
    shown = cut_escaped(escaped(text), limit)

    assert len(shown) <= limit
    assert not re.search(r"&(?!amp;|lt;|gt;)", shown)


@given(st.tuples(*[st.text("C0123456789.abc", min_size=1, max_size=12)] * 4))
def test_a_reference_is_read_as_it_was_written(parts: tuple[str, str, str, str]) -> None:
    """What the outbox keeps is enough to edit the message and its details."""
    place = Place(*parts)

    assert Place.parse(str(place)) == place
    assert Place.parse(str(Place(*parts[:2]))) == Place(*parts[:2])


@pytest.mark.parametrize("text", ["", "C1", "/1.2", "C1/", "a/b/c/d/e"])
def test_a_foreign_reference_is_none(text: str) -> None:
    """What another channel wrote is not taken for a place of ours."""
    assert Place.parse(text) is None


def test_no_more_blocks_than_slack_takes() -> None:
    """Many short lines are within all limits but the one on their number."""
    post = parent_of(notify(message=message(lines=tuple(Line(Role.WAITING, "w", str(n)) for n in range(80)))))

    assert refusal_of(body(post)) == ""
    assert len(post.left_out) + len(post.blocks) - 4 == 80


def test_every_end_has_its_words() -> None:
    """A reason that the core knows is not shown as a slug."""
    for reason in ENDINGS:
        word = word_of(resolved(end_reason=reason))
        assert word == "RECOVERED" or word.startswith("ENDED: ")
        assert word != f"ENDED: {reason.replace('_', ' ')}"
