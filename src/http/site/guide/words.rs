//! Splits queries and documents into words.

/// A word in lower case, with its byte range in the text.
pub(super) struct TextWord {
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Returns the words of a text in lower case.
pub(super) fn words_of(text: &str) -> Vec<String> {
    words(text).map(|word| word.text).collect()
}

/// Splits a text into alphanumeric words. A name such as `media.preview_px` has three words.
pub(super) fn words(text: &str) -> impl Iterator<Item = TextWord> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = rest.by_ref().find(|(_, c)| c.is_alphanumeric())?;
        let mut end = start + first.len_utf8();
        while let Some((at, c)) = rest.next_if(|(_, c)| c.is_alphanumeric()) {
            end = at + c.len_utf8();
        }
        // The range refers to the original text, because the word may have a different length in lower case.
        Some(TextWord { text: text[start..end].to_lowercase(), start, end })
    })
}
