//! An allocator that counts what the current thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// The system's allocator, with a count for each thread. To count, a program makes it its own:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// use evenkeel_bars::memory::{CountingAllocator, allocations, bytes};
///
/// let before = bytes();
/// let mut kept = Vec::new();
/// assert_eq!(allocations(|| kept = std::hint::black_box(vec![0_u8; 10])), 1);
/// assert_eq!(bytes() - before, 10);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CountingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// How often the current thread asks for memory while it does some work.
///
/// # Panics
/// If [`CountingAllocator`] is not the program's allocator.
pub fn allocations(work: impl FnOnce()) -> u64 {
    assert_counts();
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// How many bytes the current thread has in use. Only differences mean something: memory may be freed by another thread.
///
/// # Panics
/// If [`CountingAllocator`] is not the program's allocator.
pub fn bytes() -> i64 {
    assert_counts();
    BYTES.get()
}

/// Whoever forgets the attribute would find that nothing ever allocates.
fn assert_counts() {
    let before = ALLOCATIONS.get();
    drop(black_box(Box::new(0_u8)));
    assert_ne!(ALLOCATIONS.get(), before, "`CountingAllocator` is not the `#[global_allocator]` of the program");
}

fn count(allocations: u64, bytes: i64) {
    // A thread still allocates when its counters are already gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; every call goes on to the system's")]
// SAFETY: every call is passed on as it is.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, size(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -size(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, size(new_size) - size(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
