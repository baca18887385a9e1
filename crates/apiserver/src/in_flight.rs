//! `InFlight`: limits how many bytes of responses may wait for their clients, on one connection and on all together.
//!
//! A response takes room before its objects are decoded. The room belongs to the bytes themselves, so that it is released
//! when the last byte has been written to the connection: every part of a body that is kept somewhere is counted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::failure::Failure;

/// The room of all connections. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    all: Arc<Semaphore>,
    all_max: u32,
    connection_max: u32,
}

/// The room of one connection, which is a part of the room of all. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionInFlight {
    connection: Arc<Semaphore>,
    /// One for each connection, see [`Turn`].
    turn: Arc<Semaphore>,
    in_flight: InFlight,
}

/// The room of one response.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) connection: ConnectionRoom,
    pub(crate) all: AllRoom,
}

/// The room that a response takes of its connection.
#[derive(Debug)]
pub(crate) struct ConnectionRoom(OwnedSemaphorePermit);

/// The room that a response takes of all connections.
#[derive(Debug)]
pub(crate) struct AllRoom(OwnedSemaphorePermit);

/// The right to encode an event of a watch before there is room for it. One watch of a connection has it at a time, so that
/// at most one event of each connection is not counted.
#[derive(Debug)]
pub(crate) struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// Bytes that are counted until the last reference to them is dropped.
struct CountedBytes<P> {
    bytes: Bytes,
    _permits: P,
}

/// The bytes that a permit of the semaphores stands for.
const UNIT_BYTES: usize = 1024;
/// How long a request waits for room before it is rejected.
const PATIENCE: Duration = Duration::from_secs(10);

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

// === impl InFlight ===

impl InFlight {
    pub(crate) fn new(all_bytes_max: usize, connection_bytes_max: usize) -> Self {
        let (all_max, connection_max) = (units(all_bytes_max).max(1), units(connection_bytes_max).max(1));
        Self { all: Arc::new(Semaphore::new(all_max as usize)), all_max, connection_max }
    }

    /// The room of a new connection.
    pub(crate) fn connection(&self) -> ConnectionInFlight {
        let connection = Arc::new(Semaphore::new(self.connection_max as usize));
        ConnectionInFlight { connection, turn: Arc::new(Semaphore::new(1)), in_flight: self.clone() }
    }

    /// How many bytes are taken.
    pub(crate) fn bytes(&self) -> usize {
        (self.all_max as usize).saturating_sub(self.all.available_permits()) * UNIT_BYTES
    }
}

// === impl ConnectionInFlight ===

impl ConnectionInFlight {
    /// Room for a response of so many bytes, as soon as there is some. A response that is larger than all the room waits
    /// until nothing else is in flight.
    pub(crate) async fn take(&self, bytes: usize) -> Result<Room, Failure> {
        match timeout(PATIENCE, self.wait(bytes)).await {
            Ok(Some(room)) => Ok(room),
            _ => Err(Failure::too_many(
                "too many bytes of responses wait to be read; read the responses that were asked for, or try again later",
            )),
        }
    }

    /// The same for as long as it takes. Never `None`: the semaphores are never closed.
    async fn wait(&self, bytes: usize) -> Option<Room> {
        let (of_connection, of_all) = self.units(bytes);
        let connection = Arc::clone(&self.connection).acquire_many_owned(of_connection).await.ok()?;
        let all = Arc::clone(&self.in_flight.all).acquire_many_owned(of_all).await.ok()?;
        Some(Room { connection: ConnectionRoom(connection), all: AllRoom(all) })
    }

    fn units(&self, bytes: usize) -> (u32, u32) {
        let InFlight { all_max, connection_max, .. } = self.in_flight;
        (units(bytes).min(connection_max), units(bytes).min(all_max))
    }

    /// The turn, if it is free.
    pub(crate) fn try_turn(&self) -> Option<Turn> {
        Arc::clone(&self.turn).try_acquire_owned().ok().map(|permit| Turn { _permit: permit })
    }

    /// The turn, as soon as it is free.
    pub(crate) async fn turn(self) -> Option<Turn> {
        self.turn.acquire_owned().await.ok().map(|permit| Turn { _permit: permit })
    }

    /// The event of a watch with the room that it takes, or the event back if there is no room now.
    pub(crate) fn try_count(&self, event: Bytes) -> Result<Bytes, Bytes> {
        let (of_connection, of_all) = self.units(event.len());
        let connection = Arc::clone(&self.connection).try_acquire_many_owned(of_connection);
        let Ok(connection) = connection else { return Err(event) };
        let Ok(all) = Arc::clone(&self.in_flight.all).try_acquire_many_owned(of_all) else { return Err(event) };
        Ok(Bytes::from_owner(CountedBytes { bytes: event, _permits: (connection, all) }))
    }

    /// The same, as soon as there is room.
    pub(crate) async fn count(self, event: Bytes) -> Bytes {
        let room = self.wait(event.len()).await;
        Bytes::from_owner(CountedBytes { bytes: event, _permits: room })
    }
}

// === impl ConnectionRoom ===

impl ConnectionRoom {
    /// Gives back what a response of so many bytes does not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        shrink(&mut self.0, bytes);
    }

    /// The next part of a body: its bytes, with their share of the room.
    pub(crate) fn count(&mut self, part: Bytes, is_last: bool) -> Bytes {
        let share = if is_last { self.0.num_permits() } else { self.0.num_permits().min(part.len() / UNIT_BYTES) };
        match self.0.split(share) {
            Some(permit) => Bytes::from_owner(CountedBytes { bytes: part, _permits: permit }),
            None => part,
        }
    }
}

// === impl AllRoom ===

impl AllRoom {
    /// Gives back what a response of so many bytes does not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        shrink(&mut self.0, bytes);
    }

    /// These bytes, with the room that they take.
    pub(crate) fn count(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _permits: self.0 })
    }
}

fn shrink(permit: &mut OwnedSemaphorePermit, bytes: usize) {
    let excess = permit.num_permits().saturating_sub(units(bytes) as usize);
    drop(permit.split(excess));
}

// === impl CountedBytes ===

impl<P> AsRef<[u8]> for CountedBytes<P> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    #[tokio::test(start_paused = true)]
    async fn parts_of_a_body_are_counted_until_they_are_dropped() {
        let in_flight = InFlight::new(100 * KIB, 10 * KIB);
        let connection = in_flight.connection();
        let Room { connection: mut room, all } = connection.take(8 * KIB).await.unwrap();
        let first = room.count(Bytes::from(vec![0; 6 * KIB]), false);
        let last = room.count(Bytes::from(vec![0; 2 * KIB]), true);
        drop(room);
        assert_eq!((connection.connection.available_permits(), in_flight.bytes()), (2, 8 * KIB));
        drop(first);
        assert_eq!(connection.connection.available_permits(), 8);
        drop((last, all));
        assert_eq!((connection.connection.available_permits(), in_flight.bytes()), (10, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_room_is_told_to_come_back() {
        let in_flight = InFlight::new(100 * KIB, 10 * KIB);
        let connection = in_flight.connection();
        // Larger than all the room of the connection.
        let large = connection.take(20 * KIB).await.unwrap();
        let failure = connection.take(1).await.unwrap_err();
        assert_eq!((failure.status.as_u16(), failure.details.unwrap().retry_after_seconds), (429, Some(1)));
        // Other connections have their own.
        in_flight.connection().take(10 * KIB).await.unwrap();
        let waiting = tokio::spawn({
            let connection = connection.clone();
            async move { connection.take(1).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(large);
        assert!(waiting.await.unwrap());
    }
}
