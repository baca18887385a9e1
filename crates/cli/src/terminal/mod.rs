//! What all tools print for people: colour, hyperlinks, tables, numbers, and the width of the terminal.

mod color;
mod number;
mod table;
mod width;

pub(crate) use color::{ColorChoice, Paint, Shade};
pub(crate) use number::{milliseconds, thousands};
pub(crate) use table::{Column, Table};
pub(crate) use width::width;
