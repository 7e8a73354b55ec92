//! Adapts rustls to the driver, for TLS connections to the server.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::runtime::tls_client::{config_trusting, public_authorities};

/// The TLS settings of connections; empty for connections without TLS.
#[derive(Clone)]
pub(super) struct ServerTls(Option<Arc<ClientConfig>>);

impl ServerTls {
    /// Creates settings without TLS.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Trusts the public authorities, and the authorities with certificates (PEM) in the file `ca`.
    pub(super) fn trusting(ca: Option<&Path>) -> Result<Self, String> {
        let mut roots = public_authorities();
        if let Some(file) = ca {
            let certificates =
                CertificateDer::pem_file_iter(file).map_err(|why| file_error(file, &why))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|why| file_error(file, &why))?;
                roots.add(certificate).map_err(|why| file_error(file, &why))?;
            }
        }
        let config = config_trusting(roots).map_err(|why| why.to_string())?;
        Ok(Self(Some(Arc::new(config))))
    }
}

fn file_error(file: &Path, cause: &dyn std::fmt::Display) -> String {
    format!("{}: {cause}", file.display())
}

impl MakeTlsConnect<Socket> for ServerTls {
    type Stream = ServerStream;
    type TlsConnect = ServerHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<ServerHandshake> {
        let name = self.0.clone().map(|config| {
            let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
            Ok::<_, io::Error>((TlsConnector::from(config), name))
        });
        Ok(ServerHandshake(name.transpose()?))
    }
}

/// A connection before its TLS handshake.
pub(super) struct ServerHandshake(Option<(TlsConnector, ServerName<'static>)>);

impl TlsConnect<Socket> for ServerHandshake {
    type Stream = ServerStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<ServerStream>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let Some((connector, name)) = self.0 else {
                return Err(io::Error::other("the settings ask for no TLS"));
            };
            Ok(ServerStream(Box::new(connector.connect(name, stream).await?)))
        })
    }
}

/// A connection with TLS.
pub(super) struct ServerStream(Box<TlsStream<Socket>>);

impl tokio_postgres::tls::TlsStream for ServerStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
