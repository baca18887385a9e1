//! The order of a merged list (API-121).

use std::collections::HashMap;

use serde_json::Value;

/// An element of a merged list.
pub(super) struct Named {
    /// The key of the element.
    pub(super) identity: String,
    pub(super) value: Value,
    /// Its place in the stored list, if it was there.
    pub(super) stored: Option<usize>,
}

/// The elements in order: those that `order` names in that order, and each of the others in front of the first named one
/// that it stood in front of.
pub(super) fn in_order(items: Vec<Named>, order: &[String]) -> Vec<Value> {
    let ranks: HashMap<&str, usize> =
        order.iter().enumerate().rev().map(|(rank, identity)| (identity.as_str(), rank)).collect();
    let rank = |item: &Named| ranks.get(item.identity.as_str()).copied();
    let (mut named, unnamed): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| rank(item).is_some());
    named.sort_by_key(rank);

    let mut sorted = Vec::with_capacity(named.len() + unnamed.len());
    let mut named = named.into_iter().peekable();
    for item in unnamed {
        while let Some(next) = named.next_if(|next| next.stored.is_none() || next.stored < item.stored) {
            sorted.push(next.value);
        }
        sorted.push(item.value);
    }
    sorted.extend(named.map(|item| item.value));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(stored: &[&str], new: &[&str], order: &[&str]) -> Vec<String> {
        let item = |(place, name): (Option<usize>, &&str)| Named {
            identity: (*name).to_owned(),
            value: Value::from(*name),
            stored: place,
        };
        let stored = stored.iter().enumerate().map(|(place, name)| item((Some(place), name)));
        let items = stored.chain(new.iter().map(|name| item((None, name)))).collect();
        let order: Vec<_> = order.iter().map(|name| (*name).to_owned()).collect();
        in_order(items, &order).into_iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn api_121_named_elements_keep_the_order_of_the_patch_and_the_others_stay_where_they_were() {
        assert_eq!(sorted(&["a", "b"], &["c"], &["c"]), ["c", "a", "b"]);
        assert_eq!(sorted(&["a", "b"], &["c"], &["b", "c"]), ["a", "b", "c"]);
        assert_eq!(sorted(&["a", "b", "c"], &[], &["b"]), ["a", "b", "c"]);
        assert_eq!(sorted(&["a", "b", "c"], &[], &["c", "a"]), ["b", "c", "a"]);
        assert_eq!(sorted(&["a", "b"], &["x"], &["x", "b"]), ["x", "a", "b"]);
    }
}
