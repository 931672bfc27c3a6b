//! The control groups of this process and their limits. Read-only; supports version 1, version 2 and both.

use super::mounts::{self, Mount};
use super::resources::read;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version 1 reports "no limit" as the largest number of whole pages.
const V1_UNLIMITED_FROM: u64 = 1 << 62;

/// A limit that may not exist; an unknown limit is no `Limit` at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The maximum, in the unit of the field.
    At(u64),
    /// No limit.
    Unlimited,
}

/// The groups of this process: the folders of the controllers that are read here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// In the single hierarchy of version 2.
    pub v2: Option<Group>,
    /// In version 1's memory controller.
    pub memory_v1: Option<Group>,
    /// In version 1's cpu controller.
    pub cpu_v1: Option<Group>,
    /// In version 1's controller of processes.
    pub pids_v1: Option<Group>,
}

/// A group, as a folder below the mount of its hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Where the hierarchy is mounted.
    pub mount: PathBuf,
    /// This process's group in it: the mount itself or a folder below it.
    pub folder: PathBuf,
}

impl Cgroups {
    /// The groups of this process; all `None` where there are no control groups.
    pub fn of_this_process() -> Self {
        let text = read("/proc/self/cgroup").unwrap_or_default();
        Self::find(&text, &mounts::all())
    }

    fn find(text: &str, mounts: &[Mount]) -> Self {
        let mut groups = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let has = |name: &str| controllers.split(',').any(|controller| controller == name);
            if number == "0" && controllers.is_empty() {
                groups.v2 = Group::find(mounts, path, |mount| mount.kind == "cgroup2");
            }
            let v1 = |name: &'static str| {
                Group::find(mounts, path, |mount| {
                    mount.kind == "cgroup" && mount.options.iter().any(|o| o == name)
                })
            };
            if has("memory") {
                groups.memory_v1 = v1("memory");
            }
            if has("cpu") {
                groups.cpu_v1 = v1("cpu");
            }
            if has("pids") {
                groups.pids_v1 = v1("pids");
            }
        }
        groups
    }

    /// `v1`, `v2` or `v1+v2` (both are mounted); `None` if there are no control groups.
    pub fn versions(&self) -> Option<String> {
        let v1 = self.memory_v1.is_some() || self.cpu_v1.is_some();
        match (v1, self.v2.is_some()) {
            (true, true) => Some("v1+v2".into()),
            (true, false) => Some("v1".into()),
            (false, true) => Some("v2".into()),
            (false, false) => None,
        }
    }

    /// The lowest memory limit of this group and the groups above it, bytes; `None` if unknown.
    pub fn memory_limit_bytes(&self) -> Option<Limit> {
        let v1 =
            self.memory_v1.as_ref().and_then(|group| group.tightest("memory.limit_in_bytes", parse_v1_bytes));
        let v2 = self.v2.as_ref().and_then(|group| group.tightest("memory.max", parse_v2_bytes));
        v1.into_iter().chain(v2).min()
    }

    /// The lowest CPU limit of this group and the groups above it, thousandths of one CPU; `None` if unknown.
    pub fn cpu_limit_thousandths(&self) -> Option<Limit> {
        let v2 = self.v2.as_ref().and_then(|group| group.tightest("cpu.max", parse_v2_quota));
        let v1 = self.cpu_v1.as_ref().and_then(Group::v1_quota);
        v1.into_iter().chain(v2).min()
    }
}

impl Group {
    fn find(mounts: &[Mount], path: &str, is_wanted: impl Fn(&Mount) -> bool) -> Option<Self> {
        let mount = mounts.iter().rev().find(|mount| is_wanted(mount))?;
        // Inside a container, the mount shows only the part of the hierarchy below `root`.
        let inside = Path::new(path).strip_prefix(&mount.root).ok()?;
        let folder = mount.point.join(inside);
        let folder = if folder.is_dir() { folder } else { mount.point.clone() };
        Some(Self { mount: mount.point.clone(), folder })
    }

    /// This group, then the groups above it up to the mount.
    pub(super) fn upward(&self) -> impl Iterator<Item = &Path> {
        self.folder.ancestors().take_while(|folder| folder.starts_with(&self.mount))
    }

    fn tightest(&self, file: &str, parse: fn(&str) -> Option<Limit>) -> Option<Limit> {
        let texts = self.upward().filter_map(|folder| std::fs::read_to_string(folder.join(file)).ok());
        texts.filter_map(|text| parse(&text)).min()
    }

    fn v1_quota(&self) -> Option<Limit> {
        let number = |folder: &Path, file: &str| -> Option<i64> {
            std::fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
        };
        let quota = |folder: &Path| {
            v1_quota(number(folder, "cpu.cfs_quota_us")?, number(folder, "cpu.cfs_period_us")?)
        };
        self.upward().filter_map(quota).min()
    }
}

fn parse_v1_bytes(text: &str) -> Option<Limit> {
    let bytes: u64 = text.trim().parse().ok()?;
    Some(if bytes >= V1_UNLIMITED_FROM { Limit::Unlimited } else { Limit::At(bytes) })
}

fn parse_v2_bytes(text: &str) -> Option<Limit> {
    match text.trim() {
        "max" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::At),
    }
}

/// `max 100000` or `150000 100000`: quota and period.
fn parse_v2_quota(text: &str) -> Option<Limit> {
    let (quota, period) = text.trim().split_once(' ')?;
    if quota == "max" {
        return Some(Limit::Unlimited);
    }
    v1_quota(quota.parse().ok()?, period.parse().ok()?)
}

/// A negative quota means no limit.
fn v1_quota(quota_us: i64, period_us: i64) -> Option<Limit> {
    if quota_us < 0 {
        return Some(Limit::Unlimited);
    }
    let thousandths = quota_us.checked_mul(1000)?.checked_div(period_us)?;
    u64::try_from(thousandths).ok().map(Limit::At)
}

#[cfg(test)]
mod tests {
    use super::{Cgroups, Limit, mounts, parse_v1_bytes, parse_v2_bytes, parse_v2_quota, v1_quota};

    #[test]
    fn reads_limits_of_both_versions() {
        assert_eq!(parse_v1_bytes("9223372036854771712\n"), Some(Limit::Unlimited));
        assert_eq!(parse_v1_bytes("67108864\n"), Some(Limit::At(67_108_864)));
        assert_eq!(parse_v2_bytes("max\n"), Some(Limit::Unlimited));
        assert_eq!(parse_v2_bytes("x"), None);
        assert_eq!(parse_v2_quota("max 100000\n"), Some(Limit::Unlimited));
        assert_eq!(parse_v2_quota("150000 100000\n"), Some(Limit::At(1500)));
        assert_eq!(parse_v2_quota("150000\n"), None);
        assert_eq!(v1_quota(-1, 100_000), Some(Limit::Unlimited));
        assert_eq!(v1_quota(5, 0), None);
    }

    #[test]
    fn the_tightest_limit_is_the_least() {
        assert_eq!([Limit::Unlimited, Limit::At(5), Limit::At(3)].into_iter().min(), Some(Limit::At(3)));
    }

    #[test]
    fn finds_the_limit_of_a_group_above_ours() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("service/ours");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(top.path().join("service/memory.max"), "4096\n").unwrap();
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        std::fs::write(inner.join("cpu.max"), "50000 100000\n").unwrap();
        let table = format!("30 1 0:28 / {} rw - cgroup2 none rw\n", top.path().display());
        let groups = Cgroups::find("0::/service/ours\nbroken\n", &mounts::parse(&table));
        assert_eq!(groups.versions().as_deref(), Some("v2"));
        assert_eq!(groups.memory_limit_bytes(), Some(Limit::At(4096)));
        assert_eq!(groups.cpu_limit_thousandths(), Some(Limit::At(500)));
    }

    #[test]
    fn knows_both_versions_side_by_side() {
        let table = "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n\
                     41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
        let groups = Cgroups::find("4:memory:/a\n1:cpu,cpuacct:/\n0::/\n", &mounts::parse(table));
        assert_eq!(groups.versions().as_deref(), Some("v1+v2"));
        assert_eq!(groups.cpu_v1, None);
        assert_eq!(Cgroups::find("", &[]).versions(), None);
    }
}
