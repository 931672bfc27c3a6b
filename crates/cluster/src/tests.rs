//! Load generators as threads that connect over loopback, and peers that are not load generators.

use super::hub::Hub;
use super::wire::{Answer, Ask, Frames, Greeting, Hello, Line, MOST_TRIAL, Tell};
use super::*;
use kvdyno_measure::Clock;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

fn secret() -> Secret {
    Secret::new(b"a secret of this test").unwrap()
}

fn plan() -> PlanParts {
    vec![("engines".into(), "a1".into()), ("workloads".into(), "b2".into())]
}

fn hub(load_generators: u32) -> (Hub, impl Fn(u32) -> Seat) {
    let hub = Hub::listen("127.0.0.1:0", load_generators, secret(), plan()).unwrap();
    let rendezvous = hub.address().to_string();
    (hub, move |load_generator| Seat {
        load_generator,
        load_generators,
        rendezvous: rendezvous.clone(),
        secret_file: None,
    })
}

fn member(seat: &Seat, load_generators: u32) -> Member {
    Member::join(seat, &secret(), "trial-1", load_generators).unwrap()
}

/// Called about once a second while a load generator waits: a test fails instead of waiting without end.
fn patient() -> impl FnMut() {
    let begun = Instant::now();
    move || assert!(begun.elapsed() < LONG, "what a load generator waits for has not come within {LONG:?}")
}

/// Runs a function in a thread for each load generator, and returns what they return.
fn each<Found: Send>(seats: &[Seat], run: impl Fn(&Seat) -> Found + Sync) -> Vec<Found> {
    thread::scope(|scope| {
        let all: Vec<_> = seats.iter().map(|seat| scope.spawn(|| run(seat))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// Prints how far apart the starts of 16 load generators are, which is a timing and therefore not checked.
#[test]
fn sixteen_load_generators_agree_on_one_start() {
    let (_hub, seat) = hub(16);
    let seats: Vec<Seat> = (0..16).map(seat).collect();
    let clock = Clock::calibrate();
    let starts = each(&seats, |seat| {
        let member = member(seat, 16);
        let agreed = member.agree("read", clock, &mut patient()).unwrap();
        Member::wait_for(&agreed, clock);
        let at = clock.now();
        member.leave();
        (agreed, at)
    });
    let ns = |of: &dyn Fn(&(Agreed, u64)) -> u64| {
        let all = starts.iter().map(of);
        clock.to_ns(all.clone().max().unwrap() - all.min().unwrap())
    };
    let (planned_ns, real_ns) = (ns(&|(agreed, _)| agreed.tick), ns(&|(_, at)| *at));
    let error_ns = starts.iter().map(|(agreed, _)| agreed.clock_error_ns).max().unwrap();
    println!(
        "16 load generators: planned starts within {planned_ns} ns (error at most {error_ns} ns), starts within {real_ns} ns"
    );
    assert!(starts.iter().all(|(agreed, at)| *at >= agreed.tick), "nobody starts early");
    // All have one clock here, so that the planned starts differ by no more than the errors that the load generators report.
    assert!(planned_ns <= 2 * error_ns, "{planned_ns} ns, error {error_ns} ns");
}

#[test]
fn what_load_generator_0_says_at_a_gate_reaches_all_and_what_others_say_does_not() {
    let (_hub, seat) = hub(3);
    let seats: Vec<Seat> = (0..3).map(seat).collect();
    let heard = each(&seats, |seat| {
        let member = member(seat, 3);
        let said = format!("url of load generator {}", seat.load_generator);
        let first = member.meet_with("open", &said, &mut patient()).unwrap();
        let next = member.meet_with("left", "", &mut patient()).unwrap();
        member.leave();
        (first, next)
    });
    assert!(
        heard.iter().all(|(first, next)| first == "url of load generator 0" && next.is_empty()),
        "{heard:?}"
    );
}

#[test]
fn the_first_end_of_a_phase_is_heard_by_all_and_the_last_one_ends_it() {
    let (_hub, seat) = hub(3);
    let seats: Vec<Seat> = (0..3).map(seat).collect();
    let clock = Clock::calibrate();
    let events = each(&seats, |seat| {
        let member = member(seat, 3);
        member.meet("open", &mut patient()).unwrap();
        member.agree("read", clock, &mut patient()).unwrap();
        if seat.load_generator == 0 {
            member.ended("read");
        }
        let mut heard = Vec::new();
        member.follow("read", &mut patient(), |event| {
            if event == Event::FirstEnded {
                member.ended("read");
            }
            heard.push(event);
        });
        member.leave();
        heard
    });
    assert_eq!(events[0], [Event::Over]);
    for others in &events[1..] {
        assert_eq!(others, &[Event::FirstEnded, Event::Over]);
    }
}

#[test]
fn a_load_generator_that_dies_ends_the_phase_in_all_others() {
    let (_hub, seat) = hub(3);
    let seats: Vec<Seat> = (0..3).map(seat).collect();
    let clock = Clock::calibrate();
    let events = each(&seats, |seat| {
        let member = member(seat, 3);
        member.agree("read", clock, &mut patient()).unwrap();
        if seat.load_generator == 1 {
            // Its connection is closed, as the kernel does for a process that dies.
            return Vec::new();
        }
        let mut heard = Vec::new();
        member.follow("read", &mut patient(), |event| heard.push(event));
        heard
    });
    for heard in [&events[0], &events[2]] {
        let [Event::Lost(Lost(text))] = &heard[..] else { panic!("{heard:?}") };
        assert!(text.starts_with("load generator 1: its trial's process has ended"), "{text}");
    }
}

#[test]
fn a_load_generator_that_fails_says_why_to_all_others() {
    let (_hub, seat) = hub(2);
    let failing = member(&seat(0), 2);
    let other = member(&seat(1), 2);
    failing.failed("put: the disk is full");
    assert_eq!(
        other.meet("open", &mut patient()),
        Err(Lost("load generator 0: put: the disk is full".into()))
    );
    assert!(failing.meet("open", &mut patient()).is_err());
}

#[test]
fn load_generators_that_wait_for_each_other_in_different_phases_are_lost() {
    let (_hub, seat) = hub(2);
    let found = each(&[seat(0), seat(1)], |seat| {
        let gate = if seat.load_generator == 0 { "read" } else { "update" };
        member(seat, 2).meet(gate, &mut patient())
    });
    assert!(
        found.iter().all(|found| found.as_ref().is_err_and(|lost| lost.0.contains("another phase"))),
        "{found:?}"
    );
    // One that has ended its trial is not waited for.
    let (_hub, seat) = hub(2);
    let found = each(&[seat(0), seat(1)], |seat| {
        let member = member(seat, 2);
        if seat.load_generator == 1 {
            member.leave();
            return Ok(());
        }
        member.meet("read", &mut patient())
    });
    assert!(found[0].is_err(), "{found:?}");
}

#[test]
fn records_are_gathered_and_the_outcome_is_announced() {
    let (hub, seat) = hub(3);
    thread::scope(|scope| {
        for load_generator in [1, 2] {
            let seat = seat(load_generator);
            scope.spawn(move || {
                let guest = Guest::join(&seat, &secret(), plan(), LONG).unwrap();
                let member = member(&seat, 3);
                member.leave();
                drop(member);
                let outcome = guest.hand_in("trial-1", format!("record of {load_generator}"), &|| false);
                assert_eq!(outcome.unwrap(), Some(("fine".into(), None)));
            });
        }
        hub.await_all(LONG, &|| false).unwrap();
        member(&seat(0), 3).leave();
        let records = hub.gather("trial-1", 3, &|| false).unwrap();
        assert_eq!(records, [Ok("record of 1".to_string()), Ok("record of 2".to_string())]);
        hub.announce("trial-1", "fine", None).unwrap();
    });
}

#[test]
fn a_run_that_ends_early_is_named() {
    let (hub, seat) = hub(2);
    let guest = Guest::join(&seat(1), &secret(), plan(), LONG).unwrap();
    hub.await_all(LONG, &|| false).unwrap();
    let own = member(&seat(0), 2);
    drop(guest);
    let lost = own.meet("open", &mut patient()).unwrap_err();
    assert!(lost.0.starts_with("load generator 1: its run has ended"), "{lost:?}");
    let records = hub.gather("trial-1", 2, &|| false).unwrap();
    assert!(records[0].as_ref().is_err_and(|reason| reason.contains("its run has ended")), "{records:?}");
    assert!(hub.announce("trial-1", "fine", None).is_err());
    assert!(hub.await_all(Duration::ZERO, &|| false).is_err());
}

/// Regression: load generator 0 waited without end for a record, whatever its user did.
#[test]
fn a_wait_for_records_can_be_stopped() {
    let (hub, seat) = hub(3);
    let guests =
        [1, 2].map(|load_generator| Guest::join(&seat(load_generator), &secret(), plan(), LONG).unwrap());
    hub.await_all(LONG, &|| false).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| guests[0].hand_in("trial-1", "record of 1".into(), &|| true));
        assert_eq!(hub.gather("trial-1", 3, &|| waiting.is_finished()), None);
        assert_eq!(waiting.join().unwrap().unwrap(), None);
    });
    // What has come is not lost, however often Ctrl-C was pressed.
    let last = guests[1].hand_in("trial-1", "record of 2".into(), &|| true);
    assert_eq!(last.unwrap(), None);
    let mut handed = None;
    while handed.is_none() {
        handed = hub.gather("trial-1", 3, &|| true);
    }
    assert_eq!(handed, Some(vec![Ok("record of 1".to_string()), Ok("record of 2".to_string())]));
}

/// Regression: load generators that were not told that the run ends looked for the hub of the next trial for 20 s, and said
/// that a connection had failed.
#[test]
fn all_load_generators_are_told_why_the_run_ends() {
    let (hub, seat) = hub(2);
    let guest = Guest::join(&seat(1), &secret(), plan(), LONG).unwrap();
    hub.await_all(LONG, &|| false).unwrap();
    let outcome = thread::scope(|scope| {
        let waiting = scope.spawn(|| guest.hand_in("trial-1", "record of 1".into(), &|| false));
        assert_eq!(hub.gather("trial-1", 2, &|| false), Some(vec![Ok("record of 1".to_string())]));
        assert!(hub.announce("trial-1", "fine", Some("load generator 0: it was interrupted")).is_err());
        waiting.join().unwrap()
    });
    assert_eq!(outcome.unwrap(), Some(("fine".into(), Some("load generator 0: it was interrupted".into()))));
    drop(hub);
    let found = guest.hand_in("trial-2", "record of 1".into(), &|| false);
    assert_eq!(found.unwrap_err().to_string(), "load generator 0: its run has ended");
}

#[test]
fn a_load_generator_without_more_trials_stays_until_the_run_ends() {
    let (hub, seat) = hub(2);
    let guest = Guest::join(&seat(1), &secret(), plan(), LONG).unwrap();
    hub.await_all(LONG, &|| false).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| guest.await_end(&|| false));
        for trial in ["trial-1", "trial-2"] {
            hub.announce(trial, "fine", None).unwrap();
        }
        assert!(!waiting.is_finished());
        drop(hub);
        waiting.join().unwrap();
    });
}

#[test]
fn load_generators_that_did_not_come_are_named() {
    let (hub, seat) = hub(4);
    let _guest = Guest::join(&seat(2), &secret(), plan(), LONG).unwrap();
    let error = hub.await_all(LONG, &|| true).unwrap_err();
    assert_eq!(error.to_string(), "these load generators of 4 did not come: 1, 3");
}

#[test]
fn strangers_and_wrong_load_generators_are_refused_with_a_reason() {
    let (hub, seat) = hub(2);
    let wrong = Secret::new(b"another secret of this test").unwrap();
    let error = |found: Result<Guest, JoinError>| found.err().unwrap().to_string();
    let found = error(Guest::join(&seat(1), &wrong, plan(), LONG));
    assert!(
        found.ends_with("load generator 0 refuses this load generator: it does not know the secret"),
        "{found}"
    );
    let mut other = plan();
    other[1].1 = "c3".into();
    let found = error(Guest::join(&seat(1), &secret(), other, LONG));
    assert!(found.contains("its plan differs from that of load generator 0 (workloads)"), "{found}");
    let more = Seat { load_generators: 3, ..seat(1) };
    assert!(
        error(Guest::join(&more, &secret(), plan(), LONG))
            .contains("expects 3 load generators, and load generator 0 2")
    );
    let beyond = Seat { load_generator: 2, ..seat(1) };
    assert!(
        error(Guest::join(&beyond, &secret(), plan(), LONG)).contains("there is no load generator 2 of 2")
    );
    let _first = Guest::join(&seat(1), &secret(), plan(), LONG).unwrap();
    assert!(
        error(Guest::join(&seat(1), &secret(), plan(), LONG)).contains("load generator 1 is here already")
    );
    hub.await_all(LONG, &|| false).unwrap();
}

/// A server that accepts every proof, as one that wants to be told something would.
#[test]
fn a_load_generator_does_not_trust_a_hub_without_the_secret() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let rendezvous = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let line = Line::new(&stream).unwrap();
        let greeting = Greeting { name: wire::NAME.into(), version: wire::VERSION, nonce: "12".into() };
        line.send(&greeting).unwrap();
        let mut frames = Frames::new(stream, MOST_TRIAL);
        let hello: Hello = frames.next(Instant::now() + LONG).unwrap().unwrap();
        line.send(&Answer::Welcome { proof: hello.proof }).unwrap();
    });
    let seat = Seat { load_generator: 1, load_generators: 2, rendezvous, secret_file: None };
    let error = Guest::join(&seat, &secret(), plan(), LONG).err().unwrap();
    let is_unproven = matches!(error, JoinError::Refused { refusal: Refusal::NoProof, .. });
    assert!(is_unproven, "{error}");
    server.join().unwrap();
}

/// Regression: load generator 0 waited without end if another one was killed before the trial of load generator 0 had
/// connected.
#[test]
fn a_trial_that_begins_after_a_load_generator_has_gone_is_lost_at_once() {
    let (hub, seat) = hub(2);
    drop(Guest::join(&seat(1), &secret(), plan(), LONG).ok().unwrap());
    let begun = Instant::now();
    while hub.announce("none", "", None).is_ok() {
        assert!(begun.elapsed() < LONG, "the end of load generator 1 is not noticed");
        thread::yield_now();
    }
    let lost = member(&seat(0), 2).meet("open", &mut patient()).unwrap_err();
    assert!(lost.0.contains("load generator 1"), "{lost:?}");
}

/// Peers that send garbage, announce huge messages, close at once or say nothing do not stop the load generators, whose
/// messages pass meanwhile.
#[test]
fn hostile_peers_neither_stall_nor_crash_the_hub() {
    let (hub, seat) = hub(2);
    let connect = || TcpStream::connect(hub.address()).unwrap();
    let silent: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
    let mut slow = connect();
    slow.write_all(&[0, 0]).unwrap();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[255; 64],
        &[0, 0, 0, 0],
        &[0, 0, 0, 2, b'{', b'}'],
        &[0, 0, 0, 3, 0xff, 0xfe, 0xfd],
        &[0x7f, 0xff, 0xff, 0xff, 0],
        &[],
    ] {
        let mut stream = connect();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut answer = Vec::new();
        // It may be reset, because the hub did not read everything.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 4096, "{bytes:?}");
    }
    let guest = Guest::join(&seat(1), &secret(), plan(), LONG).unwrap();
    hub.await_all(LONG, &|| false).unwrap();
    let found = each(&[seat(0), seat(1)], |seat| member(seat, 2).meet("open", &mut patient()).is_ok());
    assert_eq!(found, [true, true]);
    drop((silent, slow, guest));
}

/// A load generator that is known and then sends garbage is lost; the others hear it.
#[test]
fn garbage_of_a_known_load_generator_ends_its_trial() {
    let (_hub, seat) = hub(2);
    let other = member(&seat(1), 2);
    let (told, heard) = mpsc::channel();
    let waiting = thread::spawn(move || told.send(other.meet("open", &mut patient())).unwrap());
    // A connection by hand: greeting, hello, welcome, and then no message.
    let stream = TcpStream::connect(seat(0).rendezvous).unwrap();
    let line = Line::new(&stream).unwrap();
    let mut frames = Frames::new(stream.try_clone().unwrap(), MOST_TRIAL);
    let greeting: Greeting = frames.next(Instant::now() + LONG).unwrap().unwrap();
    let mut hello = Hello {
        version: wire::VERSION,
        load_generator: 0,
        load_generators: 2,
        trial: Some("trial-1".into()),
        plan: Vec::new(),
        nonce: "7".into(),
        proof: String::new(),
    };
    let proven = hello.proven(&greeting.nonce);
    hello.proof = secret().proof(&proven.iter().map(String::as_str).collect::<Vec<_>>());
    line.send(&hello).unwrap();
    assert!(matches!(frames.next(Instant::now() + LONG), Ok(Some(Answer::Welcome { .. }))));
    line.send(&Ask::Time { number: 3 }).unwrap();
    let mut told = std::iter::from_fn(|| frames.next(Instant::now() + LONG).unwrap());
    let first = told.find(|message| !matches!(message, Tell::Alive));
    assert!(matches!(first, Some(Tell::Time { number: 3, .. })));
    (&stream).write_all(&[0xff; 4]).unwrap();
    let lost = heard.recv_timeout(LONG).unwrap().unwrap_err();
    assert!(
        lost.0.starts_with("load generator 0: its trial's process has ended (a message of 4294967295 bytes"),
        "{lost:?}"
    );
    waiting.join().unwrap();
}

#[test]
fn a_proof_is_of_no_use_for_another_connection() {
    let (_hub, seat) = hub(2);
    let hellos: Arc<Mutex<Vec<String>>> = Arc::default();
    for _ in 0..2 {
        let stream = TcpStream::connect(seat(0).rendezvous).unwrap();
        let line = Line::new(&stream).unwrap();
        let mut frames = Frames::new(stream, MOST_TRIAL);
        let greeting: Greeting = frames.next(Instant::now() + LONG).unwrap().unwrap();
        let mut all = hellos.lock().unwrap();
        let mut hello = Hello {
            version: wire::VERSION,
            load_generator: 1,
            load_generators: 2,
            trial: None,
            plan: plan(),
            nonce: "7".into(),
            proof: String::new(),
        };
        let proven = hello.proven(&greeting.nonce);
        let own = secret().proof(&proven.iter().map(String::as_str).collect::<Vec<_>>());
        all.push(own);
        hello.proof = all[0].clone();
        line.send(&hello).unwrap();
        let answer: Answer = frames.next(Instant::now() + LONG).unwrap().unwrap();
        match (&answer, all.len()) {
            (Answer::Welcome { .. }, 1) => {}
            (Answer::Refused { reason }, 2) => assert_eq!(reason, "it does not know the secret"),
            _ => panic!("{answer:?}"),
        }
    }
}
