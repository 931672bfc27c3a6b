#!/usr/bin/env python3
"""Shows whether marks of disturbed runs predict slow runs: other programs come and go while engines are measured.

    benches/disturbances.py KVDYNO                        four engines, 30 runs: about ten minutes
    RUNS=10 SECONDS_EACH=0.3 KEYS=50k ENGINES=memory-btree,lmdb KIND=stream SEED=7 benches/disturbances.py KVDYNO

The disturbance is one of KINDS, drawn anew each time, or KIND: a busy loop on each CPU (`busy`), copies of 256 MiB on each CPU
(`stream`), and copies of 4 MiB on each CPU (`thrash`). It is on and off for 2 to 12 seconds in turn, from a seed that is printed;
each begin and end is in `disturbances.csv` in the folder of the results, which is kept and printed.

A run of a phase is slow if its rate is in the lowest quarter of its cell. The table has for each figure the area under its ROC
curve (AUC): the probability that it is larger in a slow run than in another one; 0.5 is a coin. `mark` is what runs are marked by:
the larger of `pace`, the largest change of the probe around the phase, and `wait`, how much slower waits for a CPU made it.
Below them are the parts of the pace, and what older versions marked runs by. `known` is the
share of the trial in which the disturbance was on, which no mark can know. Let nothing else run on the machine.
"""

import csv
import glob
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime

KINDS = ["busy", "stream", "thrash"]
PARTS = ["registers_ns", "cache_ns", "memory_ns"]
# The shares over which older versions marked a run.
OLD_LIMITS = {"run_delay_share": 0.02, "steal_share": 0.01, "other_cpu_share": 0.10}


def work(kind):
    """Disturbs until it is killed."""
    if kind == "busy":
        while True:
            pass
    size = {"stream": 256 << 20, "thrash": 4 << 20}[kind]
    source, target = memoryview(bytearray(size)), memoryview(bytearray(size))
    while True:
        target[:] = source


def disturb(kinds, seed, file, stop):
    """Lets disturbances come and go, and writes the kind, the begin and the end of each, seconds since 1970."""
    draw = random.Random(seed)
    with open(file, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["kind", "from", "until"])
        while not stop.wait(draw.uniform(2, 12)):
            kind = draw.choice(kinds)
            workers = [multiprocessing.Process(target=work, args=(kind,)) for _ in range(os.cpu_count())]
            for worker in workers:
                worker.start()
            start = time.time()
            stop.wait(draw.uniform(2, 12))
            for worker in workers:
                worker.kill()
                worker.join()
            rows.writerow([kind, f"{start:.3f}", f"{time.time():.3f}"])
            out.flush()


def auc(found, figure):
    """The area under the ROC curve of a figure, and the number of runs that have it."""
    known = sorted((row[figure], row["is_slow"]) for row in found if row.get(figure) is not None)
    slow = sum(is_slow for _, is_slow in known)
    if not slow or slow == len(known):
        return None, len(known)
    ranks, at = 0.0, 0
    while at < len(known):
        end = at
        while end < len(known) and known[end][0] == known[at][0]:
            end += 1
        # Equal values share the mean of their ranks, which begin at 1.
        ranks += sum(is_slow for _, is_slow in known[at:end]) * (at + 1 + end) / 2
        at = end
    return (ranks - slow * (slow + 1) / 2) / (slow * (len(known) - slow)), len(known)


def overlap(start, end, spans):
    """The share of a time in which a disturbance was on, and the kinds that were."""
    shared = [(kind, min(end, until) - max(start, begin)) for kind, begin, until in spans]
    shared = [(kind, seconds) for kind, seconds in shared if seconds > 0]
    return sum(seconds for _, seconds in shared) / (end - start), {kind for kind, _ in shared}


def rows_of(report, spans):
    """One row for each run of each phase that has figures."""
    records = {record["trial"]["id"]: record for record in report["records"]}
    paces = [
        pace
        for record in records.values()
        for phase in record["phases"]
        for pace in map((phase.get("noise") or {}).get, ["pace_before", "pace_after"])
        if pace
    ]
    usual = {part: statistics.median(pace[part] for pace in paces) for part in PARTS} if paces else {}
    found = []
    for phase in report["summary"]["phases"]:
        for group in phase["groups"]:
            for cell in group["cells"]:
                runs = [run for run in cell["runs"] if run.get("ops_per_second")]
                order = sorted(run["ops_per_second"] for run in runs)
                limit = order[max(len(order) // 4 - 1, 0)] if len(order) >= 4 else 0.0
                for run in runs:
                    record = records[run["trial"]]
                    noise = next(own for own in record["phases"] if own["phase"]["name"] == phase["name"])["noise"]
                    own = [noise[name] for name in ("pace_before", "pace_after") if noise.get(name)]
                    start = datetime.fromisoformat(record["started_at"].replace("Z", "+00:00")).timestamp()
                    known, kinds = overlap(start, start + record["noise"]["elapsed_ns"] / 1e9, spans)
                    row = {"is_slow": run["ops_per_second"] <= limit, "kinds": kinds, "known": known}
                    row["pace"], row["wait"] = (run.get("pace_change") or {}).get("share"), run.get("wait_change")
                    row["mark"] = max([row[name] for name in ("pace", "wait") if row[name] is not None], default=None)
                    row["is_marked"] = bool(run.get("disturbed"))
                    for part in PARTS:
                        row[part] = statistics.mean(pace[part] for pace in own) / usual[part] - 1 if own else None
                    row.update({name: noise.get(name) for name in OLD_LIMITS})
                    shares = [row[name] is not None and row[name] > most for name, most in OLD_LIMITS.items()]
                    row["old mark"] = float(any(shares))
                    found.append(row)
    return found


def print_table(found, title):
    print(f"\n{title}: {len(found)} runs of phases, {sum(row['is_slow'] for row in found)} of them slow")
    print(f"{'figure':16} {'AUC':>5} {'runs':>5}")
    for figure in ["mark", "pace", "wait", *PARTS, "old mark", *OLD_LIMITS, "known"]:
        area, runs = auc(found, figure)
        print(f"{figure:16} {'-' if area is None else f'{area:.2f}':>5} {runs:5}", flush=True)
    for name, is_marked in [("marked", True), ("not marked", False)]:
        own = [row["is_slow"] for row in found if row["is_marked"] == is_marked]
        slow = f"{100 * sum(own) / len(own):.0f} % of them slow" if own else "-"
        print(f"{name}: {len(own)} runs, {slow}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    env = os.environ.get
    seed, kind = int(env("SEED", str(random.SystemRandom().randrange(1 << 32)))), env("KIND")
    folder = tempfile.mkdtemp(prefix="disturbances-")
    print(f"seed {seed}, results in {folder}", flush=True)
    stop = multiprocessing.Event()
    log = os.path.join(folder, "disturbances.csv")
    other = multiprocessing.Process(target=disturb, args=([kind] if kind else KINDS, seed, log, stop))
    other.start()
    try:
        command = [sys.argv[1], "run", env("WORKLOAD", "quick"), "--engines", env("ENGINES", "memory-btree,lmdb,redb,fjall")]
        command += ["--runs", env("RUNS", "30"), "--keys", env("KEYS", "200k"), "--seconds", env("SECONDS_EACH", "1")]
        command += ["--results", os.path.join(folder, "results"), "--data", os.path.join(folder, "data"), "--ignore-space"]
        done = subprocess.run(command, capture_output=True, text=True)
    finally:
        stop.set()
        other.join()
    runs = glob.glob(os.path.join(folder, "results", "*", "run.json"))
    if not runs:
        sys.exit(done.stderr)
    run = os.path.dirname(runs[0])
    report = json.loads(subprocess.run([sys.argv[1], "report", run, "--format", "json"], capture_output=True, check=True).stdout)
    with open(log) as lines:
        spans = [(row["kind"], float(row["from"]), float(row["until"])) for row in csv.DictReader(lines)]
    found = rows_of(report, spans)
    print_table(found, "All")
    for kind in KINDS:
        others = set(KINDS) - {kind}
        own = [row for row in found if not row["kinds"] & others]
        if any(row["kinds"] for row in own):
            print_table(own, f"Undisturbed, or only by {kind}")


if __name__ == "__main__":
    main()
