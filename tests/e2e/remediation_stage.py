"""`sevenhop run` with remediation on, and what a person sees of it: buttons in Slack, plans, runs, pages."""

from __future__ import annotations

import contextlib
import getpass
import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from sevenhop.cli.cluster import ask_service
from tests.e2e.remediation_scenes import DynamoStandIn, Waiting
from tests.e2e.rules import hurried_rules
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack, shown
from tests.fakes.pagerduty_server import KEY
from tests.fakes.slack_server import APP_TOKEN
from tests.shared import ROOT
from tests.testbed.client import Object
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

SHORT = "component-short-of-gpus"
PLAYBOOK = "free-gpu-capacity"
ALLOWED, ALLOWED_TOO, STRANGER = "U0KIM", "U0LEE", "U0GUEST"
"""Of the local Slack; the first two are the on-call group."""

GROUP = "S0ONCALL"

LEASE_S = 75
APPROVER = "system:serviceaccount:approvers:alice"

Row = dict[str, Any]


def hurried_playbook(folder: Path, **times: str) -> Path:
    """The shipped playbooks, that of our story with other times and wider budgets; the folder that they stand in."""
    target = folder / "playbooks"
    shutil.copytree(ROOT / "playbooks", target, ignore=shutil.ignore_patterns("*.test.yaml"))
    text = (ROOT / "playbooks" / f"{PLAYBOOK}.yaml").read_text("utf-8")
    for key, value in {"most_concurrent": "20", "most_runs_per_day": "1000", **times}.items():
        text, found = re.subn(rf"(?m)^{key}: .*$", f"{key}: {value}", text)
        assert found == 1, f"{PLAYBOOK} says nothing of {key}"
    (target / f"{PLAYBOOK}.yaml").write_text(text, "utf-8")
    return target


def on_approval(folder: Path, times: Mapping[str, str], *more: str) -> Row:
    """Settings: the playbook of our story, which the on-call group, this host's user and `more` may approve."""
    return {
        "playbooks": [str(hurried_playbook(folder, **times))],
        "remediation": {
            "playbooks": {PLAYBOOK: {"mode": "approve"}},
            "approvers": [f"slack-group:{GROUP}", f"unix:{getpass.getuser()}", *more],
            "breaker": {"most_failures": 1000},
        },
    }


def quick_rules(folder: Path) -> Path:
    """The shipped rules, of which that of our story holds for a second."""
    folder.mkdir(parents=True)
    return hurried_rules(folder, {SHORT: "1s"})


class PagerDuty:
    """The local PagerDuty as a process that outlives the services under test."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    @property
    def settings(self) -> Row:
        return {"type": "pagerduty", "routing_key": KEY, "base_url": self.base_url}

    def about(self, text: str) -> list[Row]:
        """Its incidents that mention this."""
        return [incident for incident in self._get("incidents") if text in json.dumps(incident)]

    def events(self, dedup_key: str) -> list[Row]:
        """The events with this key as they were received, oldest first."""
        return [event for event in self._get("events") if event["dedup_key"] == dedup_key]

    def go_down(self, seconds: float) -> None:
        """From now on for so long, every call gets 502."""
        body = json.dumps({"seconds": seconds}).encode()
        request = urllib.request.Request(f"{self.base_url}/_fake/down", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).close()

    def _get(self, what: str) -> list[Row]:
        with urllib.request.urlopen(f"{self.base_url}/_fake/{what}", timeout=10) as answer:
            found: list[Row] = json.load(answer)
        return found


@contextlib.contextmanager
def pagerduty_process(*keys: str) -> Iterator[PagerDuty]:
    """Ends with the block; `keys` are those of its services, and the one of the settings if none is given."""
    command = [sys.executable, "-m", "tests.fakes.pagerduty_server", "--port", "0"]
    command += [word for key in keys for word in ("--key", key)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield PagerDuty(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.communicate(timeout=10)


class Stage:
    """
    A service that may act on the cluster, and those who talk with it.

    Args:
        times: Of the playbook, such as ``lease="20s"``.
        more: Settings that take the place of those here.
        kubeconfig: Instead of that of `user`.
    """

    def __init__(
        self,
        folder: Path,
        cluster: Cluster,
        slack: FakeSlack,
        pagerduty: PagerDuty,
        *,
        name: str,
        times: Mapping[str, str],
        more: Mapping[str, Any] | None = None,
        user: str = "admin",
        kubeconfig: Path | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.cluster, self.slack, self.pagerduty = cluster, slack, pagerduty
        self.port = 0  # of its HTTP door, if it has one
        settings = {
            **on_approval(folder, times, f"kubernetes:{APPROVER}"),
            "receivers": {
                "console": {"type": "console"},
                "slack": {**slack.settings, "app_token": APP_TOKEN},
                "pagerduty": pagerduty.settings,
            },
            **(more or {}),
        }
        self.service = Service(
            folder / "service",
            kubeconfig or cluster.kubeconfig(user),
            slack=slack,
            rules=(SHORT,),
            name=name,
            more=settings,
        )

    @contextlib.contextmanager
    def playing(self) -> Iterator[Self]:
        """Its service works, and Dynamo's stand-in, until the end of the block."""
        with DynamoStandIn(self.cluster.client):
            try:
                self.service.start(timeout=120)
                yield self
            finally:
                self.service.stop()

    # What there is

    def plans(self, about: str) -> list[Row]:
        """Plans whose need or donor has this text, what is open first."""
        return [row for row in self.service.rows("plans") if about in row["for"] or about in row["incident"]]

    def plan(self, about: str, state: str = "proposed", *, but: str = "", timeout: float = 120) -> Row:
        """The plan in this state as soon as there is one."""

        def look() -> Row | None:
            return next((row for row in self.plans(about) if row["state"] == state and row["plan"] != but), None)

        try:
            return eventually(look, timeout=timeout, every=0.2)
        except TimeoutError:
            seen = json.dumps(self.plans(about), indent=1)
            raise TimeoutError(
                f"no {state} plan about {about} after {timeout:g} s; there are {seen}; "
                f"Slack shows {[shown(m) for m in self.slack.messages_about(about)]}"
            ) from None

    def plan_told(self, here: Waiting, **llama: Any) -> Row:
        """The scene gets short of one GPU: the plan for it, once people were asked about it.  `llama` as there."""
        here.short_of_one(**llama)
        plan = self.plan(here.namespace)
        self.wait_told(here.product, plan["plan"])
        return plan

    def state_of(self, plan_id: str) -> str:
        return next((row["state"] for row in self.service.rows("plans") if row["plan"] == plan_id), "")

    def wait_for(self, plan_id: str, *states: str, timeout: float = 120) -> Row:
        """The plan as `describe` shows it, once it is in one of these states."""
        try:
            eventually(lambda: self.state_of(plan_id) in states, timeout=timeout, every=0.2)
        except TimeoutError:
            history = "\n".join(self.describe(plan_id)["history"])
            raise TimeoutError(f"plan {plan_id} is {self.state_of(plan_id)}, not {states}:\n{history}") from None
        return self.describe(plan_id)

    def describe(self, plan_id: str) -> Row:
        answer = self.service.ask("describe", "plan", plan_id, "-o", "json")
        assert answer.returncode == 0, answer.stderr
        found: Row = json.loads(answer.stdout)
        return found

    def told(self, about: str) -> str:
        """All that the newest message about this shows; empty without one."""
        found = self.slack.messages_about(about)
        return shown(found[-1]) if found else ""

    def wait_told(self, about: str, *texts: str, timeout: float = 30) -> str:
        """The message, once it shows these texts."""

        def look() -> str:
            seen = self.told(about)
            return seen if all(text in seen for text in texts) else ""

        try:
            return eventually(look, timeout=timeout, every=0.2)
        except TimeoutError:
            raise TimeoutError(f"{texts} not all in:\n{self.told(about)}") from None

    # What people do

    def click(self, user: str, verb: str, about: str) -> str:
        """A button below the newest message about this, over Socket Mode; what the one who clicked was then told."""
        told_before = len(self.slack.whispers(user))
        self.press(user, verb, about)
        new: list[str] = eventually(
            lambda: self.slack.whispers(user)[told_before:], timeout=20, every=0.2, what=f"{user} to be answered"
        )
        return new[0]

    def press(self, user: str, verb: str, about: str, **how: Any) -> Row:
        """The button alone; with `to` and what else `ByHttp` has: what was answered over HTTP."""

        def look() -> Row | None:
            messages = self.slack.messages_about(about)  # a plan is in the listing a moment before it is told
            return self.slack.click(user, f"sevenhop.{verb}", messages[-1]["ts"], **how) if messages else None

        pressed: Row = eventually(look, timeout=20, every=0.2, what=f"a button {verb} about {about}")
        return pressed

    def refusals(self, *texts: str) -> list[Row]:
        """Records of the audit trail of decisions that were refused, of those that hold these texts."""
        lines = self.service.ask("audit", "export").stdout.splitlines()
        records = [json.loads(line) for line in lines if all(text in line for text in texts)]
        return [record for record in records if "refused" in json.dumps(record)]

    def switch(self, *, on: bool) -> None:
        """The kill switch, by this host's user."""
        body = {"on": on, "comment": "a test", "request": ""}
        answer = ask_service(self.service.state, "POST", "/switch", body)
        assert answer is not None, "no service"
        assert answer["accepted"], answer


def events_on(cluster: Cluster, namespace: str, name: str) -> list[str]:
    """Reasons of our Kubernetes Events on an object, the oldest first."""
    found = cluster.client.list("events.k8s.io/v1", "Event", namespace)
    ours = [e for e in found if e["regarding"]["name"] == name and e["reason"].startswith("Remediation")]
    return [event["reason"] for event in sorted(ours, key=lambda event: str(event["eventTime"]))]


def borrowed(found: Object) -> str:
    """The mark of a loan on a donor; empty without one."""
    return str(found["metadata"].get("annotations", {}).get("sevenhop.dev/borrowed", ""))


def later(look: Callable[[], Any], timeout: float = 30, what: str = "") -> Any:
    return eventually(look, timeout=timeout, every=0.2, what=what)
