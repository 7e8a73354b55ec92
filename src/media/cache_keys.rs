//! The surrogate keys under which a CDN stores answers, so that a purge removes all answers that show an item.
//!
//! A key contains only letters, digits, `-`, `_` and `.`: all CDNs with surrogate keys allow these, while some
//! refuse `/` and `:`.

use std::collections::BTreeSet;

use bytes::Bytes;

use model::ItemKey;

/// Bytes of the cache keys in one response. Proxies allow 4 to 8 KiB for all headers of a response, and
/// two headers carry the keys.
const CACHE_KEYS_BYTES_MAX: usize = 1024;
/// The key of all answers below `/media`.
pub const EVERYTHING: &str = "wirephoto";

/// Returns the key of all answers that show the item: `<mediaType>.<id>`.
///
/// No media type contains a `.`, so two items never share a key.
pub fn key_of(item: &ItemKey) -> String {
    format!("{}.{}", item.media_type, item.id)
}

/// The keys of one answer. Clones share their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKeys {
    /// The keys separated by spaces, in ASCII.
    pub space_separated: Bytes,
    /// The keys separated by commas, in ASCII.
    pub comma_separated: Bytes,
    /// True if every item that the answer shows has its key in the set. An answer with incomplete keys must not be
    /// stored by a cache that relies on purges by key.
    pub is_complete: bool,
}

impl CacheKeys {
    /// Returns the keys of an answer that shows `item` and `others`: one for each item, one for the media type of
    /// `item`, and [`EVERYTHING`].
    ///
    /// If they exceed [`CACHE_KEYS_BYTES_MAX`] bytes, the keys of `others` are left out, and the set is
    /// incomplete.
    pub fn new<'a>(item: &ItemKey, others: impl IntoIterator<Item = &'a ItemKey>) -> Self {
        let mut keys = vec![key_of(item)];
        // Sorted, so that the same answer always has the same header.
        let others: BTreeSet<&ItemKey> =
            others.into_iter().filter(|other| *other != item).collect();
        keys.extend(others.into_iter().map(key_of));
        let common = [item.media_type.as_str(), EVERYTHING];
        // The key of the media type and [`EVERYTHING`] must always fit.
        let bytes_max =
            CACHE_KEYS_BYTES_MAX - common.iter().map(|key| key.len() + 1).sum::<usize>();
        let bytes = keys.iter().map(|key| key.len() + 1).sum::<usize>();
        let is_complete = bytes <= bytes_max;
        if !is_complete {
            // No cache may store the answer in this case, so a part of the keys would be useless.
            keys.truncate(1);
        }
        keys.extend(common.map(str::to_owned));
        Self {
            space_separated: keys.join(" ").into(),
            comma_separated: keys.join(",").into(),
            is_complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> ItemKey {
        text.parse().unwrap()
    }

    #[test]
    fn an_answer_has_the_keys_of_its_items_its_media_type_and_of_everything() {
        let (text, picture) = (key("text/a_B-1"), key("image/c"));
        let keys = CacheKeys::new(&text, [&picture, &picture, &text]);
        assert_eq!(keys.space_separated, "text.a_B-1 image.c text wirephoto");
        assert_eq!(keys.comma_separated, "text.a_B-1,image.c,text,wirephoto");
        assert!(keys.is_complete);
    }

    #[test]
    fn more_items_than_fit_are_left_out_and_that_shows() {
        let text = key("text/a");
        let pictures: Vec<_> = (0..1000).map(|at| key(&format!("image/{at}"))).collect();
        let keys = CacheKeys::new(&text, &pictures);
        assert_eq!(
            (keys.space_separated.as_ref(), keys.is_complete),
            (&b"text.a text wirephoto"[..], false)
        );
        let longest = key(&format!("stockfoto/{}", "x".repeat(128)));
        assert!(CacheKeys::new(&longest, []).is_complete);
        for count in 0..200 {
            let keys = CacheKeys::new(&longest, &pictures[..count]);
            assert!(keys.space_separated.len() <= CACHE_KEYS_BYTES_MAX, "{count}");
        }
    }
}
