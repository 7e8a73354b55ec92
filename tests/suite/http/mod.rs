//! HTTP semantics of media URLs: methods, validators, ranges, caching, connections, load, other origins.

mod cache_tiers;
mod conditional;
mod connections;
mod headers;
mod load;
mod origins;

use std::net::TcpStream;

use reqwest::{Method, blocking::Response};

use crate::common::{DEMO_KEY, LARGE, Server, WAIT_TIMEOUT};

const PREVIEW: &str = "/media/image/demo-urtavla_NormalPreview.jpg";
const THUMBNAIL: &str = "/media/image/demo-urtavla_NormalThumbnail.jpg";

/// The plain Hires of the large photograph, with the key.
fn hires() -> String {
    format!("/media/{LARGE}.jpg?ak={DEMO_KEY}")
}

fn renders(server: &Server) -> f64 {
    server.metric("wirephoto_render_paths_total", "")
}

fn send(server: &Server, method: Method, path: &str) -> Response {
    server.client.request(method, format!("{}{path}", server.url)).send().expect("answer")
}

/// The text of a header; empty if it is absent.
fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name);
    value.map(|value| value.to_str().expect("ASCII").to_owned()).unwrap_or_default()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.url.trim_start_matches("http://")).expect("connected");
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("set");
    stream
}

/// The first response from the disk tier, which is filled after the response is sent.
fn from_disk(server: &Server, path: &str) -> Response {
    server.until("an answer from disk", || {
        let response = server.get(path);
        (header(&response, "server-timing") == "cache;desc=\"disk\"").then_some(response)
    })
}
