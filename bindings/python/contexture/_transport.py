"""Transports for clients that take an HTTP client of ``httpx`` or ``httpx2``: they fold what is sent."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterator, Optional

from ._conversations import Conversations, Sent, Store
from ._folder import Options

if TYPE_CHECKING:
    import httpx
    import httpx2
    from typing_extensions import Unpack

    class _Plain(httpx.BaseTransport, httpx2.BaseTransport):
        def handle_request(self, request: Any) -> Any: ...

    class _Async(httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any: ...

    class _PlainStream(httpx.SyncByteStream, httpx2.SyncByteStream): ...

    class _AsyncStream(httpx.AsyncByteStream, httpx2.AsyncByteStream): ...

else:

    def _installed() -> list[Any]:
        found = []
        for name in ("httpx2", "httpx"):
            try:
                found.append(import_module(name))
            except ModuleNotFoundError:
                pass
        if not found:
            raise ModuleNotFoundError("a transport of contexture needs `httpx2` or `httpx`", name="httpx2")
        return found

    def _of_each(name: str) -> type:
        return type(name, tuple(dict.fromkeys(getattr(web, name) for web in _WEBS)), {})

    _WEBS = _installed()
    # A client asks for streams of its own library. Some of httpx2 refuse a transport of the other one, which takes any.
    _Plain, _Async = _WEBS[0].BaseTransport, _WEBS[0].AsyncBaseTransport
    _PlainStream, _AsyncStream = _of_each("SyncByteStream"), _of_each("AsyncByteStream")

REFUSALS = (400, 413, 422)
"""What a provider says of a request that it does not understand, or that is too long."""


class FoldingTransport(_Plain):
    """Folds what a client sends, of all conversations that pass, and reads from responses what was billed.

    ::

        client = openai.OpenAI(http_client=openai.DefaultHttpxClient(transport=FoldingTransport(budget=64_000)))

    Pass whole conversations: what was folded is remembered. A request that the provider refuses because of a fold is
    sent again as it was.

    Args:
        budget: The most tokens of a request, at least 4000; otherwise 112 000.
        store: A directory in which decisions are kept, so that a program that was ended goes on with the same bytes.
        transport: What sends; otherwise the usual transport of the client's library.
        options: ``prices``, ``policy`` and ``base_dir``, as for :class:`contexture.Folder`.
    """

    def __init__(
        self,
        budget: Optional[int] = None,
        *,
        store: Optional[Store] = None,
        transport: Optional[Any] = None,
        **options: Unpack[Options],
    ) -> None:
        self._conversations = Conversations(budget, store, options)
        self._transport = transport

    def handle_request(self, request: Any) -> Any:
        """Sends a request as it is folded."""
        transport = self._sender(request)
        sent = self._conversations.fold(request.url.path, request.read()) if request.method == "POST" else None
        if sent is None:
            return transport.handle_request(request)
        response = transport.handle_request(_changed(request, sent))
        if sent.folded.is_changed and response.status_code in REFUSALS:
            response.close()
            response = transport.handle_request(request)
            sent.refused(original_was_accepted=response.is_success)
        elif response.is_success:
            response.stream = _Watched(response, sent)
        return response

    def close(self) -> None:
        """Closes what sends."""
        if self._transport is not None:
            self._transport.close()

    def _sender(self, request: Any) -> Any:
        self._transport = self._transport or _library(request).HTTPTransport()
        return self._transport


class AsyncFoldingTransport(_Async):
    """The same for asynchronous clients."""

    def __init__(
        self,
        budget: Optional[int] = None,
        *,
        store: Optional[Store] = None,
        transport: Optional[Any] = None,
        **options: Unpack[Options],
    ) -> None:
        self._conversations = Conversations(budget, store, options)
        self._transport = transport

    async def handle_async_request(self, request: Any) -> Any:
        """Sends a request as it is folded."""
        transport = self._sender(request)
        body = await request.aread()
        is_asked = request.method == "POST"
        sent = await asyncio.to_thread(self._conversations.fold, request.url.path, body) if is_asked else None
        if sent is None:
            return await transport.handle_async_request(request)
        response = await transport.handle_async_request(_changed(request, sent))
        if sent.folded.is_changed and response.status_code in REFUSALS:
            await response.aclose()
            response = await transport.handle_async_request(request)
            await asyncio.to_thread(sent.refused, response.is_success)
        elif response.is_success:
            response.stream = _AsyncWatched(response, sent)
        return response

    async def aclose(self) -> None:
        """Closes what sends."""
        if self._transport is not None:
            await self._transport.aclose()

    def _sender(self, request: Any) -> Any:
        self._transport = self._transport or _library(request).AsyncHTTPTransport()
        return self._transport


class _Watched(_PlainStream):
    """A response, whose usage is reported when it is closed: some clients do not read to the end."""

    def __init__(self, response: Any, sent: Sent) -> None:
        self._stream: Any = response.stream
        self._read = bytearray()
        self._bill: Callable[[], None] = lambda: _bill(response, self._read, sent)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._read += chunk
            yield chunk

    def close(self) -> None:
        self._stream.close()
        self._bill()


class _AsyncWatched(_AsyncStream):
    def __init__(self, response: Any, sent: Sent) -> None:
        self._watched = _Watched(response, sent)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._watched._stream:
            self._watched._read += chunk
            yield chunk

    async def aclose(self) -> None:
        await self._watched._stream.aclose()
        self._watched._bill()


def _library(request: Any) -> Any:
    """The library whose client made a request."""
    return sys.modules[type(request).__module__.partition(".")[0]]


def _changed(request: Any, sent: Sent) -> Any:
    if not sent.folded.is_changed:
        return request
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    content = sent.folded.body
    return type(request)(request.method, request.url, headers=headers, content=content, extensions=request.extensions)


def _bill(response: Any, read: bytearray, sent: Sent) -> None:
    web = _library(response)
    try:
        # The bytes may be compressed.
        plain = web.Response(200, headers=response.headers, content=bytes(read)).content
    except web.DecodingError:
        # It was not read to its end.
        return
    sent.billed(plain)
