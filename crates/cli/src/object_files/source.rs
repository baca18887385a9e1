//! Files, folders and standard input, read and unpacked.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Result;
use flate2::read::MultiGzDecoder;

use crate::exit::WrongUsage;

/// The mark that some editors write at the start of a text.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';
/// The name of standard input on the command line.
const STANDARD_INPUT: &str = "-";
/// How many files a folder may have. More of them are a mistake, such as naming the root of the file system.
const FILES_MAX: usize = 10_000;
/// How many bytes a file may have, unpacked.
const BYTES_MAX: u64 = 64 << 20;
/// The first two bytes of every gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file that was read.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Its path as it was given or found; `<stdin>` for standard input.
    pub(crate) name: String,
    /// Its path; none for standard input.
    pub(crate) path: Option<PathBuf>,
    /// Its bytes, unpacked.
    pub(crate) text: Vec<u8>,
    /// Whether it was packed.
    pub(crate) is_packed: bool,
    /// Whether it was named itself, and not found in a folder: then it has to hold something of use.
    pub(crate) is_named: bool,
}

/// Refuses to read standard input twice among the inputs of a command: the second reader would find nothing.
pub(crate) fn standard_input_once<'p>(inputs: impl IntoIterator<Item = &'p PathBuf>) -> Result<()> {
    if inputs.into_iter().filter(|path| path.as_os_str() == STANDARD_INPUT).count() > 1 {
        let fault = "`-` is given more than once, but standard input can be read only once; put the others into files";
        return Err(WrongUsage(fault.to_owned()).into());
    }
    Ok(())
}

// === impl SourceFile ===

impl SourceFile {
    /// Reads all files that the paths stand for.
    pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<Self>> {
        let mut sources = Vec::new();
        let mut faults = Vec::new();
        for path in paths {
            match Self::read_path(path) {
                Ok(read) => sources.extend(read),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(sources) } else { Err(WrongUsage(faults.join("\n")).into()) }
    }

    /// Reads one file, or standard input.
    pub(crate) fn read_one(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Err(WrongUsage(format!("{} is a directory; name a file", path.display())).into());
        }
        Self::read_named(path).map_err(|fault| WrongUsage(fault).into())
    }

    fn read_path(path: &Path) -> Result<Vec<Self>, String> {
        if !path.is_dir() {
            return Ok(vec![Self::read_named(path)?]);
        }
        let mut found = Vec::new();
        collect(path, &mut found)?;
        found.iter().map(|path| Self::open(path, false)).collect()
    }

    fn read_named(path: &Path) -> Result<Self, String> {
        if path.as_os_str() == STANDARD_INPUT {
            return Self::read("<stdin>".to_owned(), None, true, io::stdin().lock());
        }
        Self::open(path, true)
    }

    fn open(path: &Path, is_named: bool) -> Result<Self, String> {
        let name = path.display().to_string();
        let file = std::fs::File::open(path).map_err(|error| {
            format!("cannot read {name}: {error}; name a file or directory that exists and is readable")
        })?;
        Self::read(name, Some(path.to_owned()), is_named, file)
    }

    fn read(name: String, path: Option<PathBuf>, is_named: bool, mut input: impl Read) -> Result<Self, String> {
        let fault = |error: io::Error| format!("cannot read {name}: {error}");
        let mut start = Vec::new();
        input.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start).map_err(fault)?;
        let is_packed = start == GZIP_MAGIC;
        let whole = io::Cursor::new(start).chain(input);
        let mut text = Vec::new();
        let limit = BYTES_MAX + 1;
        let length = if is_packed {
            MultiGzDecoder::new(whole).take(limit).read_to_end(&mut text)
        } else {
            whole.take(limit).read_to_end(&mut text)
        };
        if length.map_err(fault)? as u64 > BYTES_MAX {
            return Err(format!("cannot read {name}: it has more than {} MB", BYTES_MAX >> 20));
        }
        Ok(Self { name, path, text, is_packed, is_named })
    }
}

/// The files of a folder and of the folders in it, in the order of their names. Names that begin with a dot are left out, and
/// so are links to folders, which may lead in circles.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let fault = |error: io::Error| format!("cannot read {}: {error}", folder.display());
    let mut entries: Vec<_> = std::fs::read_dir(folder).and_then(Iterator::collect).map_err(fault)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type().map_err(fault)?.is_dir() {
            collect(&path, found)?;
        } else if is_object_file(&path) && path.is_file() {
            found.push(path);
        }
        if found.len() > FILES_MAX {
            return Err(format!(
                "{}: there are more than {FILES_MAX} files; name a smaller directory",
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Whether the name ends in `.yaml`, `.yml` or `.json`, or in one of them and `.gz`.
fn is_object_file(path: &Path) -> bool {
    let unpacked = match path.extension() {
        Some(extension) if extension == "gz" => path.with_extension(""),
        _ => path.to_owned(),
    };
    unpacked.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}
