#!/usr/bin/env bash
# One rank on each host, each with a slice: contrib/mpirun.sh PLAN RESULTS HOSTFILE [OPTION OF MPIRUN...]
#
# RESULTS is a folder that all hosts share. The number of slices is the number of ranks. If a rank dies, mpirun stops the others;
# start it again, also with fewer hosts: each rank measures what has no record yet.
set -euo pipefail
plan=$1
results=$2
hostfile=$3
# kvdyno ends with an exit code other than 0 if an engine has failed, which is a result: it must not stop the other ranks.
# For MPICH and Intel MPI: mpiexec -f "$hostfile" -ppn 1
# shellcheck disable=SC2016 # expanded by the shell of the rank
exec mpirun --hostfile "$hostfile" --map-by ppr:1:node --bind-to none "${@:4}" \
  sh -c 'kvdyno run --plan "$1" --shard auto --results "$2" --data "$3" || echo "kvdyno: exit code $?" >&2' \
  sh "$plan" "$results" "${TMPDIR:-/tmp}/kvdyno-data"
