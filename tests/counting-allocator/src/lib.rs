//! An allocator that counts, for tests and benchmarks of what something costs in memory.
//!
//! A test makes it the allocator of its process:
//!
//! ```
//! use evenkeel_counting_allocator::{Counting, allocations};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! assert_eq!(allocations(|| drop(Box::new(7))), 1);
//! assert_eq!(allocations(|| ()), 0);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// The system's allocator, with counts.
#[derive(Debug, Clone, Copy)]
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Whether all threads together are counted, which slows them down.
static COUNTS_PROCESS: AtomicBool = AtomicBool::new(false);
static PROCESS_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static PROCESS_BYTES: AtomicI64 = AtomicI64::new(0);

/// How often this thread asks for memory while the work is done.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// How many bytes this thread has asked for and not given back. Only differences mean something.
pub fn bytes() -> i64 {
    BYTES.get()
}

/// Runs something, and says how often all threads allocated meanwhile, and how many bytes more they hold at the end. One
/// call at a time.
pub fn counted<T>(run: impl FnOnce() -> T) -> (T, u64, i64) {
    PROCESS_ALLOCATIONS.store(0, Ordering::SeqCst);
    PROCESS_BYTES.store(0, Ordering::SeqCst);
    COUNTS_PROCESS.store(true, Ordering::SeqCst);
    let value = run();
    COUNTS_PROCESS.store(false, Ordering::SeqCst);
    (value, PROCESS_ALLOCATIONS.load(Ordering::SeqCst), PROCESS_BYTES.load(Ordering::SeqCst))
}

fn count(allocations: u64, bytes: i64) {
    // The last allocations of a thread come when its counters are gone already.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
    if COUNTS_PROCESS.load(Ordering::Relaxed) {
        PROCESS_ALLOCATIONS.fetch_add(allocations, Ordering::Relaxed);
        PROCESS_BYTES.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; every call goes on to the system's")]
// SAFETY: every call is passed on unchanged.
unsafe impl GlobalAlloc for Counting {
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
