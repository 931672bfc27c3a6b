#!/usr/bin/env python3
"""Which part of `kvdyno prove` finds which durability bug, and is a right store ever accused?

Builds the store of tests/planted/ledger.c, which is right or wrong in one way, tests each way at default numbers, and prints a table
in Markdown: how many kills, power cuts and states each part found to be wrong, of how many. What it needs: cc, and for power cuts
and replay what `kvdyno doctor` says.

    benches/planted.py --kvdyno target/release/kvdyno
    benches/planted.py --kvdyno target/release/kvdyno --only right --rounds 1000 --states 10000
    benches/planted.py --kvdyno target/release/kvdyno --only skip-16,skip-200 --seed 7
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

RIGHT = {
    "sound": "a log with checkpoints; each commit is written, then synced",
    "dsync": "the log is open with O_DSYNC",
    "direct": "the log is open with O_DIRECT, and synced",
    "rwf": "writes with RWF_DSYNC",
    "mapped": "the log is mapped; msync with MS_SYNC",
    "syncfs": "syncfs instead of fdatasync",
    "by-thread": "another thread syncs, and the commit waits for it",
    "group": "group commit: a commit waits for a sync that began after its write",
    "recycles": "the log is overwritten from its beginning; frames name their checkpoint",
    "heads": "the log is synced, then one of two heads that say where it ends",
    "double": "8 KiB in place, behind a double-write buffer that repairs them",
    "uring": "io_uring: a write, linked with an fsync",
}

WRONG = {
    "no-sync": "no sync",
    "sync-other": "another file is synced",
    "sync-first": "the sync is before the write",
    "sync-range": "sync_file_range instead of fdatasync",
    "timer": "a thread syncs every 5 ms, and no commit waits for it",
    "map-async": "msync with MS_ASYNC",
    "map-none": "no msync",
    "map-last": "msync of the last page only",
    "skip-16": "no sync in 1 of 16 commits",
    "skip-200": "no sync in 1 of 200 commits",
    "skip-rows": "no sync beyond 1,000 keys",
    "skip-long": "no sync beyond 4 MiB of log",
    "skip-many": "no sync beyond 10,000 commits",
    "skip-reopened": "no sync after a reopen",
    "skip-overwrites": "no sync of overwrites",
    "skip-large": "no sync of values beyond 4,000 bytes",
    "group-joins": "group commit that joins a sync which is already running",
    "direct-unflushed": "O_DIRECT without a flush",
    "direct-tail": "O_DIRECT, and what fills no block stays in memory",
    "buffered": "a buffer of 64 KiB in the process",
    "by-thread-late": "another thread writes after the acknowledgement",
    "sum-less": "a preallocated log without checksums",
    "recycled": "a recycled log whose stale records are accepted",
    "torn-tail": "a growing log without checksums",
    "recover-in-place": "recovery empties the log and writes it again",
    "behind-torn": "new records are appended behind a torn one",
    "no-deletes": "deletes are not logged",
    "two-logs": "a transaction in two files",
    "no-end-mark": "a transaction as several records without an end mark",
    "empties-early": "the log is emptied before the checkpoint is in place",
    "rename-unsynced": "the checkpoint is renamed without a sync of the file",
    "drops-concurrent": "a checkpoint drops commits that were made meanwhile",
    "close-unsynced": "no syncs in close",
    "double-no-barrier": "no sync between the double-write buffer and the pages",
    "double-not-rewritten": "recovery reads the double-write buffer and leaves the torn pages",
    "in-place": "8 KiB in place, without a double-write buffer for single rows",
    "head-one-sync": "rows and head under one sync",
    "wide-head": "a head that must be written as 4 KiB at once",
    "uring-unsynced": "io_uring without an fsync",
    "uring-ignored": "results of io_uring are ignored",
    "short-ignored": "a short write is taken for a whole one",
}

LOSSES = {"LOST", "HOLES", "DUPLICATE", "GARBAGE", "CHANGED", "OPEN-FAILED", "OPEN-HUNG"}


def parts(options):
    """The columns: a name, and the arguments of `kvdyno prove`."""
    rounds = ["--rounds", str(options.rounds)] if options.rounds else []
    states = ["--states", str(options.states)] if options.states else []
    cut = ["--only", "crash", "--durability", "power"]
    return {
        "syncs": ["--only", "syncs"],
        "kill": ["--only", "crash", "--mode", "kill", *rounds],
        "calls": ["--only", "crash", "--mode", "calls"],
        "cut": [*cut, "--mode", "cut", *rounds],
        "replay": [*cut, "--mode", "replay", *states],
        "replay, other": [*cut, "--mode", "replay", "--file-system", "ext4-writeback", "--tears", *states],
        "faults": ["--only", "faults"],
    }


def prove(options, plugins, way, arguments):
    """What a part says of a way: the number of cases that are wrong, of all cases, and what they are."""
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        command = [options.kvdyno, "prove", "ledger", "--plugins", plugins, "--option", f"ledger.way={way}", "--json"]
        command += ["--seed", str(options.seed), *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    try:
        rows = json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    wrong, cases, kinds, skipped = 0, 0, collections.Counter(), set()
    for row in rows:
        if "cells" in row:
            for cell in row["cells"]:
                if cell.get("skipped"):
                    skipped.add(cell["skipped"])
                cases += sum(cell["verdicts"].values())
                # What a level does not claim is no finding.
                verdicts = cell["verdicts"] if row["contradicted"] else {}
                found = {kind: count for kind, count in verdicts.items() if kind in LOSSES}
                kinds.update(found)
                wrong += sum(found.values())
        elif "points" in row:
            cases += len(row["points"])
            skipped.update([row["skipped"]] if row.get("skipped") else [])
            broken = [point["reaction"] for point in row["points"] if point["reaction"] in ("broken", "hung")]
            kinds.update(broken)
            wrong += len(broken)
        else:
            cases += 1
            wrong += row["verdict"] == "contradicted"
            skipped.update([row["unseen"]] if row.get("unseen") else [])
    return wrong, cases, kinds, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvdyno", required=True, help="the program")
    parser.add_argument("--only", help="ways, by commas, or `right` or `wrong`")
    parser.add_argument("--parts", help="parts, by commas [default: all]")
    parser.add_argument("--rounds", type=int, help="kills and power cuts [default: that of kvdyno]")
    parser.add_argument("--states", type=int, help="states of replay [default: that of kvdyno]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="ways that are tested at a time")
    parser.add_argument("--data", default="/dev/shm", help="where the databases are made")
    options = parser.parse_args()
    options.kvdyno = str(pathlib.Path(options.kvdyno).resolve())
    ways = RIGHT | WRONG
    if options.only:
        groups = {"right": list(RIGHT), "wrong": list(WRONG)}
        chosen = [way for name in options.only.split(",") for way in groups.get(name, [name])]
        unknown = [way for way in chosen if way not in ways]
        if unknown:
            sys.exit(f"there is no way {', '.join(unknown)}")
        ways = {way: ways[way] for way in chosen}
    columns = parts(options)
    if options.parts:
        columns = {name: columns[name] for name in options.parts.split(",")}
    with tempfile.TemporaryDirectory() as plugins:
        build = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT}/driver/include"]
        build += [str(ROOT / "tests/planted/ledger.c"), "-o", f"{plugins}/libkvdyno_ledger.so", "-lpthread"]
        subprocess.run(build, check=True)
        print("| way | what it does | " + " | ".join(columns) + " |")
        print("|---|---|" + "---|" * len(columns))
        missed, accused, blind = [], [], collections.defaultdict(set)

        def test(way):
            return [prove(options, plugins, way, arguments) for arguments in columns.values()]

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for way, found in zip(ways, pool.map(test, ways)):
                cells = []
                for name, (wrong, cases, kinds, skipped) in zip(columns, found):
                    text = f"{wrong} of {cases}" if wrong or cases else "-"
                    named = ", ".join(kind for kind, _ in kinds.most_common())
                    cells.append(f"**{text}** {named}".strip() if wrong else text)
                    for reason in skipped:
                        blind[f"{name}: {reason}"].add(way)
                print(f"| {way} | {ways[way]} | " + " | ".join(cells) + " |", flush=True)
                is_found = any(wrong for wrong, *_ in found)
                if is_found and way in RIGHT:
                    accused.append(way)
                if not is_found and way in WRONG:
                    missed.append(way)
    print()
    for reason, of in sorted(blind.items()):
        print(f"- {reason}: {', '.join(of)}")
    wrong = [way for way in ways if way in WRONG]
    print(f"- {len(wrong) - len(missed)} of {len(wrong)} wrong ways are found" + (f"; not {', '.join(missed)}." if missed else "."))
    print(f"- {len(accused)} of {len(ways) - len(wrong)} right ways are accused" + (f": {', '.join(accused)}." if accused else "."))
    sys.exit(1 if missed or accused else 0)


if __name__ == "__main__":
    main()
