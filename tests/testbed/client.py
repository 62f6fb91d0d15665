"""A small client of the Kubernetes API on the standard library, for arranging and checking tests.

Not the product's client: tests that drive the product must not share its code.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.testbed.waiting import eventually

Object = dict[str, Any]
Objects = list[Object]  # inside Client, `list` is the method


class ApiError(Exception):
    """The API server said no; `status` is the HTTP status, `reason` the API's own word."""

    def __init__(self, status: int, body: str) -> None:
        try:
            self.body: Object = json.loads(body)
        except ValueError:
            self.body = {"message": body}
        self.status = status
        self.reason = str(self.body.get("reason", ""))
        super().__init__(f"{status} {self.reason}: {self.body.get('message', '')[:2000]}")


class Client:
    """
    Requests of one user to one API server. Safe to use from several threads.

    Objects are plain dicts. Resources are named by `apiVersion` and `kind` as in a manifest; the path is
    found by discovery.
    """

    def __init__(self, url: str, ca_file: Path, token: str, *, timeout: float = 30) -> None:
        self._host = urllib.parse.urlsplit(url).netloc
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._token = token
        self._timeout = timeout
        self._local = threading.local()
        self._open: list[http.client.HTTPSConnection] = []
        self._resources: dict[tuple[str, str], Object] = {}

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._open:
            self._open.pop().close()

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object:
        """Return one object; ApiError with status 404 if it is not there."""
        return self._json("GET", self.path(api_version, kind, name, namespace))

    def find(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """Return one object, or None if it is not there."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, api_version: str, kind: str, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """Return all objects of a kind, of all namespaces unless one is named."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        path = self.path(api_version, kind, "", namespace)
        found: Objects = self._json("GET", f"{path}?{urllib.parse.urlencode(query)}")["items"]
        return [{"apiVersion": api_version, "kind": kind} | item for item in found]

    def create(self, manifest: Object, *, dry_run: bool = False) -> Object:
        """Create an object and return it as stored, with its uid."""
        path = self.path(*_address(manifest)[:2], "", _address(manifest)[3])
        return self._json("POST", path + ("?dryRun=All" if dry_run else ""), manifest)

    def apply(self, manifest: Object, *, manager: str = "testbed", subresource: str = "") -> Object:
        """Server-side apply, taking fields over from other managers."""
        path = self.path(*_address(manifest), subresource)
        return self._json("PATCH", f"{path}?fieldManager={manager}&force=true", manifest, "apply-patch+yaml")

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str,
        patch: Object | Objects,
        *,
        subresource: str = "",
        strategic: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Patch an object: a dict is a merge patch (or a strategic one), a list a JSON patch."""
        style = "json" if isinstance(patch, list) else "strategic-merge" if strategic else "merge"
        path = self.path(api_version, kind, name, namespace, subresource)
        return self._json("PATCH", path + ("?dryRun=All" if dry_run else ""), patch, f"{style}-patch+json")

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "", *, grace: int | None = None) -> None:
        """Delete an object and, in the background, what it owns; fine if it is gone already."""
        options: Object = {"propagationPolicy": "Background", "gracePeriodSeconds": grace}
        try:
            self._json("DELETE", self.path(api_version, kind, name, namespace), options)
        except ApiError as error:
            if error.status != 404:
                raise

    def wait_for(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str = "",
        *,
        until: Callable[[Object], Any] = bool,
        timeout: float = 30,
    ) -> Object:
        """Return the object as soon as it is there and `until` holds for it; TimeoutError if not."""
        last: Object | None = None

        def look() -> Object | None:
            nonlocal last
            last = self.find(api_version, kind, name, namespace)
            return last if last is not None and until(last) else None

        try:
            return eventually(look, timeout=timeout)
        except TimeoutError:
            state = "is not there" if last is None else f"has status {last.get('status')}"
            raise TimeoutError(f"after {timeout:g} s {kind} {namespace}/{name} {state}") from None

    def path(self, api_version: str, kind: str, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """Return the URL path of a resource, asking the API server for its plural once."""
        root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        if (api_version, kind) not in self._resources:
            for found in self._json("GET", root)["resources"]:
                if "/" not in found["name"]:
                    self._resources[api_version, found["kind"]] = found
        try:
            resource = self._resources[api_version, kind]
        except KeyError:
            raise LookupError(f"the API server serves no {kind} in {api_version}") from None
        inside = ["namespaces", namespace] if namespace and resource["namespaced"] else []
        parts = [root, *inside, resource["name"], name, subresource]
        return "/".join(part for part in parts if part)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = "application/json",
    ) -> tuple[int, str]:
        """Send one request and return status and text, whatever the status is."""
        typed = {"Content-Type": content_type} if content_type else {}
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept, **typed}
        while True:
            connection: Any = getattr(self._local, "connection", None)
            fresh = connection is None
            if fresh:
                connection = http.client.HTTPSConnection(self._host, timeout=self._timeout, context=self._tls)
                self._local.connection = connection
                self._open.append(connection)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                return response.status, response.read().decode()
            except (OSError, http.client.HTTPException) as problem:
                connection.close()
                self._local.connection = None
                self._open.remove(connection)
                # A kept connection may have died with an API server that was since restarted.
                if fresh or isinstance(problem, TimeoutError):
                    raise

    def _json(self, method: str, path: str, body: Any = None, style: str = "json") -> Object:
        data = None if body is None else json.dumps(body).encode()
        status, text = self.request(method, path, data, f"application/{style}" if data else "")
        if status == 429 and "(re)initializing" in text:  # the first use of a custom resource
            time.sleep(0.1)
            return self._json(method, path, body, style)
        if status >= 400:
            raise ApiError(status, text)
        answer: Object = json.loads(text)
        return answer


def _address(manifest: Object) -> tuple[str, str, str, str]:
    name, namespace = (manifest["metadata"].get(key, "") for key in ("name", "namespace"))
    return manifest["apiVersion"], manifest["kind"], name, namespace
