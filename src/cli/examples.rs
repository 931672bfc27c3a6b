//! The examples in the help of the commands, the most used first.

pub(super) const RUN: &str = "Examples:
  kvdyno run quick                                        One engine of each kind, in two minutes
  kvdyno run ycsb-a --engines redb,sled                   Two engines with one workload
  kvdyno run quick -e all,-sled --keys 1M --runs 10       Other engines, keys and repetitions
  kvdyno run quick -e lsm --durability none,process,power Each durability level
  kvdyno run quick -e redb --threads 1,2,4,8              Does throughput scale?
  kvdyno run mine.toml --dry-run                          What would be run, and for how long
  kvdyno run --resume                                     Continue the newest run";

pub(super) const REPORT: &str = "Examples:
  kvdyno report                                      The newest run on one screen
  kvdyno report --full                               All its tables
  kvdyno report DIR --format csv                     For a spreadsheet; see --format for others
  kvdyno report DIR --baseline redb                  Ratios to an engine
  kvdyno report DIR --plot overview                  A chart as SVG
  kvdyno report DIR --site --out site                A website of all runs in DIR";

pub(super) const COMPARE: &str = "Examples:
  kvdyno compare BASE NEW                            What became faster or slower
  kvdyno compare BASE NEW --full                     All figures with their intervals
  kvdyno compare BASE NEW --figures rate,p99         Only some figures
  kvdyno compare BASE NEW --fail-on 'regression>5%'  For CI: exit code 10 for a regression";

pub(super) const ENGINES: &str = "Examples:
  kvdyno engines                   All engines, and which are available
  kvdyno engines redb              The details and options of one
  kvdyno engines lsm,-rust         All LSM trees that are not written in Rust
  kvdyno engines all --json        For programs";

pub(super) const CHOOSE: &str = "Examples:
  kvdyno choose                                             Answer questions
  kvdyno choose --durability power --reads 90 --dry-run     Which engines fit; measure nothing
  kvdyno choose --rate 20k --slo 'p99<1ms'                  Which engine serves 20,000 requests a second best";

pub(super) const WORKLOADS: &str = "Examples:
  kvdyno workloads                        All workloads and suites
  kvdyno workloads ycsb-a                 What one does
  kvdyno workloads quick --keys 1M        The same, with other settings
  kvdyno workloads quick --toml           Its file, as a start for your own";

pub(super) const SERVE: &str = "Examples:
  kvdyno serve redb                                   On port 6380 of this machine
  kvdyno serve redb --port 0 --durability power       On a free port, with a sync for each commit
  kvdyno serve sled --unix-socket /tmp/sled.sock      On a Unix socket";

pub(super) const DOCTOR: &str = "Examples:
  kvdyno doctor                    What can be measured here, and what disturbs it
  kvdyno doctor --data DIR         On the disk of this folder
  kvdyno doctor --self             Test kvdyno itself";

pub(super) const SLO: &str = "Examples:
  kvdyno slo ycsb-b --slo 'p99<1ms' -e lmdb,rocksdb              Which engine takes most requests within 1 ms?
  kvdyno slo ycsb-b --slo 'p99<1ms,p99.9<10ms' -e redb           Several limits at once
  kvdyno slo mine.toml --slo 'p99<5ms' --arrivals own            A queue for each thread";

pub(super) const AB: &str = "Examples:
  kvdyno ab ycsb-a --a old/libkvdyno_mine.so --b new/libkvdyno_mine.so         Two builds of a plug-in
  kvdyno ab ycsb-b --a rocksdb --b rocksdb:block_cache=64MiB                   Two settings of an engine
  kvdyno ab ycsb-a --a redb:durability=none --b redb:durability=power          Two durability levels
  kvdyno ab ycsb-a --a lmdb --b redb --b fjall --fail-on 'rate>5%'             Several against the first, for CI";

pub(super) const GUARD: &str = "Examples:
  kvdyno guard save base.json ycsb-a -e old/libkvdyno_mine.so      Save the counts of a build
  kvdyno guard check base.json -e new/libkvdyno_mine.so            Did one rise? Exit code 10 if so
  kvdyno guard save redb.json durable -e redb                      Which calls does a commit make?";

pub(super) const BISECT: &str = "Examples:
  kvdyno bisect ycsb-a --versions versions.txt                                 A file with a line `NAME ARM` for each
  kvdyno bisect ycsb-a --versions 1.2.0,1.2.1,1.3.0 --build ./build.sh         Each is built when it is needed
  kvdyno bisect ycsb-b --versions versions.txt --worse p99 --smallest 10%      A longer p99, from 10 % on";

pub(super) const HISTORY: &str = "Examples:
  kvdyno history add speed kvdyno-results --commit 1a2b3c4   The newest run, as that of a commit
  kvdyno history show speed                                  What changed, since which commit
  kvdyno history show speed --html history.html              The same with charts
  kvdyno history show speed --format otava > history.csv     For Apache Otava";

pub(super) const PLAN: &str = "Examples:
  kvdyno plan quick --engines all                Show how many trials, and how long they take
  kvdyno plan quick --engines all -o plan.json   Write the plan
  kvdyno run --plan plan.json --shard 1/4        Measure its first quarter, on one of four machines";

pub(super) const MERGE: &str = "Examples:
  kvdyno merge results-a results-b -o all        Merge the slices of two machines
  kvdyno report all                              Report them as one run";

pub(super) const KEYS: &str = "Examples:
  kvdyno keys make keys.bin --count 1M --key-size 16     A file of random keys
  kvdyno keys shuffle keys.bin --key-size 16             Shuffle it in place";

pub(super) const NEW_ENGINE: &str = "Examples:
  kvdyno new-engine mystore --lang c             A driver in C in the new folder mystore
  kvdyno new-engine mystore --lang rust drivers  In another folder";

pub(super) const COMPLETIONS: &str = "Examples:
  kvdyno completions bash > ~/.local/share/bash-completion/completions/kvdyno
  kvdyno completions zsh > ~/.zfunc/_kvdyno
  kvdyno completions fish > ~/.config/fish/completions/kvdyno.fish";

pub(super) const MAN: &str = "Examples:
  kvdyno man | man -l -                          Read them here
  kvdyno man --dir ~/.local/share/man/man1       Install them";
