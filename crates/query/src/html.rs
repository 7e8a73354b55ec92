//! Extracts the text of an HTML body.

/// Elements that can occur within a word; any other element separates words.
const INLINE: [&str; 20] = [
    "a", "abbr", "b", "big", "cite", "del", "em", "font", "i", "ins", "mark", "q", "s", "small",
    "span", "strong", "sub", "sup", "u", "wbr",
];

/// Character references that are common in articles. Other references stay unchanged.
const NAMED: [(&str, char); 24] = [
    ("AElig", 'Æ'),
    ("Aring", 'Å'),
    ("Auml", 'Ä'),
    ("Eacute", 'É'),
    ("Oslash", 'Ø'),
    ("Ouml", 'Ö'),
    ("Uuml", 'Ü'),
    ("aelig", 'æ'),
    ("agrave", 'à'),
    ("amp", '&'),
    ("apos", '\''),
    ("aring", 'å'),
    ("auml", 'ä'),
    ("eacute", 'é'),
    ("egrave", 'è'),
    ("gt", '>'),
    ("lt", '<'),
    ("nbsp", ' '),
    ("oslash", 'ø'),
    ("ouml", 'ö'),
    ("quot", '"'),
    ("shy", '\u{ad}'),
    ("szlig", 'ß'),
    ("uuml", 'ü'),
];

/// Number of bytes after a `&` in which the `;` is searched.
const REFERENCE_BYTES: usize = 12;

/// Returns the text of HTML without tags, comments, scripts and styles. Block elements separate words.
///
/// Handles the HTML that editors produce. Broken markup loses at most the text up to the next `>`.
pub(super) fn text(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        decode(before, &mut text);
        rest = skip_tag(tag, &mut text);
    }
    decode(rest, &mut text);
    text
}

/// Returns the text after a tag, a comment or a hidden element; `tag` starts after its `<`.
fn skip_tag<'a>(tag: &'a str, text: &mut String) -> &'a str {
    if let Some(comment) = tag.strip_prefix("!--") {
        return comment.split_once("-->").map_or("", |(_, rest)| rest);
    }
    let name = tag.strip_prefix('/').unwrap_or(tag);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
        // An unescaped less-than sign.
        text.push('<');
        return tag;
    }
    let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())];
    let (_, rest) = tag.split_once('>').unwrap_or_default();
    // Without a separator, the last word of a paragraph would join the first word of the next.
    if !INLINE.iter().any(|inline| inline.eq_ignore_ascii_case(name)) {
        text.push('\n');
    }
    let hidden = ["script", "style"].into_iter().find(|hidden| hidden.eq_ignore_ascii_case(name));
    match hidden {
        // An end tag without a start tag hides nothing.
        Some(hidden) if !tag.starts_with('/') => skip_hidden(rest, hidden),
        _ => rest,
    }
}

/// Returns the text from the end tag of a hidden element on.
fn skip_hidden<'a>(rest: &'a str, name: &str) -> &'a str {
    for (at, _) in rest.match_indices("</") {
        // Compares bytes, because the text may not have a character boundary there.
        let tag = rest.as_bytes().get(at + 2..at + 2 + name.len());
        if tag.is_some_and(|tag| tag.eq_ignore_ascii_case(name.as_bytes())) {
            return &rest[at..];
        }
    }
    ""
}

/// Copies text with its character references replaced.
fn decode(mut rest: &str, text: &mut String) {
    while let Some((before, reference)) = rest.split_once('&') {
        text.push_str(before);
        // Without this limit, a text full of `&` would need quadratic time.
        let near = &reference[..reference.floor_char_boundary(REFERENCE_BYTES)];
        let name = near.split_once(';').map(|(name, _)| name);
        rest = match name.and_then(|name| Some((character(name)?, name.len()))) {
            Some((c, end)) => {
                text.push(c);
                &reference[end + 1..]
            }
            None => {
                // Not a reference, as in `AT&T`.
                text.push('&');
                reference
            }
        };
    }
    text.push_str(rest);
}

/// Returns the character for a reference. `name` is the text between `&` and `;`.
fn character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        let at = NAMED.binary_search_by(|(entity, _)| (*entity).cmp(name)).ok()?;
        return Some(NAMED[at].1);
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &str) {
        assert_eq!(text(html), expected, "{html}");
    }

    #[test]
    fn blocks_end_words_and_inline_elements_do_not() {
        check("<p>en</p><p>is<b class='x'>brytare</b></p>", "\nen\n\nisbrytare\n");
        check("ett<br/>två<H1>tre", "ett\ntvå\ntre");
    }

    #[test]
    fn references_are_replaced() {
        check("&Aring;r &#246; &#xE4; TT&amp;co &lt;b&gt;", "År ö ä TT&co <b>");
        check("AT&T &unknown; &#xffffffff; &", "AT&T &unknown; &#xffffffff; &");
    }

    #[test]
    fn content_that_is_not_text_is_left_out() {
        check("a<!-- b > c -->d<script>if (a < b) c</script>e", "ad\n\ne");
        check("a<STYLE>b</style >c", "a\n\nc");
        check("1 < 2 <", "1 < 2 <");
        check("a<!-- b", "a");
        check("a<script>b", "a\n");
        check("a<p b", "a\n");
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(NAMED.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
