//! The socket of one connection, with counters.

use crate::http::listener::counters::ConnectionCounters;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream that counts the bytes it reads and resets the connection when asked to.
///
/// Writes pass through unchanged, including vectored ones: a head and its cached body leave in one system call.
/// Bytes that a client receives are counted at the response body, where HTTP/2 flow control is visible; see
/// [`crate::http::listener::body`]. Only two facts are visible here: blocked writes, and the number of bytes that
/// are written after the body was passed on.
#[derive(Debug)]
pub struct CountingStream {
    stream: TcpStream,
    counters: Arc<ConnectionCounters>,
}

impl CountingStream {
    /// Wraps `stream` and counts its bytes in `counters`.
    pub fn new(stream: TcpStream, counters: Arc<ConnectionCounters>) -> Self {
        Self { stream, counters }
    }
}

impl Drop for CountingStream {
    fn drop(&mut self) {
        if self.counters.reset.load(Relaxed) {
            // Without the reset the kernel would keep up to 4 MB per slow reader long after the drop. A
            // socket that refuses the option is closed already.
            let _closed = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for CountingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The buffer may hold bytes of an earlier read.
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let read = buf.filled().len().saturating_sub(before);
        self.counters.socket_bytes.fetch_add(read as u64, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CountingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.counters.record_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.counters.record_write(&written);
        written
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn what_the_socket_does_not_take_is_owed_until_it_does() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("port");
        let addr = listener.local_addr().expect("bound");
        let mut client = TcpStream::connect(addr).await.expect("connected");
        let (stream, _) = listener.accept().await.expect("accepted");
        let counters = Arc::new(ConnectionCounters::default());
        let mut guard = CountingStream::new(stream, Arc::clone(&counters));
        let (bytes, mut sent) = (vec![7; 256 * 1024], 0);
        while let Some(written) = guard.write(&bytes).now_or_never() {
            sent += written.expect("the client is there");
            assert!(!counters.sample().busy);
        }
        let full = counters.sample();
        assert!(full.has_unsent && full.busy, "the tail of a response waits for the client");
        assert_eq!(full.shipped_bytes, sent as u64);
        let reading = tokio::spawn(async move { client.read_to_end(&mut Vec::new()).await });
        sent += guard.write(&bytes).await.expect("the client takes it");
        assert_eq!(counters.sample().shipped_bytes, sent as u64);
        assert!(!counters.sample().has_unsent);
        drop(guard);
        assert_eq!(reading.await.expect("no panic").expect("read"), sent);
    }
}
