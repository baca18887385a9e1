//! Opening a file: a new one is made whole before it gets its name, and an old one is looked at before it is changed.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError, StorageBackend, StorageError, TableError};

use crate::Error;
use crate::cache::{Cache, HistoryLimits};

use super::caught_panic::caught;
use super::format::{FIRST_REVISION, FORMAT, HISTORY, META, META_FORMAT, META_REVISION, OBJECTS};
use super::last_revision::{self, LastRevision};
use super::load::load;
use super::migrate::{STEPS, migrate};
use super::overlay::Overlay;
use super::shared_file::SharedFile;
use super::synced_length::SyncedLength;
use super::{Outcome, is_of_the_disk};

/// The first bytes of a file of redb.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// All objects are in our own cache, so that redb's need not be large.
const REDB_CACHE_BYTES: usize = 4 * 1024 * 1024;

/// Why the contents of a backend cannot be used.
enum UnusableFile {
    Foreign(String),
    Damaged(String),
    NewerFormat(u32),
}

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) file: StoreFile,
    /// The database for writes, or why the disk takes no writes now.
    pub(crate) database: Result<Database, String>,
    /// The contents.
    pub(crate) cache: Cache,
    pub(crate) last_revision: Option<LastRevision>,
}

/// The file of a store, which stays open and locked.
#[derive(Debug)]
pub(crate) struct StoreFile {
    /// For messages.
    path: PathBuf,
    file: SharedFile,
    limits: HistoryLimits,
}

/// Opens the file, which is made if it is not there.
pub(crate) fn open_file(path: &Path, limits: HistoryLimits) -> Result<Opened, Error> {
    if !path.try_exists().map_err(|error| file_error("look for", path, &error))? {
        create_file(path)?;
    }
    // The file is first opened without changing it, and for writing only if all is well.
    let file = StoreFile { path: path.to_owned(), file: lock(path)?, limits };
    let (format, cache) = inspect(path, file.file.clone(), limits)?;
    let revision = cache.freshness().revision;
    check_last_revision(path, revision)?;
    let database = match file.open() {
        Ok(database) => {
            migrate(&database, format, STEPS).map_err(|error| file_error("migrate", path, &error))?;
            Ok(database)
        }
        // The content of the file is known, and can be read until the disk takes writes.
        Err(DatabaseError::Storage(StorageError::Io(error))) if format == FORMAT && is_of_the_disk(&error) => {
            Err(error.to_string())
        }
        Err(DatabaseError::Storage(StorageError::Io(error))) => return Err(file_error("open", path, &error)),
        Err(error) => return Err(damaged(path, error.to_string())),
    };
    let last_revision = LastRevision::open(path, revision)
        .map_err(|error| file_error("write", &last_revision::record_path(path), &error))?;
    Ok(Opened { file, database, cache, last_revision: Some(last_revision) })
}

/// Fails if the file ends before what was acknowledged.
fn check_last_revision(path: &Path, found: u64) -> Result<(), Error> {
    let record = last_revision::record_path(path);
    match last_revision::noted(path).map_err(|error| file_error("read", &record, &error))? {
        Some(acknowledged) if acknowledged > found => {
            Err(Error::LostWrites { path: path.to_owned(), found, acknowledged, record })
        }
        _ => Ok(()),
    }
}

/// A store on a backend that holds nothing yet.
pub(crate) fn open_new(backend: impl StorageBackend, limits: HistoryLimits) -> Outcome<Opened> {
    let file = StoreFile { path: PathBuf::from("the store in memory"), file: SharedFile::new(backend), limits };
    let database = file.open()?;
    initialize(&database)?;
    let cache = load(&database, limits)?;
    Ok(Opened { file, database: Ok(database), cache, last_revision: None })
}

/// A store on a backend that holds one.
#[cfg(test)]
pub(crate) fn open_again(backend: impl StorageBackend, limits: HistoryLimits) -> Outcome<Opened> {
    let file = StoreFile { path: PathBuf::from("the store of a test"), file: SharedFile::new(backend), limits };
    let database = file.open()?;
    let cache = load(&database, limits)?;
    Ok(Opened { file, database: Ok(database), cache, last_revision: None })
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    // The newest format of redb's files, which all its later versions read.
    builder.set_cache_size(REDB_CACHE_BYTES).create_with_file_format_v3(true);
    builder
}

fn initialize(database: &Database) -> Outcome<()> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(META_FORMAT, u64::from(FORMAT))?;
        meta.insert(META_REVISION, FIRST_REVISION)?;
        transaction.open_table(OBJECTS)?;
        transaction.open_table(HISTORY)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Makes a file under another name and renames it when it is complete, so that a crash never leaves an incomplete store.
fn create_file(path: &Path) -> Result<(), Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".creating-{:016x}", RandomState::new().build_hasher().finish()));
    let draft = PathBuf::from(name);
    let cannot = |error: &dyn std::fmt::Display| file_error("create", path, error);
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).open(&draft).map_err(|error| cannot(&error))?;
    let made = FileBackend::new(file)
        .and_then(|backend| builder().create_with_backend(SyncedLength(backend)))
        .map_err(Into::into)
        .and_then(|database| initialize(&database))
        .map_err(|error| cannot(&error))
        // A link, not a rename: it fails if another process was faster.
        .and_then(|()| match fs::hard_link(&draft, path) {
            Ok(()) => last_revision::forget(path).map_err(|error| cannot(&error)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(cannot(&error)),
        });
    fs::remove_file(&draft).map_err(|error| file_error("remove", &draft, &error))?;
    made?;
    sync_folder(path).map_err(|error| cannot(&error))
}

/// Makes the name of a file survive a loss of power.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn lock(path: &Path) -> Result<SharedFile, Error> {
    // Opening something else than a file might wait, and reading from it too.
    evenkeel_files::open(path).map_err(|error| file_error("open", path, &error))?;
    let file =
        OpenOptions::new().read(true).write(true).open(path).map_err(|error| file_error("open", path, &error))?;
    FileBackend::new(file).map(SharedFile::new).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse { path: path.to_owned() },
        other => file_error("lock", path, &other),
    })
}

/// Reads the whole file, repairs it if the process that had it was killed, and checks it, all without a write.
fn inspect(path: &Path, backend: SharedFile, limits: HistoryLimits) -> Result<(u32, Cache), Error> {
    let cannot = |error: io::Error| file_error("read", path, &error);
    let len = backend.len().map_err(cannot)?;
    let magic_len = MAGIC.len().min(usize::try_from(len).unwrap_or(usize::MAX));
    if backend.read(0, magic_len).map_err(cannot)? != MAGIC {
        let problem = if len == 0 { "it is empty" } else { "it does not begin as one" };
        return Err(Error::Foreign { path: path.to_owned(), problem: problem.to_owned() });
    }
    let overlay = Overlay::new(backend).map_err(cannot)?;
    // redb asserts what it expects of a file, so that one that was cut off ends in a panic.
    let found = caught(|| look(overlay, limits))
        .unwrap_or_else(|message| Err(UnusableFile::Damaged(format!("its parts do not fit together: {message}"))));
    found.map_err(|fault| match fault {
        UnusableFile::Foreign(problem) => Error::Foreign { path: path.to_owned(), problem },
        UnusableFile::Damaged(problem) => damaged(path, problem),
        UnusableFile::NewerFormat(found) => Error::NewerFormat { path: path.to_owned(), found, known: FORMAT },
    })
}

/// The format that was found, and what is in the file once it is in the present one.
fn look(backend: impl StorageBackend, limits: HistoryLimits) -> Result<(u32, Cache), UnusableFile> {
    let mut database =
        builder().create_with_backend(backend).map_err(|error| UnusableFile::Damaged(error.to_string()))?;
    match database.check_integrity() {
        Ok(true) => {}
        Ok(false) => return Err(UnusableFile::Damaged("its checksums do not match".to_owned())),
        Err(error) => return Err(UnusableFile::Damaged(error.to_string())),
    }
    let format = format_of(&database)?;
    migrate(&database, format, STEPS).map_err(|error| UnusableFile::Damaged(error.to_string()))?;
    let cache = load(&database, limits).map_err(|error| UnusableFile::Damaged(error.to_string()))?;
    Ok((format, cache))
}

fn format_of(database: &Database) -> Result<u32, UnusableFile> {
    let broken = |error: redb::Error| UnusableFile::Damaged(error.to_string());
    let transaction = database.begin_read().map_err(|error| broken(error.into()))?;
    let meta = transaction.open_table(META).map_err(|error| match error {
        TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. } => {
            UnusableFile::Foreign("it is a database of another program".to_owned())
        }
        other => broken(other.into()),
    })?;
    let format = meta.get(META_FORMAT).map_err(|error| broken(error.into()))?.map_or(0, |format| format.value());
    match u32::try_from(format) {
        Ok(0) => Err(UnusableFile::Damaged("its format is missing".to_owned())),
        Ok(format) if format <= FORMAT => Ok(format),
        Ok(newer) => Err(UnusableFile::NewerFormat(newer)),
        Err(_) => Err(UnusableFile::Damaged(format!("its format is {format}"))),
    }
}

// === impl StoreFile ===

impl StoreFile {
    /// The contents of the file, which is not changed. Unlike at the first inspection, the format is the present one.
    pub(crate) fn look(&self) -> Result<Cache, Error> {
        self.file.restore_durability().map_err(|error| file_error("write", &self.path, &error))?;
        let (_, cache) = inspect(&self.path, self.file.clone(), self.limits)?;
        Ok(cache)
    }

    /// Opens the database for writing. Its contents should have been inspected before.
    pub(crate) fn open(&self) -> Result<Database, DatabaseError> {
        builder().create_with_backend(SyncedLength(self.file.clone()))
    }
}

fn damaged(path: &Path, problem: String) -> Error {
    Error::Damaged { path: path.to_owned(), problem }
}

fn file_error(action: &'static str, path: &Path, problem: &dyn std::fmt::Display) -> Error {
    Error::File { action, path: path.to_owned(), problem: problem.to_string() }
}
