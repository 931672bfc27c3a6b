//! The self-test passes, is reproducible, and prints readable text.

use super::{Finding, Listing, check_distributions, check_histogram, check_values, run};

const SEED: u64 = 42;

#[test]
fn all_findings_except_the_clocks_pass_and_are_reproducible() {
    // Findings about the clock depend on the machine, and a test must not.
    let all = || {
        let mut findings = check_distributions::all(SEED);
        findings.extend(check_histogram::all(SEED));
        findings.extend(check_values::all(SEED));
        findings
    };
    let findings = all();
    println!("{}", Listing(&findings));
    let failed: Vec<_> = findings.iter().filter(|finding| !finding.passed).collect();
    assert!(failed.is_empty(), "seed {SEED}: {failed:?}");
    assert_eq!(findings, all(), "seed {SEED}");
}

#[test]
fn the_listing_has_a_line_for_each_finding() {
    let findings = run(SEED);
    let text = Listing(&findings).to_string();
    println!("{text}");
    assert_eq!(text.lines().count(), findings.len() + 1);
    for finding in &findings {
        assert!(!finding.measured.is_empty(), "{}", finding.name);
        assert!(text.contains(&finding.name), "{}", finding.name);
    }
    assert!(findings.iter().any(|finding| finding.name == "clock rate"));
}

#[test]
fn a_failure_is_visible_in_the_text() {
    let findings = [Finding::new("one", true, "1"), Finding::broken("two", "2 is not 3")];
    let text = Listing(&findings).to_string();
    assert!(text.contains("FAILED  two") && text.contains("1 passed, 1 failed"), "{text}");
}
