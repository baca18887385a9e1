//! Makes a static binary resolve names by its built-in services.
//!
//! A static glibc still loads the modules that the machine's `/etc/nsswitch.conf` names, such as `mdns4_minimal` or `resolve`, and
//! with them the machine's own glibc. If that has another version, the process crashes at the first name. `files` and `dns` are
//! built in.

use std::ffi::{CStr, c_char, c_int};

#[expect(unsafe_code, reason = "the standard library has no access to it")]
unsafe extern "C" {
    /// Declared in glibc's `nss.h`: looks up one database by these services, whatever `/etc/nsswitch.conf` says.
    fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
}

/// Databases that the standard library asks, and the services that are built in.
const BUILT_IN: [(&CStr, &CStr); 2] = [(c"hosts", c"files dns"), (c"passwd", c"files")];

/// Has names resolved without the machine's modules. To be called before there are other threads.
pub(crate) fn use_built_in_services() {
    for (database, services) in BUILT_IN {
        // SAFETY: both are texts that end with a zero and live as long as the process. The function writes to a table of glibc
        // that is read when names are resolved, and there is no other thread yet that could do so. It has no other requirements.
        #[expect(
            unsafe_code,
            reason = "see above; there is no Rust to run under Miri here, and `xtask dist` tests the effect"
        )]
        let _is_refused = unsafe { __nss_configure_lookup(database.as_ptr(), services.as_ptr()) };
    }
}
