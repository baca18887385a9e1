//! The smallest set of schemas that takes everything which another one matches.
//!
//! The set has to hit every request of the schema. Requests are collected one by one: the smallest set that hits those known so
//! far either covers everything, and is then the smallest of all, or leaves a request out, which is one more to hit.

use evenkeel_engine::User;

use crate::configuration::{Budget, Configuration, SearchResult, View};
use crate::space::{Point, Region};

/// How many requests are collected at most.
const REQUESTS_MAX: usize = 200;
/// How many sets are tried at most for one number of requests.
const SETS_MAX: u32 = 50_000;

/// Some schemas that cover another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    /// Their indexes, in match order.
    pub(crate) schemas: Vec<usize>,
    /// Whether no smaller set covers it. If not, it took too much work to find out.
    pub(crate) is_smallest: bool,
}

/// The smallest cover of some regions, each as a caller sees it, by schemas that are tried before `schema`.
pub(crate) fn smallest(view: &View<'_>, schema: usize, parts: &[(User, Region)], budget: &mut Budget) -> Option<Cover> {
    // Most are taken by one schema alone, and then it is the first that comes.
    let alone = parts.first().and_then(|(user, region)| view.first(user, &view.space.pick(region)?));
    if let Some(alone) = alone.filter(|alone| *alone < schema)
        && left_out(view, &[alone], parts, budget)?.is_none()
    {
        return Some(Cover { schemas: vec![alone], is_smallest: true });
    }
    let mut requests: Vec<Vec<usize>> = Vec::new();
    let mut is_smallest = true;
    loop {
        let schemas = match hitting(&requests) {
            Some(schemas) => schemas,
            None => {
                is_smallest = false;
                greedy(&requests)
            }
        };
        match left_out(view, &schemas, parts, budget)? {
            None => return Some(Cover { schemas, is_smallest }),
            Some((user, point)) => {
                let hit = (0..schema).filter(|earlier| view.matching(*earlier, user, &point).is_some());
                let hit: Vec<usize> = hit.collect();
                if hit.is_empty() || requests.len() == REQUESTS_MAX {
                    return None;
                }
                requests.push(hit);
            }
        }
    }
}

/// A request that none of the schemas matches.
#[expect(clippy::option_option, reason = "no answer, or the answer that there is none")]
fn left_out<'p>(
    view: &View<'_>,
    schemas: &[usize],
    parts: &'p [(User, Region)],
    budget: &mut Budget,
) -> Option<Option<(&'p User, Point)>> {
    let some = Configuration::ordered(schemas.iter().filter_map(|index| view.configuration.schema(*index)).collect());
    let some = View::new(some, &view.space);
    for (user, region) in parts {
        match some.find(user, region.clone(), budget, |first| first.is_none()) {
            SearchResult::Nothing => {}
            SearchResult::Point(point) => return Some(Some((user, point))),
            SearchResult::Undecided => return None,
        }
    }
    Some(None)
}

/// The smallest set with a member in each of the lists, unless that takes too much work. Of sets of equal size, the one with the
/// earliest schemas.
fn hitting(lists: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut tries = SETS_MAX;
    for size in 0..=lists.len() {
        let mut chosen = Vec::new();
        if choose(lists, size, &mut chosen, &mut tries)? {
            chosen.sort_unstable();
            return Some(chosen);
        }
    }
    None
}

/// Adds at most `size` members that hit the rest of the lists. `None` when there are no tries left.
fn choose(lists: &[Vec<usize>], size: usize, chosen: &mut Vec<usize>, tries: &mut u32) -> Option<bool> {
    let is_hit = |list: &&Vec<usize>| list.iter().any(|member| chosen.contains(member));
    let Some(list) = lists.iter().filter(|list| !is_hit(list)).min_by_key(|list| list.len()) else { return Some(true) };
    if size == 0 {
        return Some(false);
    }
    for member in list {
        *tries = tries.checked_sub(1)?;
        chosen.push(*member);
        if choose(lists, size - 1, chosen, tries)? {
            return Some(true);
        }
        chosen.pop();
    }
    Some(false)
}

/// A set with a member in each of the lists: always the one that is in most of those that are left.
fn greedy(lists: &[Vec<usize>]) -> Vec<usize> {
    let mut left: Vec<&Vec<usize>> = lists.iter().collect();
    let mut chosen = Vec::new();
    while let Some(first) = left.first() {
        let count = |member: usize| left.iter().filter(|list| list.contains(&member)).count();
        let Some(best) = first.iter().copied().max_by_key(|member| (count(*member), std::cmp::Reverse(*member))) else {
            break;
        };
        chosen.push(best);
        left.retain(|list| !list.contains(&best));
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_set_is_found() {
        assert_eq!(hitting(&[]), Some(vec![]));
        assert_eq!(hitting(&[vec![1, 2], vec![2, 3], vec![4, 2]]), Some(vec![2]));
        assert_eq!(hitting(&[vec![1, 2], vec![3, 4], vec![1, 4], vec![2, 3]]), Some(vec![1, 3]));
        // Greedy begins with 5, which is in most lists, and needs three.
        let lists = [vec![1, 5], vec![1, 5], vec![2, 5], vec![2, 5], vec![1], vec![2]];
        assert_eq!(hitting(&lists), Some(vec![1, 2]));
        assert!(greedy(&lists).len() >= 2);
    }
}
