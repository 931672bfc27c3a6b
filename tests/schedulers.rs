//! The files in contrib/ with the schedulers themselves, on this machine: Slurm with two nodes, Open MPI with four ranks, GNU parallel
//! with two slots, and the manifest for Kubernetes against the schemas of Kubernetes.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const WORKLOAD: &str = "name = 'tiny'\nabout = 'A few ops.'\nkeys = 100\nruns = 4\ndurability = 'none'\n\
    [[phase]]\nname = 'load'\nmix = { put = 1 }\ndistribution = 'sequential'\neach_key = true\n\
    [[phase]]\nname = 'read'\nmix = { get = 1 }\nops = 1000\n";

const KVDYNO: &str = env!("CARGO_BIN_EXE_kvdyno");

/// The trials of the plan: two engines and null, four repetitions, two workloads.
const TRIALS: usize = 24;

fn contrib(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib").join(file)
}

/// Whether a program can be found; if not, prints what is skipped. With CI=true that is a failure.
fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let is_found =
        found.is_ok_and(|output| output.status.success()) || Path::new("/usr/sbin").join(program).is_file();
    if !is_found {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{program} is not installed");
        println!("skipped: {program} is not installed");
    }
    is_found
}

/// A folder with a plan, `plan.json`.
fn planned() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("tiny.toml"), WORKLOAD).unwrap();
    let words = "plan tiny.toml -o plan.json --engines memory-map,memory-btree --keys 100 --keys 200";
    let output = run(Command::new(KVDYNO).args(words.split(' ')), place.path());
    assert!(output.status.success(), "{}", text(&output));
    place
}

/// Runs a command that finds kvdyno in its path, and knows nothing of a scheduler above this test.
fn run(command: &mut Command, place: &Path) -> Output {
    let own = Path::new(KVDYNO).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}:/usr/sbin", own.display())).env("TMPDIR", place);
    command.env_remove("KVDYNO_PLUGINS").current_dir(place).stdin(Stdio::null());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Merges the results, and checks that each trial was measured once, in `slices` slices.
fn check_merged(place: &Path, slices: usize) {
    let words = "merge results -o all --plan plan.json";
    let output = run(Command::new(KVDYNO).args(words.split(' ')), place);
    assert!(output.status.success(), "{}", text(&output));
    let expected = format!("merged {TRIALS} records from {slices} runs on 1 machine");
    assert!(text(&output).contains(&expected), "{expected}: {}", text(&output));
    let journal = fs::read_to_string(place.join("all/journal.jsonl")).unwrap();
    assert_eq!(journal.lines().collect::<BTreeSet<_>>().len(), TRIALS);
    let report = run(Command::new(KVDYNO).args(["report", "all"]), place);
    println!("{}\n{}", text(&output), text(&report));
    assert!(report.status.success() && text(&report).contains("memory-btree"), "{}", text(&report));
}

/// Processes that are ended and waited for when the test ends, also if it fails.
struct Daemons(Vec<Child>);

impl Daemons {
    fn start(&mut self, program: &str, words: &[&str], place: &Path) {
        let mut command = Command::new(Path::new("/usr/sbin").join(program));
        command.args(words).env("SLURM_CONF", place.join("slurm.conf")).current_dir(place);
        let log = fs::File::create(place.join(format!("{program}-{}.txt", self.0.len()))).unwrap();
        self.0
            .push(command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        // The nodes first, then the controller. SIGTERM lets them end their steps.
        for child in self.0.iter_mut().rev() {
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(20) && matches!(child.try_wait(), Ok(None)) {
                std::thread::yield_now();
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ports that were free a moment ago.
fn free_ports(count: usize) -> Vec<u16> {
    let all: Vec<_> = (0..count).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    all.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// A configuration with two nodes on this machine that needs no other service.
fn slurm_configuration(place: &Path) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim().split('.').next().unwrap();
    let ports = free_ports(3);
    let (here, control, first, second) = (place.display(), ports[0], ports[1], ports[2]);
    format!(
        "ClusterName=kvdyno\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/none\nCredType=cred/none\nSlurmctldPort={control}\nStateSaveLocation={here}/state\n\
         SlurmdSpoolDir={here}/spool-%n\nSlurmctldPidFile={here}/slurmctld.pid\nSlurmdPidFile={here}/slurmd-%n.pid\n\
         SlurmctldLogFile={here}/slurmctld.log\nSlurmdLogFile={here}/slurmd-%n.log\nProctrackType=proctrack/pgid\n\
         TaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\nMpiDefault=none\n\
         ReturnToService=2\n\
         NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2 State=UNKNOWN\n\
         NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2 State=UNKNOWN\n\
         PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    )
}

/// Starts Slurm with two nodes in a folder; none: it is not installed, or this is not root.
fn slurm(place: &Path) -> Option<Daemons> {
    if !["slurmctld", "slurmd", "sbatch", "sinfo"].into_iter().all(has) {
        return None;
    }
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("skipped: slurmd needs root");
        return None;
    }
    fs::write(place.join("slurm.conf"), slurm_configuration(place)).unwrap();
    for folder in ["state", "spool-node1", "spool-node2"] {
        fs::create_dir(place.join(folder)).unwrap();
    }
    let mut daemons = Daemons(Vec::new());
    daemons.start("slurmctld", &["-D"], place);
    daemons.start("slurmd", &["-D", "-N", "node1"], place);
    daemons.start("slurmd", &["-D", "-N", "node2"], place);
    let start = Instant::now();
    while !text(&in_slurm("sinfo", &["-h", "-o", "%t %D"], place)).contains("idle 2") {
        let logs = || fs::read_to_string(place.join("slurmctld.log")).unwrap_or_default();
        assert!(start.elapsed() < Duration::from_secs(60), "the nodes are not idle:\n{}", logs());
    }
    Some(daemons)
}

/// Runs a command of Slurm.
fn in_slurm(program: &str, words: &[&str], place: &Path) -> Output {
    run(Command::new(program).args(words).env("SLURM_CONF", place.join("slurm.conf")), place)
}

#[test]
#[ignore = "needs Slurm and root; `make test-all` runs it"]
fn a_slurm_array_measures_each_slice_on_a_node() {
    let place = planned();
    let place = place.path();
    let Some(_daemons) = slurm(place) else { return };
    let script = contrib("slurm-array.sbatch");
    let words = ["--wait", "--array=1-4", script.to_str().unwrap(), "plan.json", "results"];
    let output = in_slurm("sbatch", &words, place);
    let outputs = || -> String {
        let all = fs::read_dir(place).unwrap().flatten().map(|entry| entry.path());
        let mut all: Vec<PathBuf> =
            all.filter(|path| path.extension().is_some_and(|end| end == "out")).collect();
        all.sort();
        all.iter().map(|path| format!("{}:\n{}", path.display(), fs::read_to_string(path).unwrap())).collect()
    };
    println!("{}\n{}", text(&output), outputs());
    assert!(output.status.success(), "{}\n{}", text(&output), outputs());
    check_merged(place, 4);
}

#[test]
#[ignore = "needs Slurm, Open MPI and root; `make test-all` runs it"]
fn what_a_slurm_array_leaves_mpirun_measures_and_both_are_merged() {
    if !has("mpirun") {
        return;
    }
    let place = planned();
    let place = place.path();
    let Some(daemons) = slurm(place) else { return };
    // Two of four slices.
    let task = format!(
        "{KVDYNO} run --plan plan.json --shard auto/4 --results results --data data --progress plain"
    );
    let output = in_slurm("sbatch", &["--wait", "--array=1-2", "--wrap", &task], place);
    assert!(output.status.success(), "{}", text(&output));
    drop(daemons);
    let merged =
        run(Command::new(KVDYNO).args(["merge", "results", "-o", "half", "--plan", "plan.json"]), place);
    let expected = format!("merged {} records from 2 runs", TRIALS / 2);
    assert!(text(&merged).contains(&expected), "{expected}: {}", text(&merged));
    fs::write(place.join("hosts"), "localhost slots=1\n").unwrap();
    let mut command = Command::new(contrib("mpirun.sh"));
    command.args(["plan.json", "results", "hosts", "--allow-run-as-root", "--oversubscribe"]);
    let output = run(command.args(["--map-by", "node", "-n", "2"]), place);
    assert!(output.status.success(), "{}", text(&output));
    check_merged(place, 4);
}

#[test]
#[ignore = "needs Open MPI; `make test-all` runs it"]
fn mpirun_measures_a_slice_in_each_rank() {
    if !has("mpirun") {
        return;
    }
    let place = planned();
    let place = place.path();
    fs::write(place.join("hosts"), "localhost slots=1\n").unwrap();
    let mut command = Command::new(contrib("mpirun.sh"));
    command.args(["plan.json", "results", "hosts", "--allow-run-as-root", "--oversubscribe"]);
    // Four ranks on the one host, in place of one on each.
    let output = run(command.args(["--map-by", "node", "-n", "4"]), place);
    println!("{}", text(&output));
    assert!(output.status.success(), "{}", text(&output));
    check_merged(place, 4);
}

#[test]
#[ignore = "needs GNU parallel; `make test-all` runs it"]
fn gnu_parallel_measures_all_slices_on_its_hosts() {
    if !has("parallel") {
        return;
    }
    let place = planned();
    let place = place.path();
    fs::write(place.join("hosts"), "1/:\n").unwrap();
    let mut command = Command::new(contrib("parallel-ssh.sh"));
    let output = run(command.args(["plan.json", "results", "hosts", "3"]), place);
    println!("{}", text(&output));
    assert!(output.status.success(), "{}", text(&output));
    check_merged(place, 3);
}

#[test]
#[ignore = "needs kubernetes-validate from PyPI; `make test-all` runs it"]
fn the_manifest_for_kubernetes_matches_its_schema_and_a_damaged_one_does_not() {
    let program = std::env::var("KUBERNETES_VALIDATE").unwrap_or_else(|_| "kubernetes-validate".to_string());
    if !has(&program) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let manifest = fs::read_to_string(contrib("kubernetes-indexed-job.yaml")).unwrap();
    for (text_of, expected) in [
        (manifest.clone(), 0),
        (manifest.replace("completionMode", "completionMod"), 2),
        (manifest.replace("restartPolicy: Never", "restartPolicy: 3"), 1),
    ] {
        let file = place.path().join("job.yaml");
        fs::write(&file, &text_of).unwrap();
        let output = run(Command::new(&program).args(["--strict"]).arg(&file), place.path());
        let is_valid = output.status.success() && text(&output).matches(" passed ").count() == 2;
        assert_eq!(is_valid, expected == 0, "{}", text(&output));
    }
    // The variable that the job's controller sets is the one that `auto` reads.
    let slice = |index: &str| {
        let place = planned();
        let words = "run --plan plan.json --shard auto/8 --quiet";
        let mut command = Command::new(KVDYNO);
        run(command.args(words.split(' ')).env("JOB_COMPLETION_INDEX", index), place.path())
    };
    assert!(slice("7").status.success());
    assert!(text(&slice("8")).contains("Kubernetes reports slice 9 of 8"));
}
