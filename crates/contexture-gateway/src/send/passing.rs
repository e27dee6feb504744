//! A response while it is forwarded to the client.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use contexture::wire::{AnswerReader, Answered};
use futures_util::Stream;

use crate::watch::AnswerCopy;

/// Called with the reported usage when a response has been forwarded or was cut off, and with its copy if there is one.
pub(crate) type AtEnd = Box<dyn FnOnce(&Answered, Option<AnswerCopy>) + Send>;

/// The bytes of a response, forwarded as they arrive and parsed for their usage.
///
/// It is dropped when the client disconnects, which closes the connection to the provider.
pub(crate) struct Passing<S> {
    bytes: S,
    reader: AnswerReader,
    copy: Option<AnswerCopy>,
    at_end: Option<AtEnd>,
}

impl<S, E> Passing<S>
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
{
    /// The body that the client gets.
    pub(crate) fn body(bytes: S, reader: AnswerReader, copy: Option<AnswerCopy>, at_end: AtEnd) -> Body {
        Body::from_stream(Self { bytes, reader, copy, at_end: Some(at_end) })
    }
}

impl<S> Passing<S> {
    fn end(&mut self) {
        if let Some(at_end) = self.at_end.take() {
            at_end(&self.reader.finish(), self.copy.take());
        }
    }
}

impl<S, E> Stream for Passing<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = Result<Bytes, E>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let next = Pin::new(&mut this.bytes).poll_next(context);
        match &next {
            Poll::Ready(Some(Ok(bytes))) => {
                this.reader.push(bytes);
                if let Some(copy) = &mut this.copy {
                    copy.push(bytes);
                }
            }
            Poll::Ready(Some(Err(_)) | None) => this.end(),
            Poll::Pending => {}
        }
        next
    }
}

impl<S> Drop for Passing<S> {
    fn drop(&mut self) {
        self.end();
    }
}
