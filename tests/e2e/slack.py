"""The local Slack server as a process that outlives the services under test."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.fakes.slack_server import CHANNEL, TOKEN
from tests.shared import ROOT


class FakeSlack:
    """`python -m tests.fakes.slack_server`, and what it has seen."""

    def __init__(self, folder: Path, channels: tuple[str, ...] = (CHANNEL,)) -> None:
        self._log = folder / "requests.jsonl"
        self._channels = channels
        self._process: subprocess.Popen[str] | None = None
        self.base_url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.fakes.slack_server", "--port", "0", "--log", str(self._log)]
        command += [word for channel in self._channels for word in ("--channel", channel)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        assert self.base_url.startswith("http"), "the local Slack did not start"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=10)

    @property
    def settings(self) -> dict[str, str]:
        """Of a receiver that talks to it."""
        return {"type": "slack", "token": TOKEN, "channel": CHANNEL, "base_url": self.base_url}

    def messages(self) -> list[dict[str, Any]]:
        """What stands in the channel, oldest first, without threads; each with its `edits`."""
        return [message for message in self._get("messages") if not message["thread_ts"]]

    def replies(self) -> list[str]:
        """All that was said in threads, oldest first."""
        return [shown(message) for message in self._get("messages") if message["thread_ts"]]

    def posts(self) -> list[dict[str, Any]]:
        """Requests that posted in the channel itself (which notifies people), each with the time `at` in Unix s."""
        posts = [request for request in self._get("requests") if request["method"] == "chat.postMessage"]
        return [post for post in posts if not post["body"].get("thread_ts")]

    def posts_about(self, text: str) -> list[dict[str, Any]]:
        """Those posts whose body has this text."""
        return [post for post in self.posts() if text in json.dumps(post["body"])]

    def messages_about(self, text: str) -> list[dict[str, Any]]:
        """Those messages that show this text, or did before an edit."""
        return [message for message in self.messages() if text in json.dumps(message)]

    def whispers(self, user: str) -> list[str]:
        """What one person was told privately, oldest first."""
        return [whisper["text"] for whisper in self._get("whispers") if whisper["user"] == user]

    def click(self, user: str, action: str, ts: str, **how: Any) -> dict[str, Any] | None:
        """
        A button of a message, over Socket Mode, or as `ByHttp` says; None if the message has no such button.

        Returns:
            With ``to``: ``status``, ``text`` and ``seconds`` of the answer, ``body`` and ``headers`` of what was sent.
        """
        try:
            answer: dict[str, Any] = self._post("click", {"user": user, "action": action, "ts": ts, **how})
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            return None
        return answer

    def fail(self, method: str, kind: str, **more: Any) -> None:
        """Plan a fault of its API, see `Fault`."""
        self._post("faults", [{"method": method, "kind": kind, **more}])

    def set_group(self, group: str, *members: str) -> None:
        """From now on just these are in the user group."""
        self._post("people", {"groups": {group: list(members)}})

    def _get(self, what: str) -> Any:
        with urllib.request.urlopen(self._url(what), timeout=10) as answer:
            return json.load(answer)

    def _post(self, what: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url(what), json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=40) as answer:
            return json.load(answer)

    def _url(self, what: str) -> str:
        return self.base_url.removesuffix("api/") + f"_fake/{what}"


def shown(message: dict[str, Any]) -> str:
    """All that a person reads of a message, one text a line."""
    lines = [str(message["text"])]
    for block in message["blocks"]:
        texts = [block.get("text"), *block.get("fields", []), *block.get("elements", [])]
        lines += [t["text"] for t in texts if isinstance(t, dict) and isinstance(t.get("text"), str)]
    return "\n".join(lines)
