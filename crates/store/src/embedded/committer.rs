//! The thread that writes: it takes all commands that wait, writes them in one transaction with one sync, updates the
//! cache, and only then replies.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_api::Kind;
use redb::{Database, ReadableTable};
use tokio::sync::{mpsc, oneshot};

use crate::cache::{Cache, Write};
use crate::{Error, Object};

use super::Outcome;
use super::command::{Command, WriteCommand};
use super::format::{HISTORY, META, META_REVISION, OBJECTS, Row, kind_number};
use super::last_revision::LastRevision;

/// So many writes share a transaction at most, so that the first does not wait for too many others.
const BATCH_MAX: usize = 512;

/// Owns the database. Nobody else writes to it.
pub(crate) struct Committer {
    database: Database,
    cache: Arc<Cache>,
    commands: mpsc::Receiver<Command>,
    /// A second record of what was acknowledged; a store in memory has none.
    last_revision: Option<LastRevision>,
    /// Set when a commit has failed: the contents of the file are unknown, so no more writes are accepted.
    broken: Option<String>,
}

/// What happens to the writes of a batch.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    /// What was before each write.
    previous: Vec<Option<Arc<Object>>>,
    /// The objects that the batch has written so far.
    touched: HashMap<(Kind, Box<str>), Option<Arc<Object>>>,
    replies: Vec<Reply>,
}

/// Who waits, and for what.
struct Reply {
    to: oneshot::Sender<Result<Write, Error>>,
    result: Result<Write, Error>,
}

// === impl Committer ===

impl Committer {
    pub(crate) fn new(
        database: Database,
        cache: Arc<Cache>,
        commands: mpsc::Receiver<Command>,
        last_revision: Option<LastRevision>,
    ) -> Self {
        Self { database, cache, commands, last_revision, broken: None }
    }

    /// Works until it is closed, or until all senders are gone.
    pub(crate) fn run(mut self) {
        let mut carried = None;
        while let Some(command) = carried.take().or_else(|| self.commands.blocking_recv()) {
            match command {
                Command::Write(first) => carried = self.write(first),
                Command::Compact { revision, reply } => {
                    let _ = reply.send(self.compact(revision));
                }
                Command::Close { reply } => {
                    self.commands.close();
                    drop(self.database);
                    if let Some(last_revision) = &self.last_revision {
                        last_revision.sync();
                    }
                    while let Some(late) = self.commands.blocking_recv() {
                        late.refuse();
                    }
                    let _ = reply.send(());
                    return;
                }
            }
        }
    }

    /// Writes the first and all that wait behind it; returns the command that ended the row.
    fn write(&mut self, first: WriteCommand) -> Option<Command> {
        let mut batch = Batch::default();
        let mut next_revision = self.cache.freshness().revision + 1;
        let mut carried = None;
        let mut command = first;
        loop {
            batch.add(command, &self.cache, &mut next_revision);
            if batch.replies.len() == BATCH_MAX {
                break;
            }
            command = match self.commands.try_recv() {
                Ok(Command::Write(next)) => next,
                Ok(other) => {
                    carried = Some(other);
                    break;
                }
                Err(_) => break,
            };
        }
        match self.commit(&batch) {
            Ok(()) => batch.publish(&self.cache),
            Err(error) => batch.fail(&error),
        }
        carried
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), Error> {
        let Some(last) = batch.writes.last() else { return Ok(()) };
        self.check_whole()?;
        let oldest = self.cache.state().history.oldest();
        let transaction = self.database.begin_write().map_err(unavailable)?;
        fill(&transaction, batch, last.revision, oldest).map_err(unavailable)?;
        transaction.commit().map_err(|error| self.break_off(&error))?;
        // Before the writes are acknowledged.
        if let Some(last_revision) = &mut self.last_revision {
            last_revision.note(last.revision);
        }
        Ok(())
    }

    fn compact(&mut self, revision: u64) -> Result<(), Error> {
        {
            let state = self.cache.state();
            let (oldest, current) = (state.history.oldest(), state.revision);
            if revision > current {
                return Err(Error::FutureRevision { asked: revision, current });
            }
            if revision <= oldest {
                return Err(Error::TooOld { asked: revision, oldest });
            }
        }
        self.check_whole()?;
        let transaction = self.database.begin_write().map_err(unavailable)?;
        forget(&transaction, revision).map_err(unavailable)?;
        transaction.commit().map_err(|error| self.break_off(&error))?;
        self.cache.forget(revision);
        Ok(())
    }

    fn check_whole(&self) -> Result<(), Error> {
        match &self.broken {
            None => Ok(()),
            Some(problem) => Err(Error::Unavailable(format!("an earlier write failed ({problem}); open it again"))),
        }
    }

    fn break_off(&mut self, error: &redb::CommitError) -> Error {
        tracing::error!(%error, "a write to the store failed; the store accepts no more writes until it is opened again");
        self.broken = Some(error.to_string());
        self.cache.set_broken();
        Error::Unknown(error.to_string())
    }
}

// === impl Batch ===

impl Batch {
    fn add(&mut self, command: WriteCommand, cache: &Cache, next_revision: &mut u64) {
        let key = (command.kind, command.name.clone());
        let current = match self.touched.get(&key) {
            Some(touched) => touched.clone(),
            None => cache.get(command.kind, &command.name),
        };
        let decision = command.decide(current.as_ref(), *next_revision);
        if let Ok(write) = &decision {
            *next_revision += 1;
            self.touched.insert(key, write.object.clone());
            self.previous.push(current);
            self.writes.push(write.clone());
        }
        self.replies.push(Reply { to: command.reply, result: decision });
    }

    /// First everybody can see the writes, and then their writers get a reply.
    fn publish(self, cache: &Cache) {
        if let Some(last) = self.writes.last() {
            let revision = last.revision;
            cache.apply(self.writes, revision);
        }
        for Reply { to, result } in self.replies {
            let _ = to.send(result);
        }
    }

    /// A refusal may have been because of a write of the same batch, and is void with it.
    fn fail(self, error: &Error) {
        for Reply { to, .. } in self.replies {
            let _ = to.send(Err(error.clone()));
        }
    }
}

fn fill(transaction: &redb::WriteTransaction, batch: &Batch, revision: u64, oldest: u64) -> Outcome<()> {
    let mut objects = transaction.open_table(OBJECTS)?;
    let mut history = transaction.open_table(HISTORY)?;
    for (write, previous) in batch.writes.iter().zip(&batch.previous) {
        let key = (kind_number(write.kind), &*write.name);
        match &write.object {
            Some(object) => drop(objects.insert(key, row(object))?),
            None => drop(objects.remove(key)?),
        }
        history.insert(write.revision, (key.0, key.1, previous.as_deref().map(row)))?;
    }
    transaction.open_table(META)?.insert(META_REVISION, revision)?;
    drop(history);
    forget(transaction, oldest)
}

/// Removes the history up to a revision.
fn forget(transaction: &redb::WriteTransaction, revision: u64) -> Outcome<()> {
    let mut history = transaction.open_table(HISTORY)?;
    let first = history.first()?.map(|(revision, _)| revision.value());
    for old in first.into_iter().flat_map(|first| first..=revision) {
        history.remove(old)?;
    }
    Ok(())
}

fn row(object: &Object) -> Row<'_> {
    (object.revision, object.create_revision, &object.payload)
}

fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(error.to_string())
}
