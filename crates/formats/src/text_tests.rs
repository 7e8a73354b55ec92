//! The two text formats and the HTML below them, with a checker of the layout text's grammar.

use super::cutpaste;
use super::html;
use super::html::HtmlEvent;
use super::indesign;
use super::indesign::STYLES;
use super::strategy;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::json;

fn text(html: &str) -> Value {
    json!({
        "uri": "http://a.example/media/text/1",
        "type": "text",
        "headline": "Headline\nin two",
        "located": "Town",
        "source": "TT",
        "byline": "Ann Writer/TT",
        "body_html5": html,
    })
}

/// Asserts the paragraphs of an HTML body in both formats: the lines of the first, the styles and tagged texts of the
/// second.
fn check(html: &str, lines: &[&str], tagged: &[(&str, &str)]) {
    let plain = cutpaste(&text(html));
    let plain: Vec<_> = plain.strip_suffix("\r\n").unwrap().split("\r\n").skip(2).collect();
    assert_eq!(plain, lines, "{html}");
    let read = read_tagged(&indesign(&text(html)));
    let read: Vec<_> = read.iter().map(|(style, text)| (style.as_str(), text.as_str())).collect();
    assert_eq!(read[2..], *tagged, "{html}");
}

/// Reads tagged text by its grammar: style and text of each paragraph, with escapes resolved, a
/// soft break as `\n` and typefaces as `*`, `_` or `#`.
fn read_tagged(bytes: &[u8]) -> Vec<(String, String)> {
    assert!(bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t')));
    let text = str::from_utf8(bytes).unwrap();
    let text = text.strip_prefix("<ASCII-WIN>\r\n").expect("the start tag comes first");
    let text = text.strip_suffix("\r\n").expect("the last line ends");
    let mut lines = text.split("\r\n");
    let version = lines.next().unwrap();
    assert!(version.starts_with("<Version:5><FeatureSet:InDesign-Roman><ColorTable:=<"));
    for style in STYLES {
        let definition = format!("<DefineParaStyle:{style}=<Nextstyle:{style}>>");
        assert_eq!(lines.next(), Some(definition.as_str()));
    }
    lines.map(read_paragraph).collect()
}

fn read_paragraph(line: &str) -> (String, String) {
    assert!(!line.contains(['\r', '\n']), "{line}");
    let (style, text) = line.strip_prefix("<ParaStyle:").unwrap().split_once('>').unwrap();
    assert!(STYLES.contains(&style), "{style}");
    let mut units: Vec<u16> = Vec::new();
    let mut typeface = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == '\\' {
            let escaped = rest[1..].chars().next().expect("an escape has its character");
            assert!(matches!(escaped, '<' | '>' | '\\'));
            units.push(u16::try_from(u32::from(escaped)).unwrap());
            rest = &rest[2..];
        } else if first == '<' {
            let (tag, after) = rest[1..].split_once('>').expect("a tag ends");
            match tag.strip_prefix("0x") {
                Some(hex) => {
                    assert_eq!(hex.len(), 4);
                    units.push(u16::from_str_radix(hex, 16).unwrap());
                }
                None => {
                    let face = tag.strip_prefix("cTypeface:").expect("a known tag");
                    let sign = match face {
                        "Bold" => Some('*'),
                        "Italic" => Some('_'),
                        "Bold Italic" => Some('#'),
                        "" => None,
                        other => panic!("{other}"),
                    };
                    assert_ne!(sign.is_some(), typeface.is_some(), "typefaces take turns");
                    units.extend(
                        sign.or(typeface)
                            .into_iter()
                            .flat_map(|sign| sign.encode_utf16(&mut [0; 2]).to_vec()),
                    );
                    typeface = sign;
                }
            }
            rest = after;
        } else {
            assert_ne!(first, '>');
            units.push(u16::try_from(u32::from(first)).unwrap());
            rest = &rest[1..];
        }
    }
    assert_eq!(typeface, None, "the last typeface ends");
    (style.to_owned(), String::from_utf16(&units).expect("pairs of surrogates"))
}

#[test]
fn paragraphs_without_end_tags_are_lines() {
    check(
        "<p>One<p>Two<br>half <b>bold</b> &amp; <i>it</i>",
        &["One", "Two half bold & it", "Ann Writer/TT"],
        &[("body", "One"), ("body", "Two\nhalf *bold* & _it_"), ("byline", "Ann Writer/TT")],
    );
}

#[test]
fn a_table_s_row_is_a_line_with_tabs() {
    check(
        "<table><tr><td>A<td><p>B</p><p>C</p><tr><th>D</th><th>E</th></tr></table>",
        &["A\tB C", "D\tE", "Ann Writer/TT"],
        &[("body", "A\tB C"), ("body", "D\tE"), ("byline", "Ann Writer/TT")],
    );
}

#[test]
fn empty_cells_keep_their_column() {
    check(
        "<table><tr><td>A<td><td>C<tr><td><td>E</table>",
        &["A\t\tC", "\tE", "Ann Writer/TT"],
        &[("body", "A\t\tC"), ("body", "\tE"), ("byline", "Ann Writer/TT")],
    );
}

#[test]
fn lists_have_their_signs() {
    check(
        "<ul><li>A<li><p>B</p></ul><ol start=3><li>C</ol>",
        &["\u{2022} A", "\u{2022} B", "3. C", "Ann Writer/TT"],
        &[
            ("body", "\u{2022} A"),
            ("body", "\u{2022} B"),
            ("body", "3. C"),
            ("byline", "Ann Writer/TT"),
        ],
    );
}

#[test]
fn facts_headings_preambles_and_captions_have_their_styles() {
    check(
        "<h1>Headline in two</h1><p class=ingress>P</p><h2>S</h2><div class='x facts'><h3>F</h3>\
         <p>G</p></div><aside><p>H</p></aside><figure><figcaption>C</figcaption></figure>",
        &["P", "S", "F", "G", "H", "C", "Ann Writer/TT"],
        &[
            ("preamble", "P"),
            ("subheading", "S"),
            ("facts heading", "F"),
            ("facts", "G"),
            ("facts", "H"),
            ("caption", "C"),
            ("byline", "Ann Writer/TT"),
        ],
    );
}

#[test]
fn the_byline_comes_last_once_and_links_follow_it() {
    check(
        "<p class=byline>Ann Writer/TT</p><p class=byline>Bo Second</p><p>Text <a \
         href=https://a.example/x>here</a> <a href='https://a.example/x'>again</a> <a \
         href=javascript:x>no</a></p>",
        &["Text here again no", "Bo Second", "Ann Writer/TT", "https://a.example/x"],
        &[("body", "Text here again no"), ("byline", "Bo Second"), ("byline", "Ann Writer/TT")],
    );
}

#[test]
fn scripts_and_styles_are_removed_and_unknown_elements_keep_their_text() {
    check(
        "<script>a<b></script><style>p{}</style><x-y>kept</x-y><!-- c -->",
        &["kept", "Ann Writer/TT"],
        &[("body", "kept"), ("byline", "Ann Writer/TT")],
    );
}

#[test]
fn marks_of_the_layout_program_are_literal() {
    check(
        "<p>&lt;ParaStyle:x&gt; \\ 😀 å</p>",
        &["<ParaStyle:x> \\ 😀 å", "Ann Writer/TT"],
        &[("body", "<ParaStyle:x> \\ 😀 å"), ("byline", "Ann Writer/TT")],
    );
}

#[test]
fn the_first_two_lines_are_always_present() {
    assert_eq!(cutpaste(&json!({})), "\r\n\r\n");
    assert!(cutpaste(&text("")).starts_with("Headline in two\r\nTown (TT)\r\nAnn Writer/TT\r\n"));
}

#[test]
fn letters_above_ascii_are_tags_of_utf_16_units() {
    let bytes = indesign(&json!({"headline": "å😀<"}));
    assert!(bytes.ends_with(b"<ParaStyle:headline><0x00E5><0xD83D><0xDE00>\\<\r\n"));
}

#[test]
fn very_deep_and_very_wide_html_stays_flat_and_linear() {
    for piece in
        ["<div>", "<b>", "<p><b a=1>", "<ul><li>", "<table><tr><td>", "</div>", "<a b", "<x "]
    {
        let html = piece.repeat(50_000);
        let (mut depth, mut deepest, mut events) = (0_usize, 0, 0_usize);
        html::walk(&html, &mut |event| {
            events += 1;
            match event {
                HtmlEvent::Open(element, _) if element.role != html::ElementRole::Void => {
                    depth += 1;
                }
                HtmlEvent::Close(_) => depth -= 1,
                HtmlEvent::Open(..) | HtmlEvent::Text(_) => {}
            }
            deepest = deepest.max(depth);
        });
        assert_eq!(depth, 0, "{piece}");
        assert!(deepest <= html::DEPTH_MAX, "{piece}");
        assert!(events <= 6 * 50_000, "{piece}");
    }
}

#[test]
fn urls_that_run_scripts_are_removed() {
    for address in ["javascript:x", " JaVa\tScript:x", "data:text/html,x", "vbscript:x", "blob:x"]
    {
        assert!(!html::is_safe_url(address), "{address}");
    }
    for address in ["https://a.example/", "/x?a=b:c", "#x", "mailto:a@b.example", "a/b:c", "x"] {
        assert!(html::is_safe_url(address), "{address}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_document_makes_correct_layout_text(document in strategy::document(40)) {
        let paragraphs = read_tagged(&indesign(&document));
        prop_assert_eq!(paragraphs[0].0.as_str(), "headline");
    }

    #[test]
    fn any_html_makes_lines_without_control_characters(html in strategy::html()) {
        read_tagged(&indesign(&text(&html)));
        let plain = cutpaste(&text(&html));
        prop_assert!(plain.ends_with("\r\n"));
        for line in plain.split("\r\n") {
            prop_assert!(!line.chars().any(|c| c.is_control() && c != '\t'), "{line:?}");
        }
    }

    #[test]
    fn any_html_is_balanced_and_has_no_handler(html in strategy::html()) {
        let mut open = Vec::new();
        html::walk(&html, &mut |event| match event {
            HtmlEvent::Open(element, attributes) => {
                assert!(attributes.iter().all(|(name, _)| !name.starts_with("on")));
                let mut names: Vec<_> = attributes.iter().map(|(name, _)| name).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), attributes.len(), "no attribute occurs twice");
                if element.role != html::ElementRole::Void {
                    open.push(element);
                }
            }
            HtmlEvent::Close(element) => assert_eq!(open.pop(), Some(element)),
            HtmlEvent::Text(_) => {}
        });
        prop_assert!(open.is_empty());
    }
}
