//! The archive and the queries of `compare/archive.py` in Tantivy: time to index, time to open,
//! time of each query, queries a second at 16 at a time, resident memory.
//!
//!     compare-tantivy index ITEMS.jsonl FOLDER
//!     compare-tantivy search FOLDER QUERIES.json
//!
//! A search does what ours does: total, the first page in order with the stored documents, facets.

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    io::{BufRead, BufReader},
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use serde_json::{Value, json};
use tantivy::{
    DateTime, Index, IndexReader, IndexWriter, Order, ReloadPolicy, Searcher, TantivyDocument, Term,
    aggregation::{AggregationCollector, agg_req::Aggregations},
    collector::{Count, TopDocs},
    query::{BooleanQuery, BoostQuery, Occur, Query, QueryParser, RangeQuery, TermQuery, TermSetQuery},
    schema::{
        FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
    },
    tokenizer::{AsciiFoldingFilter, LowerCaser, SimpleTokenizer, TextAnalyzer},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const FACETS: [&str; 5] = ["subject.code", "product.code", "place.name", "person.name", "copyrightholder"];

struct Fields {
    document: Field,
    headline: Field,
    text: Field,
    media_type: Field,
    order: Field,
    created: Field,
    facets: [Field; 5],
    person: Field,
    place: Field,
    subject: Field,
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer("folded")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let words = TextOptions::default().set_indexing_options(words);
    let mut text = |name: &str| builder.add_text_field(name, words.clone());
    let (headline, body) = (text("headline"), text("text"));
    let (person, place, subject) = (text("person"), text("place"), text("subject"));
    let facets = FACETS.map(|name| builder.add_text_field(&name.replace('.', "_"), STRING | FAST));
    let media_type = builder.add_text_field("media_type", STRING);
    let order = builder.add_date_field("order", FAST | INDEXED);
    let created = builder.add_date_field("versioncreated", FAST | INDEXED);
    let document = builder.add_text_field("document", STORED);
    let fields =
        Fields { document, headline, text: body, media_type, order, created, facets, person, place, subject };
    (builder.build(), fields)
}

fn register(index: &Index) {
    let analyzer = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build();
    index.tokenizers().register("folded", analyzer);
}

fn seconds(date: &str) -> i64 {
    // Days since 1970 of YYYY-MM-DD (Howard Hinnant, "chrono-compatible low-level date algorithms").
    let part = |range: std::ops::Range<usize>| date[range].parse::<i64>().expect("date");
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let time = if date.len() >= 19 { part(11..13) * 3600 + part(14..16) * 60 + part(17..19) } else { 0 };
    days * 86_400 + time
}

fn index(items: &str, folder: &str) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let (schema, fields) = schema();
    let index = Index::create_in_dir(folder, schema)?;
    register(&index);
    let mut writer: IndexWriter = index.writer_with_num_threads(2, 200_000_000)?;
    let started = Instant::now();
    let mut count = 0;
    for line in BufReader::new(fs::File::open(items)?).lines() {
        let line = line?;
        let item: Value = serde_json::from_str(&line)?;
        let mut document = TantivyDocument::default();
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        let list = |name: &str, field: &str| -> Vec<String> {
            let entries = item[name].as_array().map(Vec::as_slice).unwrap_or_default();
            entries.iter().filter_map(|entry| entry[field].as_str().map(str::to_owned)).collect()
        };
        document.add_text(fields.headline, text("headline"));
        let (persons, places) = (list("person", "name"), list("place", "name"));
        let subjects = list("subject", "code");
        for part in [text("description_text"), text("body_text"), text("byline"), text("slugline")]
            .into_iter()
            .chain(persons.iter().chain(&places).chain(&subjects).map(String::as_str))
        {
            if !part.is_empty() {
                document.add_text(fields.text, part);
            }
        }
        persons.iter().for_each(|name| document.add_text(fields.person, name));
        places.iter().for_each(|name| document.add_text(fields.place, name));
        subjects.iter().for_each(|code| document.add_text(fields.subject, code));
        let products = list("product", "code");
        let holder = vec![text("copyrightholder").to_owned()];
        for (field, values) in fields.facets.iter().zip([&subjects, &products, &places, &persons, &holder]) {
            values.iter().for_each(|value| document.add_text(*field, value));
        }
        let media_type = text("uri").rsplit('/').nth(1).unwrap_or_default();
        document.add_text(fields.media_type, media_type);
        let at = DateTime::from_timestamp_secs(seconds(text("versioncreated")));
        document.add_date(fields.order, at);
        document.add_date(fields.created, at);
        document.add_text(fields.document, &line);
        writer.add_document(document)?;
        count += 1;
        if count % 100_000 == 0 {
            writer.commit()?;
            println!("{count} items, {:.0} a second", f64::from(count) / started.elapsed().as_secs_f64());
        }
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    println!("{count} items indexed in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

struct Prepared {
    query: Box<dyn Query>,
    relevance: bool,
    ascending: bool,
    by_created: bool,
    skip: usize,
    facets: bool,
}

fn prepare(index: &Index, fields: &Fields, one: &Value, products: &[String]) -> Outcome<Prepared> {
    let parameter = |name: &str| one["parameters"][name].as_str();
    let mut parser = QueryParser::for_index(index, vec![fields.headline, fields.text]);
    parser.set_conjunction_by_default();
    parser.set_field_boost(fields.headline, 6.0);
    let mut parts: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    let mut text = parameter("q").unwrap_or_default().to_owned();
    for (ours, theirs) in [("person.name:", "person:"), ("place.name:", "place:"), ("subject.code:", "subject:")] {
        text = text.replace(ours, theirs);
    }
    text = text.replace(
        "versioncreated:[2015-01-01 TO 2019-06-30]",
        "versioncreated:[2015-01-01T00:00:00Z TO 2019-06-30T23:59:59Z]",
    );
    if let Some(start) = text.strip_suffix('*') {
        // Tantivy's own syntax for the beginning of a word wants quotes.
        let prefix = |field: Field| -> Outcome<Box<dyn Query>> {
            let pattern = format!("{}.*", start.to_lowercase());
            Ok(Box::new(tantivy::query::RegexQuery::from_pattern(&pattern, field)?))
        };
        parts.push((
            Occur::Must,
            Box::new(BooleanQuery::union(vec![prefix(fields.headline)?, prefix(fields.text)?])),
        ));
    } else if !text.is_empty() {
        parts.push((Occur::Must, parser.parse_query(&text)?));
    }
    let filter = |query: Box<dyn Query>| -> Box<dyn Query> { Box::new(BoostQuery::new(query, 0.0)) };
    let path = one["path"].as_str().unwrap_or_default();
    let media_type = path.split('/').nth(3).unwrap_or_default();
    if media_type != "_all" {
        let term = Term::from_field_text(fields.media_type, media_type);
        parts.push((Occur::Must, filter(Box::new(TermQuery::new(term, IndexRecordOption::Basic)))));
    }
    let among = |codes: Vec<&str>| -> Box<dyn Query> {
        let terms = codes.into_iter().map(|code| Term::from_field_text(fields.facets[1], code));
        filter(Box::new(TermSetQuery::new(terms.collect::<BTreeSet<_>>())))
    };
    if let Some(codes) = parameter("p") {
        parts.push((Occur::Must, among(codes.split(',').collect())));
    }
    if one["agreement"].as_u64().unwrap_or_default() > 0 {
        parts.push((Occur::Must, among(products.iter().map(String::as_str).collect())));
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs() as i64;
    let back = parameter("tr").map(|tr| now - 86_400 * if tr == "y" { 365 } else { 30 });
    let from = parameter("trs").map(seconds).or(back);
    let until = parameter("tre").map(seconds);
    if from.is_some() || until.is_some() {
        let bound = |at: i64| Term::from_field_date(fields.order, DateTime::from_timestamp_secs(at));
        let range = RangeQuery::new(
            from.map_or(std::ops::Bound::Unbounded, |at| std::ops::Bound::Included(bound(at))),
            until.map_or(std::ops::Bound::Unbounded, |at| std::ops::Bound::Excluded(bound(at))),
        );
        parts.push((Occur::Must, filter(Box::new(range))));
    }
    if parts.is_empty() {
        parts.push((Occur::Must, Box::new(tantivy::query::AllQuery)));
    }
    let sort = parameter("sort").unwrap_or_default();
    Ok(Prepared {
        query: Box::new(BooleanQuery::new(parts)),
        relevance: sort == "relevance",
        ascending: sort.ends_with(":asc"),
        by_created: sort.starts_with("versioncreated"),
        skip: parameter("fr").map_or(0, |skip| skip.parse().unwrap_or(0)),
        facets: parameter("facets").is_some(),
    })
}

fn run(searcher: &Searcher, fields: &Fields, one: &Prepared) -> Outcome<usize> {
    let page = TopDocs::with_limit(20).and_offset(one.skip);
    let (total, docs) = if one.relevance {
        let (total, docs) = searcher.search(&one.query, &(Count, page.order_by_score()))?;
        (total, docs.into_iter().map(|(_, doc)| doc).collect::<Vec<_>>())
    } else {
        let field = if one.by_created { "versioncreated" } else { "order" };
        let order = if one.ascending { Order::Asc } else { Order::Desc };
        let page = page.order_by_fast_field::<DateTime>(field, order);
        let (total, docs) = searcher.search(&one.query, &(Count, page))?;
        (total, docs.into_iter().map(|(_, doc)| doc).collect())
    };
    if one.facets {
        let terms = |name: &str| {
            let field = name.replace('.', "_");
            (name.to_owned(), json!({ "terms": { "field": field, "size": 100 } }))
        };
        let wanted: serde_json::Map<String, Value> = FACETS.iter().map(|name| terms(name)).collect();
        let wanted: Aggregations = serde_json::from_value(Value::Object(wanted))?;
        let collector = AggregationCollector::from_aggs(wanted, Default::default());
        searcher.search(&one.query, &collector)?;
    }
    let mut bytes = total;
    for doc in docs {
        let document: TantivyDocument = searcher.doc(doc)?;
        bytes += document.get_first(fields.document).is_some() as usize;
    }
    Ok(bytes)
}

fn resident_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default().to_owned();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1000
}

fn search(folder: &str, queries: &str) -> Outcome<()> {
    let started = Instant::now();
    let index = Index::open_in_dir(folder)?;
    register(&index);
    let reader: IndexReader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
    println!("opened in {:.0} ms, {} MB resident", started.elapsed().as_secs_f64() * 1e3, resident_mb());
    let (_, fields) = schema();
    let queries: Value = serde_json::from_str(&fs::read_to_string(queries)?)?;
    let products: Vec<String> = serde_json::from_value(queries["products"].clone())?;
    let all = queries["queries"].as_array().ok_or("no queries")?;
    let (mut prepared, mut refused) = (Vec::new(), 0);
    for one in all {
        match prepare(&index, &fields, one, &products) {
            Ok(one) => prepared.push(one),
            Err(_) => refused += 1,
        }
    }
    println!("{} queries, {refused} that its parser refuses", prepared.len());
    let searcher = reader.searcher();
    for round in ["cold", "warm"] {
        let mut times = Vec::new();
        for one in &prepared {
            let watch = Instant::now();
            run(&searcher, &fields, one)?;
            times.push(watch.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
        println!(
            "{round}: p50 {:.2} ms, p90 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
            at(50),
            at(90),
            at(95),
            at(99),
            at(100)
        );
    }
    let (next, watch) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(one) = prepared.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(&searcher, &fields, one).expect("searched");
                }
            });
        }
    });
    let rate = prepared.len() as f64 / watch.elapsed().as_secs_f64();
    println!("16 at a time: {rate:.0} searches/s, {} MB resident", resident_mb());
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["index", items, folder] => index(items, folder),
        ["search", folder, queries] => search(folder, queries),
        _ => Err("usage: compare-tantivy index ITEMS.jsonl FOLDER | search FOLDER QUERIES.json".into()),
    }
}
