//! Ten thousand hostile trees: nothing outside our own folders is changed by what removes things.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

use super::*;
use kvdyno_measure::volume;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::process::Command;

const RUN: &str = "run-1";
const CASES: u32 = 10_000;
/// One mount in so many trees: a mount takes longer than all the rest.
const MOUNTS: u32 = 20;
const VOLUME_MARKER: &str = "KVDYNO-VOLUME";
const NAMES: &[&str] = &[
    "kvdyno-0001-redb",
    "kvdyno-",
    "kvdyno-volume-1-0",
    "kvdyno-volume-",
    "kvdyno-volumes",
    "kvdyn-0001-redb",
    "KVDYNO-0001-redb",
    "my-kvdyno-0001-redb",
    " kvdyno-1",
    "thesis",
];
const INNER: &[&str] =
    &["db", STATE, VERSIONS, "image", "mount", "precious", "kvdyno-0001-redb", "kvdyno-volume-1-0"];

/// What a name in the tree is.
#[derive(Clone, Copy, Debug)]
enum Thing {
    File,
    Empty,
    Pipe,
    LinkToFile,
    LinkToFolder,
    LinkToNothing,
    HardLink,
    Folder,
    /// With a marker of each kind, and a file.
    Marked,
    /// A folder that shows one that is elsewhere.
    Mounted,
}

#[derive(Clone, Copy, Debug)]
enum Marker {
    None,
    Text(&'static str),
    Pipe,
    Link,
    HardLink,
    Folder,
    /// By a process that lives.
    Locked,
}

#[derive(Clone, Debug)]
struct Top {
    name: &'static str,
    is_link: bool,
    marker: Marker,
    volume_marker: Marker,
    inner: Vec<(&'static str, Thing)>,
    /// In `db`, if that is a folder.
    deep: Vec<(&'static str, Thing)>,
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        4 => Just(Thing::File),
        1 => Just(Thing::Empty),
        1 => Just(Thing::Pipe),
        2 => Just(Thing::LinkToFile),
        2 => Just(Thing::LinkToFolder),
        1 => Just(Thing::LinkToNothing),
        2 => Just(Thing::HardLink),
        8 => Just(Thing::Folder),
        2 => Just(Thing::Marked),
        1 => (0..MOUNTS).prop_map(|number| if number == 0 { Thing::Mounted } else { Thing::Folder }),
    ]
}

fn marker() -> impl Strategy<Value = Marker> {
    prop_oneof![
        2 => Just(Marker::None),
        6 => Just(Marker::Text(RUN)),
        3 => prop::sample::select(&["", "run", "run-2", "run-12", "run-1\n", "\0"][..]).prop_map(Marker::Text),
        1 => Just(Marker::Pipe),
        1 => Just(Marker::Link),
        1 => Just(Marker::HardLink),
        1 => Just(Marker::Folder),
        1 => Just(Marker::Locked),
    ]
}

fn inner() -> impl Strategy<Value = Vec<(&'static str, Thing)>> {
    prop::collection::vec((prop::sample::select(INNER), thing()), 0..4)
}

fn top() -> impl Strategy<Value = Top> {
    let name = prop::sample::select(NAMES);
    let is_link = prop::bool::weighted(0.1);
    (name, is_link, marker(), marker(), inner(), inner()).prop_map(
        |(name, is_link, marker, volume_marker, inner, deep)| Top {
            name,
            is_link,
            marker,
            volume_marker,
            inner,
            deep,
        },
    )
}

/// The tree of one case and what is beside it; dropped, its mounts are gone.
struct Tree {
    parent: PathBuf,
    outside: PathBuf,
    /// The same as `outside`, for mounts: a snapshot through a mount would read it twice.
    mounted: Vec<PathBuf>,
    locks: Vec<File>,
    can_mount: bool,
}

impl Tree {
    fn new(home: &Path, can_mount: bool) -> Tree {
        let (parent, outside) = (home.join("parent"), home.join("outside"));
        fs::create_dir_all(outside.join("folder/db")).unwrap();
        fs::create_dir(&parent).unwrap();
        for (file, text) in [
            ("run", RUN),
            ("precious", "mine"),
            ("folder/image", "mine"),
            ("folder/db/data", "mine"),
            ("folder/KVDYNO-TRIAL-DATA", RUN),
            ("folder/KVDYNO-VOLUME", ""),
        ] {
            fs::write(outside.join(file), text).unwrap();
        }
        fs::hard_link(home.parent().unwrap().join("pipe"), outside.join("pipe")).unwrap();
        Tree { parent, outside, mounted: Vec::new(), locks: Vec::new(), can_mount }
    }

    fn fill(&mut self, tops: &[Top]) {
        for top in tops {
            let root = self.parent.join(top.name);
            if root.symlink_metadata().is_ok() {
                continue;
            }
            if top.is_link {
                symlink(self.outside.join("folder"), root).unwrap();
                continue;
            }
            fs::create_dir(&root).unwrap();
            self.mark(&root.join(MARKER), top.marker);
            if top.name.contains("volume") {
                self.mark(&root.join(VOLUME_MARKER), top.volume_marker);
            }
            top.inner.iter().for_each(|(name, thing)| self.make(&root.join(name), *thing));
            let db = root.join("db");
            if db.symlink_metadata().is_ok_and(|facts| facts.is_dir()) && !self.mounted.contains(&db) {
                top.deep.iter().for_each(|(name, thing)| self.make(&db.join(name), *thing));
            }
        }
    }

    fn mark(&mut self, path: &Path, marker: Marker) {
        match marker {
            Marker::None => {}
            Marker::Text(text) => fs::write(path, text).unwrap(),
            Marker::Pipe => self.make(path, Thing::Pipe),
            Marker::Link => symlink(self.outside.join("run"), path).unwrap(),
            Marker::HardLink => fs::hard_link(self.outside.join("run"), path).unwrap(),
            Marker::Folder => fs::create_dir(path).unwrap(),
            Marker::Locked => {
                fs::write(path, RUN).unwrap();
                let file = File::open(path).unwrap();
                file.lock().unwrap();
                self.locks.push(file);
            }
        }
    }

    fn make(&mut self, path: &Path, thing: Thing) {
        if path.symlink_metadata().is_ok() {
            return;
        }
        match thing {
            Thing::File => fs::write(path, "x").unwrap(),
            Thing::Empty => fs::write(path, "").unwrap(),
            // A new pipe would be a process for each.
            Thing::Pipe => fs::hard_link(self.outside.join("pipe"), path).unwrap(),
            Thing::LinkToFile => symlink(self.outside.join("precious"), path).unwrap(),
            Thing::LinkToFolder => symlink(self.outside.join("folder"), path).unwrap(),
            Thing::LinkToNothing => symlink(self.outside.join("absent"), path).unwrap(),
            Thing::HardLink => fs::hard_link(self.outside.join("precious"), path).unwrap(),
            Thing::Folder => fs::create_dir(path).unwrap(),
            Thing::Marked => {
                fs::create_dir_all(path.join("db")).unwrap();
                fs::write(path.join(MARKER), RUN).unwrap();
                fs::write(path.join(VOLUME_MARKER), "").unwrap();
                fs::write(path.join("db/data"), "x").unwrap();
            }
            Thing::Mounted => {
                fs::create_dir(path).unwrap();
                if self.can_mount {
                    let mut mount = Command::new("mount");
                    mount.arg("--bind").arg(self.outside.join("folder")).arg(path);
                    assert!(mount.status().unwrap().success());
                    self.mounted.push(path.to_path_buf());
                }
            }
        }
    }

    /// What may be removed or be gone afterwards, by the rules of the two modules and by looks of its own.
    fn is_ours(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.parent) else { return false };
        let mut parts = below.components().map(|part| part.as_os_str().to_str().unwrap());
        let (top, inner) = (parts.next().unwrap_or(""), parts.next());
        let is_deep = parts.next().is_some();
        let root = self.parent.join(top);
        let is_mounted = self.mounted.iter().any(|point| point.starts_with(&root));
        let is_file = |name: &str| root.join(name).symlink_metadata().is_ok_and(|facts| facts.is_file());
        let marker = is_file(MARKER).then(|| fs::read_to_string(root.join(MARKER)).unwrap());
        let is_folder = root.symlink_metadata().unwrap().is_dir();
        let of_run = is_folder && top.starts_with("kvdyno-") && !is_mounted && marker.as_deref() == Some(RUN);
        let is_bare = top == "kvdyno-0001-redb"
            && is_folder
            && fs::read_dir(&root)
                .unwrap()
                .flatten()
                .all(|entry| entry.file_name() == MARKER && is_file(MARKER))
            && marker.as_deref().is_none_or(|marker| RUN.starts_with(marker));
        let of_volume = is_folder && top.starts_with("kvdyno-volume-") && is_file(VOLUME_MARKER);
        match inner {
            None => of_run || is_bare || of_volume,
            Some("db") => of_run,
            Some(STATE | VERSIONS) => of_run && !is_deep,
            Some(MARKER) => (of_run || is_bare) && !is_deep,
            Some("image" | "mount" | VOLUME_MARKER) => of_volume && !is_deep,
            Some(_) => false,
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for point in &self.mounted {
            let _ = Command::new("umount").arg(point).status();
        }
    }
}

/// Everything below a folder: what it is and contains. Links are not followed, and pipes not opened.
fn snapshot(folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let text = if kind.is_symlink() {
            format!("link {}", fs::read_link(&path).unwrap().display())
        } else if kind.is_file() {
            format!("file {:?}", fs::read(&path).unwrap())
        } else {
            format!("{kind:?}")
        };
        all.insert(path.clone(), text);
        if kind.is_dir() {
            snapshot(&path, all);
        }
    }
}

fn shot(tree: &Tree) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    snapshot(&tree.parent, &mut all);
    snapshot(&tree.outside, &mut all);
    all
}

fn try_tree(home: &Path, tops: &[Top], can_mount: bool) -> (usize, Result<(), TestCaseError>) {
    let mut tree = Tree::new(home, can_mount);
    tree.fill(tops);
    let before = shot(&tree);
    let ours: Vec<PathBuf> = before.keys().filter(|path| tree.is_ours(path)).cloned().collect();
    DataFolder::leftovers(&tree.parent, RUN);
    volume::reap(&tree.parent);
    if let Ok(made) = DataFolder::create(&tree.parent, RUN, "0001-redb") {
        made.remove().unwrap();
    }
    let after = shot(&tree);
    let changed = before.iter().filter(|(path, text)| after.get(*path) != Some(text)).map(|(path, _)| path);
    let wrong: Vec<&PathBuf> = changed.clone().filter(|path| !ours.contains(path)).collect();
    let new: Vec<&PathBuf> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    let is_right = wrong.is_empty() && new.is_empty();
    let outcome =
        if is_right { Ok(()) } else { Err(TestCaseError::fail(format!("changed {wrong:?}, new {new:?}"))) };
    (changed.count(), outcome)
}

#[test]
fn nothing_outside_our_own_folders_is_changed_in_ten_thousand_hostile_trees() {
    // A thread has a namespace of its own, so that no mount is left, however the test ends.
    let tested = std::thread::spawn(|| {
        let can_mount = volume::enter_own_namespace().is_ok();
        if !can_mount {
            println!("SKIPPED: the trees with mounts: mounting is not permitted");
        }
        let shared = Path::new(volume::IMAGES);
        let place = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        let home = tempfile::tempdir_in(place).unwrap();
        let made = Command::new("mkfifo").arg(home.path().join("pipe")).status();
        assert!(made.unwrap().success());
        let removed = std::cell::Cell::new(0);
        let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
        let trees = prop::collection::vec(top(), 1..4);
        let outcome = TestRunner::new(config).run(&trees, |tops| {
            let case = home.path().join("case");
            let (count, outcome) = try_tree(&case, &tops, can_mount);
            removed.set(removed.get() + count);
            fs::remove_dir_all(&case).unwrap();
            outcome
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
        // If little is removed, the test shows little.
        assert!(removed.get() > CASES as usize / 2, "only {} of our own files were removed", removed.get());
    });
    tested.join().unwrap();
}
