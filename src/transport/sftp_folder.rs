//! A folder on an SSH server, over SFTP version 3.

use futures_util::{StreamExt, stream::FuturesUnordered};
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error;
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, StatusCode};

use crate::transport::conversation::RemoteConversation;
use crate::transport::error::{SendError, SendFault, SendStep};
use crate::transport::file::{OutgoingFile, OutgoingReader};
use crate::transport::settings::FolderPath;

/// Bytes of one write over SFTP; every server accepts 32 KiB.
const SFTP_WRITE_BYTES: usize = 32 * 1024;
/// SFTP writes in flight: 1 MiB, so that a distant server does not cost a round trip for each.
const SFTP_WRITES_MAX: usize = 32;
/// The extension for a rename that atomically replaces an existing file, which version 3 does not offer.
const POSIX_RENAME: &str = "posix-rename@openssh.com";
/// The extension that waits until a file is on the server's disk.
const FSYNC: &str = "fsync@openssh.com";

/// The open remote folder of a channel.
pub(super) struct RemoteFolder<'a> {
    conversation: &'a RemoteConversation<'a>,
    session: RawSftpSession,
    /// The path of the folder with a trailing slash; empty for the login directory.
    prefix: String,
    renames_over: bool,
    syncs: bool,
}

impl<'a> RemoteFolder<'a> {
    /// Opens the folder and creates missing parts of its path.
    pub(super) async fn open(
        conversation: &'a RemoteConversation<'a>,
        session: RawSftpSession,
        path: &FolderPath,
    ) -> Result<Self, SendError> {
        let version = conversation.await_answer(SendStep::Folder, session.init()).await?;
        let renames_over = version.extensions.contains_key(POSIX_RENAME);
        let syncs = version.extensions.contains_key(FSYNC);
        let mut prefix = if path.absolute { "/" } else { "" }.to_owned();
        for part in &path.parts {
            prefix.push_str(part);
            // Version 3 has no status for an existing folder, so the error of `mkdir` alone is ambiguous.
            if conversation.await_answer(SendStep::Folder, session.stat(&prefix)).await.is_err() {
                // A concurrent delivery may create the folder at the same moment, so the error counts only if the
                // folder is still missing.
                let created = session.mkdir(&prefix, FileAttributes::empty());
                let created = conversation.await_answer(SendStep::Folder, created).await;
                let found = session.stat(&prefix);
                if let Err(error) = created
                    && conversation.await_answer(SendStep::Folder, found).await.is_err()
                {
                    return Err(error);
                }
            }
            prefix.push('/');
        }
        Ok(Self { conversation, session, prefix, renames_over, syncs })
    }

    /// Uploads a file under the name `temporary` and then renames it, so that readers never see a partial file.
    pub(super) async fn upload(
        &self,
        file: &OutgoingFile,
        temporary: &str,
    ) -> Result<(), SendError> {
        let Self { conversation, session, .. } = self;
        let from = self.path(temporary);
        let to = self.path(&file.name);
        let limit = conversation.timeouts.transfer(file.size_bytes);
        conversation.run_within(limit, SendStep::Upload, self.write(file, &from)).await?;
        if self.renames_over {
            return conversation
                .await_answer(SendStep::Rename, self.rename_over(&from, &to))
                .await;
        }
        if conversation.await_answer(SendStep::Rename, session.rename(&from, &to)).await.is_ok() {
            return Ok(());
        }
        // Without the extension, a rename fails if the target exists, so the target is removed first.
        let _ignored = conversation.await_answer(SendStep::Rename, session.remove(&to)).await;
        let renamed = session.rename(&from, &to);
        conversation.await_answer(SendStep::Rename, renamed).await.map(drop)
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    async fn write(&self, file: &OutgoingFile, path: &str) -> Result<(), SendFault> {
        let mut reader = OutgoingReader::open(file, self.conversation.timeouts.answer).await?;
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
        let handle = self.session.open(path, flags, FileAttributes::empty()).await?.handle;
        let mut in_flight = FuturesUnordered::new();
        let mut offset = 0;
        while let Some(chunk) = reader.next().await? {
            for part in chunk.chunks(SFTP_WRITE_BYTES) {
                // Bounds the memory if the server is slower than our disk.
                if in_flight.len() == SFTP_WRITES_MAX
                    && let Some(written) = in_flight.next().await
                {
                    written?;
                }
                in_flight.push(self.session.write(handle.as_str(), offset, part.to_vec()));
                offset += u64::try_from(part.len()).unwrap_or(u64::MAX);
            }
        }
        while let Some(written) = in_flight.next().await {
            written?;
        }
        drop(in_flight);
        // Synced before the rename, or a crash of the server could leave an empty file in place.
        if self.syncs {
            self.session.fsync(handle.as_str()).await?;
        }
        self.session.close(handle.as_str()).await?;
        Ok(())
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "one of russh-sftp's 28 packets is an answer"
    )]
    async fn rename_over(&self, from: &str, to: &str) -> Result<(), SendFault> {
        let mut data = Vec::new();
        for text in [from, to] {
            let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
            data.extend_from_slice(&bytes.to_be_bytes());
            data.extend_from_slice(text.as_bytes());
        }
        match self.session.extended(POSIX_RENAME, data).await? {
            Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
            Packet::Status(status) => Err(Error::Status(status).into()),
            _ => Err(Error::UnexpectedPacket.into()),
        }
    }
}

impl From<Error> for SendFault {
    fn from(error: Error) -> Self {
        match error {
            Error::Status(status) => Self::Answer {
                code: status.status_code as u32,
                temporary: is_temporary(status.status_code),
                server_message: status.error_message,
            },
            Error::Timeout => Self::Network(std::io::ErrorKind::TimedOut.into()),
            Error::IO(text) => Self::Network(std::io::Error::other(text)),
            other @ (Error::Limited(_)
            | Error::UnexpectedPacket
            | Error::UnexpectedBehavior(_)) => Self::Protocol(other.to_string()),
        }
    }
}

/// Returns whether a retry may succeed. `Failure` is temporary, because version 3 has no other status for a full
/// disk.
fn is_temporary(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::NoSuchFile | StatusCode::PermissionDenied | StatusCode::OpUnsupported
    )
}
