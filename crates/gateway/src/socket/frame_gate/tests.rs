use super::*;
use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

const TEXT: u8 = 0x81;
/// The first frame of a text in several.
const BEGIN: u8 = 0x01;
const LAST: u8 = 0x80;
const PING: u8 = 0x89;

/// A masked client frame of this payload size.
fn frame_of(first: u8, size: usize) -> Vec<u8> {
    let mut bytes = vec![first];
    match size {
        0..126 => bytes.push(0x80 | size as u8),
        126..65_536 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(size as u16).to_be_bytes());
        }
        _ => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(size as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[1, 2, 3, 4]);
    bytes.resize(bytes.len() + size, b'x');
    bytes
}

fn frame(size: usize) -> Vec<u8> {
    frame_of(TEXT, size)
}

fn budget() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1 << 20))
}

fn overstep(error: &io::Error) -> Overstep {
    *error.get_ref().unwrap().downcast_ref().unwrap()
}

/// Reads until the end or an error; how many bytes passed.
async fn read_all(mut gate: FrameGate<&[u8]>, input: &[u8]) -> (usize, Option<Overstep>) {
    let mut seen = Vec::new();
    let error = gate.read_to_end(&mut seen).await.err();
    assert_eq!(seen, input[..seen.len()]);
    (seen.len(), error.as_ref().map(overstep))
}

fn admitted<S>(inner: S, largest: u32, budget: &Arc<Semaphore>) -> (FrameGate<S>, Latch) {
    let (gate, latch) = FrameGate::closed(inner);
    latch.admit(Allowance { largest, budget: Arc::clone(budget) });
    (gate, latch)
}

#[tokio::test]
async fn frames_of_strangers_pass_unchanged_up_to_the_limit() {
    for sizes in [&[0, 1, 125, 126, 127, 300][..], &[65_535], &[65_536]] {
        let input: Vec<u8> = sizes.iter().flat_map(|size| frame(*size)).collect();
        let (gate, _latch) = FrameGate::closed(&*input);
        assert_eq!(read_all(gate, &input).await, (input.len(), None), "{sizes:?}");
    }
}

#[tokio::test]
async fn a_bigger_frame_of_a_stranger_is_refused_at_its_header() {
    // The first two bytes of a header tell how long it is, the rest how long the frame is.
    for (sizes, passed) in [(&[65_537][..], 2), (&[40_000, 40_000], 8 + 40_000 + 2)] {
        let input: Vec<u8> = sizes.iter().flat_map(|size| frame(*size)).collect();
        let (gate, _latch) = FrameGate::closed(&*input);
        assert_eq!(read_all(gate, &input).await, (passed, Some(Overstep::TooBig(LIMIT))), "{sizes:?}");
    }
}

#[tokio::test]
async fn nothing_beyond_a_strangers_frame_is_read_until_it_is_admitted() {
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let (first, second) = (frame(5), frame(100_000));
    theirs.write_all(&first).await.unwrap();
    theirs.write_all(&second).await.unwrap();
    let (mut gate, latch) = FrameGate::closed(ours);
    let mut buf = vec![0; 1 << 20];
    let mut seen = 0;
    while seen < first.len() {
        seen += gate.read(&mut buf[seen..]).await.unwrap();
    }
    assert_eq!(seen, first.len());
    latch.admit(Allowance { largest: 100_000, budget: budget() });
    let mut rest = vec![0; second.len()];
    gate.read_exact(&mut rest).await.unwrap();
    assert_eq!(rest, second);
}

#[tokio::test]
async fn a_message_of_an_admitted_client_is_refused_where_it_grows_too_large() {
    let pieces = |count: usize| {
        let mut bytes = frame_of(BEGIN, 60_000);
        (0..count).for_each(|_| bytes.extend([frame_of(PING, 3), frame_of(0, 60_000)].concat()));
        [bytes, frame_of(LAST, 0), frame(60_000)].concat()
    };
    let budget = budget();
    for (input, expect) in [
        (frame(200_000), None),
        ([frame(90_000), frame(90_000), frame(90_000)].concat(), None),
        (pieces(2), None),
        (frame(200_001), Some(Overstep::TooBig(200_000))),
        (pieces(3), Some(Overstep::TooBig(200_000))),
    ] {
        let (gate, latch) = admitted(&*input, 200_000, &budget);
        let (passed, error) = read_all(gate, &input).await;
        assert_eq!(error, expect);
        assert!(error.is_some() || passed == input.len());
        drop(latch);
    }
}

#[tokio::test]
async fn large_messages_wait_for_the_memory_that_others_hold() {
    let budget = Arc::new(Semaphore::new(300_000));
    let (first, second) = (frame(200_000), frame(200_001));
    let (mut one, one_latch) = admitted(&*first, 250_000, &budget);
    let (two, two_latch) = admitted(&*second, 250_000, &budget);
    let mut seen = Vec::new();
    one.read_to_end(&mut seen).await.unwrap();
    let reading = read_all(two, &second);
    tokio::pin!(reading);
    assert!(reading.as_mut().now_or_never().is_none(), "the first holds too much");
    assert!(two_latch.take_held().is_none());
    assert_eq!(one_latch.take_held().unwrap().num_permits(), 200_000);
    assert_eq!(reading.await, (second.len(), None));
    assert_eq!(two_latch.take_held().unwrap().num_permits(), 200_001);
    assert_eq!(budget.available_permits(), 300_000);
}

#[tokio::test]
async fn a_message_in_pieces_takes_all_it_may_need_at_once_and_a_small_one_nothing() {
    let budget = budget();
    let input = [frame_of(BEGIN, 100_000), frame_of(0, 40_000), frame_of(LAST, 40_000)].concat();
    let (gate, latch) = admitted(&*input, 200_000, &budget);
    assert_eq!(read_all(gate, &input).await, (input.len(), None));
    assert_eq!(latch.take_held().unwrap().num_permits(), 200_000);

    let small = frame(SMALL as usize);
    let (gate, latch) = admitted(&*small, 200_000, &budget);
    assert_eq!(read_all(gate, &small).await, (small.len(), None));
    assert!(latch.take_held().is_none());
}

#[tokio::test(start_paused = true)]
async fn who_sends_a_large_message_too_slowly_gives_its_memory_back() {
    let budget = budget();
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let input = frame(200_000);
    theirs.write_all(&input[..150_000]).await.unwrap();
    let (mut gate, latch) = admitted(ours, 200_000, &budget);
    let error = gate.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(overstep(&error), Overstep::TooSlow);
    drop((gate, latch));
    assert_eq!(budget.available_permits(), 1 << 20);
}
