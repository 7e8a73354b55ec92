//! The cost of each item as a page showed it. The page's form sends it back, and nothing is bought unless the cost
//! is still the same.

use std::collections::HashMap;

use crate::access::orders::PurchaseQuote;
use crate::media::{ItemQuote, QuoteState};

/// The word for an item that costs nothing.
const FREE: &str = "free";

/// The word for an item that is not delivered.
const NOTHING: &str = "none";

/// The cost of each item as a page showed it: a word for each item's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShownCost(HashMap<String, String>);

impl ShownCost {
    /// Parses the field of a form. A malformed pair is skipped, so its item counts as not shown.
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(key, word)| (key.to_owned(), word.to_owned())).collect())
    }

    /// Formats the value of the field for `quotes`: `image/a=free image/b=buys-1002`. A picture that comes with a
    /// text has its own pair: `text/a+image/b=buys-1002`.
    pub(super) fn print(quotes: &[ItemQuote]) -> String {
        let pairs = quotes.iter().flat_map(words).map(|(key, word)| format!("{key}={word}"));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// Returns whether the page showed the cost of each of `quotes`. An item that has become free is covered as
    /// well: a different user of the organization has bought it since.
    pub(super) fn covers(&self, quotes: &[ItemQuote]) -> bool {
        quotes.iter().flat_map(words).all(|(key, now)| {
            let shown = self.0.get(&key);
            shown.is_some_and(|shown| *shown == now || now == FREE)
        })
    }
}

/// Returns the keys of the item and its bundled pictures, each with its word.
fn words(quote: &ItemQuote) -> Vec<(String, String)> {
    let bundled = quote.bundled.iter().map(|bundled| {
        // The key names the text too, because the picture may also be an item of the selection, with its own word.
        (format!("{}+{}", quote.key, bundled.key), purchase_word(&bundled.purchase))
    });
    std::iter::once((quote.key.to_string(), word(&quote.state))).chain(bundled).collect()
}

fn word(state: &QuoteState) -> String {
    match state {
        QuoteState::Purchase(purchase) => purchase_word(purchase),
        QuoteState::LeftOut(_) => NOTHING.to_owned(),
    }
}

/// Returns the word for the cost of an item and the agreement that pays.
fn purchase_word(purchase: &PurchaseQuote) -> String {
    match purchase {
        PurchaseQuote::Bought { .. } => FREE.to_owned(),
        PurchaseQuote::Buys(agreement) => format!("buys-{}", agreement.0),
        PurchaseQuote::Order { agreement, .. } => format!("order-{}", agreement.0),
        // The reason does not matter: the item is not delivered and costs nothing.
        PurchaseQuote::Refused(_) => NOTHING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::BundledQuote;
    use model::account::AgreementId;

    fn quote(key: &str, purchase: PurchaseQuote) -> ItemQuote {
        let key = key.parse().unwrap();
        let state = QuoteState::Purchase(purchase);
        ItemQuote { key, codes: Vec::new(), state, bundled: Vec::new() }
    }

    fn bought() -> PurchaseQuote {
        PurchaseQuote::Bought { agreement: None, until: None }
    }

    #[test]
    fn a_form_buys_only_what_its_page_showed() {
        let buys = |agreement| PurchaseQuote::Buys(AgreementId(agreement));
        let shown = vec![quote("image/a", buys(1)), quote("image/b", bought())];
        let text = ShownCost::print(&shown);
        assert_eq!(text, "image/a=buys-1 image/b=free");
        let field = ShownCost::parse(&text);
        let check = |quotes: &[ItemQuote], expected| {
            assert_eq!(field.covers(quotes), expected, "{quotes:?}");
        };
        check(&shown, true);
        check(&shown[..1], true);
        check(&[quote("image/a", bought())], true);
        check(&[quote("image/a", buys(2))], false);
        check(&[quote("image/b", buys(1))], false);
        check(&[quote("image/a", PurchaseQuote::Refused(String::new()))], false);
        check(&[quote("image/c", buys(1))], false);
        assert!(!ShownCost::parse("").covers(&shown));
        assert!(!ShownCost::parse("image/a image/b=").covers(&shown));
    }

    #[test]
    fn a_text_buys_only_pictures_that_its_page_showed() {
        let buys = |agreement| PurchaseQuote::Buys(AgreementId(agreement));
        let with = |purchase| {
            let bundled = BundledQuote { key: "image/b".parse().unwrap(), purchase };
            vec![ItemQuote { bundled: vec![bundled], ..quote("text/a", buys(1)) }]
        };
        let text = ShownCost::print(&with(buys(2)));
        assert_eq!(text, "text/a=buys-1 text/a+image/b=buys-2");
        let field = ShownCost::parse(&text);
        assert!(field.covers(&with(buys(2))) && field.covers(&with(bought())));
        assert!(!field.covers(&with(buys(3))));
        assert!(!ShownCost::parse("text/a=buys-1").covers(&with(buys(2))));
    }
}
