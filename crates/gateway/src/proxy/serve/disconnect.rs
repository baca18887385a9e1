//! Whether an HTTP/1.1 client still waits for its response.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::proxy::request_body::ClientWire;
use crate::timeouts::CoarseTimer;

/// How far a client may run ahead with its next requests.
const AHEAD_MAX: usize = 16 * 1024;
/// How often a client that has run so far ahead is looked at: nothing of what it sends is read meanwhile.
const HANGUP_CHECK_PERIOD: Duration = Duration::from_millis(250);
/// A client that closes its sending half this soon after its request has nothing more to say, and waits for the response. A
/// client that closes later has given up, and so has one whose requests end with their clients: a half-closed connection cannot
/// be told from a closed one in any other way.
const HALF_CLOSE_MAX: Duration = Duration::from_millis(100);

/// Whether the client has disconnected. Bytes that it sends meanwhile are kept, up to a limit.
pub(super) fn has_left(client: &mut ClientWire, timer: &Rc<CoarseTimer>, context: &mut Context<'_>) -> bool {
    while !client.is_half_closed {
        if client.wire.input.len() >= AHEAD_MAX {
            return has_hung_up(client, timer, context);
        }
        let Poll::Ready(read) = client.wire.poll_fill(context) else { return false };
        client.wake_body_reader();
        match read {
            Ok(0) if client.may_half_close && is_soon(client, timer) => client.is_half_closed = true,
            Ok(0) | Err(_) => return true,
            Ok(_) => {}
        }
    }
    false
}

/// Whether a client has left of which nothing more is read. The system is asked from time to time.
fn has_hung_up(client: &mut ClientWire, timer: &Rc<CoarseTimer>, context: &Context<'_>) -> bool {
    let check = client.hangup_check.get_or_insert_with(|| Box::new(timer.timeout(HANGUP_CHECK_PERIOD)));
    if check.poll(context).is_pending() {
        return false;
    }
    check.set(HANGUP_CHECK_PERIOD);
    // The timeout has just been set: this only has the task woken.
    let _ = check.poll(context);
    client.wire.stream.has_hung_up()
}

fn is_soon(client: &ClientWire, timer: &CoarseTimer) -> bool {
    timer.now().saturating_sub(client.asked_at) <= CoarseTimer::count(HALF_CLOSE_MAX)
}
