//! `Manifest`: the objects of a file.
