//! Searches over an archive, in the process: how long each takes, how many a second, how long the
//! index takes to read, and how much memory it needs.
//!
//! `BENCH_DATA` names a data directory into which an archive was taken in, `BENCH_QUERIES` the
//! queries for it; `compare/archive.py` makes both. Without them, as in `cargo test`, a handful of
//! items is searched once, to see that it runs.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Value, json};
use wirephoto::{
    clock::{self, Stopwatch},
    config::{self, Sources},
    db::Db,
    item::PubStatus,
    query::{self, Facet},
    search::{Coverage, Request, Search, Sort, SortDate},
    types::MediaType,
};

/// The product's allocator: it decides over memory and speed with several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints a line; a reader that went away is no failure.
macro_rules! say {
    ($($what:tt)*) => { drop(writeln!(io::stdout(), $($what)*)) };
}

/// Bytes for what was found of words, as by default.
const MEMORY_BYTES: u64 = 134_217_728;
/// Searches under way at a time.
const CONNECTIONS: usize = 16;

#[expect(clippy::disallowed_methods, reason = "a bench has no settings but these variables")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// A few items, for a run as a test.
fn small(dir: &Path) -> io::Result<Value> {
    let file = dir.join("items.jsonl");
    let item = |n: u32| {
        json!({ "uri": format!("http://localhost/media/text/t{n}"), "type": "text",
                "headline": format!("Storm {n}"), "product": [{ "code": "FOTT" }] })
    };
    let lines: Vec<String> = (0..20).map(|n| item(n).to_string()).collect();
    fs::write(&file, lines.join("\n"))?;
    Ok(json!({ "products": ["FOTT"], "queries": [
        { "path": "/content/v1/text/search", "parameters": { "q": "storm" }, "agreement": 100 }
    ] }))
}

/// A query of `compare/archive.py` as the content API would read it.
fn request(query: &Value, products: &[String], zone: &TimeZone, now: Timestamp) -> Request {
    let parameter = |name: &str| query["parameters"][name].as_str();
    let midnight = |text: &str| {
        let date: Date = text.parse().expect("date");
        date.to_zoned(zone.clone()).expect("midnight").timestamp()
    };
    let path = query["path"].as_str().expect("path");
    let media_type = path.split('/').nth(3).and_then(|name| MediaType::parse(name).ok());
    let back = |days: i64| now - jiff::SignedDuration::from_hours(24 * days);
    let range = parameter("tr").map(|tr| back(if tr == "y" { 365 } else { 30 }));
    let (date, descending) = match parameter("sort") {
        Some("date:desc") => (SortDate::Date, true),
        Some("versioncreated:asc") => (SortDate::VersionCreated, false),
        Some("versionstored:desc") => (SortDate::VersionStored, true),
        Some("default:asc") => (SortDate::Order, false),
        _ => (SortDate::Order, true),
    };
    let sort = match parameter("sort") {
        Some("relevance") => Sort::Relevance,
        _ => Sort::By { date, descending },
    };
    let list = |name| parameter(name).map_or_else(Vec::new, split);
    let coverage = match query["agreement"].as_u64() {
        Some(0) | None => Coverage::Everything,
        Some(_) => Coverage::Products(products.to_vec()),
    };
    Request {
        media_type,
        query: query::parse(parameter("q").unwrap_or_default(), zone).expect("query"),
        products: list("p"),
        products_excluded: Vec::new(),
        coverage,
        from: parameter("trs").map(midnight).or(range),
        until: parameter("tre").map(midnight),
        statuses: vec![PubStatus::Usable],
        sees_embargoed: false,
        after: None,
        sort,
        skip: parameter("fr").map_or(0, |skip| skip.parse().expect("number")),
        size: 20,
        facets: if parameter("facets").is_some() { Facet::ALL.to_vec() } else { Vec::new() },
    }
}

fn split(codes: &str) -> Vec<String> {
    codes.split(',').map(str::to_owned).collect()
}

/// Resident memory of this process in MB, and the most it ever was.
fn resident_mb() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or_default() / 1000
    };
    (of("VmRSS"), of("VmHWM"))
}

fn main() -> io::Result<()> {
    let temporary = tempfile::tempdir()?;
    let (data, queries) = match (variable("BENCH_DATA"), variable("BENCH_QUERIES")) {
        (Some(data), Some(queries)) => {
            (data, serde_json::from_slice(&fs::read(queries)?).map_err(io::Error::other)?)
        }
        _ => (temporary.path().to_owned(), small(temporary.path())?),
    };
    let (config, _) =
        config::load(&Sources { file: None, flags: Vec::new() }).map_err(io::Error::other)?;
    let zone = config.ingest.timezone.0.clone();
    let db = Db::open(&data).map_err(io::Error::other)?;
    let started = Stopwatch::start();
    let search = Search::start(db, MEMORY_BYTES).map_err(io::Error::other)?;
    say!("index read in {:.0} ms, {} MB resident", started.elapsed_ms(), resident_mb().0);
    let products: Vec<String> =
        serde_json::from_value(queries["products"].clone()).map_err(io::Error::other)?;
    let now = clock::now();
    let requests: Vec<Request> = queries["queries"]
        .as_array()
        .expect("queries")
        .iter()
        .map(|query| request(query, &products, &zone, now))
        .collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for round in ["cold", "warm"] {
        one_by_one(&runtime, &search, &requests, now, (round, &queries));
    }
    side_by_side(&runtime, &search, &Arc::new(requests), now);
    say!("{} MB resident, {} MB at most", resident_mb().0, resident_mb().1);
    Ok(())
}

fn one_by_one(
    runtime: &tokio::runtime::Runtime,
    search: &Search,
    requests: &[Request],
    now: Timestamp,
    (round, queries): (&str, &Value),
) {
    let mut times: Vec<(f64, usize)> = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let watch = Stopwatch::start();
        let found = search.search(request.clone(), now, |found, _| Ok(found.total));
        runtime.block_on(found).expect("found");
        times.push((watch.elapsed_ms(), at));
    }
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].0;
    say!(
        "{round}: p50 {:.2} ms, p90 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        at(50),
        at(90),
        at(95),
        at(99),
        at(100)
    );
    for (ms, at) in times.iter().rev().take(8) {
        say!("    {ms:.1} ms {}", queries["queries"][*at]);
    }
}

fn side_by_side(
    runtime: &tokio::runtime::Runtime,
    search: &Search,
    requests: &Arc<Vec<Request>>,
    now: Timestamp,
) {
    let (next, watch) = (Arc::new(AtomicUsize::new(0)), Stopwatch::start());
    let workers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (search, requests) = (search.clone(), Arc::clone(requests));
            let next = Arc::clone(&next);
            runtime.spawn(async move {
                while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = search.search(request.clone(), now, |found, _| Ok(found.total));
                    found.await.expect("found");
                }
            })
        })
        .collect();
    for worker in workers {
        runtime.block_on(worker).expect("finished");
    }
    let count = f64::from(u32::try_from(requests.len()).unwrap_or(u32::MAX));
    let rate = count / watch.elapsed().as_secs_f64();
    say!("{CONNECTIONS} at a time: {rate:.0} searches/s");
}
