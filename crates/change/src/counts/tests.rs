//! Counts whose truth is known.

use super::*;

#[test]
fn a_count_rose_only_if_each_later_run_is_above_the_range_of_the_earlier_ones_and_as_much_again() {
    let earlier = [5.0, 5.0, 6.0];
    assert_eq!(judge(&earlier, &[], 3), Verdict::Open);
    assert_eq!(judge(&earlier, &[8.0, 8.0], 3), Verdict::Open);
    assert_eq!(judge(&earlier, &[8.0, 8.0, 9.0], 3), Verdict::Rose);
    assert_eq!(judge(&earlier, &[8.0, 7.0], 3), Verdict::Same, "one within the limits decides");
    assert_eq!(judge(&earlier, &[3.0, 2.0, 3.0], 3), Verdict::Fell);
    assert_eq!(judge(&earlier, &[3.0, 4.0], 3), Verdict::Same);
    assert_eq!(judge(&earlier, &[8.0, 3.0], 3), Verdict::Same);
    assert_eq!(judge(&[5.0; 3], &[5.0], 3), Verdict::Same, "equal counts are compared exactly");
    assert_eq!(judge(&[5.0; 3], &[5.1; 3], 3), Verdict::Rose);
    assert_eq!(judge(&[], &[7.0], 1), Verdict::Same);
}

#[test]
fn the_probability_of_a_false_alarm_is_that_of_one_order_among_all() {
    assert!((false_alarms(10, 10) * 184_756.0 - 1.0).abs() < 1e-9);
    assert!((false_alarms(3, 2) * 10.0 - 1.0).abs() < 1e-12);
    assert!((false_alarms(0, 4) - 1.0).abs() < 1e-12);
}
