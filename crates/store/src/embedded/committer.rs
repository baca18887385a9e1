//! The thread that writes: it takes all commands that wait, writes them in one transaction with one sync, updates the
//! cache, and only then replies.

use std::sync::Arc;
use std::time::Instant;

use redb::{Database, ReadableTable};
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use crate::cache::{Cache, Write};
use crate::{Error, Object};

use super::Outcome;
use super::caught_panic::caught;
use super::command::{Command, WriteCommand};
use super::format::{HISTORY, META, META_REVISION, OBJECTS, Row, kind_number};
use super::last_revision::LastRevision;
use super::open::StoreFile;
use super::recovery::{Fate, Touched, WriteFault, fate};

/// The highest number of writes in a transaction, so that the first does not wait for too many others.
const BATCH_MAX: usize = 512;

/// After this many panics, the file is not opened again.
const PANICS_MAX: u32 = 3;

/// Owns the database. Nobody else writes to it.
pub(crate) struct Committer {
    file: StoreFile,
    /// `None` if the file has to be opened again.
    database: Option<Database>,
    cache: Arc<Cache>,
    commands: mpsc::Receiver<Command>,
    /// A second record of what was acknowledged; a store in memory has none.
    last_revision: Option<LastRevision>,
    /// Set when a write has failed, and until one succeeds. Writes are refused meanwhile.
    fault: Option<WriteFault>,
    /// The writes of a batch of which it is not known whether they are in the file.
    undecided: Option<Batch>,
    /// How often redb has panicked. A database that panicked stays open for ever, so that the number has a limit.
    panics: u32,
}

/// The writes of a batch, and the replies to their writers.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    /// Each object before its write.
    previous: Vec<Option<Arc<Object>>>,
    /// The objects that the batch has written so far.
    touched: Touched,
    replies: Vec<PendingReply>,
}

/// A result that is sent to its writer after the commit.
struct PendingReply {
    to: oneshot::Sender<Result<Write, Error>>,
    result: Result<Write, Error>,
}

/// The next action of the thread.
enum NextTask {
    Command(Command),
    Recover,
    End,
}

// === impl Committer ===

impl Committer {
    pub(crate) fn new(
        file: StoreFile,
        database: Result<Database, String>,
        cache: Arc<Cache>,
        commands: mpsc::Receiver<Command>,
        last_revision: Option<LastRevision>,
    ) -> Self {
        let (fault, undecided, panics) = (None, None, 0);
        match database {
            Ok(database) => {
                Self { file, database: Some(database), cache, commands, last_revision, fault, undecided, panics }
            }
            Err(problem) => {
                let mut this = Self { file, database: None, cache, commands, last_revision, fault, undecided, panics };
                this.break_off(problem, 0);
                this
            }
        }
    }

    /// Works until it is closed, or until all senders are gone.
    pub(crate) fn run(mut self) {
        let mut carried = None;
        loop {
            let command = match carried.take().map_or_else(|| self.next(), NextTask::Command) {
                NextTask::Command(command) => command,
                NextTask::Recover => {
                    self.recover();
                    continue;
                }
                NextTask::End => return,
            };
            match command {
                Command::Write(first) => carried = self.write(first),
                Command::Compact { revision, reply } => {
                    let _ = reply.send(self.compact(revision));
                }
                Command::Close { reply } => {
                    self.commands.close();
                    // The file is released before the reply: the caller may open it again.
                    drop(self.database);
                    drop(self.file);
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

    /// Waits for a command, and after a fault no longer than until the next attempt to recover.
    fn next(&mut self) -> NextTask {
        let command = match self.fault.as_ref().map(WriteFault::retry_at) {
            None => self.commands.blocking_recv(),
            Some(retry_at) if retry_at <= Instant::now() => return NextTask::Recover,
            Some(retry_at) => {
                match runtime::Builder::new_current_thread().enable_time().build() {
                    Ok(timer) => {
                        let received =
                            timer.block_on(async { timeout_at(retry_at.into(), self.commands.recv()).await });
                        let Ok(command) = received else { return NextTask::Recover };
                        command
                    }
                    // Without a timer, the next command triggers the next attempt.
                    Err(_) => self.commands.blocking_recv(),
                }
            }
        };
        command.map_or(NextTask::End, NextTask::Command)
    }

    /// Writes the first command and all that wait behind it. Returns the command that ended the batch, if it is not a write.
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
        if let Some(fault) = self.fault.as_ref().filter(|_| !batch.writes.is_empty()) {
            batch.fail(&fault.refusal());
            return carried;
        }
        match self.commit(&batch) {
            Ok(()) => batch.publish(&self.cache),
            Err(problem) => self.settle(batch, problem),
        }
        carried
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), String> {
        let Some(last) = batch.writes.last() else { return Ok(()) };
        let oldest = self.cache.state().history.oldest();
        self.transact(|transaction| fill(transaction, batch, last.revision, oldest))?;
        self.note(last.revision);
        Ok(())
    }

    /// Records a revision that is on the disk, before its writes are acknowledged.
    fn note(&mut self, revision: u64) {
        if let Some(last_revision) = &mut self.last_revision {
            last_revision.note(revision);
        }
    }

    /// Runs a transaction. Returns what went wrong; then the database has to be opened again.
    fn transact(&mut self, fill: impl FnOnce(&redb::WriteTransaction) -> Outcome<()>) -> Result<(), String> {
        self.with_database(|database| {
            let transaction = database.begin_write()?;
            fill(&transaction)?;
            transaction.commit()?;
            Ok(())
        })
    }

    /// Writes to the database, and closes it if that fails.
    fn with_database(&mut self, work: impl FnOnce(&Database) -> Outcome<()>) -> Result<(), String> {
        let Some(database) = self.database.take() else { return Err("it is not open".to_owned()) };
        // redb asserts what it expects, and a panic must not end the thread.
        let problem = match caught(|| work(&database)) {
            Ok(Ok(())) => {
                self.database = Some(database);
                return Ok(());
            }
            // After a failure the database takes no more writes, so that closing it changes nothing.
            Ok(Err(error)) => {
                // Dropping a failed database may panic, and its errors do not matter any more.
                drop(caught(move || drop(database)));
                error.to_string()
            }
            // Closing it would write a state that nobody knows.
            Err(message) => {
                std::mem::forget(database);
                self.panics += 1;
                panicked(&message)
            }
        };
        Err(problem)
    }

    /// Finds out what became of a batch whose write failed, and tells those who wait for it. Writes are refused from now
    /// on, until one succeeds.
    fn settle(&mut self, batch: Batch, problem: String) {
        self.break_off(problem, batch.bytes());
        self.undecided = Some(batch);
        if let Err(error) = self.reopen()
            && let (Some(batch), Some(fault)) = (&mut self.undecided, &self.fault)
        {
            tracing::warn!(error, "it is unknown whether the write took place");
            batch.reply_all(&Error::Unknown(fault.problem().to_owned()));
        }
    }

    /// Opens the file again, if it holds what it should. Then it is known what became of the batch that was not decided.
    fn reopen(&mut self) -> Result<(), String> {
        if self.database.is_some() {
            return Ok(());
        }
        if self.panics >= PANICS_MAX {
            return Err(format!("redb panicked {PANICS_MAX} times; the log has the messages; restart the server"));
        }
        let found = guarded(|| Ok(self.file.look()?))?;
        let fate = fate(&found, &self.cache, self.undecided.as_ref().and_then(Batch::result))?;
        // A part of it was never written, so that it stays so, even if the file cannot be opened yet.
        if fate == Fate::NotWritten
            && let Some(batch) = self.undecided.take()
        {
            batch.fail(&self.fault.as_ref().map_or(Error::Closed, WriteFault::refusal));
        }
        self.database = Some(guarded(|| Ok(self.file.open()?))?);
        if let Some(batch) = self.undecided.take() {
            if let Some((revision, _)) = batch.result() {
                self.note(revision);
            }
            batch.publish(&self.cache);
        }
        Ok(())
    }

    /// Tries to go on after a fault.
    fn recover(&mut self) {
        let reopened = self.reopen();
        let Some(mut fault) = self.fault.take() else { return };
        let probed = reopened.and_then(|()| self.with_database(|database| fault.probe(database)));
        match probed {
            Ok(()) => {
                tracing::info!("the store can be written again; all acknowledged writes are in it");
                self.cache.set_fault(None);
            }
            Err(problem) => {
                fault.failed_again(problem);
                self.cache.set_fault(Some(fault.problem().to_owned()));
                self.fault = Some(fault);
            }
        }
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
        if let Some(fault) = &self.fault {
            return Err(fault.refusal());
        }
        self.transact(|transaction| forget(transaction, revision)).map_err(|problem| {
            self.break_off(problem.clone(), 0);
            Error::Unknown(problem)
        })?;
        self.cache.forget(revision);
        Ok(())
    }

    /// Refuses writes from now on. So many bytes could not be written.
    fn break_off(&mut self, problem: String, bytes: usize) {
        tracing::error!(problem, "the store cannot be written; it refuses writes, and tries again by itself");
        self.cache.set_fault(Some(problem.clone()));
        self.fault = Some(WriteFault::new(problem, bytes));
    }
}

/// Calls redb, which asserts what it expects of a file. Returns what went wrong.
fn guarded<T>(work: impl FnOnce() -> Outcome<T>) -> Result<T, String> {
    match caught(work) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(message) => Err(panicked(&message)),
    }
}

fn panicked(message: &str) -> String {
    format!("redb panicked: {message}")
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
        self.replies.push(PendingReply { to: command.reply, result: decision });
    }

    /// Makes the writes visible to everybody, and then replies to their writers.
    fn publish(self, cache: &Cache) {
        if let Some(last) = self.writes.last() {
            let revision = last.revision;
            cache.apply(self.writes, revision);
        }
        for PendingReply { to, result } in self.replies {
            let _ = to.send(result);
        }
    }

    /// Tells everybody of the failure.
    fn fail(mut self, error: &Error) {
        self.reply_all(error);
    }

    /// A rejection may have been due to a write of the same batch, so that it fails with the batch.
    fn reply_all(&mut self, error: &Error) {
        for PendingReply { to, .. } in self.replies.drain(..) {
            let _ = to.send(Err(error.clone()));
        }
    }

    /// The revision after the batch, and what becomes of each object that it writes.
    fn result(&self) -> Option<(u64, &Touched)> {
        Some((self.writes.last()?.revision, &self.touched))
    }

    /// How many bytes it writes, roughly.
    fn bytes(&self) -> usize {
        let size = |object: &Option<Arc<Object>>| object.as_ref().map_or(0, |object| object.payload.len());
        let written: usize = self.writes.iter().map(|write| size(&write.object)).sum();
        written + self.previous.iter().map(size).sum::<usize>()
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
