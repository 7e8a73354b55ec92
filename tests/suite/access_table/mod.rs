//! The tables of rights: who gets what at every address (contract access-17).
//!
//! `media.txt` and `item_pages.txt` have the addresses of items, by the state of the item; `apis.txt` and `pages.txt`
//! have every other route. The tables are the truth: a feature adds rows, and a test in `src/http/openapi` fails for
//! a route without one.

mod items;
mod routes;
mod scene;
mod table;

use crate::common::Server;

/// Clients that send requests at the same time.
const CLIENTS: usize = 6;

#[test]
fn every_address_answers_every_caller_as_the_tables_say() {
    let media = items::ItemTable::read(items::TableName::Media);
    let pages = items::ItemTable::read(items::TableName::ItemPages);
    let server = scene::server(1 + media.numbers() + pages.numbers());
    let mut wrong = media.differences(&server, 0);
    wrong.extend(pages.differences(&server, media.numbers()));
    wrong.extend(routes::differences(&server));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    check_log(server);
}

fn check_log(server: Server) {
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}
