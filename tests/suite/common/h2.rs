//! An HTTP/2 client that sends hand-made frames, in any order and number.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

use super::Server;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// Encodes a frame with its header.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The fields of a request as literals (RFC 7541).
pub fn fields(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    // An indexed `:scheme http`; names by index, or as literals.
    let mut block = vec![0x86];
    let text = |block: &mut Vec<u8>, text: &str| {
        let length = text.len();
        if length < 127 {
            block.push(u8::try_from(length).expect("short"));
        } else {
            block.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                block.push(u8::try_from(rest % 128).expect("seven bits") | 128);
                rest /= 128;
            }
            block.push(u8::try_from(rest).expect("seven bits"));
        }
        block.extend(text.as_bytes());
    };
    for (index, value) in [(2, method), (4, path), (1, "localhost")] {
        block.push(index);
        text(&mut block, value);
    }
    for (name, value) in more {
        block.push(0);
        text(&mut block, name);
        text(&mut block, value);
    }
    block
}

/// A frame received from the server.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// A connection on which the preface is sent.
pub struct H2 {
    pub stream: TcpStream,
}

impl H2 {
    /// Connects; `settings` are pairs of number and value.
    pub fn connect(server: &Server, settings: &[(u16, u32)]) -> Self {
        let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream.set_write_timeout(patience).unwrap();
        let pair = |(number, value): &(u16, u32)| {
            [number.to_be_bytes().to_vec(), value.to_be_bytes().to_vec()].concat()
        };
        let settings: Vec<u8> = settings.iter().flat_map(pair).collect();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &settings)).unwrap();
        // The server's settings are acknowledged first: an acknowledgement from another thread could split a frame.
        let mut client = Self { stream };
        while client.next().is_some_and(|frame| frame.kind != SETTINGS || frame.flags & ACK != 0) {
        }
        client
    }

    /// Sends bytes; returns false once the peer has closed the connection.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// A GET of `path` on `stream`.
    pub fn get(&mut self, stream: u32, path: &str) -> bool {
        let block = fields("GET", path, &[]);
        self.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &block))
    }

    /// The next frame; `None` once the connection is closed or reset.
    pub fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.fill(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.fill(&mut payload)?;
        let stream = u32::from_be_bytes([head[5] & 127, head[6], head[7], head[8]]);
        let frame = Frame { kind: head[3], flags: head[4], stream, payload };
        if frame.kind == SETTINGS && frame.flags & ACK == 0 {
            self.send(&self::frame(SETTINGS, ACK, 0, &[]));
        }
        // A connection that leaves pings unanswered is closed.
        if frame.kind == PING && frame.flags & ACK == 0 {
            self.send(&self::frame(PING, ACK, 0, &frame.payload));
        }
        Some(frame)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self.stream.read_exact(bytes) {
            Ok(()) => Some(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("the server neither answers nor closes")
            }
            Err(_) => None,
        }
    }

    /// Reads until the connection ends; returns the error code of its GOAWAY frame, if there was one.
    pub fn read_to_goaway(mut self) -> Option<u32> {
        let mut reason = None;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY {
                reason = frame
                    .payload
                    .get(4..8)
                    .map(|code| u32::from_be_bytes(code.try_into().expect("four bytes")));
            }
        }
        reason
    }
}
