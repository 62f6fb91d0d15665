"""The chart, by real helm and the real API server."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sevenhop.cli.main import build_parser
from sevenhop.core.facts.table import FACTS
from sevenhop.core.subject import Hop
from sevenhop.rulebook.load import load_rulebook
from sevenhop.rulebook.playbook_load import load_playbooks
from sevenhop.rulebook.shipped import shipped_playbooks, shipped_rules
from tests.e2e.chart import CASES, CHART, Object, helm, kubectl, of_kind, pod_templates, rendered, settings_of
from tests.testbed.cluster import Cluster
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda path: path.name.removesuffix("-values.yaml"))
EVERYTHING = CHART / "ci" / "everything-values.yaml"
SCALED = CHART / "ci" / "scaled-values.yaml"


@each_case
def test_helm_lints_it(case: Path) -> None:
    """`helm lint --strict` has nothing to say."""
    said = helm("lint", "--strict", str(CHART), "--values", str(case))
    assert said.returncode == 0, said.stdout + said.stderr
    assert "0 chart(s) failed" in said.stdout


REFUSED: dict[str, tuple[str, str]] = {
    "a key that is not there": ("replica=2", "replica"),
    "a setting that is not there": ("config.incidents.group_wiat=5s", "group_wiat"),
    "a setting of the wrong type": ("config.incidents.flap_limit=often", "/config/incidents/flap_limit"),
    "a channel that is not there": ("config.receivers.a.type=smoke", "/config/receivers/a/type"),
    "a token in the values": ("config.receivers.a.type=slack,config.receivers.a.token=xoxb-1", "token"),
    "a password in the values": ("config.kafka.password=secret", "password"),
    "a setting that the chart decides": ("config.state=/elsewhere", "state"),
    "an unknown mode": ("mode=serverless", "/mode"),
    "no replicas": ("replicas=0", "/replicas"),
    "the tag latest": ("image.tag=latest", "/image/tag"),
    "a digest that is none": ("image.digest=sha256:beef", "/image/digest"),
    "a rule that is no YAML file": ("rules.pod.mine=x", "mine"),
    "a hop that is none": ("rules.network.mine\\.yaml=x", "network"),
    "a setting's path that is none": ("secrets.existingSecret=s,secrets.settings.TOKEN=k", "/secrets/settings"),
    "a privileged port": ("web.port=80", "/web/port"),
    "two replicas that know nothing of each other": ("replicas=2", "config.redis.url"),
    "two replicas on one volume": (
        "replicas=2,config.redis.url=redis://r,state.existingClaim=mine",
        "state.existingClaim",
    ),
    "scaled without Kafka": ("mode=scaled", "config.kafka.servers"),
    "workers without Redis": ("mode=scaled,config.kafka.servers={k:9092}", "config.redis.url"),
    "scaled with nothing to run": (
        "mode=scaled,config.kafka.servers={k:9092},edge.enabled=false,worker.enabled=false",
        "runs nothing",
    ),
    "keys of no Secret": ("secrets.settings.kafka\\.password=k", "secrets.existingSecret"),
    "keys of no Secret, of one role": ("edge.secrets.runtime\\.decision_key=k", "secrets.existingSecret"),
    "agents with nobody to tell": (
        "mode=scaled,config.kafka.servers={k:9092},config.redis.url=redis://r,edge.enabled=false,gpuAgent.enabled=true",
        "gpuAgent.server",
    ),
    "namespaces of nothing": ("remediation.namespaces={a}", "remediation.enabled"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_values_that_cannot_be_meant_are_refused(what: str) -> None:
    """Before anything reaches the cluster, and the line names the value."""
    given, named = REFUSED[what]
    said = helm("template", "sevenhop", str(CHART), "--set", given)
    assert said.returncode != 0
    assert named in said.stderr
    assert "secret\n" not in said.stderr


def test_a_refusal_repeats_no_secret() -> None:
    """The line about a token names its key, never the token."""
    said = helm(
        "template", "sevenhop", str(CHART), "--set", "config.receivers.a.type=slack,config.receivers.a.token=xoxb-77"
    )
    assert said.returncode != 0
    assert "xoxb-77" not in said.stdout + said.stderr


@each_case
def test_the_service_understands_its_settings(case: Path, tmp_path: Path) -> None:
    """What the chart writes, with its Secrets, is what the service reads; nothing that it needs is missing."""
    objects = rendered(case, folder=tmp_path, namespace="seven")
    values = yaml.safe_load(case.read_text("utf-8")) or {}
    components = set(pod_templates(objects)) - {"gpu-agent"}
    for component in components:
        settings = settings_of(objects, component, tmp_path)
        assert settings.runtime.role == {"service": "embedded"}.get(component, component)
        assert settings.cluster == values.get("cluster", "")
        assert settings.web.listen
        agents = [f"seven/{each['metadata']['name']}" for each in of_kind(objects, "DaemonSet")]
        assert settings.gpu_push.accounts == agents
        assert set(values.get("config", {}).get("receivers", {"console": 1})) == set(settings.receivers)
    assert components == ({"edge", "worker"} & components if values.get("mode") == "scaled" else {"service"})


def test_a_role_may_have_secrets_of_its_own(tmp_path: Path) -> None:
    """What signs decisions on a worker never reaches an edge; what both need, both have."""
    keys = {}
    for component, template in pod_templates(rendered(SCALED, folder=tmp_path)).items():
        (container,) = template["spec"]["containers"]
        secrets = [v for v in container["env"] if "secretKeyRef" in v.get("valueFrom", {})]
        keys[component] = {v["name"].lower(): v["valueFrom"]["secretKeyRef"]["key"] for v in secrets}
    both = {"sevenhop__kafka__password": "kafka-password", "sevenhop__redis__password": "redis-password"}
    assert keys["edge"] == both | {"sevenhop__runtime__decision_key": "edge-key"}
    assert keys["worker"] == both | {"sevenhop__runtime__decision_key": "decision-key"}
    assert keys["gpu-agent"] == {}


def test_a_lease_is_taken_only_where_several_could_work(tmp_path: Path) -> None:
    """The service's Lease is the one that the role allows; without a second replica there is neither."""
    for name, component in (
        ("scaled", "edge"),
        ("edge", "edge"),
        ("defaults", "service"),
        ("two-replicas", "service"),
    ):
        objects = rendered(CHART / "ci" / f"{name}-values.yaml", folder=tmp_path, namespace="seven")
        names = [
            f"{role['metadata']['namespace']}/{lease}"
            for role in of_kind(objects, "Role")
            for rule in role["rules"]
            for lease in rule.get("resourceNames", ())
        ]
        assert names == ([] if name == "defaults" else ["seven/sevenhop"])
        assert settings_of(objects, component, tmp_path).runtime.lease == "".join(names)


@each_case
def test_every_role_is_probed_and_scraped(case: Path, tmp_path: Path) -> None:
    """Each container has all three probes, at a port that it names; roles are the alert rules' job, agents are not."""
    objects = rendered(case, {"podMonitor": {"enabled": True}}, folder=tmp_path)
    monitors = of_kind(objects, "PodMonitor")
    for component, template in pod_templates(objects).items():
        (container,) = template["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        (monitor,) = [each for each in monitors if _selects(each, template["metadata"]["labels"])]
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in ports
        probes = {name: probe["httpGet"] for name, probe in container.items() if name.endswith("Probe")}
        assert {probe["port"] for probe in probes.values()} <= ports
        if component == "gpu-agent":
            assert "jobLabel" not in monitor["spec"]
            continue
        paths = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
        assert {name: probe["path"] for name, probe in probes.items()} == paths
        assert template["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "sevenhop"
        assert endpoint["honorLabels"] is True


def _selects(monitor: Object, labels: dict[str, str]) -> bool:
    selector = monitor["spec"]["selector"]
    listed = all(labels[each["key"]] in each["values"] for each in selector.get("matchExpressions", ()))
    return listed and selector["matchLabels"].items() <= labels.items()


def test_other_settings_are_other_pods(tmp_path: Path) -> None:
    """A change of `config` rolls the pods, for settings are read at the start; one of rules does not."""

    def annotations(**values: Any) -> Any:
        (template,) = pod_templates(rendered(values, folder=tmp_path)).values()
        return template["metadata"]["annotations"]

    assert annotations(rules={"pod": {"a.yaml": "x"}}) == annotations(rules={"pod": {"a.yaml": "y"}})
    assert annotations(config={"incidents": {"group_wait": "9s"}}) != annotations()


def test_own_rules_stand_beside_the_shipped_ones(tmp_path: Path) -> None:
    """Unless `replaceShipped` says otherwise, and playbooks likewise; the folders are those of the image."""
    rules = {"rules": {"pod": {"a.yaml": "x"}}}
    both = settings_of(rendered(rules, folder=tmp_path), "service", tmp_path).rules
    own = settings_of(rendered({**rules, "replaceShipped": True}, folder=tmp_path), "service", tmp_path)
    assert [path.as_posix() for path in both] == ["/usr/share/sevenhop/rules", "/etc/sevenhop/rules"]
    assert [path.as_posix() for path in own.rules] == ["/etc/sevenhop/rules"]
    assert own.playbooks == []


def test_own_rules_are_read_where_the_kubelet_puts_them(tmp_path: Path) -> None:
    """With the links that it makes of a ConfigMap, every rule and playbook is loaded, once, with its hop."""
    texts: dict[str, dict[str, str]] = {}
    for path in (shipped_rules() / "pod", shipped_rules() / "self"):
        texts[path.name] = {each.name: each.read_text("utf-8") for each in path.glob("*.yaml")}
    playbooks = {each.name: each.read_text("utf-8") for each in shipped_playbooks().glob("*.yaml")}
    objects = rendered({"rules": texts, "playbooks": playbooks}, folder=tmp_path)
    for name in ("rules", "playbooks"):
        _mount(objects, f"/etc/sevenhop/{name}", tmp_path / name)
    book = load_rulebook([tmp_path / "rules"], FACTS)
    loaded = load_playbooks([tmp_path / "playbooks"])
    assert (book.problems, loaded.problems) == ((), ())
    assert {f"{rule.id}.yaml" for rule in book.rules} == {
        name for files in texts.values() for name in files if not name.endswith(".test.yaml")
    }
    assert {rule.hop for rule in book.rules} == {Hop.POD, None}


def _mount(objects: list[Object], folder: str, target: Path) -> None:
    """What a kubelet shows below `folder`: links to ``..data``, itself one to the folder that has the files."""
    spec = pod_templates(objects)["service"]["spec"]
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")}
    volumes = {each["name"]: each.get("configMap") for each in spec["volumes"]}
    mounts = spec["containers"][0]["volumeMounts"]
    for mount in [each for each in mounts if Path(each["mountPath"]).is_relative_to(folder)]:
        volume = volumes[mount["name"]]
        data = maps[volume["name"]]
        items = volume.get("items") or [{"key": key, "path": key} for key in data]
        at = target / Path(mount["mountPath"]).relative_to(folder)
        real = at / "..2026_11_30_10_00_00.123"
        real.mkdir(parents=True)
        (at / "..data").symlink_to(real.name)
        for item in items:
            (real / item["path"]).write_text(data[item["key"]], "utf-8")
            (at / item["path"]).symlink_to(f"..data/{item['path']}")


def test_agents_are_told_where_the_service_is(tmp_path: Path) -> None:
    """The command of the agent is one that the parser takes, and its address is the release's Service."""
    for case, scheme in ((EVERYTHING, "https"), (SCALED, "http")):
        objects = rendered(case, folder=tmp_path, namespace="seven")
        (agent,) = pod_templates(objects)["gpu-agent"]["spec"]["containers"]
        front = "edge" if case is SCALED else "service"
        (service,) = [
            each
            for each in of_kind(objects, "Service")
            if each["spec"]["selector"]["app.kubernetes.io/component"] == front
        ]
        args = build_parser().parse_args(agent["args"])
        assert (
            args.service == f"{scheme}://{service['metadata']['name']}.seven.svc:{service['spec']['ports'][0]['port']}"
        )
        assert {mount["mountPath"] for mount in agent["volumeMounts"]} >= {args.cgroups, "/var/log/containers"}
        # Tokens of another account are refused.
        name = pod_templates(objects)["gpu-agent"]["spec"]["serviceAccountName"]
        push = settings_of(objects, front, tmp_path).gpu_push
        assert push.accounts == [f"seven/{name}"]
        # A token for Sevenhop alone is mounted where it is asked for.
        mounted = {mount["name"]: mount["mountPath"] for mount in agent["volumeMounts"]}
        assert args.token == (f"{mounted['token']}/token" if push.audience else "")


@each_case
def test_every_command_is_understood(case: Path, tmp_path: Path) -> None:
    """The arguments of each container are those of the command line."""
    for template in pod_templates(rendered(case, folder=tmp_path)).values():
        for container in template["spec"]["containers"]:
            assert build_parser().parse_args(container["args"]).command in ("run", "gpu-agent")


PORTS: dict[str, tuple[dict[str, Any], set[int]]] = {
    "nothing configured": ({}, {443, 6443}),
    "a webhook on a port": ({"receivers": {"a": {"type": "webhook", "url": "http://h:9099/x"}}}, {443, 6443, 9099}),
    "a webhook without one": ({"receivers": {"a": {"type": "webhook", "url": "http://h/a:1"}}}, {443, 6443, 80}),
    "a webhook by TLS": ({"receivers": {"a": {"type": "webhook", "url": "https://h"}}}, {443, 6443}),
    "an address of IPv6": ({"receivers": {"a": {"type": "webhook", "url": "http://[fd00::1]/x"}}}, {443, 6443, 80}),
    "a heartbeat": ({"telemetry": {"heartbeat": {"url": "http://am:9093"}}}, {443, 6443, 9093}),
    "traces": ({"telemetry": {"traces": "http://otel:4318"}}, {443, 6443, 4318}),
    "dcgm-exporter": ({"dcgm": {"prometheus": "http://p:9090"}}, {443, 6443, 9090}),
    "Redis": ({"redis": {"url": "rediss://u:p@redis:6380/0"}}, {443, 6443, 6380}),
    "Redis by TLS without a port": ({"redis": {"url": "rediss://redis"}}, {443, 6443, 6379}),
    "Redis without a port": ({"redis": {"url": "redis://redis/0"}}, {443, 6443, 6379}),
}


@pytest.mark.parametrize("what", PORTS)
def test_the_network_lets_out_what_is_configured(what: str, tmp_path: Path) -> None:
    """Ports of the addresses in `config`, the API server's, DNS, and no other."""
    config, ports = PORTS[what]
    policies = of_kind(rendered({"config": config}, folder=tmp_path), "NetworkPolicy")
    (deny,) = [each for each in policies if each["metadata"]["name"].endswith("-deny")]
    (service,) = [each for each in policies if each["metadata"]["name"].endswith("-service")]
    found = {port["port"] for rule in service["spec"]["egress"] for port in rule["ports"]}
    assert found == ports | {53}
    assert deny["spec"].keys() == {"podSelector", "policyTypes"}
    assert deny["spec"]["policyTypes"] == ["Ingress", "Egress"]


@each_case
def test_no_secret_is_made(case: Path, tmp_path: Path) -> None:
    """No default password anywhere: Secrets are yours, and only named."""
    assert of_kind(rendered(case, folder=tmp_path), "Secret") == []


def test_releases_share_nothing(tmp_path: Path) -> None:
    """One name in two namespaces, or two in one: no object of one is the other's, and no selector takes both."""
    seen: set[tuple[str, str, str]] = set()
    selectors = []
    for release, namespace in (("a", "one"), ("a", "two"), ("b", "one")):
        objects = rendered(SCALED, folder=tmp_path, release=release, namespace=namespace)
        keys = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in objects}
        assert not keys & seen
        seen |= keys
        selectors.append({str(o["spec"]["selector"]) for o in of_kind(objects, "Deployment")})
    assert not selectors[0] & selectors[2]


@each_case
def test_every_door_has_a_service(case: Path, tmp_path: Path) -> None:
    """Its selector takes the pods of one role, and its port is one of theirs."""
    objects = rendered(case, folder=tmp_path)
    found = {}
    for service in of_kind(objects, "Service"):
        wanted = service["spec"]["selector"]
        roles = [
            role
            for role, template in pod_templates(objects).items()
            if wanted.items() <= template["metadata"]["labels"].items()
        ]
        (port,) = service["spec"]["ports"]
        found[service["metadata"]["name"]] = (roles, port["targetPort"])
    doors = set(pod_templates(objects)) - {"gpu-agent"}
    assert sorted(found.values()) == sorted(([role], "http") for role in doors)


def test_long_names_still_fit(tmp_path: Path) -> None:
    """The longest release name that helm takes gives names and labels that Kubernetes takes."""
    for each in rendered(EVERYTHING, folder=tmp_path, release="r" * 53, namespace="n" * 63):
        labels = each["metadata"].get("labels", {})
        assert max(map(len, labels.values()), default=0) <= 63
        if each["kind"] in ("Service", "Deployment", "DaemonSet"):
            assert len(each["metadata"]["name"]) <= 63


# --- by the API server ---


@pytest.fixture(scope="module")
def cluster(testbed: Cluster) -> Iterator[Cluster]:
    """The test bed, with a kind PodMonitor as far as a manifest of it needs one."""
    testbed.client.apply(POD_MONITOR)
    eventually(lambda: _is_served(testbed), what="PodMonitor")
    yield testbed
    testbed.client.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", POD_MONITOR["metadata"]["name"])


def _is_served(cluster: Cluster) -> bool:
    return cluster.client.request("GET", "/apis/monitoring.coreos.com/v1/podmonitors")[0] == 200


@pytest.fixture
def place(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace that refuses pods that are not restricted."""
    name = f"chart-{abs(hash(request.node.name)) % 10**6}"
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": level}})
    yield name
    cluster.client.delete("v1", "Namespace", name)


@each_case
def test_the_api_server_takes_every_manifest(cluster: Cluster, place: str, case: Path, tmp_path: Path) -> None:
    """`kubectl apply --dry-run=server`, unknown fields refused."""
    made = helm("template", "sevenhop", str(CHART), "--namespace", place, "--values", str(case), "--no-hooks")
    words = ("apply", "--dry-run=server", "--validate=strict", "--filename=-")
    answer = kubectl(cluster.kubeconfig(), *words, given=made.stdout)
    count = len([each for each in yaml.safe_load_all(made.stdout) if each])
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == count > 5
    # The agent's pods are privileged on purpose; the API server only warns of a template.
    warned = [line for line in answer.stderr.splitlines() if "would violate" in line]
    assert len(warned) == len(of_kind(rendered(case, folder=tmp_path), "DaemonSet")), answer.stderr


@each_case
def test_pods_are_restricted(cluster: Cluster, place: str, case: Path, tmp_path: Path) -> None:
    """A namespace that enforces the restricted standard takes every pod but the agent's."""
    made = helm("template", "sevenhop", str(CHART), "--namespace", place, "--values", str(case))
    objects = [each for each in yaml.safe_load_all(made.stdout) if each]
    pods = {name: _pod(template) for name, template in pod_templates(objects).items()}
    pods.update(("test", each) for each in of_kind(objects, "Pod"))
    taken = {}
    for name, pod in pods.items():
        pod["spec"].pop("priorityClassName", None)  # kube-system's alone
        pod["spec"].pop("runtimeClassName", None)
        answer = kubectl(
            cluster.kubeconfig(), "create", "--dry-run=server", f"--namespace={place}", "--filename=-",
            given=yaml.safe_dump(pod),
        )  # fmt: skip
        assert answer.returncode == 0 or "violates PodSecurity" in answer.stderr, answer.stderr
        taken[name] = answer.returncode == 0
    assert taken == {name: name != "gpu-agent" for name in pods}
    assert len(taken) >= 1


def _pod(template: Object) -> Object:
    metadata = {**template["metadata"], "name": "one"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def test_it_installs_upgrades_and_leaves_nothing(cluster: Cluster, place: str, tmp_path: Path) -> None:
    """Real `helm install`, `upgrade` to the other mode, `uninstall`: afterwards the cluster is as before."""
    env = {"KUBECONFIG": str(cluster.kubeconfig()), "HELM_DATA_HOME": str(tmp_path), "HELM_CACHE_HOME": str(tmp_path)}
    where = ("sevenhop", str(CHART), "--namespace", place)
    done = helm("install", *where, env=env)
    assert done.returncode == 0, done.stderr
    assert "rollout status deploy/sevenhop" in done.stdout
    first = cluster.client.get("apps/v1", "Deployment", "sevenhop", place)
    done = helm("upgrade", *where, "--values", str(SCALED), "--set", "remediation.namespaces=null", env=env)
    assert done.returncode == 0, done.stderr
    names = {each["metadata"]["name"] for each in cluster.client.list("apps/v1", "Deployment", place)}
    assert first["spec"]["strategy"] == {"type": "Recreate"}
    assert names == {"sevenhop-edge", "sevenhop-worker"}
    done = helm("uninstall", "sevenhop", "--namespace", place, env=env)
    assert done.returncode == 0, done.stderr
    left = kubectl(
        cluster.kubeconfig(), "get", "deploy,ds,sa,svc,cm,role,rolebinding,clusterrole,clusterrolebinding,netpol,pdb",
        "--all-namespaces", "--selector=app.kubernetes.io/part-of=sevenhop", "--output=name",
    )  # fmt: skip
    assert [line for line in left.stdout.splitlines() if place in line or "sevenhop-edge" in line] == []


@each_case
def test_the_notes_say_what_to_type_next(case: Path) -> None:
    """Every command in them is one that the parser takes, and their objects are in the release."""
    said = helm("install", "sevenhop", str(CHART), "--dry-run=client", "--namespace", "seven", "--values", str(case))
    assert said.returncode == 0, said.stderr
    body, _, notes = said.stdout.partition("NOTES:")
    parser = build_parser()
    commands = re.findall(r"-- sevenhop (.+)", notes)
    for words in commands:
        parser.parse_args(shlex.split(words))
    for kind, name in re.findall(r"(deploy|ds)/([\w-]+)", notes):
        full = {"deploy": "Deployment", "ds": "DaemonSet"}[kind]
        assert re.search(rf"kind: {full}\nmetadata:\n  name: {name}\n", body), (kind, name)
    assert bool(commands) == (case.name != "edge-values.yaml")


def test_the_notes_name_what_is_missing() -> None:
    """No name, no receiver, an empty volume: each is said; with them, none is."""
    plain = helm("install", "sevenhop", str(CHART), "--dry-run=client").stdout
    full = helm("install", "sevenhop", str(CHART), "--dry-run=client", "--values", str(EVERYTHING)).stdout
    for hint in ("Set `cluster`", "Nobody is told", "empty volume", "It can only read"):
        assert hint in plain
        assert hint not in full


POD_MONITOR: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podmonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {"kind": "PodMonitor", "plural": "podmonitors", "singular": "podmonitor"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
