//! Benchmarks of database statements: point reads, log scans and writes, without the overhead of the database
//! thread (each call runs a thousand statements).
//!
//! Writes wait for the disk; `TMPDIR=/dev/shm` excludes it. As a test, with `-- --test`, each runs once.

use std::{hint::black_box, io};

use criterion::{Criterion, Throughput};
use jiff::Timestamp;
use model::ItemKey;
use model::account::UserId;
use model::item::PubStatus;
use serde_json::json;
use wirephoto::storage::database::{AccountChange, Db, DbError, NewItem, WriteTx};

/// The same allocator as the server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of items in the database, and of rows in its log.
const ITEMS: u32 = 10_000;
/// Number of statements per call.
const CALL: u32 = 1000;

fn key(number: u32) -> ItemKey {
    format!("image/sdlt{number:06}").parse().expect("media type and id are valid")
}

fn item(number: u32) -> NewItem {
    let key = key(number);
    let text = json!({
        "uri": format!("http://localhost/media/{key}"),
        "type": "picture",
        "headline": format!("Isbrytare {number} i Strömmen"),
        "description_text": "Många stannade för att se på när isbrytaren lade i väg. ".repeat(8),
        "byline": "Anna Andersson/TT",
        "source": "TT",
        "product": [{ "code": format!("FOTT{}", number % 60) }],
    })
    .to_string();
    let now = Timestamp::from_second(1_790_000_000 + i64::from(number))
        .expect("the time is within the range of timestamps");
    NewItem {
        key,
        document: text,
        assets: None,
        pub_status: PubStatus::Usable,
        order_time: now,
        embargoed: None,
        stored: now,
        is_newly_indexed: true,
    }
}

fn write(db: &Db, write: impl FnOnce(&WriteTx<'_>) -> Result<(), DbError> + Send + 'static) {
    db.write_blocking(write).expect("a scratch database can be written");
}

fn main() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path()).map_err(io::Error::other)?;
    let items: Vec<NewItem> = (0..ITEMS).map(item).collect();
    for part in items.chunks(2000) {
        let part = part.to_vec();
        write(&db, move |tx| part.iter().try_for_each(|item| tx.write_item(item).map(drop)));
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("database");
    group.throughput(Throughput::Elements(u64::from(CALL)));
    group.bench_function("find_item", |bencher| {
        bencher.iter(|| {
            let read = db.read_blocking(|tx| {
                (0..CALL).try_for_each(|n| tx.find_item(&key(n * 7)).map(|it| drop(black_box(it))))
            });
            read.expect("a scratch database can be read");
        });
    });
    group.bench_function("account_log", |bencher| {
        bencher.iter(|| {
            write(&db, |tx| {
                let change = AccountChange::User(UserId(7));
                (0..CALL).try_for_each(|_| tx.log_account_change(change, Timestamp::UNIX_EPOCH))
            });
        });
    });
    group.bench_function("write_item", |bencher| {
        bencher.iter_batched(
            || items.iter().take(1000).cloned().collect::<Vec<_>>(),
            |items| {
                write(&db, move |tx| {
                    items.iter().try_for_each(|item| tx.write_item(item).map(drop))
                });
            },
            criterion::BatchSize::PerIteration,
        );
    });
    group.throughput(Throughput::Elements(u64::from(ITEMS)));
    group.bench_function("each_version", |bencher| {
        bencher.iter(|| {
            let read = db.read_blocking(|tx| {
                let mut bytes = 0;
                tx.each_version(|_, key, _| {
                    bytes += key.len();
                    Ok(())
                })?;
                Ok(bytes)
            });
            read.expect("a scratch database can be read")
        });
    });
    group.bench_function("log_rows", |bencher| {
        bencher.iter(|| {
            let rows = usize::try_from(ITEMS).expect("the number fits");
            db.read_blocking(move |tx| tx.log_rows(0, rows))
                .expect("a scratch database can be read")
        });
    });
    group.finish();
    criterion.final_summary();
    Ok(())
}
