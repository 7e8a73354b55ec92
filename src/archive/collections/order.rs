//! The order of a collection's items, as a pure function.

use std::collections::HashSet;

use model::ItemKey;

/// Moves the items of `content` that `named` lists to the front, in the order of `named`. The other items follow
/// in their previous order. Items of `named` that are not in `content`, and repetitions, are ignored.
pub(super) fn reorder(content: &[ItemKey], named: &[ItemKey]) -> Vec<ItemKey> {
    let existing: HashSet<&ItemKey> = content.iter().collect();
    let mut placed = HashSet::new();
    // A repetition has already been placed, so its first position counts.
    let first = named.iter().filter(|key| existing.contains(key) && placed.insert(*key));
    let mut ordered: Vec<ItemKey> = first.cloned().collect();
    ordered.extend(content.iter().filter(|key| !placed.contains(key)).cloned());
    ordered
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(numbers: &[u8]) -> Vec<ItemKey> {
        numbers.iter().map(|number| format!("image/i{number}").parse().unwrap()).collect()
    }

    fn check(content: &[u8], named: &[u8], expected: &[u8]) {
        assert_eq!(reorder(&keys(content), &keys(named)), keys(expected));
    }

    #[test]
    fn named_items_come_first_and_the_others_keep_their_order() {
        check(&[1, 2, 3, 4], &[3, 1], &[3, 1, 2, 4]);
        check(&[1, 2, 3], &[3, 2, 1], &[3, 2, 1]);
        check(&[1, 2, 3], &[], &[1, 2, 3]);
        check(&[1, 2, 3], &[9, 3, 9, 3, 2, 3], &[3, 2, 1]);
        check(&[], &[1], &[]);
    }

    proptest! {
        #[test]
        fn an_order_neither_adds_nor_loses_an_item(
            content in proptest::collection::hash_set(0_u8..40, 0..20),
            named in proptest::collection::vec(0_u8..40, 0..40),
        ) {
            let content = keys(&content.into_iter().collect::<Vec<_>>());
            let named = keys(&named);
            let ordered = reorder(&content, &named);
            let sorted = |list: &[ItemKey]| {
                let mut list: Vec<String> = list.iter().map(ToString::to_string).collect();
                list.sort_unstable();
                list
            };
            prop_assert_eq!(sorted(&ordered), sorted(&content));
            // The operation is idempotent.
            prop_assert_eq!(reorder(&ordered, &named), ordered.clone());
            let place = |list: &[ItemKey], key: &ItemKey| list.iter().position(|one| one == key);
            for (index, one) in ordered.iter().enumerate() {
                for other in &ordered[index + 1..] {
                    let fair = match (place(&named, one), place(&named, other)) {
                        (Some(one), Some(other)) => one < other,
                        (Some(_), None) => true,
                        (None, Some(_)) => false,
                        (None, None) => place(&content, one) < place(&content, other),
                    };
                    prop_assert!(fair, "{} before {}", one, other);
                }
            }
        }
    }
}
