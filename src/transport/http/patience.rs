//! Connections whose other end must read: an answer that nobody takes is given up.
//!
//! Handlers have ended by then and hold no place; what is left is the answer itself. It is bounded in
//! size, and by this in time.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How long a client may take to read what is written, from the moment it falls behind.
pub const READ_MAX: Duration = Duration::from_mins(1);

/// A listener whose connections end when their other end does not read.
#[derive(Debug)]
pub struct Patient<L> {
    listener: L,
    read_max: Duration,
}

impl<L: Listener> Patient<L> {
    /// `read_max` is the time to take all that has been written.
    pub fn new(listener: L, read_max: Duration) -> Self {
        Self { listener, read_max }
    }
}

impl<L: Listener> Listener for Patient<L> {
    type Io = PatientIo<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (io, address) = self.listener.accept().await;
        let io = PatientIo {
            io,
            read_max: self.read_max,
            behind: None,
        };
        (io, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// One such connection.
pub struct PatientIo<I> {
    io: I,
    read_max: Duration,
    /// Runs while something written waits to be taken.
    behind: Option<Pin<Box<Sleep>>>,
}

impl<I> fmt::Debug for PatientIo<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PatientIo")
            .field("behind", &self.behind.is_some())
            .finish_non_exhaustive()
    }
}

impl<I> PatientIo<I> {
    /// What a write comes to. Progress alone does not help: a byte a minute would hold an answer for
    /// ever.
    fn judged(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            return written;
        }
        let read_max = self.read_max;
        let behind = self
            .behind
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(read_max)));
        ready!(behind.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for PatientIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for PatientIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.judged(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, parts);
        self.judged(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// Asked for when nothing is left to write: the client has caught up.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.io).poll_flush(context));
        self.behind = None;
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn patient(io: DuplexStream) -> PatientIo<DuplexStream> {
        PatientIo {
            io,
            read_max: READ_MAX,
            behind: None,
        }
    }

    /// Reads a byte a pause, to the end.
    async fn sip(mut from: DuplexStream, pause: Duration) -> usize {
        let mut taken = 0;
        while let Ok(1) = from.read(&mut [0]).await {
            taken += 1;
            tokio::time::sleep(pause).await;
        }
        taken
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_byte_by_byte_is_given_up_in_the_end() {
        let (near, far) = duplex(4);
        let mut near = patient(near);
        let write = async move { near.write_all(&[7; 100]).await };
        let (written, taken) = tokio::join!(write, sip(far, READ_MAX / 10));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(taken < 20, "{taken}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_catches_up_has_all_the_time_again() {
        let (near, far) = duplex(4);
        let mut near = patient(near);
        let write = async move {
            for _answer in 0..10 {
                near.write_all(&[7; 10]).await?;
                near.flush().await?;
            }
            Ok::<_, io::Error>(())
        };
        let (written, taken) = tokio::join!(write, sip(far, READ_MAX / 20));
        written.unwrap();
        assert_eq!(taken, 100);
    }
}
