//! The mount table of this thread, as in `/proc/thread-self/mountinfo`.

use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// Major and minor number of its device, `254:0`.
    pub(super) device: String,
    /// The mounted part of the file system.
    pub(super) root: PathBuf,
    /// The mount point.
    pub(super) point: PathBuf,
    /// `ext4`, `tmpfs` ...
    pub(super) kind: String,
    /// The mounted source: a device, or any word.
    pub(super) source: String,
    /// Options of the mount and of the file system.
    pub(super) options: Vec<String>,
}

/// All mounts, in the order of mounting; empty where the kernel has no such table.
pub(super) fn all() -> Vec<Mount> {
    super::resources::read("/proc/thread-self/mountinfo").map(|text| parse(&text)).unwrap_or_default()
}

/// The mount that holds a path without symbolic links: the deepest, and of several at one place the last.
pub(super) fn of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let holds = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    holds.max_by_key(|mount| mount.point.components().count())
}

/// The mount points at and below a folder.
pub fn mounts_below(folder: &Path) -> Vec<PathBuf> {
    // The table has no symbolic links.
    let Ok(folder) = folder.canonicalize() else { return Vec::new() };
    all().into_iter().map(|mount| mount.point).filter(|point| point.starts_with(&folder)).collect()
}

/// Lines that are not mounts are skipped.
pub(super) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

/// `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard`; any number of fields may precede the dash.
fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    let options = left.get(5)?.split(',').chain(right.get(2)?.split(','));
    let mut distinct: Vec<String> = Vec::new();
    for option in options {
        if !distinct.iter().any(|known| known == option) {
            distinct.push(option.to_owned());
        }
    }
    Some(Mount {
        device: (*left.get(2)?).to_owned(),
        root: unescaped(left.get(3)?).into(),
        point: unescaped(left.get(4)?).into(),
        kind: (*right.first()?).to_owned(),
        source: unescaped(right.get(1)?),
        options: distinct,
    })
}

/// Space, tab, line feed and backslash are three octal digits after a backslash.
fn unescaped(word: &str) -> String {
    let pairs = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    pairs.iter().fold(word.to_owned(), |word, (code, text)| word.replace(code, text))
}

#[cfg(test)]
mod tests {
    use super::{of, parse};
    use std::path::Path;

    const TEXT: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
        28 27 0:25 / /mnt/with\\040space ro - tmpfs none ro,size=4k\n\
        29 27 7:0 /sub /data rw - xfs /dev/loop0 rw\n\
        30 27 0:30 / /data rw - tmpfs tmpfs rw\n\
        broken line\n31 27 0:31 / /x rw - \n";

    #[test]
    fn reads_mounts_and_leaves_out_broken_lines() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 5);
        assert_eq!(mounts[1].options, ["rw", "relatime", "discard"]);
        assert_eq!(mounts[2].point, Path::new("/mnt/with space"));
        assert_eq!((mounts[3].kind.as_str(), mounts[3].device.as_str()), ("xfs", "7:0"));
    }

    #[test]
    fn a_path_lies_on_the_deepest_and_latest_mount() {
        let mounts = parse(TEXT);
        let kind = |path: &str| of(&mounts, Path::new(path)).map(|mount| mount.kind.as_str());
        assert_eq!(kind("/data/db"), Some("tmpfs"));
        assert_eq!(kind("/database"), Some("ext4"));
        assert_eq!(kind("/proc"), Some("proc"));
        assert_eq!(of(&[], Path::new("/")), None);
    }
}
