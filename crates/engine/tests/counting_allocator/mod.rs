//! An allocator that counts what the thread that asks has allocated.

#![allow(dead_code, reason = "some tests count allocations only")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often memory was asked for while the work was done.
pub(crate) fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// How many bytes are taken now. Only differences mean something.
pub(crate) fn bytes() -> i64 {
    BYTES.get()
}

fn count(allocations: u64, bytes: i64) {
    // The last allocations of a thread come when its counters are already gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[expect(
    unsafe_code,
    reason = "an allocator that counts cannot be written without; every call goes on to the system's"
)]
// SAFETY: everything is handed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, size(layout.size()));
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -size(layout.size()));
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, size(new_size) - size(layout.size()));
        // SAFETY: as promised to this function.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
