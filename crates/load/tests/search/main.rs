//! Goal: the search prints rates that are right. It runs on simulated servers whose true rate is known, and so do the rules of
//! other tools.

mod drive;
mod fleet;
mod pace;
mod random;
mod rivals;
mod server;
mod truth;

use kvdyno_load::search::Options;

use drive::{HEAD, Known, Score, found, known, parallel, reports_its_confirmation, search};
use fleet::CLASSES;
use rivals::{Found, RULES};

/// A limit that reacts to the rate this much, or more, can be found within 3 % in minutes: per cent of share per cent of rate.
const STEEP: f64 = 5.0;

/// The seed of the printed table. Lengths and margins were chosen on other seeds.
const REPORTED: u64 = 2_026;

/// How long simulations for true rates are, seconds.
const TRUTH_SECONDS: f64 = 400.0;

fn options(times: f64) -> Options {
    let usual = Options::default();
    Options {
        probe_seconds: times * usual.probe_seconds,
        confirm_seconds: times * usual.confirm_seconds,
        longest_seconds: times * usual.longest_seconds,
        ..usual
    }
}

/// Prints a table of one way to search.
fn table(name: &str, servers: &[Known], way: impl Fn(&Known) -> Found + Sync) {
    let all = parallel(servers, |known| way(known));
    println!("\n{name}\n{HEAD}");
    let line = |label: &str, wanted: &dyn Fn(&Known) -> bool| {
        let mut score = Score::default();
        servers
            .iter()
            .zip(&all)
            .filter(|(known, _)| wanted(known))
            .for_each(|(known, found)| score.add(known, found));
        if score.count > 0 {
            println!("{}", score.line(label));
        }
    };
    for (class, label) in CLASSES.iter().enumerate() {
        line(label, &|known| known.class == class);
        line(&format!("  {label}, steep"), &|known| known.class == class && known.slope >= STEEP);
    }
    line("all", &|_| true);
    line("all steep", &|known| known.slope >= STEEP);
    line("all flat", &|known| known.slope < STEEP);
}

/// A number from the environment.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Sixty servers whose true rate is a formula. The numbers are exact, because seeds determine them; the goals leave a margin.
#[test]
fn printed_rates_hold_and_are_close() {
    let classes: Vec<usize> =
        (0..CLASSES.len()).filter(|class| ["M/D/1", "M/M/1", "drift"].contains(&CLASSES[*class])).collect();
    let servers = known(&classes, 20, 77, 0.0);
    let answers = parallel(&servers, |known| search(&known.server, &options(1.0), known.seed));
    let (mut all, mut steep) = (Score::default(), Score::default());
    for (known, answer) in servers.iter().zip(&answers) {
        assert!(reports_its_confirmation(answer), "{known:?}: {}", answer.outcome);
        all.add(known, &found(answer));
        if known.slope >= STEEP && CLASSES[known.class] != "drift" {
            steep.add(known, &found(answer));
        }
    }
    println!("{HEAD}\n{}\n{}", all.line("all"), steep.line("steep, without drift"));
    assert_eq!(all.over, 0, "rates more than 3 % over the true one");
    assert!(all.any_over <= 3, "{} rates over the true one", all.any_over);
    assert!(all.most_runs <= 12);
    assert!(steep.none == 0 && steep.close * 100 >= steep.count * 75, "{}", steep.line("steep"));
}

/// `COUNT` is the number of servers per class, `SEED` draws them, `TIMES` is the longest search, in usual lengths, and `RIVALS=0`
/// leaves other tools out.
#[test]
#[ignore = "minutes: prints the error rates of the search and of other tools"]
fn search_table() {
    let classes: Vec<usize> = (0..CLASSES.len()).collect();
    let start = std::time::Instant::now();
    let servers = known(&classes, setting("COUNT", 38) as usize, setting("SEED", REPORTED), TRUTH_SECONDS);
    println!("{} servers, {:.0} s for true rates", servers.len(), start.elapsed().as_secs_f64());
    for times in [1.0, 4.0, 12.0] {
        if times > setting("TIMES", 12) as f64 {
            continue;
        }
        let options = options(times);
        let name = format!("kvdyno, {times} times the usual lengths");
        table(&name, &servers, |known| found(&search(&known.server, &options, known.seed)));
        println!("{:.0} s", start.elapsed().as_secs_f64());
    }
    if setting("RIVALS", 1) == 1 {
        for (name, rule) in RULES {
            table(name, &servers, |known| rule(&known.server, known.seed));
        }
    }
}
