//! Tests of Lucene's query syntax: each construct has the same meaning here, or is refused by name.

use jiff::tz::TimeZone;

use super::parse;

/// Checks that a text parses to the query of the canonical spelling, which parses to itself.
fn check(text: &str, canonical: &str) {
    let parsed = |text: &str| parse(text, &TimeZone::UTC);
    let query = parsed(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    assert_eq!(query.to_string(), canonical, "{text:?}");
    assert_eq!(parsed(canonical).as_ref(), Ok(&query), "{text:?} prints {canonical:?}");
}

fn refuse(text: &str, message: &str) {
    let error = parse(text, &TimeZone::UTC).map(|query| query.to_string()).unwrap_err();
    assert_eq!(error.to_string(), message, "{text:?}");
}

#[test]
fn ok_signs_are_operators() {
    check("a && b", "a b");
    check("a || b c", "a OR b c");
    check("a||b&&c", "a OR b c");
    check("a &&b ||c", "a b OR c");
    check("(a)||\"b c\"", "a OR \"b c\"");
    check("!a", "-a");
    check("a !b", "a -b");
    check("a && !(b || c)", "a -(b OR c)");
    check("!headline:a", "-headline:a");
    check("headline:(a || !b)", "headline:a OR -headline:b");
    check("!!a", "a");
    check("-!a NOT !b", "a b");
    refuse("&& a", "expected a word before && at character 1");
    refuse("a && || b", "expected a word before || at character 6");
    refuse("a &&", "expected a word at character 5");
    refuse("a ! b", "expected a word after ! at character 4");
    refuse("a !!!", "expected a word after ! at character 6");
    refuse("a | b", "no letters or digits at character 3");
}

#[test]
fn ok_punctuation_of_headlines_is_harmless() {
    check("Hej! Vem vann?", "hej vem vann");
    check("(Vem vann?) Vad?!", "vem vann vad");
    check("Skog & hav – R&B", "skog hav \"r b\"");
    check("Vem vann ? … / , a", "vem vann a");
    check("a!b", "\"a b\"");
    check("Va ?! – a", "va a");
    check("AC/DC /TT", "\"ac dc\" tt");
    check("~hundra a", "hundra a");
    check("\"zeb?a^2~ /b/ >3 && c!\"", "\"zeb a 2 b 3 c\"");
    check(r"zeb\?a", "\"zeb a\"");
    check(r"a\^2 b\~ \/c\/ \!d \>e", "\"a 2\" b c d e");
    check(r"a\&\&b", "\"a b\"");
}

#[test]
fn ok_a_star_alone_matches_everything() {
    check("*", "");
    check("*:*", "");
    check(" ( * ) ", "");
    check("* a", "a");
    check("a OR *", "");
    check("-*", "-*");
    check("a NOT *:*", "a -*");
    check("-(-*)", "");
    check("headline:* -person.name:*", "headline:* -person.name:*");
    check("headline:(a OR *)", "headline:a OR headline:*");
    check("embargoed:*", "embargoed:[* TO *]");
    check("urgency:* uri:* mediatype:* id:*", "urgency:*");
    refuse("*:a", "unknown field * (only *:* matches every item) at character 1");
    refuse("*:", "unknown field * (only *:* matches every item) at character 1");
    refuse("*a", "a * can only be at the end of a word at character 1");
    refuse("\"a b\"*", "a * can only be at the end of a word at character 6");
    refuse("(a)*", "a * can only be at the end of a word at character 4");
    let many = vec!["slug:*"; 21].join(" ");
    refuse(&many, "more than 20 words that end in * at character 146");
}

#[test]
fn ok_numbers_are_compared() {
    check("urgency:4", "urgency:4");
    check("urgency:4.0 urgency:\"4\"", "urgency:4 urgency:4");
    check("newsvalue:-1", "newsvalue:-1");
    check("Urgency:[1 TO 4]", "urgency:[1 TO 4]");
    check("subject.relevance:[-1.5 TO *]", "subject.relevance:[-1.5 TO *]");
    check("urgency:[* TO *]", "urgency:*");
    check("wordcount:>=500", "wordcount:[500 TO *]");
    check("wordcount:<=500", "wordcount:[* TO 500]");
    check("urgency:>3", "urgency:[3.0000000000000004 TO *]");
    check("urgency:{3 TO 4}", "urgency:[3.0000000000000004 TO 3.9999999999999996]");
    check("urgency:(>=1 AND <=3 OR 5)", "urgency:[1 TO *] urgency:[* TO 3] OR urgency:5");
    check("urgency:>=3||urgency:1&&a", "urgency:[3 TO *] OR urgency:1 a");
    check("-urgency:(-1)", "urgency:1");
    refuse("urgency:>", "expected a number after > at character 10");
    refuse("urgency:>= 3", "expected a number after >= at character 11");
    refuse(
        "urgency:=3",
        "=3 is not a number, expected digits such as 4, -1 or 0.5 at character 9",
    );
    refuse(
        "urgency:>a",
        "a is not a number, expected digits such as 4, -1 or 0.5 at character 10",
    );
    refuse(
        "urgency:>*",
        "* is not a number, expected digits such as 4, -1 or 0.5 at character 10",
    );
}

#[test]
fn ok_dates_are_compared() {
    let day = "2026-11-01T00:00:00Z";
    let next = "2026-11-02T00:00:00Z";
    check("versioncreated:>2026-11-01", &format!("versioncreated:[{next} TO *]"));
    check("versioncreated:>=2026-11-01", &format!("versioncreated:[{day} TO *]"));
    check("versioncreated:<2026-11-01", &format!("versioncreated:[* TO {day}}}"));
    check("versioncreated:<=2026-11-01", &format!("versioncreated:[* TO {next}}}"));
    let range = format!("date:[{day} TO *] date:[* TO {next}}}");
    check("date:(>=2026-11-01 <=2026-11-01)", &range);
    refuse("date:<", "expected a date after < at character 7");
}

#[test]
fn err_unordered_properties_are_not_compared() {
    let other = "only date and number fields have ranges, such as urgency:[1 TO 4] and \
                 versioncreated:>2026-03-01";
    refuse("headline:>a", &format!("{other} at character 10"));
    refuse("headline:(<a)", &format!("{other} at character 11"));
    refuse("urgency > 3", &format!("{other} at character 9"));
    refuse("urgency = 3", &format!("{other} at character 9"));
    refuse(">3", &format!("{other} at character 1"));
    refuse("urgency>3", "expected : after urgency at character 8");
    refuse("a source=TT", "expected : after source at character 9");
    refuse("date!=2026", "expected : after date at character 6");
    check("a=b", "\"a b\"");
}

#[test]
fn err_unsupported_lucene_syntax_is_named() {
    let letter = "a ? within a word is not a wildcard (in quotes it is text)";
    refuse("zeb?a", &format!("{letter} at character 4"));
    refuse("a ?ebra", &format!("{letter} at character 3"));
    refuse("headline:ze??a", &format!("{letter} at character 13"));
    let weight = "^ is not supported, words have no weights (in quotes it is text)";
    refuse("zebra^2", &format!("{weight} at character 6"));
    refuse("\"a b\"^2", &format!("{weight} at character 6"));
    refuse("(a b)^2.5", &format!("{weight} at character 6"));
    let fuzzy = "~ is not supported, words match as written (in quotes it is text)";
    refuse("zebra~", &format!("{fuzzy} at character 6"));
    refuse("zebra~0.8", &format!("{fuzzy} at character 6"));
    refuse("\"a b\"~3", &format!("{fuzzy} at character 6"));
    let regex = "regular expressions are not supported (in quotes / is text)";
    refuse("/zeb.a/", &format!("{regex} at character 1"));
    refuse("headline:/a b/", &format!("{regex} at character 10"));
    refuse("headline:-b", "- has to precede the field, as in -headline:word at character 10");
    refuse("slug:!b", "! has to precede the field, as in !slug:word at character 6");
}

#[test]
fn ok_a_pasted_address_or_id_is_its_item() {
    let item = "mediatype:image id:sdl_1-R";
    check("http://tt.se/media/image/sdl_1-R", item);
    check("HTTPS://tt.se:8080/media/image/sdl_1-R_NormalPreview.jpg?ak=x&&b=1", item);
    check("https://[::1]:80/item/image/sdl_1-R", item);
    check("(http://a/media/image/sdl_1-R/pricelist)", item);
    check("-http://a/media/text/x-1.json a", "-(mediatype:text id:x-1) a");
    check("http://a/media/text/x || b", "mediatype:text id:x OR b");
    check("sdl_1-R", "sdl_1-R");
    check("a OR sdl_1-R", "a OR \"sdl 1 r\" OR id:sdl_1-R");
    check("a -(sdl_1-R OR b)", "a -(\"sdl 1 r\" OR id:sdl_1-R OR b)");
    check("a -sdl_1-R", "a -sdl_1-R");
    check("\"2026\" 2026 2026*", "\"2026\" 2026 2026*");
    check("id:sdl_1-R ID:\"x\"", "id:sdl_1-R id:x");
    check("\"sdl_1-R\"", "\"sdl 1 r\"");
    check("uri:http://a/media/text/x-1.json", "uri:\"text x 1\"");
    check("uri:\"http://a/item/text/x-1\"", "uri:\"text x 1\"");
    refuse(
        "id:a.b",
        "the id has '.' at character 2, expected letters, digits, - and _, with a letter or \
        digit first at character 4",
    );
    refuse("id:ab*", "an id cannot end in * at character 6");
}

#[test]
fn ok_another_address_is_searched_for_by_its_words() {
    check("http://tt.se/nyheter?a=1&b=~x^2", "\"http tt se nyheter a 1 b x 2\"");
    check("headline:(https://tt.se/a b)", "headline:\"https tt se a\" headline:b");
    refuse("http://tt.se/a*", "an address cannot end in * at character 15");
    let unknown = "unknown field ftp (put text that contains a colon in quotes) at character 1";
    refuse("ftp://a/b", unknown);
    refuse("http:a", &unknown.replace("ftp", "http"));
}
