//! The socket of one connection, counted.

use crate::web::listener::pulse::Pulse;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A TCP stream that counts what it reads and knows how to end.
///
/// Writes pass through as they are, vectored ones as well: a head and its cached body leave in
/// one system call. What a client takes is counted at the response body, where HTTP/2 flow
/// control shows; see [`crate::web::listener::body`].
#[derive(Debug)]
pub struct Guard {
    stream: TcpStream,
    pulse: Arc<Pulse>,
}

impl Guard {
    /// Counts the bytes read from `stream` in `pulse`.
    pub fn new(stream: TcpStream, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.pulse.reset.load(Relaxed) {
            // Without it the kernel would keep up to 4 MB per slow reader long after the cut. A
            // socket that cannot be set is gone already.
            let _gone = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Guard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let read = buf.filled().len().saturating_sub(before);
        self.pulse.socket_bytes.fetch_add(read as u64, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
