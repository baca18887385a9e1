//! `caught`: runs redb, whose panics say that a file is not what it should be. Their message becomes part of an error of ours, and
//! is not printed; panics of everything else are printed as ever.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is in [`caught`].
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// The message of the last panic that was caught in this thread.
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOKED: Once = Once::new();

/// Ends what [`caught`] has begun, whatever happens.
struct Catching {
    was_caught: bool,
}

/// Does something that may panic; the message of the panic, and where it was, if it does.
///
/// redb runs in the thread of its caller. So a hook that looks at the thread tells its panics from all others, which go to the hook
/// that was there before. If somebody exchanges the hook later, the message is printed as well.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOKED.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| if IS_CAUGHT.get() { keep(panic) } else { others(panic) }));
    });
    let catching = Catching { was_caught: IS_CAUGHT.replace(true) };
    let done = catch_unwind(AssertUnwindSafe(work));
    drop(catching);
    done.map_err(|_| MESSAGE.take().unwrap_or_else(|| "no message".to_owned()))
}

fn keep(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.and_then(|text| text.lines().next()).unwrap_or("no message").to_owned();
    let place =
        panic.location().map_or_else(String::new, |place| format!(" ({}:{})", file_name(place.file()), place.line()));
    MESSAGE.set(Some(message + &place));
}

/// The name of a file, without the folders of the machine that it was built on.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

// === impl Catching ===

impl Drop for Catching {
    fn drop(&mut self) {
        IS_CAUGHT.set(self.was_caught);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_panic_is_told_once() {
        assert_eq!(caught(|| 7), Ok(7));
        let message = caught(|| assert_eq!(1 + 1, 3, "page 7 is cut off")).unwrap_err();
        assert!(message.contains("page 7 is cut off (caught_panic.rs:"), "{message}");
        let nested = caught(|| -> u8 {
            assert!(caught(|| panic!("inside")).unwrap_err().starts_with("inside"));
            panic!("outside")
        });
        assert!(nested.unwrap_err().starts_with("outside"));
        assert!(!IS_CAUGHT.get(), "what panics from now on is printed");
        assert_eq!(caught(|| 7), Ok(7));
    }
}
