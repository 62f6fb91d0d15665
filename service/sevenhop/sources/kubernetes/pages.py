"""A list in pages, each a few thousand bytes to a few megabytes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from sevenhop.core.objects.kinds import Kind
from sevenhop.sources.kubernetes.api import ApiError, ApiServer, MalformedAnswerError
from sevenhop.sources.kubernetes.limits import Limits


class Page(msgspec.Struct, frozen=True):
    """
    Attributes:
        starts_over: What earlier pages of this list held does not count: a continue token expired.
        remaining: Objects still to come, as the server estimates them; 0 on the last page.
    """

    items: list[msgspec.Raw]
    resource_version: str
    is_last: bool
    remaining: int
    starts_over: bool = False


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(name="continue", default=None)
    remaining_item_count: int | None = None


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_decoder = msgspec.json.Decoder(_List)


async def list_pages(api: ApiServer, kind: Kind, version: str, limits: Limits) -> AsyncIterator[Page]:
    """
    All objects of a kind, page by page, at one resourceVersion.

    A continue token that expires on the way (410; they live about five minutes) starts the list over; the second
    time it is asked for in one piece, as client-go's pager does.

    Raises:
        ApiError, aiohttp.ClientError, TimeoutError, OSError: The list could not be finished.
        MalformedAnswerError: A page is not a list.
    """
    page_size, token, expired, starts_over = limits.page_size, "", 0, False
    while True:
        params = {"limit": str(page_size)} if page_size else {}
        if token:
            params["continue"] = token
        try:
            body = await api.read(kind.path(version), params, silence_s=limits.list_silence_s)
        except ApiError as error:
            if not (error.is_gone and token):
                raise
            expired += 1
            token, starts_over = "", True
            if expired > 1:
                page_size = 0
            continue
        try:
            page = _decoder.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise MalformedAnswerError(f"the list of {kind.plural} is malformed: {error}") from None
        token = page.metadata.continue_ or ""
        yield Page(
            items=page.items or [],
            resource_version=page.metadata.resource_version,
            is_last=not token,
            remaining=page.metadata.remaining_item_count or 0,
            starts_over=starts_over,
        )
        starts_over = False
        if not token:
            return
