//! The tests of rings. They are a module of the library alone: the test of hand-overs compiles `rings` with the locks of shuttle.

use crate::control::rings::{RingLimits, Rings};

#[test]
fn writers_that_are_gone_make_room_for_others() {
    let rings = Rings::<2>::new(RingLimits { records: 64, long: 2, all: 2 });
    let (mut cursors, mut read) = (Vec::new(), Vec::new());
    for number in 0..5 {
        let (one, other) = (rings.add().unwrap(), rings.add().unwrap());
        assert!(rings.add().is_none(), "there are two writers");
        one.push([number, 1]);
        other.push([number, 2]);
        if number % 2 == 0 {
            assert_eq!(rings.read(&mut cursors, &mut read), 0);
        }
    }
    // Nothing of those that are gone is lost.
    read.sort_unstable();
    let all: Vec<[u64; 2]> = (0..5).flat_map(|number| [[number, 1], [number, 2]]).collect();
    assert_eq!(read, all);
}
