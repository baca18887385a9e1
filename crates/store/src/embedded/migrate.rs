//! Bringing a file of an older format to the present one.
//!
//! A new format is a new number in [`FORMAT`](super::format::FORMAT) and a step in [`STEPS`] that leads there from the one
//! before. All steps of a file run in one transaction together with the new number, so that a file is never in between.

use redb::{Database, WriteTransaction};

use super::Outcome;
use super::format::{META, META_FORMAT};

/// Brings a file from one format to the next.
pub(crate) type MigrationStep = fn(&WriteTransaction) -> Outcome<()>;

/// The first step leads from format 1 to format 2, and so on.
pub(crate) const STEPS: &[MigrationStep] = &[];

/// Takes the steps that a file of format `found` needs.
pub(crate) fn migrate(database: &Database, found: u32, steps: &[MigrationStep]) -> Outcome<()> {
    let due = steps.get(found.saturating_sub(1) as usize..).unwrap_or_default();
    if due.is_empty() {
        return Ok(());
    }
    let transaction = database.begin_write()?;
    for step in due {
        step(&transaction)?;
    }
    let format = steps.len() as u64 + 1;
    transaction.open_table(META)?.insert(META_FORMAT, format)?;
    transaction.commit()?;
    tracing::info!(from = found, to = format, "the store was upgraded to a newer file format");
    Ok(())
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;
    use redb::{ReadableTable, TableDefinition};

    use super::super::format::FORMAT;
    use super::*;

    const LOG: TableDefinition<'_, u64, &str> = TableDefinition::new("test.log");

    fn note(transaction: &WriteTransaction, text: &str) -> Outcome<()> {
        let mut log = transaction.open_table(LOG)?;
        let place = log.last()?.map_or(0, |(place, _)| place.value() + 1);
        log.insert(place, text)?;
        Ok(())
    }

    fn file(format: u32) -> Database {
        let database = redb::Builder::new().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(META).unwrap().insert(META_FORMAT, u64::from(format)).unwrap();
        transaction.open_table(LOG).unwrap();
        transaction.commit().unwrap();
        database
    }

    fn read(database: &Database) -> (u64, Vec<String>) {
        let transaction = database.begin_read().unwrap();
        let format = transaction.open_table(META).unwrap().get(META_FORMAT).unwrap().unwrap().value();
        let log = transaction.open_table(LOG).unwrap();
        (format, log.iter().unwrap().map(|row| row.unwrap().1.value().to_owned()).collect())
    }

    const TWO_STEPS: &[MigrationStep] = &[|t| note(t, "1 to 2"), |t| note(t, "2 to 3")];

    #[test]
    fn there_is_a_step_to_every_format_but_the_first() {
        assert_eq!(STEPS.len() + 1, FORMAT as usize);
    }

    #[test]
    fn a_file_takes_the_steps_that_it_lacks_once() {
        for (found, expected) in [(1, &["1 to 2", "2 to 3"][..]), (2, &["2 to 3"]), (3, &[])] {
            let database = file(found);
            migrate(&database, found, TWO_STEPS).unwrap();
            assert_eq!(read(&database), (3, expected.iter().map(ToString::to_string).collect()));
        }
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_in_its_old_format() {
        let database = file(1);
        let steps: &[MigrationStep] = &[|t| note(t, "1 to 2"), |_| Err("no".into())];
        migrate(&database, 1, steps).unwrap_err();
        assert_eq!(read(&database), (1, vec![]));
    }
}
