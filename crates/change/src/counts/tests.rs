//! Counts whose truth is known.

use super::*;

#[test]
fn a_count_rose_only_if_each_later_run_has_more_than_each_earlier_one() {
    let earlier = [5.0, 5.0, 6.0];
    assert_eq!(judge(&earlier, &[], 3), Verdict::Open);
    assert_eq!(judge(&earlier, &[7.0, 7.0], 3), Verdict::Open);
    assert_eq!(judge(&earlier, &[7.0, 7.0, 8.0], 3), Verdict::Rose);
    assert_eq!(judge(&earlier, &[7.0, 6.0], 3), Verdict::Same, "one that is not over the range decides");
    assert_eq!(judge(&earlier, &[4.0, 3.0, 4.0], 3), Verdict::Fell);
    assert_eq!(judge(&earlier, &[7.0, 4.0], 3), Verdict::Same);
    assert_eq!(judge(&[], &[7.0], 1), Verdict::Same);
}

#[test]
fn the_probability_of_a_false_alarm_is_that_of_one_order_among_all() {
    assert!((false_alarms(10, 10) * 184_756.0 - 1.0).abs() < 1e-9);
    assert!((false_alarms(3, 2) * 10.0 - 1.0).abs() < 1e-12);
    assert!((false_alarms(0, 4) - 1.0).abs() < 1e-12);
}
