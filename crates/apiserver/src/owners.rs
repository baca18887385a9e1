//! Owner references that are sent twice: one is kept, and a warning names the others (API-34).

use std::collections::HashSet;

use evenkeel_api::meta::OwnerReference;

/// Where duplicates were found, for the warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DuplicatesFound {
    /// In the object that was sent.
    Sent,
    /// In what a patch made of the stored object.
    Patched,
}

/// Removes each reference that equals an earlier one in all members. The warning, if there were any.
pub(crate) fn remove_duplicates(owners: &mut Vec<OwnerReference>, found: DuplicatesFound) -> Option<String> {
    if owners.len() < 2 {
        return None;
    }
    let mut seen = HashSet::with_capacity(owners.len());
    let is_first: Vec<bool> = owners
        .iter()
        .map(|owner| {
            let OwnerReference { api_version, kind, name, uid, controller, block_owner_deletion } = owner;
            seen.insert((uid, name, kind, api_version, controller, block_owner_deletion))
        })
        .collect();
    if is_first.iter().all(|is_first| *is_first) {
        return None;
    }
    let (kept, duplicates): (Vec<_>, Vec<_>) =
        std::mem::take(owners).into_iter().zip(is_first).partition(|(_, is_first)| *is_first);
    *owners = kept.into_iter().map(|(owner, _)| owner).collect();
    let uids: Vec<_> = duplicates.iter().map(|(owner, _)| owner.uid.as_str()).collect();
    let moment = match found {
        DuplicatesFound::Sent => "",
        DuplicatesFound::Patched => " after mutating admission happens",
    };
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{moment}; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        uids.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str, name: &str) -> OwnerReference {
        OwnerReference { uid: uid.to_owned(), name: name.to_owned(), ..OwnerReference::default() }
    }

    #[test]
    fn api_34_the_first_of_equal_references_is_kept() {
        let (a, b) = (owner("1", "a"), owner("2", "b"));
        let mut owners = vec![a.clone(), b.clone(), a.clone(), b.clone(), a.clone()];
        let warning = remove_duplicates(&mut owners, DuplicatesFound::Sent).unwrap();
        assert_eq!(owners, [a, b]);
        assert!(warning.ends_with("duplicate UID(s) observed: 1, 2, 1"), "{warning}");
    }

    #[test]
    fn api_34_references_that_differ_stay() {
        let controller = OwnerReference { controller: Some(false), ..owner("1", "a") };
        let different = vec![owner("1", "a"), owner("1", "b"), controller];
        let mut owners = different.clone();
        assert_eq!(remove_duplicates(&mut owners, DuplicatesFound::Patched), None);
        assert_eq!(owners, different);
    }
}
