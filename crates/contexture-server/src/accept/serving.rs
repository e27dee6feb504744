//! Serves connections, with a time limit for the headers of a request.

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How long a client may take to send the headers of a request. A connection on which nothing comes for so long is
/// closed, which clients that keep connections open expect.
pub(crate) const HEADER_TIME: Duration = Duration::from_secs(60);

/// How long to wait after the system could not accept a connection, which is when it has no file handles left.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves connections until the sender is dropped or sends something; requests in progress are then finished.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    header_time: Duration,
    mut stop: watch::Receiver<()>,
) -> io::Result<()> {
    // Dropped by each connection that ends.
    let (open, mut all_closed) = tokio::sync::mpsc::channel::<()>(1);
    let connections_stop = stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // An error means that the sender was dropped.
            _ = stop.changed() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (app, stop, open) = (app.clone(), connections_stop.clone(), open.clone());
                tokio::spawn(async move {
                    connection(stream, app, header_time, stop).await;
                    drop(open);
                });
            }
            Err(error) if is_of_connection(&error) => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    drop((listener, open));
    // Nothing is ever sent: it returns when the last connection has ended.
    let _ = all_closed.recv().await;
    Ok(())
}

async fn connection(stream: TcpStream, app: Router, header_time: Duration, mut stop: watch::Receiver<()>) {
    // Without this, small chunks are delayed until the next one, which users notice as a pause.
    let _ = stream.set_nodelay(true);
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(header_time);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)));
    tokio::select! {
        // An error concerns the client, which notices it itself.
        _ = serving.as_mut() => return,
        _ = stop.changed() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// Whether only one connection failed, not the listener.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
