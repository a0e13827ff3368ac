use super::segment::SEGMENT;
use super::*;
use crate::body::BodyError;
use http_body_util::BodyExt as _;

/// Room for this many segments of an attempt, and of all, beyond what an attempt has of its own.
fn memory(held: usize, by_all: usize) -> (Arc<Memory>, Bounds) {
    let bounds = Bounds {
        held_bytes: held,
        held_by_all: by_all,
        room_time: Duration::from_secs(5),
        ..Bounds::default()
    };
    (Memory::new(&bounds), bounds)
}

const LARGE: usize = 8 << 20;

#[tokio::test(start_paused = true)]
async fn whoever_finds_no_room_waits_for_it_and_gives_up_after_a_while() {
    let (memory, bounds) = memory(LARGE, 2 * LARGE);
    let share = memory.share(&bounds);
    let held = share.requests.reserve(LARGE).await.expect("all of it");
    let began = tokio::time::Instant::now();
    assert!(share.requests.reserve(LARGE).await.is_err());
    assert_eq!(began.elapsed(), bounds.room_time);
    let (next, ()) = tokio::join!(share.requests.reserve(LARGE), async { drop(held) });
    assert!(next.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_attempt_leaves_room_for_others() {
    let (memory, bounds) = memory(LARGE, LARGE + LARGE / 2);
    let (flood, calm) = (memory.share(&bounds), memory.share(&bounds));
    let _all_it_may = flood.requests.reserve(LARGE).await.expect("all that it may have");
    let (waits, passes) =
        tokio::join!(flood.requests.reserve(LARGE), calm.requests.reserve(LARGE / 2 - (1 << 20)));
    assert!(waits.is_err() && passes.is_ok());
}

#[tokio::test(start_paused = true)]
async fn small_requests_pass_whatever_others_hold() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let (flood, calm) = (memory.share(&bounds), memory.share(&bounds));
    let _everything = flood.requests.reserve(LARGE).await.expect("everything");
    assert!(calm.requests.reserve(LARGE).await.is_err());
    let own: Vec<_> = futures(&calm, 1 << 20, 3).await;
    assert!(own.iter().all(Result::is_ok));
    assert!(calm.requests.reserve(1 << 20).await.is_err());
    drop(own);
    assert!(calm.requests.reserve(1 << 20).await.is_ok());
}

async fn futures(share: &Share, bytes: usize, count: usize) -> Vec<Result<Room, NoRoom>> {
    let mut rooms = Vec::new();
    for _ in 0..count {
        rooms.push(share.requests.reserve(bytes).await);
    }
    rooms
}

#[tokio::test]
async fn what_was_given_back_is_used_again_and_never_more_than_there_is() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let share = memory.share(&bounds);
    for _ in 0..20 {
        let mut room = share.requests.reserve(LARGE).await.expect("it was given back");
        let mut rope = Rope::default();
        rope.push(&vec![b'x'; LARGE], &mut room).expect("it was set aside");
        assert_eq!(rope.len(), LARGE);
    }
    let most = LARGE.div_ceil(SEGMENT) + 2;
    assert!(memory.buffers.unused() <= most, "{}", memory.buffers.unused());
}

#[tokio::test]
async fn a_rope_takes_no_more_than_was_set_aside() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let share = memory.share(&bounds);
    let mut room = share.requests.reserve(SEGMENT).await.expect("a little");
    let mut rope = Rope::default();
    assert!(rope.push(&vec![0; 10 * SEGMENT], &mut room).is_err());
    assert!(rope.len() <= 3 * SEGMENT);
}

#[tokio::test]
async fn a_rope_is_cut_anywhere_and_goes_on_there() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let share = memory.share(&bounds);
    for cut in [0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 3 * SEGMENT - 5] {
        let mut room = share.requests.reserve(4 * SEGMENT).await.expect("room");
        let mut rope = Rope::default();
        let bytes: Vec<u8> = (0..3 * SEGMENT).map(|at| (at % 251) as u8).collect();
        rope.push(&bytes, &mut room).expect("it was set aside");
        rope.truncate(cut, &mut room);
        assert_eq!(rope.len(), cut);
        rope.push(b"end", &mut room).expect("it was set aside");
        let whole = rope.segments().collect::<Vec<_>>().concat();
        assert_eq!(whole, [&bytes[..cut], b"end"].concat(), "cut at {cut}");
    }
}

#[tokio::test]
async fn what_is_sent_is_free_again_before_the_rest_is() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let share = memory.share(&bounds);
    let mut room = share.requests.reserve(4 * SEGMENT).await.expect("room");
    let mut rope = Rope::default();
    rope.push(&vec![b'x'; 4 * SEGMENT], &mut room).expect("it was set aside");
    drop(room);
    let mut body = rope.into_body(b"}".to_vec());
    let free = memory.buffers.unused();
    let first: Result<_, BodyError> = body.frame().await.expect("a first piece");
    assert_eq!(first.expect("it cannot fail").into_data().expect("data").len(), SEGMENT);
    assert_eq!(memory.buffers.unused(), free + 1);
    assert_eq!(body.collect().await.expect("it cannot fail").to_bytes().len(), 3 * SEGMENT + 1);
    assert_eq!(memory.buffers.unused(), free + 4);
}

#[tokio::test]
async fn a_request_of_unknown_length_gives_back_what_it_does_not_need() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let share = memory.share(&bounds);
    let mut first = share.requests.reserve(LARGE).await.expect("everything");
    assert!(share.requests.reserve_now(LARGE / 2).is_err());
    first.shrink(0);
    assert!(share.requests.reserve_now(LARGE / 2).is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_attempt_has_one_turn_at_a_time_and_another_has_the_other() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let (first, second) = (memory.share(&bounds), memory.share(&bounds));
    let _held = first.turn().await.expect("a turn");
    assert!(first.turn().await.is_err());
    assert!(second.turn().await.is_ok());
}

#[test]
fn answers_hold_what_there_is_and_give_it_back() {
    let (memory, bounds) = memory(LARGE, LARGE);
    let (first, second) = (memory.share(&bounds), memory.share(&bounds));
    let mut long = first.answer();
    assert!(long.covers(64 << 10) && long.covers(4 << 20) && long.covers(12 << 20));
    assert!(!long.covers(13 << 20), "one attempt has an end");
    assert!(!first.answer().covers(1 << 20), "it holds all that its attempt may");
    let mut other = second.answer();
    assert!(other.covers(8 << 20), "another attempt has its own");
    let mut third = memory.share(&bounds).answer();
    assert!(!third.covers(8 << 20), "and all have an end");
    assert!(third.covers(64 << 10), "a usual event is always read");
    long.release();
    assert!(third.covers(8 << 20));
}
