#!/usr/bin/env python3
"""Compares the harness's own work per op of two builds: alternating runs, nanoseconds outside the engine's calls.

    benches/before-after.py BEFORE AFTER              all cases, about four minutes
    ROUNDS=3 SECONDS_EACH=0.3 benches/before-after.py BEFORE AFTER ycsb-c null-get

Prints for each case and engine the lower quartile of the rounds, and the ratio. A round runs both builds, in turns first. For
engines that store nothing, the figure is the complete time of an op.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

# Workload, keys, engines, whether a row is counted and not an op, more arguments.
CASES = {
    "get-200k": ("read-random", "200k", "memory-btree,lmdb", False, []),
    "get-5M": ("read-random", "5M", "memory-btree,lmdb", False, []),
    "ycsb-c-1M": ("ycsb-c", "1M", "memory-btree,lmdb", False, []),
    "ycsb-a-1M": ("ycsb-a", "1M", "memory-btree,lmdb", False, []),
    "scan-row-1M": ("scan-short", "1M", "memory-btree,lmdb", True, []),
    "null-get": ("read-random", "1M", "null,null-go", False, []),
    "null-put": ("overwrite", "1M", "null,null-go", False, []),
    "null-ycsb-c": ("ycsb-c", "1M", "null", False, []),
}


def measure(build, case, seconds):
    """Nanoseconds per op or row of each engine."""
    workload, keys, engines, is_row, more = CASES[case]
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        command = [build, "run", workload, "--engines", engines, "--keys", keys, "--seconds", seconds]
        command += ["--runs", "1", "--results", folder, "--ignore-space"] + more
        done = subprocess.run(command, capture_output=True, text=True)
        found = {}
        for file in glob.glob(folder + "/*/trials/*/record.json"):
            record = json.load(open(file))
            phase, engine = record["phases"][-1], record["trial"]["engine"]
            threads = phase["threads"]
            outside = sum(thread["elapsed_ns"] - thread["inside_ns"] for thread in threads)
            if engine.startswith("null"):
                outside = sum(thread["elapsed_ns"] for thread in threads)
            count = sum(kind["rows"] for kind in phase["kinds"]) if is_row else phase["ops"]
            if count:
                found[engine] = outside / count
        if not found:
            print(f"{build} {workload}: {done.stderr.strip()[-400:]}", file=sys.stderr)
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    builds, cases = sys.argv[1:3], sys.argv[3:] or list(CASES)
    unknown = [case for case in cases if case not in CASES]
    if unknown:
        sys.exit(f"unknown case `{unknown[0]}`; the cases are {', '.join(CASES)}")
    rounds, seconds = int(os.environ.get("ROUNDS", "5")), os.environ.get("SECONDS_EACH", "0.5")
    print(f"{'case':12} {'engine':13} {'before':>8} {'after':>8} {'ratio':>7}   ns, lower quartile of {rounds} rounds")
    for case in cases:
        found = {}
        for turn in range(rounds):
            for build in builds if turn % 2 == 0 else reversed(builds):
                for engine, cost in measure(build, case, seconds).items():
                    found.setdefault(engine, {}).setdefault(build, []).append(cost)
        for engine in CASES[case][2].split(","):
            costs = [sorted(found.get(engine, {}).get(build, [])) for build in builds]
            before, after = [each[len(each) // 4] if each else None for each in costs]
            text = [f"{cost:8.1f}" if cost else f"{'-':>8}" for cost in (before, after)]
            ratio = f"{after / before:7.3f}" if before and after else f"{'-':>7}"
            print(f"{case:12} {engine:13} {text[0]} {text[1]} {ratio}", flush=True)


if __name__ == "__main__":
    main()
