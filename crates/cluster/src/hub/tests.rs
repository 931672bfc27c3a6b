//! The order in which load generators hear what happened, whichever thread sends first.

use super::*;

const LONG: Duration = Duration::from_secs(30);

/// The hub's state without its threads, and load generator 0 and 1 in a trial.
struct Pair {
    inner: Inner,
    hellos: [Hello; 2],
    lines: [Arc<Line>; 2],
    /// What each load generator hears.
    heard: [Frames; 2],
}

fn pair() -> Pair {
    let inner = Inner {
        load_generators: 2,
        secret: Secret::new(b"a secret of this test").unwrap(),
        plan: PlanParts::new(),
        state: Mutex::default(),
        changed: Condvar::new(),
        is_over: AtomicBool::new(false),
        strangers: AtomicUsize::new(0),
        started: Instant::now(),
        started_ns: 0,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ends = [0, 1].map(|_| {
        let own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Arc::new(Line::new(&own).unwrap()), Frames::new(listener.accept().unwrap().0, MOST_TRIAL))
    });
    let hellos = [0, 1].map(|load_generator| Hello {
        version: VERSION,
        load_generator,
        load_generators: 2,
        trial: Some("trial-1".into()),
        plan: PlanParts::new(),
        nonce: String::new(),
        proof: String::new(),
    });
    let [(line_0, heard_0), (line_1, heard_1)] = ends;
    Pair { inner, hellos, lines: [line_0, line_1], heard: [heard_0, heard_1] }
}

impl Pair {
    fn join(&self, load_generator: usize) {
        let welcome = Answer::Welcome { proof: String::new() };
        join(&self.inner, &self.hellos[load_generator], &self.lines[load_generator], &welcome).unwrap();
    }

    fn arrive(&self, load_generator: usize, gate: Gate) -> Post {
        in_trial(&self.inner, &self.hellos[load_generator], |meeting| {
            meeting.arrive(load_generator as u32, gate, 7)
        })
    }
}

/// Regression: the thread of the load generator that came last was about to tell the others of the start. Load generator 0,
/// which knew it already, ended the phase, and load generator 1 heard of the end before the start. It took the end for a stray
/// message, and waited for it without end.
#[test]
fn nobody_hears_the_end_of_a_phase_before_its_start() {
    let mut pair = pair();
    for load_generator in [0, 1] {
        pair.join(load_generator);
        deliver(vec![Arc::clone(&pair.lines[load_generator])]);
        assert!(matches!(
            pair.heard[load_generator].next(Instant::now() + LONG),
            Ok(Some(Answer::Welcome { .. }))
        ));
    }
    assert!(pair.arrive(0, Gate::Start("read".into())).is_empty());
    let started = pair.arrive(1, Gate::Start("read".into()));
    let ended = pair.arrive(0, Gate::Ended("read".into()));
    let last = pair.arrive(1, Gate::Ended("read".into()));
    [last, ended, started].into_iter().for_each(deliver);
    let mut next = || pair.heard[1].next::<Tell>(Instant::now() + LONG).unwrap().unwrap();
    assert_eq!(next(), Tell::Go { gate: "read".into(), at_ns: 7 });
    assert_eq!(next(), Tell::Stop { gate: "read".into() });
    assert_eq!(next(), Tell::Over { gate: "read".into() });
}

/// Regression: a load generator that heard of the end of another one before its welcome took it for the answer to its
/// introduction.
#[test]
fn nobody_hears_of_the_trial_before_the_welcome() {
    let mut pair = pair();
    pair.join(0);
    pair.join(1);
    deliver(leave(&pair.inner, &pair.hellos[1], &pair.lines[1], "it was killed"));
    assert!(matches!(pair.heard[0].next(Instant::now() + LONG), Ok(Some(Answer::Welcome { .. }))));
    let lost = pair.heard[0].next::<Tell>(Instant::now() + LONG).unwrap();
    assert!(matches!(lost, Some(Tell::Lost { load_generator: 1, .. })), "{lost:?}");
}
