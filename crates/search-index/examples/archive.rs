//! Takes an archive in and searches it: how long each takes, and how much memory.
//!
//! ```text
//! archive ITEMS QUERIES FOLDER [TOTALS [forms]]
//! ```
//!
//! ITEMS has a document a line and QUERIES the searches, both as `benches/compare/archive.py` makes
//! them. An index that is in FOLDER already is opened. TOTALS gets a line for each search with its
//! total, to compare with another engine. With `forms`, searches find other forms of words too.

#![expect(clippy::disallowed_methods, reason = "it measures, and knows no clock of a server")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use model::item::{Document, PubStatus};
use model::{ItemKey, MediaType};
use query::{Facet, IndexedDocument, Query, QueryError, parse, parse_with_forms};
use search_index::{
    ANALYSIS, CommitPosition, Coverage, IndexSnapshot, ItemVersion, ResultPage, SearchFilter,
    SearchIndex, SortDate, SortOrder,
};
use serde_json::Value;

/// The product's allocator: it decides over memory and speed with several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How the text of a query is read.
type Parse = fn(&str, &TimeZone) -> Result<Query, QueryError>;
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes for sets that are kept, as the server has by default.
const MEMORY_BYTES: u64 = 134_217_728;
/// Items between two commits while an archive is taken in.
const COMMIT_ITEMS: u32 = 50_000;
/// Hits of a page, as the API has by default.
const PAGE: usize = 20;

/// Prints a line; a reader that went away is no failure.
macro_rules! say {
    ($($what:tt)*) => { drop(writeln!(io::stdout(), $($what)*)) };
}

struct ExampleSearch {
    filter: SearchFilter,
    page: ResultPage,
    facets: Vec<Facet>,
    line: String,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [items, queries, folder, totals @ ..] = arguments.as_slice() else {
        return Err("archive ITEMS QUERIES FOLDER [TOTALS [forms]]".into());
    };
    let (folder, zone) = (Path::new(folder), TimeZone::get("Europe/Stockholm")?);
    if !folder.join("meta.json").exists() {
        fs::create_dir_all(folder)?;
        take_in(Path::new(items), folder, &zone)?;
    }
    let watch = Instant::now();
    let index = SearchIndex::open(folder, MEMORY_BYTES)?;
    let snapshot = index.snapshot();
    say!("opened in {:.1?}: {} items, {} MB", watch.elapsed(), snapshot.len(), resident_mb());
    let parse = if totals.len() > 1 { parse_with_forms } else { parse };
    let searches = read_searches(&fs::read_to_string(queries)?, &zone, parse)?;
    let mut lines = String::new();
    for round in ["first", "again", "again"] {
        let mut times = Vec::with_capacity(searches.len());
        lines.clear();
        for search in &searches {
            let watch = Instant::now();
            let total = answer(&snapshot, search)?;
            times.push((watch.elapsed(), search.line.as_str()));
            lines.push_str(&format!("{total}\t{}\n", search.line));
        }
        report(round, times);
    }
    if let [totals, ..] = totals {
        fs::write(totals, lines)?;
    }
    let (next, watch) = (AtomicUsize::new(0), Instant::now());
    let count = searches.len() * 4;
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(search) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .filter(|at| *at < count)
                    .and_then(|at| searches.get(at % searches.len()))
                {
                    if let Err(cause) = answer(&snapshot, search) {
                        say!("{}: {cause}", search.line);
                    }
                }
            });
        }
    });
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let rate = count as f64 / watch.elapsed().as_secs_f64();
    say!("16 at a time: {rate:.0}/s, {} MB", resident_mb());
    Ok(())
}

fn take_in(items: &Path, folder: &Path, zone: &TimeZone) -> Outcome<()> {
    let index = SearchIndex::create(folder, 0)?;
    let mut writer = index.writer()?;
    let watch = Instant::now();
    let position = |row: u32| CommitPosition {
        archive: "bench".to_owned(),
        analysis: ANALYSIS,
        row: i64::from(row),
        digest: String::new(),
    };
    let mut number = 0_u32;
    for line in BufReader::with_capacity(1 << 20, File::open(items)?).lines() {
        number += 1;
        let document = Document::from_stored(&line?)?;
        let uri = document.text("uri").unwrap_or_default().to_owned();
        let path: Vec<&str> = uri.rsplitn(3, '/').collect();
        let [id, media_type, ..] = path.as_slice() else { return Err("no uri".into()) };
        let key = ItemKey::parse(&format!("{media_type}/{id}"))?;
        let indexed = IndexedDocument::of(&key, &document, zone);
        let order: Timestamp = document.text("versioncreated").unwrap_or_default().parse()?;
        writer.add(&ItemVersion {
            number,
            key: &key,
            stored_ms: i64::from(number),
            status: PubStatus::Usable,
            order_ms: order.as_millisecond(),
            embargoed_ms: None,
            indexed: &indexed,
        })?;
        if number.is_multiple_of(COMMIT_ITEMS) {
            writer.commit(&position(number))?;
        }
    }
    writer.commit(&position(number))?;
    say!("{number} items in {:.1?}, {} MB", watch.elapsed(), resident_mb());
    writer.finish()?;
    say!("merged after {:.1?}", watch.elapsed());
    Ok(())
}

fn read_searches(text: &str, zone: &TimeZone, parse: Parse) -> Outcome<Vec<ExampleSearch>> {
    let made: Value = serde_json::from_str(text)?;
    let products: Vec<String> = serde_json::from_value(made["products"].clone())?;
    let queries = made["queries"].as_array().ok_or("no queries")?;
    queries.iter().map(|one| read_search(one, &products, zone, parse)).collect()
}

fn read_search(
    one: &Value,
    products: &[String],
    zone: &TimeZone,
    parse: Parse,
) -> Outcome<ExampleSearch> {
    let parameter = |name: &str| one["parameters"][name].as_str();
    let midnight = |day: &str| -> Outcome<Timestamp> {
        Ok(day.parse::<Date>()?.to_zoned(zone.clone())?.timestamp())
    };
    let media_type =
        one["path"].as_str().and_then(|path| path.split('/').nth(3)).unwrap_or("_all");
    let now = Timestamp::now().to_zoned(zone.clone());
    let back = match parameter("tr") {
        Some("y") => Some(now.checked_sub(1.year())?.timestamp()),
        Some("m") => Some(now.checked_sub(1.month())?.timestamp()),
        _ => None,
    };
    let filter = SearchFilter {
        media_type: match media_type {
            "_all" => None,
            name => MediaType::ALL.into_iter().find(|one| one.as_str() == name),
        },
        query: parse(parameter("q").unwrap_or_default(), zone)?,
        products: parameter("p")
            .into_iter()
            .flat_map(|codes| codes.split(','))
            .map(str::to_owned)
            .collect(),
        products_excluded: Vec::new(),
        coverage: match one["agreement"].as_u64() {
            Some(1..) => Coverage::Products(products.to_vec()),
            _ => Coverage::Everything,
        },
        from: parameter("trs").map(midnight).transpose()?.or(back),
        until: parameter("tre").map(midnight).transpose()?,
        statuses: vec![PubStatus::Usable],
        hides_embargoed_at: Some(Timestamp::now()),
        after: None,
        newer_than: None,
    };
    let by = |date, descending| SortOrder::By { date, descending };
    let sort = match parameter("sort").unwrap_or_default() {
        "relevance" => SortOrder::Relevance,
        "date:desc" => by(SortDate::Date, true),
        "versioncreated:asc" => by(SortDate::VersionCreated, false),
        "default:asc" => by(SortDate::Order, false),
        "versionstored:desc" => by(SortDate::VersionStored, true),
        _ => by(SortDate::Order, true),
    };
    let skip = parameter("fr").map_or(Ok(0), str::parse)?;
    let facets = if parameter("facets").is_some() { Facet::ALL.to_vec() } else { Vec::new() };
    let line = format!("{} {}", one["path"], one["parameters"]);
    Ok(ExampleSearch { filter, page: ResultPage { sort, skip, size: PAGE }, facets, line })
}

/// Answers a search as a server does; gives the total.
fn answer(snapshot: &IndexSnapshot, search: &ExampleSearch) -> Outcome<u64> {
    let never = &|| false;
    let found = snapshot.find(&search.filter, &[], never)?;
    let hits = found.page(search.page, &search.filter.query, never)?;
    let facets = found.facets(&search.facets, never)?;
    std::hint::black_box((hits, facets));
    Ok(found.total())
}

fn report(round: &str, mut times: Vec<(Duration, &str)>) {
    times.sort_unstable();
    let at = |share: usize| {
        let (time, _) = times[(times.len() * share / 100).min(times.len() - 1)];
        time.as_secs_f64() * 1e3
    };
    let shares = [50, 90, 95, 99, 100].map(|share| format!("{:.2}", at(share)));
    say!("{round}: p50 p90 p95 p99 max = {} ms", shares.join(" "));
    for (time, line) in times.iter().rev().take(5) {
        say!("    {:.1} ms {line}", time.as_secs_f64() * 1e3);
    }
}

/// Memory that is not mapped from files.
fn resident_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default() / 1000
}
