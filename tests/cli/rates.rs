//! Requests that arrive at a rate, and the search for the highest rate that keeps a limit, as people ask for them.

use super::command::kvdyno;
use std::path::Path;

/// A small workload with one measured phase.
const SMALL: &str = "keys = 2000\nruns = 1\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\njoin = 1000\n\
    [[phase]]\nname = 'run'\nmix = { get = 9, update = 1 }\nseconds = 0.3\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

fn results(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("kvdyno-results")).map_or(0, Iterator::count)
}

/// A column of the rows of a phase in CSV.
fn column<'c>(csv: &'c str, phase: &str, name: &str) -> Vec<&'c str> {
    let mut lines = csv.lines();
    let titles: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place =
        |name: &str| titles.iter().position(|title| *title == name).unwrap_or_else(|| panic!("no {name}"));
    let (phases, place) = (place("phase"), place(name));
    let cells = lines.map(|line| line.split(',').collect::<Vec<_>>());
    cells.filter(|cells| cells[phases] == phase).map(|cells| cells[place]).collect()
}

#[test]
fn a_run_at_a_rate_shows_three_times_side_by_side_and_ranks_by_the_response() {
    let folder = folder();
    let at_rate = "run small.toml --engines memory-btree,lmdb --rate poisson:2k --arrivals own --threads 2 --quiet --full";
    let printed = kvdyno(folder.path(), at_rate);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let title = "Response times at poisson:2k, a queue for each thread:";
    assert!(printed.stdout.contains(title), "{}", printed.stdout);
    let words = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("requests/s: poisson:2k, a queue for each thread"), "{}", printed.stdout);
    let csv = kvdyno(folder.path(), "report --format csv").stdout;
    for name in ["service", "wait", "response"] {
        for figure in ["mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"] {
            column(&csv, "run", &format!("{name}_{figure}"));
        }
    }
    let is_known = |cell: &&str| cell.parse::<f64>().is_ok_and(|ns| ns > 0.0);
    assert!(column(&csv, "run", "service_p50_ns").iter().all(is_known), "{csv}");
    assert!(
        column(&csv, "load", "response_p50_ns").iter().all(|cell| cell.is_empty()),
        "a closed loop has none"
    );
}

#[test]
fn what_is_no_rate_is_refused_before_anything_is_written() {
    let folder = folder();
    for (flags, wanted) in [
        ("--rate 0", "more than 0"),
        ("--rate -5", "more than 0"),
        ("--rate nan", "unknown rate `nan`"),
        ("--rate steps:4k,2k", "each step must be higher than the one before"),
        ("--rate 900M", "requests/s cannot be sent from this machine"),
        ("--rate ramp:1-5 --ops 100 --seconds 0", "a time for a phase with steps or a ramp"),
        ("--arrivals own", "`arrivals`"),
        ("--rate 5 --when-late drop:x", "expected queue or drop:LIMIT"),
        ("--rate 5 --race --engines memory-btree,memory-map,lmdb,redb --runs 5", "a workload without a rate"),
    ] {
        let engines = if flags.contains("--engines") { "" } else { "--engines memory-btree" };
        let printed = kvdyno(folder.path(), &format!("run small.toml {engines} {flags}"));
        assert_eq!(printed.code, Some(2), "{flags}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{flags}: {}", printed.stderr);
    }
    assert_eq!(results(folder.path()), 0);
}

/// The needs of a small application, without its rate.
const SMALL_NEEDS: &str = "choose --durability process --transactions no --ordered no --data 1MB --memory 1GB --value-size 100 \
                           --reads 80 --threads 1 --engines lmdb,redb";

#[test]
fn a_choice_at_a_rate_that_is_none_is_refused_in_a_line_before_anything_is_written() {
    let folder = folder();
    for (flags, wanted) in [
        ("--rate 0", "error: --rate: rate `0`: expected more than 0"),
        ("--rate -5", "error: --rate: rate `-5`: expected more than 0"),
        ("--rate many", "error: --rate: unknown rate `many`"),
        ("--rate 20k --slo p98<1ms", "error: --slo: unknown metric `p98`"),
        ("--rate 20k --slo p99<1", "error: --slo: `1` is not a time"),
        ("--rate 20k --slo errors<1%", "error: --slo: errors are requests that were dropped"),
        ("--slo p99<1ms", "error: --slo p99<1ms needs --rate"),
        (
            "--rate 10 --slo p99.9<1s",
            "error: --minutes 4 is too short to measure 2 engines, 52 would do: p99.9<1s needs 1,842 requests in each phase of a \
             run, which take 185 s at poisson:10",
        ),
        ("--rate 900M", "requests/s cannot be sent from this machine"),
    ] {
        let printed = kvdyno(folder.path(), &format!("{SMALL_NEEDS} {flags}"));
        assert_eq!((printed.code, printed.stdout.as_str()), (Some(2), ""), "{flags}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{flags}: {}", printed.stderr);
        let errors = printed.stderr.lines().filter(|line| !line.starts_with("hint: ")).count();
        assert_eq!(errors, 1, "{flags}: {}", printed.stderr);
    }
    assert_eq!(results(folder.path()), 0);
}

#[test]
fn a_dry_choice_at_a_rate_prints_a_workload_that_has_it() {
    let folder = folder();
    let printed = kvdyno(folder.path(), &format!("{SMALL_NEEDS} --rate 2k --slo p99<50ms --dry-run"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert_eq!(printed.stdout.matches("rate = \"poisson:2k\"\n").count(), 1, "{}", printed.stdout);
    assert_eq!(results(folder.path()), 0);
}

#[test]
#[ignore = "a minute: make test-all"]
fn a_report_of_a_choice_at_a_rate_prints_its_recommendation_again() {
    let folder = folder();
    let printed = kvdyno(folder.path(), &format!("{SMALL_NEEDS} --rate 2k --slo p99<5s --minutes 1"));
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, after) = printed.stdout.split_once("\nRecommendation:\n").expect("it recommends");
    // Sections follow that begin at the start of a line.
    let recommended =
        words(&after.lines().take_while(|line| line.starts_with(' ')).collect::<Vec<_>>().join("\n"));
    assert!(recommended.contains("poisson:2k requests/s"), "{recommended}");
    let report = kvdyno(folder.path(), "report --full");
    assert!(words(&report.stdout).contains(&recommended), "{recommended}\n{}", report.stdout);
}

#[test]
fn a_search_without_an_answer_to_give_is_refused() {
    let folder = folder();
    for (words, wanted) in [
        ("slo small.toml -e lmdb", "--slo"),
        ("slo small.toml -e lmdb --slo p98<1ms", "unknown metric `p98`"),
        ("slo small.toml -e lmdb --slo p99<1", "is not a time"),
        ("slo small.toml -e lmdb --slo p99<1ms --rate 5k", "slo finds the rate itself"),
        ("slo small.toml -e lmdb --slo p99<1ms --probe 5s", "expected 10 s or more"),
        ("slo small.toml -e lmdb --slo p99<1ms --seconds 5", "--seconds: slo chooses the lengths"),
        ("slo small.toml -e lmdb --slo p99<1ms --runs 5", "--runs: slo chooses the lengths"),
        ("slo small.toml -e null --slo p99<1ms", "no engine is left"),
        ("slo quick -e lmdb --slo p99<1ms", "measured phases: slo needs a workload with one"),
        (
            "slo quick -e lmdb --slo p99<1ms --phase x",
            "--phase: workload quick has no phase `x` that is not a load",
        ),
        ("slo small.toml ycsb-c -e lmdb --slo p99<1ms", "one workload at a time"),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(2), "{words}: {}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: {}", printed.stderr);
    }
    assert_eq!(results(folder.path()), 0);
}

#[test]
#[ignore = "four minutes: make test-all"]
fn a_search_prints_a_row_and_a_chart_and_leaves_no_database() {
    let folder = folder();
    let words = "slo small.toml -e lmdb --slo p99<50ms,errors<1% --probe 10s --confirm 10s --format csv";
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let rows: Vec<Vec<&str>> = printed.stdout.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        (rows.len(), rows[0][0], rows[0][4]),
        (2, "workload", "slo_rate_per_second"),
        "{}",
        printed.stdout
    );
    for (row, engine) in rows[1..].iter().zip(["lmdb"]) {
        assert_eq!((row[0], row[1]), ("small", engine), "{}", printed.stdout);
    }
    let search =
        std::fs::read_dir(folder.path().join("kvdyno-results")).unwrap().next().unwrap().unwrap().path();
    assert!(!search.join("kept").exists());
    let svg = std::fs::read_to_string(search.join("rates.svg")).unwrap();
    assert!(svg.contains("requests per second") && svg.contains("lmdb"), "{svg}");
    let page = std::fs::read_to_string(search.join("slo.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("<td>lmdb</td>"), "{page}");
    // Each run is one that the report prints.
    let runs = std::fs::read_dir(&search).unwrap().map(|entry| entry.unwrap().path());
    let run = runs.filter(|path| path.join("run.json").exists()).max().unwrap();
    let report = kvdyno(folder.path(), &format!("report {} --full", run.display()));
    assert!(report.stdout.contains("Response times at poisson:"), "{}", report.stderr);
}
