#!/usr/bin/env python3
"""Does `kvdyno choose` end in the minutes that it is given, with an answer?

Runs it for combinations of need, size of data and memory, and prints a line for each: the minutes asked and used, and the
recommendation. If a time is too short, the command says which would do; the combination is then run with that time, unless it is
longer than --most.

    benches/choose.py --kvdyno target/release/kvdyno --minutes 2 --most 10
    benches/choose.py --kvdyno target/release/kvdyno --only 3,7      # two of the combinations
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time

# What differs from the base: a name, and the flags.
NEEDS = [
    ("desktop", "--durability power --transactions yes --ordered yes --reads 80 --value-size 200"),
    ("service", "--durability process --ordered yes --reads 95 --value-size 1000"),
    ("device", "--durability process --ordered yes --reads 10 --value-size 32"),
    ("cache", "--durability none --cache yes --reads 90 --value-size 100"),
]
# Data and memory.
SIZES = [("100MB", "all"), ("4GB", "all"), ("4GB", "1GB"), ("200GB", "16GB"), ("2GB", "256MiB")]
# A run may take this much longer than asked.
ALLOWED = 1.2


def choose(options, flags, minutes, folder):
    """The exit code, the seconds, and the text of a run."""
    command = [options.kvdyno, "choose", *flags, "--minutes", str(minutes), "--results", folder]
    command += ["--plugins", options.plugins] if options.plugins else []
    start = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, time.monotonic() - start, done.stdout


def recommendation(text):
    """The first line after the title `Recommendation`; of an error, its first line."""
    found = re.search(r"^Recommendation:\n((?:  .*\n)+)", text, re.M)
    if found:
        return " ".join(found.group(1).split("\n  - ")[0].split())
    error = re.search(r"^error: .*(?:\n  .*)?", text, re.M)
    return " ".join(error.group(0).split()) if error else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvdyno", default="target/release/kvdyno")
    parser.add_argument("--plugins", help="folder of plug-ins")
    parser.add_argument("--minutes", type=int, default=2)
    parser.add_argument("--most", type=int, default=10, help="the most minutes of a combination whose time is too short")
    parser.add_argument("--only", help="numbers of combinations, from 1, with commas between them")
    options = parser.parse_args()
    only = {int(number) for number in options.only.split(",")} if options.only else None
    combinations = [(need, flags, data, memory) for need, flags in NEEDS for data, memory in SIZES]
    late = 0
    print("number  need     data   memory  asked  used  ratio  recommendation")
    for number, (need, words, data, memory) in enumerate(combinations, 1):
        if only and number not in only:
            continue
        flags = words.split() + ["--data", data, "--memory", memory, "--threads", "2", "--language", "any"]
        flags += ["--licence", "any"]
        for flag in ("--ordered", "--transactions", "--cache"):
            flags += [] if flag in flags else [flag, "no"]
        minutes = options.minutes
        with tempfile.TemporaryDirectory(prefix="kvdyno-choose-") as folder:
            code, seconds, text = choose(options, flags, minutes, folder)
            enough = re.search(r"too short .*?, (\d+) would do", " ".join(text.split()))
            if code and enough and int(enough.group(1)) <= options.most:
                minutes = int(enough.group(1))
                code, seconds, text = choose(options, flags, minutes, folder)
        used = seconds / 60
        is_late = used > minutes * ALLOWED
        late += is_late
        mark = "  LATE" if is_late else ""
        print(
            f"{number:>6}  {need:<7}  {data:<5}  {memory:<6}  {minutes:>5}  {used:>4.1f}  {used / minutes:>5.2f}  "
            f"{recommendation(text)}{f'  (exit code {code})' if code else ''}{mark}",
            flush=True,
        )
    print(f"{late} of the combinations took longer than {ALLOWED} times their minutes")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
