//! Matches items one by one against saved queries: measures the time per item, the queries evaluated and
//! matched, and the memory per query.
//!
//! `BENCH_TEXTS` names files with news texts, separated by `:`, with one object per line that has `headline`,
//! `text`, `body` or `paragraphs`, and `entities`. Without it, texts are generated from words with
//! Zipf-distributed frequencies. As a test, with `-- --test`, it runs with few queries.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use criterion::Criterion;
use jiff::tz::TimeZone;
use model::account::AgreementId;
use model::item::Document;
use model::{ItemKey, MediaType};
use query::matching::{Interest, InterestCoverage, InterestMatcher, MatchSubject};
use query::{IndexedDocument, parse, words};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints a line; a closed standard output is not an error.
macro_rules! say {
    ($($what:tt)*) => { drop(writeln!(io::stdout(), $($what)*)) };
}

const PRODUCTS: usize = 60;
const AGREEMENTS: i64 = 2000;
/// Number of items to match; word frequencies are learned from as many others.
const ITEMS: usize = 1000;
/// Generated texts: number of texts, words per text, distinct words, names.
const MADE: (usize, usize, usize, usize) = (3000, 300, 60_000, 8000);

/// A reproducible pseudo-random generator (xorshift).
struct Draw(u64);

impl Draw {
    /// Draws a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % u64::try_from(end.max(1)).expect("the number fits"))
            .expect("the number fits")
    }

    fn one<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Draws a rank below `end`; 0 is as frequent as 1 and 2 together, and as 3 to 6 together.
    fn rank(&mut self, end: usize) -> usize {
        let doublings = usize::try_from(end.max(2).ilog2()).expect("the number fits");
        let start = 1 << self.below(doublings);
        start - 1 + self.below(start)
    }
}

/// A text with the names in it.
struct Text {
    headline: String,
    body: String,
    names: Vec<String>,
}

fn read(files: &str) -> io::Result<Vec<Text>> {
    let mut texts = Vec::new();
    for file in files.split(':') {
        for line in fs::read_to_string(file)?.lines() {
            let value: Value = serde_json::from_str(line)?;
            let all = |name: &str| match value[name].as_array() {
                Some(parts) => {
                    let parts: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
                    parts.join("\n")
                }
                None => value[name].as_str().unwrap_or_default().to_owned(),
            };
            let body = [all("text"), all("body"), all("paragraphs")].join("\n");
            let headline = match all("headline") {
                none if none.is_empty() => body.split(". ").next().unwrap_or_default().to_owned(),
                headline => headline,
            };
            let names = all("entities").lines().map(str::to_owned).collect();
            texts.push(Text { headline, body, names });
        }
    }
    Ok(texts)
}

/// Returns the word with this rank in the generated language.
fn made_word(mut rank: usize) -> String {
    let mut word = String::new();
    loop {
        word.push(char::from(b"bdfgklmnprstvj"[rank % 14]));
        word.push(char::from(b"aeiouy"[rank / 14 % 6]));
        rank /= 84;
        if rank == 0 && word.len() >= 4 {
            return word;
        }
    }
}

fn made(draw: &mut Draw) -> Vec<Text> {
    let (texts, length, vocabulary, names) = MADE;
    let mut text = |length: usize| {
        let words: Vec<_> = (0..length).map(|_| made_word(draw.rank(vocabulary))).collect();
        let name = |rank: usize| format!("{} {}", made_word(rank), made_word(rank + 7));
        (words.join(" "), (0..4).map(|_| name(draw.rank(names) + 900)).collect())
    };
    let text = |_| {
        let (body, names) = text(length);
        Text { headline: text(8).0, body, names }
    };
    (0..texts).map(text).collect()
}

/// An indexed item, with the agreements that cover it.
struct Owned {
    media_type: MediaType,
    indexed: IndexedDocument,
    agreements: BTreeSet<AgreementId>,
}

fn product(number: usize) -> String {
    format!("FO{number}TT")
}

/// Whether an agreement covers a product; each agreement covers a twelfth of them.
fn covers(agreement: i64, product: usize) -> bool {
    let product = i64::try_from(product).expect("the number fits");
    (agreement * 31 + product * 17) % 12 == 0
}

fn item(number: usize, text: &Text, draw: &mut Draw) -> Owned {
    let media_type = if draw.chance(70) { MediaType::Image } else { MediaType::Text };
    let key =
        ItemKey::parse(&format!("{media_type}/b{number}")).expect("media type and id are valid");
    let products: Vec<usize> = (0..2).map(|_| draw.rank(PRODUCTS)).collect();
    let (person, place) = text.names.split_at(text.names.len() / 2);
    let named = |names: &[String]| {
        names.iter().map(|name| json!({ "name": name })).collect::<Vec<Value>>()
    };
    let codes: Vec<_> = products.iter().map(|code| json!({ "code": product(*code) })).collect();
    let fields = json!({
        "headline": text.headline, "body_text": text.body, "language": "sv", "source": "TT",
        "byline": "Anna Andersson", "person": named(person), "place": named(place),
        "product": codes, "versioncreated": "2026-03-02T09:15:00+01:00", "date": "2026-03-02",
    });
    let Value::Object(fields) = fields else { unreachable!("`json!` builds an object") };
    let document = Document::from_fields(&key, fields).expect("the fields satisfy the schema");
    let indexed = IndexedDocument::new(&key, &document, &TimeZone::UTC);
    let covered = |id: &i64| products.iter().any(|product| covers(*id, *product));
    let agreements = (0..AGREEMENTS).filter(covered).map(AgreementId).collect();
    Owned { media_type, indexed, agreements }
}

/// The words of the texts as written in queries.
struct Vocabulary {
    texts: Vec<Vec<String>>,
    names: Vec<String>,
    /// Words in more than a tenth of the texts; too frequent to be searched alone.
    common: HashSet<String>,
}

impl Vocabulary {
    fn of(texts: &[Text]) -> Self {
        let split = |text: &Text| words(&text.body).map(|word| word.folded).collect::<Vec<_>>();
        let long: Vec<_> = texts.iter().map(split).filter(|words| words.len() > 9).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for text in &long {
            let different: HashSet<&str> = text.iter().map(String::as_str).collect();
            different.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let common = counts.into_iter().filter(|(_, count)| 10 * count > long.len());
        let common = common.map(|(word, _)| word.to_owned()).collect();
        let names = texts.iter().flat_map(|text| text.names.iter().cloned());
        let names = names.filter(|name| words(name).count() > 0).collect();
        Self { texts: long, names, common }
    }

    /// Draws a word of at least four letters that is not common; frequent ones are drawn more often.
    fn word<'a>(&'a self, draw: &mut Draw) -> &'a str {
        loop {
            let text = draw.one(&self.texts);
            let word = draw.one(text);
            if word.chars().count() >= 4 && !self.common.contains(word) {
                return word;
            }
        }
    }

    /// Draws adjacent words of a text.
    fn phrase(&self, draw: &mut Draw) -> String {
        let text = draw.one(&self.texts);
        let length = 2 + draw.below(2);
        let start = draw.below(text.len() - length);
        text[start..start + length].join(" ")
    }

    fn name(&self, draw: &mut Draw) -> String {
        let name: &String = draw.one(&self.names);
        let words: Vec<_> = words(name).map(|word| word.folded).collect();
        words.join(" ")
    }

    /// Draws a saved query with its product codes, in the mix of the table in `RESULTS.md`.
    fn query(&self, draw: &mut Draw) -> (String, Vec<String>) {
        let product = |draw: &mut Draw| vec![product(draw.below(PRODUCTS))];
        let word = |draw: &mut Draw| self.word(draw).to_owned();
        let text = match draw.below(100) {
            0..18 => word(draw),
            18..35 => format!("{} {}", word(draw), word(draw)),
            35..50 => {
                let field = if draw.chance(50) { "person" } else { "place" };
                format!("{field}.name:\"{}\"", self.name(draw))
            }
            50..65 => format!("\"{}\"", self.phrase(draw)),
            65..75 => return (word(draw), product(draw)),
            75..85 => {
                let words: Vec<_> = (0..2 + draw.below(4)).map(|_| word(draw)).collect();
                words.join(" OR ")
            }
            85..90 => {
                let word = word(draw);
                format!("{}*", word.chars().take(4 + draw.below(3)).collect::<String>())
            }
            90..95 => format!("{} -{}", word(draw), word(draw)),
            95..99 => return (String::new(), product(draw)),
            _ => String::new(),
        };
        (text, Vec::new())
    }

    fn interest(&self, draw: &mut Draw) -> Interest {
        let (text, products) = self.query(draw);
        let number = |draw: &mut Draw| i64::try_from(draw.below(2000)).expect("the number fits");
        let media_type = match draw.below(20) {
            0..12 => Some(MediaType::Image),
            12..17 => Some(MediaType::Text),
            _ => None,
        };
        let narrow = text.is_empty() || !draw.chance(5);
        let cover = if narrow {
            let count = 1 + draw.below(2);
            InterestCoverage::Agreements((0..count).map(|_| AgreementId(number(draw))).collect())
        } else {
            InterestCoverage::Everything
        };
        let query = parse(&text, &TimeZone::UTC).expect("generated queries have no syntax errors");
        Interest { media_type, query, products, products_excluded: Vec::new(), cover }
    }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.unwrap_or_default() * 1024
}

#[expect(clippy::disallowed_methods, reason = "pure units have no clock")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let made = work();
    (made, start.elapsed())
}

/// Matches every item once and prints the measurements.
fn measure(matcher: &mut InterestMatcher, items: &[Owned], grown: usize) {
    let (mut times, mut evaluated, mut met) = (Vec::new(), 0, 0);
    for owned in items {
        let Owned { media_type, indexed, agreements } = owned;
        let item = MatchSubject { media_type: *media_type, indexed, agreements };
        let (found, time) = timed(|| matcher.matching(&item));
        times.push(time);
        evaluated += matcher.evaluated_count();
        met += found.len();
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    let (count, interests) = (times.len(), matcher.len());
    say!(
        "{interests} interests: p50 {:.2?}, p95 {:.2?}, max {:.2?}; evaluated {} and met {} of an \
         item on average; {} bytes of memory an interest",
        at(50),
        at(95),
        at(100),
        evaluated / count,
        met / count,
        grown / interests
    );
}

fn main() -> io::Result<()> {
    let quick = std::env::args().any(|argument| argument == "--test");
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    #[expect(clippy::disallowed_methods, reason = "a bench has no settings but this variable")]
    let texts = match std::env::var("BENCH_TEXTS") {
        Ok(files) => read(&files)?,
        Err(_) => made(&mut draw),
    };
    let (sizes, count): (&[usize], _) =
        if quick { (&[10_000], 20) } else { (&[100_000, 1_000_000], ITEMS) };
    let vocabulary = Vocabulary::of(&texts);
    let mut items: Vec<Owned> = (0..2 * count)
        .map(|number| item(number, &texts[draw.below(texts.len())], &mut draw))
        .collect();
    let learned = items.split_off(count);
    let words = |item: &Owned| item.indexed.body.split(' ').count();
    let average = items.iter().map(words).sum::<usize>() / count;
    say!("{} texts, {average} words in the body of an item", texts.len());
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    let before = resident();
    for size in sizes {
        let mut matcher = InterestMatcher::new();
        learned.iter().for_each(|item| matcher.learn(&item.indexed));
        let ((), filing) = timed(|| {
            for number in (0..).take(*size) {
                matcher.insert(number, vocabulary.interest(&mut draw));
            }
        });
        say!("{size} filed in {filing:.2?}, among it the making of the queries");
        measure(&mut matcher, &items, resident().saturating_sub(before));
        let mut next = 0;
        criterion.bench_function(&format!("matching/{size}"), |bencher| {
            bencher.iter(|| {
                next = (next + 1) % items.len();
                let Owned { media_type, indexed, agreements } = &items[next];
                matcher.matching(&MatchSubject { media_type: *media_type, indexed, agreements })
            });
        });
    }
    criterion.final_summary();
    Ok(())
}
