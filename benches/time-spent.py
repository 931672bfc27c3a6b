#!/usr/bin/env python3
"""Where the time of a run goes: seconds of each phase and step, from the records of its trials.

    benches/time-spent.py RUN [RUN...]      folders of runs (kvdyno-results/...), each a column
    benches/time-spent.py --engines RUN     the same per engine, a row each

`planned` is the limit of a phase: one that takes less has ended by its number of ops. A workload with a time budget assumes rates
of fills and sweeps (crates/core/src/workload/shrink.rs), which this shows to be right or wrong. `other` is what is in no phase and no step: the start of processes, and whatever the harness does between them.
"""

import collections
import glob
import json
import os
import sys


def records(run):
    """The records of a run's trials."""
    found = []
    for path in sorted(glob.glob(os.path.join(run, "trials", "*", "record.json"))):
        with open(path) as file:
            found.append(json.load(file))
    return found


def spent(record):
    """Seconds of each part of a trial."""
    parts = collections.OrderedDict()
    for phase in record["phases"]:
        name = phase["phase"]["name"]
        parts[name] = parts.get(name, 0) + phase["elapsed_ns"] / 1e9
    for step in record["steps"]:
        sampled = step["name"] == "sweep" and " keys, drawn at random" in (step["note"] or "")
        name = "(sweep of a sample)" if sampled else f"({step['name']})"
        parts[name] = parts.get(name, 0) + step["elapsed_ns"] / 1e9
    elapsed = (record.get("noise") or {}).get("elapsed_ns", 0) / 1e9
    parts["other"] = max(elapsed - sum(parts.values()), 0)
    return parts


def planned(record):
    """Planned seconds of the phases of a trial that end by time and were run."""
    ran = [phase["phase"] for phase in record["phases"] if not phase.get("not_run")]
    return {phase["name"]: phase["seconds"] for phase in ran if phase["seconds"] > 0}


def table(rows, heads):
    """Prints rows of a text and figures; the figures are seconds."""
    width = max(len(row[0]) for row in rows)
    print(" " * width + "".join(f"{head[:14]:>16}" for head in heads))
    for name, *figures in rows:
        print(name.ljust(width) + "".join(f"{'-' if figure is None else f'{figure:.2f}':>16}" for figure in figures))


def by_part(runs):
    columns, names = [], []
    for run in runs:
        every = records(run)
        total = collections.Counter()
        for record in every:
            total.update(spent(record))
            total.update({f"planned {name}": seconds for name, seconds in planned(record).items()})
        columns.append((len(every), total))
        names += [name for name in total if name not in names]
    # "other" and the plan last, in the order of the first run.
    names.sort(key=lambda name: (name.startswith("planned"), name == "other", name.startswith("(")))
    measured = [name for name in names if not name.startswith("planned")]
    rows = [[name] + [total.get(name) for _, total in columns] for name in names]
    rows.append(["all"] + [sum(total[name] for name in measured) for _, total in columns])
    rows.append(["trials"] + [float(count) for count, _ in columns])
    table(rows, [os.path.basename(os.path.normpath(run)) for run in runs])


def by_engine(run):
    engines, names = collections.OrderedDict(), []
    for record in records(run):
        total = engines.setdefault(record["trial"]["engine"], collections.Counter())
        total.update(spent(record))
        names += [name for name in total if name not in names]
    rows = [[engine, sum(total.values())] + [total.get(name) for name in names] for engine, total in engines.items()]
    table(sorted(rows, key=lambda row: -row[1]), ["all"] + names)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--engines"] and len(arguments) == 2:
        by_engine(arguments[1])
    elif arguments and not arguments[0].startswith("-"):
        by_part(arguments)
    else:
        sys.exit(__doc__)
