//! Statistics of downloads: they equal the orders that were made, as JSON, as a page and as a file.

use std::collections::BTreeMap;

use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use reqwest::Method;
use serde_json::{Value, json};

use super::{OPERATOR, check_in_both_languages, shown};
use crate::common::{
    DEMO_KEY, Server,
    api::ApiCaller,
    browser::{Browser, DESKTOP},
    postgres,
};
use crate::site_account::Person;

const ITEM: &str = "demo-trollslanda";
/// A licence of the product that the item belongs to.
const LICENSE: &str = "2c916e2d-b755-446d-9e18-d636a1447141";
/// Orders that deliver.
const DOWNLOADS: i64 = 10_000;
/// All orders: some wait for an approval, some were refused.
const ORDERS: i64 = 10_300;
/// The time between two orders: all of them are within thirty days, one of which may have 23 hours.
const STEP_MS: i64 = 250_000;
const ITEMS: i64 = 53;

/// Downloads, used, awaiting, rejected.
type Counts = [i64; 4];

/// The days of the orders.
struct Days {
    zone: TimeZone,
    first: Date,
    last: Date,
    start_ms: i64,
    end_ms: i64,
}

impl Days {
    /// The thirty days that end with today, in the time zone of the server.
    fn of(api: &ApiCaller<'_>) -> Self {
        let found = api.json("/operator/v1/download");
        let zone = TimeZone::get(found["timezone"].as_str().unwrap()).unwrap();
        let last = Timestamp::now().to_zoned(zone.clone()).date();
        let first = last - 29.days();
        let midnight =
            |day: Date| day.to_zoned(zone.clone()).unwrap().timestamp().as_millisecond();
        let (start_ms, end_ms) = (midnight(first), midnight(last + 1.day()));
        Self { zone, first, last, start_ms, end_ms }
    }

    fn query(&self) -> String {
        format!("from={}&to={}", self.first, self.last)
    }
}

/// An order as the statements below make it.
struct Order {
    agreement: i64,
    organization: i64,
    item: String,
    day: String,
    credential: &'static str,
    counts: Counts,
}

/// The order `number`; the SQL of [`make_orders`] says the same.
fn order(number: i64, days: &Days) -> Order {
    let agreement = match number % 10 {
        _ if number >= DOWNLOADS => 1003 + number % 2,
        0..5 => 1001,
        5 | 6 => 1002,
        7 | 8 => 1003,
        _ => 1004,
    };
    let is_manual = agreement >= 1003;
    let counts = match (number < DOWNLOADS, is_manual) {
        (true, true) => [1, 1, 0, 0],
        (true, false) => [1, i64::from(number % 5 == 0), 0, 0],
        (false, _) if number % 3 == 0 => [0, 0, 1, 0],
        (false, _) => [0, 0, 0, 1],
    };
    let at = Timestamp::from_millisecond(days.start_ms + number * STEP_MS).unwrap();
    Order {
        agreement,
        organization: if matches!(agreement, 1001 | 1004) { 1 } else { 2 },
        item: format!("m{}", number % 71 % ITEMS),
        day: at.to_zoned(days.zone.clone()).date().to_string(),
        credential: match (number % 100, number % 3) {
            (0, _) => "unknown",
            (_, 0) => "session",
            (_, 1) => "api_key",
            _ => "access_token",
        },
        counts,
    }
}

fn execute(server: &Server, sql: &str) {
    match postgres::url_of(server.dir.path()) {
        Some(url) => drop(postgres::run(&url, sql)),
        None => {
            let database = rusqlite::Connection::open(server.data().join("wirephoto.db")).unwrap();
            database.busy_timeout(crate::common::WAIT_TIMEOUT).unwrap();
            database.execute_batch(sql).unwrap();
        }
    }
}

/// Makes the orders with the events of most of them, and two orders outside of the days.
fn make_orders(server: &Server, days: &Days) {
    let Days { start_ms, end_ms, .. } = days;
    let columns = "organization_id, user_id, agreement_id, media_type, item_id, headline, byline,
         source, agreement, product, created_ms, downloadable_until_ms, reported_ms, approved,
         manual";
    let orders = format!(
        "WITH RECURSIVE numbers (n) AS (
             SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < {ORDERS} - 1
         ), made AS (
             SELECT n, {start_ms} + n * {STEP_MS} AS at_ms, CASE
                 WHEN n >= {DOWNLOADS} THEN 1003 + n % 2 WHEN n % 10 < 5 THEN 1001
                 WHEN n % 10 < 7 THEN 1002 WHEN n % 10 < 9 THEN 1003 ELSE 1004 END AS paid_by
             FROM numbers
         )
         INSERT INTO orders ({columns})
         SELECT CASE WHEN paid_by IN (1001, 1004) THEN 1 ELSE 2 END,
             CASE paid_by WHEN 1001 THEN 101 WHEN 1004 THEN 102 ELSE 103 END,
             paid_by, 'image', 'm' || (n % 71 % {ITEMS}),
             'Bild ' || (n % 71 % {ITEMS}) || ', \"åäö\"', '=A B', 'TT', '{{}}', '{{}}', at_ms,
             at_ms + 2592000000,
             CASE WHEN n >= {DOWNLOADS} AND n % 3 = 0 THEN NULL
                 WHEN paid_by >= 1003 OR n % 5 < 2 THEN at_ms END,
             CASE WHEN n >= {DOWNLOADS} AND n % 3 = 0 THEN NULL
                 WHEN n >= {DOWNLOADS} THEN FALSE WHEN paid_by >= 1003 OR n % 5 = 0 THEN TRUE
                 WHEN n % 5 = 1 THEN FALSE END,
             paid_by >= 1003
         FROM made ORDER BY n"
    );
    let outside = format!(
        "INSERT INTO orders ({columns}) VALUES
             (1, 101, 1001, 'image', 'm0', 'x', 'x', 'x', '{{}}', '{{}}', {start_ms} - 1,
              {end_ms}, NULL, NULL, FALSE),
             (1, 101, 1001, 'image', 'm0', 'x', 'x', 'x', '{{}}', '{{}}', {end_ms},
              {end_ms}, NULL, NULL, FALSE)"
    );
    let events = format!(
        "INSERT INTO audit_log (at_ms, action, outcome, credential, object, count)
         SELECT created_ms, 'order_created', 'done', CASE (created_ms - {start_ms}) / {STEP_MS} % 3
             WHEN 0 THEN 'session' WHEN 1 THEN 'api_key' ELSE 'access_token' END,
             'order/' || order_id, 1
         FROM orders WHERE created_ms >= {start_ms}
             AND (created_ms - {start_ms}) / {STEP_MS} % 100 <> 0"
    );
    execute(server, &format!("{orders}; {outside}; {events};"));
}

/// Adds up the counts of the orders that `key` finds, by what it returns.
fn sums(days: &Days, key: impl Fn(&Order) -> Option<String>) -> BTreeMap<String, Counts> {
    let mut sums: BTreeMap<String, Counts> = BTreeMap::new();
    for one in (0..ORDERS).map(|number| order(number, days)) {
        let Some(key) = key(&one) else { continue };
        let sum = sums.entry(key).or_default();
        *sum = std::array::from_fn(|at| sum[at] + one.counts[at]);
    }
    sums
}

fn counts(row: &Value) -> Counts {
    ["downloads", "used", "awaiting", "rejected"].map(|name| row[name].as_i64().unwrap())
}

/// The rows of a statistic by what identifies them; checks the total.
fn rows(api: &ApiCaller<'_>, by: &str, query: &str) -> BTreeMap<String, Counts> {
    let found = api.json(&format!("/operator/v1/download?by={by}&size=1000&{query}"));
    assert_eq!(found["by"], by);
    let rows = found["rows"].as_array().unwrap();
    let sum = rows
        .iter()
        .map(counts)
        .fold(Counts::default(), |sum, one| std::array::from_fn(|at| sum[at] + one[at]));
    assert_eq!(counts(&found["total"]), sum, "{by} {query}");
    let key = |row: &Value| {
        let text = row[by].as_str().map_or_else(|| row[by].to_string(), str::to_owned);
        // Of the URL of an item, its id.
        text.rsplit('/').next().unwrap().to_owned()
    };
    rows.iter().map(|row| (key(row), counts(row))).collect()
}

/// Days without orders are rows, too.
fn with_all_days(mut sums: BTreeMap<String, Counts>, days: &Days) -> BTreeMap<String, Counts> {
    for number in 0..30_i64 {
        sums.entry((days.first + number.days()).to_string()).or_default();
    }
    sums
}

fn check_api(api: &ApiCaller<'_>, days: &Days) {
    let all = days.query();
    let total = api.json(&format!("/operator/v1/download?size=0&{all}"));
    assert_eq!(counts(&total["total"])[0], DOWNLOADS);
    assert_eq!(counts(&total["total"])[2..].iter().sum::<i64>(), ORDERS - DOWNLOADS);
    let organization = |order: &Order| Some(order.organization.to_string());
    assert_eq!(rows(api, "organization", &all), sums(days, organization));
    let agreement = |order: &Order| Some(order.agreement.to_string());
    assert_eq!(rows(api, "agreement", &all), sums(days, agreement));
    assert_eq!(rows(api, "item", &all), sums(days, |order| Some(order.item.clone())));
    let by_day = sums(days, |order| Some(order.day.clone()));
    assert_eq!(rows(api, "day", &all), with_all_days(by_day, days));
    let credential = |order: &Order| Some(order.credential.to_owned());
    assert_eq!(rows(api, "credential", &all), sums(days, credential));

    // Each filter, and all of them together.
    let of_two = |order: &Order| (order.organization == 2).then(|| order.item.clone());
    assert_eq!(rows(api, "item", &format!("{all}&organization=2")), sums(days, of_two));
    let of_agreement = |order: &Order| (order.agreement == 1002).then(|| order.day.clone());
    let by_day = with_all_days(sums(days, of_agreement), days);
    assert_eq!(rows(api, "day", &format!("{all}&agreement=1002")), by_day);
    let of_item = |order: &Order| (order.item == "m4").then(|| order.organization.to_string());
    assert_eq!(rows(api, "organization", &format!("{all}&item=image/m4")), sums(days, of_item));
    let day = (days.first + 7.days()).to_string();
    let of_all = |order: &Order| {
        let is_chosen = order.day == day && order.agreement == 1001 && order.item == "m4";
        is_chosen.then(|| order.credential.to_owned())
    };
    let query = format!("from={day}&to={day}&organization=1&agreement=1001&item=image/m4");
    assert_eq!(rows(api, "credential", &query), sums(days, of_all));

    // The rows with the most downloads come first, in pages.
    let page = |start: usize, size: usize| {
        let path = format!("/operator/v1/download?by=item&start={start}&size={size}&{all}");
        api.json(&path)["rows"].as_array().unwrap().clone()
    };
    let whole = page(0, 100);
    assert!(whole.is_sorted_by_key(|row| -counts(row)[0]), "{whole:?}");
    assert_eq!([page(0, 20), page(20, 20), page(40, 20)].concat(), whole);
}

/// The lines of a file, without its header.
fn lines(person: &Person<'_>, by: &str, header: &str, query: &str) -> Vec<String> {
    let response = person.get(&format!("/operator/downloads.csv?by={by}&{query}"));
    assert_eq!(response.status(), 200, "{by}");
    let field = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(field("content-type"), "text/csv; charset=utf-8; header=present");
    assert_eq!(field("cache-control"), "no-store");
    let (name, disposition) = (format!("downloads-by-{by}-"), field("content-disposition"));
    assert!(disposition.starts_with("attachment") && disposition.contains(&name), "{disposition}");
    let text = String::from_utf8(response.bytes().unwrap().to_vec()).expect("UTF-8");
    // Without the byte order mark spreadsheets do not recognize UTF-8.
    let text = text.strip_prefix('\u{feff}').expect("a byte order mark");
    let mut lines = text.split_terminator("\r\n").map(str::to_owned);
    let names = lines.next().unwrap().replace('"', "");
    assert_eq!(names, format!("{header},downloads,used,awaiting,rejected"));
    lines.collect()
}

/// The counts at the end of a line.
fn counts_of_line(line: &str) -> Counts {
    let mut fields: Vec<i64> =
        line.rsplit(',').take(4).map(|field| field.parse().unwrap()).collect();
    fields.reverse();
    fields.try_into().unwrap()
}

fn check_files(person: &Person<'_>, api: &ApiCaller<'_>, days: &Days) {
    let all = days.query();
    let headers = [
        ("organization", "organization,organizationName"),
        ("agreement", "agreement,agreementName,agreementType,organization,organizationName"),
        ("item", "item,headline,byline"),
        ("day", "day"),
        ("credential", "credential"),
    ];
    for (by, header) in headers {
        let mut in_file: Vec<Counts> =
            lines(person, by, header, &all).iter().map(|line| counts_of_line(line)).collect();
        let mut in_api: Vec<Counts> = rows(api, by, &all).into_values().collect();
        in_file.sort_unstable();
        in_api.sort_unstable();
        assert_eq!(in_file, in_api, "{by}");
    }
    let items = lines(person, "item", "item,headline,byline", &all);
    let [downloads, used, awaiting, rejected] = rows(api, "item", &all)["m4"];
    // A name that a spreadsheet would take for a formula begins with an apostrophe.
    let fields = format!(
        "/image/m4\",\"Bild 4, \"\"åäö\"\"\",\"'=A B\",{downloads},{used},{awaiting},{rejected}"
    );
    assert!(items.iter().any(|line| line.ends_with(&fields)), "{fields}: {items:?}");
    let organizations = lines(person, "organization", "organization,organizationName", &all);
    assert!(
        organizations.iter().any(|line| line.starts_with("1,\"Demo desk\",")),
        "{organizations:?}"
    );
    let response = person.get("/operator/downloads.csv?from=2026-02-02&to=2026-02-01");
    assert_eq!(response.status(), 400);
}

/// The rows of the table that a browser shows: names and downloads.
fn table(browser: &Browser) -> Vec<(String, i64)> {
    let rows = browser.eval(
        "[...document.querySelectorAll('table.downloads tbody tr')].map(row =>
            [row.cells[0].innerText.split('\\n')[0].trim(), row.cells[1].innerText])",
    );
    let row = |row: &Value| {
        let number: String =
            row[1].as_str().unwrap().chars().filter(char::is_ascii_digit).collect();
        (row[0].as_str().unwrap().to_owned(), number.parse().unwrap())
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

fn check_pages(server: &Server, api: &ApiCaller<'_>, days: &Days) {
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, OPERATOR, &format!("/operator/downloads?{}", days.query()));
    let totals =
        browser.eval("[...document.querySelectorAll('.totals dd')].map(d => d.innerText)");
    let waiting = rows(api, "organization", &days.query()).values().map(|row| row[2]).sum::<i64>();
    assert_eq!((&totals[0], &totals[2]), (&json!("10,000"), &json!(waiting.to_string())));
    let of = |organization: &str| rows(api, "organization", &days.query())[organization][0];
    let mut expected =
        vec![("Demo desk".to_owned(), of("1")), ("Demo agency".to_owned(), of("2"))];
    expected.sort_by_key(|(_, downloads)| -downloads);
    assert_eq!(table(&browser), expected);
    // The chart has a column for each day, and the table below it the same numbers.
    assert_eq!(browser.eval("document.querySelectorAll('.chart rect').length"), 30);
    assert_eq!(browser.eval("document.querySelectorAll('details tbody tr').length"), 30);
    check_in_both_languages(&browser, "operator-downloads");

    // From a customer to its items, to the customers of one of them, and back without the filters.
    browser.follow("table.downloads tbody tr td a");
    assert!(browser.address().contains("organization="), "{}", browser.address());
    assert_eq!(table(&browser).len(), 50, "a page of the items");
    browser.follow("nav.pager a[rel=next]");
    assert_eq!(table(&browser).len(), 3);
    check_in_both_languages(&browser, "operator-downloads-items");
    browser.follow("table.downloads tbody tr td a");
    assert_eq!(table(&browser).len(), 1, "{}", shown(&browser));
    for left in [1, 0] {
        browser.follow("ul.filters a");
        let filters = browser.eval("document.querySelectorAll('ul.filters li').length");
        assert_eq!(filters, left);
    }
    assert_eq!(table(&browser), expected);
    for (at, (by, count)) in
        [("agreement", 4), ("item", 50), ("day", 30), ("credential", 4)].into_iter().enumerate()
    {
        browser.follow(&format!("section nav.choices li:nth-child({}) a", at + 2));
        assert_eq!(table(&browser).len(), count, "{by}");
        browser.check_accessible(by);
    }
    let address = format!("{}/operator/downloads?from=2026-02-02&to=2026-02-01", server.url);
    browser.visit(&address);
    let page = shown(&browser);
    assert!(
        page.contains("The last day is 2026-02-01, but must be 2026-02-02 or later"),
        "{page}"
    );
    // The console reports the status of a page as an error.
    drop(browser.console_messages());
    browser.check_accessible("operator-downloads-error");
}

#[test]
fn statistics_are_those_of_ten_thousand_downloads() {
    let server = Server::demo_with(&["audit.retention_days=365"]);
    let (api, person) = (ApiCaller::login(&server, OPERATOR), Person::log_in(&server, OPERATOR));
    let days = Days::of(&api);
    make_orders(&server, &days);
    check_api(&api, &days);
    check_files(&person, &api, &days);
    check_pages(&server, &api, &days);
}

#[test]
fn a_download_is_counted_once_and_an_order_once_it_is_approved() {
    let server = Server::demo();
    let api = ApiCaller::login(&server, OPERATOR);
    let total = || counts(&api.json("/operator/v1/download")["total"]);
    assert_eq!(total(), [0; 4]);
    let path = format!("/media/image/{ITEM}.jpg?ak={DEMO_KEY}");
    for _ in 0..3 {
        assert_eq!(server.get(&path).status(), 200);
    }
    assert_eq!(total(), [1, 0, 0, 0], "the second download is free");
    let buyer = ApiCaller::login(&server, "demo-buyer");
    let path = format!("/media/image/{ITEM}.jpg?agr=1003");
    assert_eq!(buyer.request(Method::GET, &path, None).status(), 403);
    assert_eq!(total(), [1, 0, 1, 0]);
    buyer.report(buyer.orders()[0].id, Some(LICENSE)).unwrap();
    assert_eq!(total(), [2, 1, 0, 0]);
    let rows = |by: &str| rows(&api, by, "");
    let expect = |pairs: &[(&str, Counts)]| {
        pairs.iter().map(|(key, counts)| ((*key).to_owned(), *counts)).collect::<BTreeMap<_, _>>()
    };
    let (read, bought) = ([1, 0, 0, 0], [1, 1, 0, 0]);
    assert_eq!(rows("organization"), expect(&[("1", read), ("2", bought)]));
    assert_eq!(rows("agreement"), expect(&[("1001", read), ("1003", bought)]));
    assert_eq!(rows("item"), expect(&[(ITEM, [2, 1, 0, 0])]));
    assert_eq!(rows("credential"), expect(&[("api_key", read), ("access_token", bought)]));
}
