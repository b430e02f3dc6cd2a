use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

const LONG: Duration = Duration::from_secs(10);

/// Work that can't be stopped: it ends when the sender is dropped.
fn endless() -> (Sender<()>, impl FnOnce() + Send + 'static) {
    let (sender, receiver): (_, Receiver<()>) = channel();
    (sender, move || assert!(receiver.recv().is_err()))
}

/// Begins work and gives the call up.
async fn give_up(places: &WorkPermits) -> Sender<()> {
    let (sender, work) = endless();
    tokio::select! { biased;
        result = places.work(LONG, work) => panic!("{result:?}"),
        () = std::future::ready(()) => sender,
    }
}

#[tokio::test]
async fn calls_that_are_given_up_free_their_places_though_their_threads_work_on() {
    let places = WorkPermits::default();
    let mut running = Vec::new();
    for _ in 0..PLACES {
        running.push(give_up(&places).await);
    }
    assert_eq!(places.places.available_permits(), PLACES);
    assert_eq!(places.threads.available_permits(), LEFT_OVER);
    assert_eq!(places.work(LONG, || 1).await.unwrap(), 1);
}

#[tokio::test]
async fn threads_that_work_on_are_bounded() {
    let places = WorkPermits::default();
    let mut running = Vec::new();
    for _ in 0..PLACES + LEFT_OVER {
        running.push(give_up(&places).await);
    }
    let refused = places.work(LONG, || 1).await;
    assert!(matches!(refused, Err(PlaceError::Busy)), "{refused:?}");
    assert_eq!(places.places.available_permits(), PLACES);
    // The end of one is room for one.
    running.pop();
    drop(places.threads.acquire().await.unwrap());
    assert_eq!(places.work(LONG, || 1).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_too_long_frees_its_place() {
    let places = WorkPermits::default();
    let (_running, work) = endless();
    {
        let call = places.work(LONG, work);
        tokio::pin!(call);
        tokio::select! { biased;
            result = &mut call => panic!("{result:?}"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(places.places.available_permits(), PLACES - 1);
        tokio::time::advance(LONG).await;
        let late = call.await;
        assert!(matches!(late, Err(PlaceError::TooLong(LONG))), "{late:?}");
    }
    assert_eq!(places.places.available_permits(), PLACES);
    assert_eq!(places.work(LONG, || 1).await.unwrap(), 1);
}

#[tokio::test]
async fn no_more_pages_than_there_are_places_are_taken_apart() {
    let places = WorkPermits::default();
    let (ends, works): (Vec<_>, Vec<_>) = (0..PLACES).map(|_| endless()).unzip();
    let mut calls: Vec<_> = works.into_iter().map(|work| Box::pin(places.work(LONG, work))).collect();
    for call in &mut calls {
        tokio::select! { biased;
            result = call => panic!("{result:?}"),
            () = std::future::ready(()) => {}
        }
    }
    let mut next = Box::pin(places.work(LONG, || 1));
    tokio::select! { biased;
        result = &mut next => panic!("{result:?}"),
        () = std::future::ready(()) => {}
    }
    drop((calls, ends));
    assert_eq!(next.await.unwrap(), 1);
}

#[tokio::test]
async fn a_panic_is_told() {
    let told = WorkPermits::default().work(LONG, || -> u8 { panic!("of the work") }).await;
    assert!(matches!(told, Err(PlaceError::Stopped(_))), "{told:?}");
}
