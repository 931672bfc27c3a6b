//! Verdicts on observations made by hand.

use super::*;

fn section(shape: Shape, without_sync: u64, without_write: u64, calls: &[(&str, u64)]) -> Section {
    Section {
        shape,
        commits: 100,
        syncs: 100 - without_sync,
        without_sync,
        without_write,
        calls: calls.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
    }
}

fn audit(level: Durability, sections: Vec<Section>, unseen: Option<&str>) -> Audit {
    Audit {
        engine: "x".into(),
        version: None,
        options: Vec::new(),
        level,
        seed: 1,
        group: 8,
        sections,
        before: BTreeMap::new(),
        unseen: unseen.map(str::to_string),
    }
}

fn verdict(level: Durability, sections: Vec<Section>, unseen: Option<&str>) -> (AuditVerdict, String) {
    let audit = audit(level, sections, unseen);
    let (verdict, reason) = audit.verdict();
    (verdict, reason.unwrap_or_default())
}

#[test]
fn power_needs_a_sync_before_each_acknowledgement() {
    let all = || section(Shape::Put, 0, 0, &[]);
    assert_eq!(verdict(Durability::Power, vec![all()], None), (AuditVerdict::Agrees, String::new()));
    let (found, reason) = verdict(Durability::Power, vec![all(), section(Shape::Threads, 1, 0, &[])], None);
    assert_eq!(found, AuditVerdict::Contradicted);
    assert_eq!(reason, "1 of 100 puts of two threads were acknowledged before any sync began");
    let ranges = section(Shape::Put, 100, 0, &[("sync_file_range", 100)]);
    let (found, reason) = verdict(Durability::Power, vec![ranges], None);
    assert_eq!(found, AuditVerdict::Contradicted);
    assert!(reason.contains("100 calls of sync_file_range"), "{reason}");
}

#[test]
fn process_needs_a_write_unless_files_are_mapped() {
    let late = |calls: &[(&str, u64)]| vec![section(Shape::Group, 100, 3, calls)];
    let (found, reason) = verdict(Durability::Process, late(&[]), None);
    assert_eq!(found, AuditVerdict::Contradicted);
    assert_eq!(reason, "3 of 100 groups were acknowledged before any write began");
    assert_eq!(
        verdict(Durability::Process, late(&[("shared mapping", 1)]), None).0,
        AuditVerdict::NotObserved
    );
    assert_eq!(verdict(Durability::None, late(&[]), None).0, AuditVerdict::Agrees);
    let written = vec![section(Shape::Put, 40, 0, &[])];
    assert_eq!(verdict(Durability::Process, written, None).0, AuditVerdict::Agrees);
}

#[test]
fn syncs_that_no_level_requires_are_reported() {
    for level in [Durability::None, Durability::Process] {
        let synced = vec![section(Shape::Put, 0, 0, &[])];
        assert_eq!(verdict(level, synced, None).0, AuditVerdict::Stronger);
        assert_ne!(verdict(level, vec![section(Shape::Put, 1, 0, &[])], None).0, AuditVerdict::Stronger);
    }
}

#[test]
fn what_was_not_observed_decides_nothing() {
    let hidden = vec![section(Shape::Put, 100, 100, &[("io_uring", 1)])];
    assert_eq!(verdict(Durability::Power, hidden, None).0, AuditVerdict::NotObserved);
    let cut = verdict(Durability::Power, Vec::new(), Some("the process died"));
    assert_eq!(cut, (AuditVerdict::NotObserved, "the process died".into()));
    // What was seen before the end still counts.
    let cut = verdict(Durability::Power, vec![section(Shape::Put, 5, 0, &[])], Some("the process died"));
    assert_eq!(cut.0, AuditVerdict::Contradicted);
}

#[test]
fn calls_by_kind_are_those_of_the_commits_of_that_shape() {
    let group = Section {
        commits: 4,
        calls: [("fdatasync".into(), 4), ("write".into(), 10)].into(),
        ..section(Shape::Group, 0, 0, &[])
    };
    let none = Section { commits: 0, ..section(Shape::Threads, 0, 0, &[("write", 1)]) };
    let audit = audit(Durability::Power, vec![group, none], None);
    let calls = audit.observed(Shape::Group).calls_per_commit;
    assert_eq!(calls, [("fdatasync".to_string(), 1.0), ("write".to_string(), 2.5)].into());
    assert!(audit.observed(Shape::Threads).calls_per_commit.is_empty(), "no commit was acknowledged");
    assert!(audit.observed(Shape::Put).calls_per_commit.is_empty(), "nothing was observed");
}

#[test]
fn the_commits_of_a_phase_have_the_shape_of_its_puts_and_threads() {
    let shape = |fields: &str| {
        let fill =
            "[[phase]]\nname = 'fill'\neach_key = true\ndistribution = 'permutation'\nmix = { put = 1 }";
        let text = format!("{fill}\n[[phase]]\nname = 'x'\nops = 10\n{fields}");
        Shape::of(&crate::workload::parse(&text, "x").unwrap().phases[1])
    };
    assert_eq!(shape("mix = { put = 1 }"), Some(Shape::Put));
    assert_eq!(shape("mix = { put = 1 }\nthreads = 2"), Some(Shape::Threads));
    assert_eq!(shape("mix = { get = 1 }\nthreads = 4\nwriters = 1"), Some(Shape::Put));
    assert_eq!(shape("mix = { get = 1 }\nwriters = 2"), Some(Shape::Threads));
    assert_eq!(shape("mix = { put = 1 }\njoin = 8\nthreads = 2"), Some(Shape::Group));
    assert_eq!(shape("mix = { get = 1 }\nthreads = 4"), None);
}
