//! Links to an item that an API names by its URI.

use serde::Serialize;

/// Links to an item.
#[derive(Debug, Serialize)]
pub(super) struct ItemLinks {
    page: String,
    /// Only of a photograph: others may have no open thumbnail, and a broken picture is worse than no picture.
    thumbnail: Option<String>,
    /// Relative, because the call goes through this server's router, not through a CDN's host.
    #[serde(skip)]
    pub(super) pricelist: String,
}

impl ItemLinks {
    /// Returns the links to the item with the URI `uri`, which ends in its key.
    pub(super) fn new(uri: &str) -> Self {
        let mut parts = uri.rsplit('/');
        let id = parts.next().unwrap_or_default();
        let media_type = parts.next().unwrap_or_default();
        Self {
            page: format!("/item/{media_type}/{id}"),
            thumbnail: (media_type == "image").then(|| format!("{uri}_NormalThumbnail.jpg")),
            pricelist: format!("/media/{media_type}/{id}/pricelist"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_a_page_and_a_photograph_a_picture() {
        let found = ItemLinks::new("https://media.example/media/image/a-b");
        assert_eq!(found.page, "/item/image/a-b");
        let thumbnail = "https://media.example/media/image/a-b_NormalThumbnail.jpg";
        assert_eq!(found.thumbnail.as_deref(), Some(thumbnail));
        assert_eq!(found.pricelist, "/media/image/a-b/pricelist");
        let found = ItemLinks::new("https://media.example/media/text/a");
        assert_eq!((found.page.as_str(), found.thumbnail), ("/item/text/a", None));
    }
}
