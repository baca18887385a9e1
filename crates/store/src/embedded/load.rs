//! Reading everything that is in a file, and making sure that it fits together.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel_api::Kind;
use redb::{Database, ReadOnlyTable, ReadableTable};

use crate::cache::{Cache, History, HistoryLimits, ObjectMap};
use crate::{Change, Event, Object};

use super::Outcome;
use super::format::{HISTORY, META, META_REVISION, OBJECTS, Row, kind_number, kind_of};

type HistoryTable = ReadOnlyTable<u64, (u8, &'static str, Option<Row<'static>>)>;

/// Objects as they were, while the history is walked from its end to its start. The present ones are not in it.
type Past = HashMap<(Kind, Box<str>), Option<Arc<Object>>>;

/// All that is in a file of the present format.
pub(crate) fn load(database: &Database, limits: HistoryLimits) -> Outcome<Cache> {
    let transaction = database.begin_read()?;
    let meta = transaction.open_table(META)?;
    let revision = meta.get(META_REVISION)?.ok_or("it has no revision")?.value();
    let table = transaction.open_table(OBJECTS)?;
    let mut kinds: [ObjectMap; Kind::ALL.len()] = Default::default();
    for kind in Kind::ALL {
        let sorted = objects(&table, kind, revision)?;
        kinds[kind as usize] = ObjectMap::from_sorted(&sorted);
    }
    let known: usize = kinds.iter().map(ObjectMap::len).sum();
    let rows = redb::ReadableTableMetadata::len(&table)?;
    if rows != known as u64 {
        return Err(format!("{rows} objects are stored, but {known} are of a kind that is known").into());
    }
    let history = history(&transaction.open_table(HISTORY)?, &kinds, revision, limits)?;
    Ok(Cache::new(kinds, history, revision))
}

fn objects(
    table: &ReadOnlyTable<(u8, &'static str), Row<'static>>,
    kind: Kind,
    newest: u64,
) -> Outcome<Vec<Arc<Object>>> {
    let number = kind_number(kind);
    let rows = table.range((number, "")..(number + 1, ""))?;
    rows.map(|row| {
        let (key, value) = row?;
        let object = object(kind, key.value().1, value.value());
        if object.revision > newest || object.create_revision > object.revision {
            return Err(format!("{kind} {:?} has a revision that was never reached", object.name).into());
        }
        Ok(Arc::new(object))
    })
    .collect()
}

/// The writes that are kept. Walked from the last to the first, because a row says what an object was before.
fn history(
    table: &HistoryTable,
    kinds: &[ObjectMap; Kind::ALL.len()],
    newest: u64,
    limits: HistoryLimits,
) -> Outcome<History> {
    let mut past = Past::new();
    let mut events = Vec::new();
    let mut oldest = newest;
    for row in table.iter()?.rev() {
        let (key, value) = row?;
        let (number, name, previous) = value.value();
        if key.value() != oldest {
            return Err(format!("the history has revision {} where {oldest} belongs", key.value()).into());
        }
        let kind = kind_of(number).ok_or_else(|| format!("the history has a kind with the number {number}"))?;
        let previous = previous.map(|row| Arc::new(object(kind, name, row)));
        events.push(Arc::new(event(oldest, kind, name, previous, kinds, &mut past)?));
        oldest -= 1;
    }
    let mut history = History::new(oldest, limits);
    events.into_iter().rev().for_each(|event| history.push(event));
    Ok(history)
}

fn event(
    revision: u64,
    kind: Kind,
    name: &str,
    previous: Option<Arc<Object>>,
    kinds: &[ObjectMap; Kind::ALL.len()],
    past: &mut Past,
) -> Outcome<Event> {
    let key = (kind, Box::from(name));
    let present = || kinds[kind as usize].get(name).cloned();
    let object = past.insert(key, previous.clone()).unwrap_or_else(present);
    if object.as_ref().is_some_and(|object| object.revision != revision) {
        return Err(format!("{kind} {name:?} was written at revision {revision}, but is not of that revision").into());
    }
    let change = match (object, previous) {
        (Some(object), Some(previous)) => Change::Updated { object, previous },
        (Some(object), None) => Change::Created { object },
        (None, Some(previous)) => Change::Deleted { previous },
        (None, None) => {
            return Err(format!("{kind} {name:?} was removed at revision {revision} without having been").into());
        }
    };
    Ok(Event { revision, change })
}

fn object(kind: Kind, name: &str, (revision, create_revision, payload): Row<'_>) -> Object {
    Object { kind, name: name.into(), revision, create_revision, payload: Bytes::copy_from_slice(payload) }
}
