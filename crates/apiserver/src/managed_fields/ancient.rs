//! The limit on entries of the operation Update: the oldest are merged (API-141).

use evenkeel_api::Version;

use super::owner::{Operation, Owner};

/// How many entries of the operation Update an object keeps.
const UPDATE_OWNERS_MAX: usize = 10;
/// The manager whose entries stand for those that were merged.
const ANCIENT: &str = "ancient-changes";

/// Merges the oldest Update entries of each version until few enough are left.
pub(crate) fn merge_oldest(owners: &mut Vec<Owner>) {
    let mut count = owners.iter().filter(|owner| owner.operation == Operation::Update).count();
    if count <= UPDATE_OWNERS_MAX {
        return;
    }
    let (mut updates, applies) = owners.drain(..).partition(|owner| owner.operation == Operation::Update);
    *owners = applies;
    sort_by_age(&mut updates);
    let mut kept: Vec<Owner> = Vec::with_capacity(updates.len());
    for owner in updates {
        // The first of a version stands alone until there is another one to merge it with.
        let older = kept.iter_mut().find(|older| older.version == owner.version);
        match older {
            Some(older) if count > UPDATE_OWNERS_MAX => {
                absorb(older, owner);
                count -= 1;
            }
            _ => kept.push(owner),
        }
    }
    owners.append(&mut kept);
}

fn sort_by_age(updates: &mut [Owner]) {
    fn key(owner: &Owner) -> (i64, &str, Version, &str) {
        (owner.seconds(), &owner.manager, owner.version, &owner.subresource)
    }
    updates.sort_by(|one, other| key(one).cmp(&key(other)));
}

fn absorb(older: &mut Owner, owner: Owner) {
    ANCIENT.clone_into(&mut older.manager);
    older.subresource.clear();
    older.time = owner.time;
    older.fields.unite(owner.fields);
}
