"""The clients of OpenAI and Anthropic: transports that fold what they send, and read what is billed.

::

    client = openai.OpenAI(http_client=openai.DefaultHttpxClient(transport=FoldingTransport(budget=64_000)))

:class:`AsyncFoldingTransport` is for ``AsyncOpenAI`` and ``AsyncAnthropic`` with a ``DefaultAsyncHttpxClient``. Pass whole
conversations: the folder remembers what it has folded. A request that the provider refuses because of a fold is sent
again as it was.
"""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Callable, Iterator, Optional

import httpx2

from .._errors import ContextureError, InputError
from .._folder import Folded, Folder

PATHS = ("/messages", "/chat/completions", "/responses")
"""Where requests go that have a conversation in them."""
REFUSALS = (400, 413, 422)
"""What a provider says of a request that it does not understand, or that is too long."""


class FoldingTransport(httpx2.BaseTransport):
    """Folds what a client sends. It takes the options of :class:`contexture.Folder`, or a folder."""

    def __init__(
        self,
        budget: Optional[int] = None,
        *,
        folder: Optional[Folder] = None,
        transport: Optional[httpx2.BaseTransport] = None,
        **options: Any,
    ) -> None:
        self.folder = folder if folder is not None else Folder(budget, **options)
        """The folder of the conversation, for snapshots."""
        self._transport = transport if transport is not None else httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request as it is folded."""
        folded = _folded(self.folder, request.read()) if _is_asked(request) else None
        if folded is None:
            return self._transport.handle_request(request)
        response = self._transport.handle_request(_changed(request, folded))
        if folded.is_changed and response.status_code in REFUSALS:
            response.close()
            response = self._transport.handle_request(request)
            self.folder.refused(folded, original_was_accepted=response.is_success)
        elif response.is_success:
            response.stream = _Watched(response, self.folder, folded)
        return response

    def close(self) -> None:
        self._transport.close()


class AsyncFoldingTransport(httpx2.AsyncBaseTransport):
    """The same for asynchronous clients."""

    def __init__(
        self,
        budget: Optional[int] = None,
        *,
        folder: Optional[Folder] = None,
        transport: Optional[httpx2.AsyncBaseTransport] = None,
        **options: Any,
    ) -> None:
        self.folder = folder if folder is not None else Folder(budget, **options)
        self._transport = transport if transport is not None else httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request as it is folded."""
        folded = await asyncio.to_thread(_folded, self.folder, await request.aread()) if _is_asked(request) else None
        if folded is None:
            return await self._transport.handle_async_request(request)
        response = await self._transport.handle_async_request(_changed(request, folded))
        if folded.is_changed and response.status_code in REFUSALS:
            await response.aclose()
            response = await self._transport.handle_async_request(request)
            self.folder.refused(folded, original_was_accepted=response.is_success)
        elif response.is_success:
            response.stream = _AsyncWatched(response, self.folder, folded)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


class _Watched(httpx2.SyncByteStream):
    """A response, whose usage is reported when it is closed: some clients do not read to the end."""

    def __init__(self, response: httpx2.Response, folder: Folder, folded: Folded) -> None:
        self._stream: Any = response.stream
        self._read = bytearray()
        self._bill: Callable[[], None] = lambda: _bill(response, self._read, folder, folded)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._read += chunk
            yield chunk

    def close(self) -> None:
        self._stream.close()
        self._bill()


class _AsyncWatched(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, folder: Folder, folded: Folded) -> None:
        self._watched = _Watched(response, folder, folded)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._watched._stream:
            self._watched._read += chunk
            yield chunk

    async def aclose(self) -> None:
        await self._watched._stream.aclose()
        self._watched._bill()


def _is_asked(request: httpx2.Request) -> bool:
    return request.method == "POST" and request.url.path.endswith(PATHS)


def _folded(folder: Folder, body: bytes) -> Optional[Folded]:
    try:
        return folder.request(body)
    except InputError:
        # What is no request is for the provider to judge.
        return None


def _changed(request: httpx2.Request, folded: Folded) -> httpx2.Request:
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx2.Request(request.method, request.url, headers=headers, content=folded.body, extensions=request.extensions)


def _bill(response: httpx2.Response, read: bytearray, folder: Folder, folded: Folded) -> None:
    try:
        # The bytes may be compressed.
        folder.usage(httpx2.Response(200, headers=response.headers, content=bytes(read)).content, of=folded)
    except (ContextureError, httpx2.HTTPError):
        # A response without usage, or a folder that was closed meanwhile: nothing is known of its bill.
        pass
