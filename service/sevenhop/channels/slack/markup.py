"""
Slack's mrkdwn, and how text from the cluster stays text in it.

``& < >`` are escaped as Slack asks (docs.slack.dev, formatting message text): with that no mention, no link and no
channel can come from the cluster.  Slack has no escape for its other marks, so where one would start something its
look-alike stands in.  Names of Kubernetes objects hold none of these marks and can be copied as they are.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

from sevenhop.channels.text import plain

_ENTITY = re.compile(r"&(?:amp|lt|gt);")
_LOOKALIKES = str.maketrans({"*": "∗", "~": "∼", "`": "ˋ"})
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_EMOJI = re.compile(r":(?=(?:[a-z0-9_+'-]*[a-z+][a-z0-9_+'-]*|100|1234|-1):)", re.IGNORECASE)


def escaped(text: str) -> str:
    """
    Text for a place that reads ``&lt;``, and no other markup.

    >>> escaped("<!channel> & <@U1>")
    '&lt;!channel&gt; &amp; &lt;@U1&gt;'
    """
    return plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def literal(text: str) -> str:
    """
    Text for mrkdwn that shows as it is.

    >>> literal("*b* my_pod_0 _i_ :fire: 10.0.0.1:8000: <!here>")
    '∗b∗ my_pod_0 ＿i＿ ꞉fire: 10.0.0.1:8000: &lt;!here&gt;'
    """
    shown = _EMOJI.sub("꞉", plain(text).translate(_LOOKALIKES))
    return escaped(_EDGE_UNDERSCORE.sub("＿", shown))


def code(text: str) -> str:
    """
    A block to copy from: nothing in it is markup but its own end.

    >>> code("kubectl get pods")
    '```kubectl get pods```'
    """
    return f"```{escaped(text).replace('```', 'ˋˋˋ')}```"


def cut_escaped(text: str, limit: int) -> str:
    """
    At most `limit` characters of escaped text, and no entity cut in two.

    >>> cut_escaped("a&lt;b", 4), cut_escaped("a&lt;b", 6)
    ('a…', 'a&lt;b')
    """
    if len(text) <= limit:
        return text
    kept = max(limit - 1, 0)
    for entity in _ENTITY.finditer(text, max(kept - 5, 0), kept + 5):
        if entity.start() < kept < entity.end():
            kept = entity.start()
    return text[:kept].rstrip() + "…"


def link(url: str, text: str) -> str:
    """
    A link; an address that Slack would not take as one is shown as text.

    >>> link("https://runbooks.example.com/a|b", "runbook")
    '<https://runbooks.example.com/a%7Cb|runbook>'
    """
    if not re.match(r"https?://[^\s]", url):
        return literal(url)
    safe = quote(plain(url), safe=":/?#[]@!$&'()*+,;=%~-._").replace("&", "&amp;")
    return f"<{safe}|{literal(text).replace('|', '¦')}>"


def local_time(moment: datetime) -> str:
    """Shown in the reader's own time zone; UTC where the client cannot."""
    utc = moment.astimezone(UTC)
    return f"<!date^{int(utc.timestamp())}^{{date_short_pretty}} {{time_secs}}|{utc:%Y-%m-%d %H:%M:%S} UTC>"
