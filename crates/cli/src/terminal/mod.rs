//! Output of all tools for people: colour, tables, numbers, progress, and the width of the terminal.

mod color;
mod number;
mod output_format;
mod print;
mod printable;
pub(crate) mod status_line;
mod table;
mod width;

pub(crate) use color::{ColorChoice, Paint, Shade};
pub(crate) use number::{clock, milliseconds, thousands};
pub(crate) use output_format::OutputFormat;
pub(crate) use print::{Reader, pretty_json, print, written};
pub(crate) use printable::{is_printable, printable, printable_json};
pub(crate) use status_line::StatusLine;
pub(crate) use table::{Column, Table};
pub(crate) use width::{taken, text_width, width};
