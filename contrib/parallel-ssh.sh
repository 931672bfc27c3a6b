#!/usr/bin/env bash
# Slices over ssh, one at a time on each host: contrib/parallel-ssh.sh PLAN RESULTS HOSTS SLICES [OPTION OF PARALLEL...]
#
# HOSTS is a file with a login per line (`user@host`; `:` is this machine). The plan is copied to each host, and the results are
# copied back, so that no shared folder is needed. With more slices than hosts, faster hosts take more of them. A slice that fails
# is tried on other hosts; start the script again for what is missing: slices with all records end at once.
set -euo pipefail
plan=$1
results=$2
hosts=$3
slices=$4
folder=$(dirname "$results") name=$(basename "$results")
mkdir -p "$results"
cp --update "$plan" "$results/plan.json"
cd "$folder"
# All results so far are copied to the host of a slice, because a slice that has died may have records.
seq "$slices" | parallel --sshloginfile "$hosts" --jobs 1 --retries 3 --line-buffer "${@:5}" \
  --workdir . --transferfile "$name" --return "$name" \
  kvdyno run --plan "$name/plan.json" --shard "{}/$slices" --results "$name"
