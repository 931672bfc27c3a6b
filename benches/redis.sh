#!/usr/bin/env bash
# Compares `kvdyno serve` with redis-server, and with plain redcon servers over the same engines: one run, interleaved
# rounds, redis-benchmark as load. Prints medians, the median of the rounds' ratios, and the CPU time of each server per
# request (serve, other), which is more reliable than rates if the machine is busy.
#
#   benches/redis.sh [KVDYNO]            all pairs, about 15 minutes
#   PAIRS="memory-map pebble" ROUNDS=3 SECONDS_EACH=1 PIPELINES="1 64" benches/redis.sh
set -euo pipefail
cd "$(dirname "$0")/.."

kvdyno=$(realpath "${1:-target/release/kvdyno}")
pairs=${PAIRS:-memory-map bbolt badger pebble buntdb}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-2}
pipelines=${PIPELINES:-1 16 64}
keys=${KEYS:-1000000}

for tool in redis-server redis-cli redis-benchmark go; do
  command -v $tool >/dev/null || { echo "redis.sh needs $tool: run \`apt-get install redis-server redis-tools\`, and install Go from https://go.dev/dl" >&2; exit 1; }
done
scratch=$(mktemp -d)
pids=()
stop() { kill "${pids[@]}" 2>/dev/null && wait "${pids[@]}" 2>/dev/null || true; pids=(); }
trap 'stop; rm -rf "$scratch"' EXIT
(cd benches/redcon && go build -o "$scratch/redcon" .)

port_ours=$((20000 + RANDOM % 20000))
port_theirs=$((port_ours + 1))

# Both servers stay up, and the one that is not measured is idle.
start() {
  local engine=$1 folder="$scratch/$1" level=process options=()
  mkdir -p "$folder/theirs"
  case $engine in
    memory-map) level=none ;;
    # Pebble has no level process: an unsynced write stays in its memory for a while. Both write the log, unsynced.
    pebble) level=none options=(--option pebble.wal=true) ;;
  esac
  "$kvdyno" serve "$engine" --durability $level "${options[@]}" --dir "$folder/ours" \
    --port $port_ours >"$folder/log" 2>&1 &
  pids=($!)
  if [ "$engine" = memory-map ]; then
    redis-server --port $port_theirs --bind 127.0.0.1 --save "" --appendonly no >/dev/null &
  else
    "$scratch/redcon" "$engine" "$folder/theirs" $port_theirs &
  fi
  pids+=($!)
  for port in $port_ours $port_theirs; do
    for _ in $(seq 100); do redis-cli -p $port ping >/dev/null 2>&1 && continue 2; sleep 0.1; done
    echo "$engine: a server did not start" >&2; cat "$folder/log" >&2; exit 1
  done
}

fill() {
  awk -v keys="$keys" 'BEGIN { value = sprintf("%0100d", 0)
    for (i = 0; i < keys; i++) printf "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$100\r\n%s\r\n", i, value }' |
    redis-cli -p "$1" --pipe >/dev/null
}

rss_mib() { awk '/^VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$1/status"; }

# rate PORT COMMAND PIPELINE REQUESTS
rate() {
  redis-benchmark -p "$1" -t "$2" -r "$keys" -n "$4" -d 100 -c 50 -P "$3" --csv 2>/dev/null |
    awk -F '","' -v wanted="\"${2^^}" '$1 == wanted { printf "%d", $2; exit }'
}

# Milliseconds of CPU that a process has used.
cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{ printf "%d", ($14 + $15) * 1000 / hz }' "/proc/$1/stat"; }

median() { sort -g | awk '{ all[NR] = $1 } END { print (NR % 2) ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2 }'; }

measure() {
  local engine=$1 command=$2 pipeline=$3 count ours theirs round cpu_ours cpu_theirs
  # As many requests as the slower of the two executes in the requested time.
  ours=$(rate $port_ours "$command" "$pipeline" 20000)
  theirs=$(rate $port_theirs "$command" "$pipeline" 20000)
  count=$(awk -v a="$ours" -v b="$theirs" -v s="$seconds" 'BEGIN { n = (a < b ? a : b) * s; print int(n < 20000 ? 20000 : n) }')
  : >"$scratch/rates"
  cpu_ours=$(cpu_ms "${pids[0]}") cpu_theirs=$(cpu_ms "${pids[1]}")
  for round in $(seq "$rounds"); do
    if [ $((round % 2)) = 1 ]; then
      ours=$(rate $port_ours "$command" "$pipeline" "$count"); theirs=$(rate $port_theirs "$command" "$pipeline" "$count")
    else
      theirs=$(rate $port_theirs "$command" "$pipeline" "$count"); ours=$(rate $port_ours "$command" "$pipeline" "$count")
    fi
    echo "$ours $theirs" >>"$scratch/rates"
  done
  cpu_ours=$(($(cpu_ms "${pids[0]}") - cpu_ours)) cpu_theirs=$(($(cpu_ms "${pids[1]}") - cpu_theirs))
  printf '%-11s %-4s P=%-3s %9.0f %9.0f   %5.2f   %s   %s\n' "$engine" "${command^^}" "$pipeline" \
    "$(cut -d' ' -f1 "$scratch/rates" | median)" "$(cut -d' ' -f2 "$scratch/rates" | median)" \
    "$(awk '{ print $1 / $2 }' "$scratch/rates" | median)" \
    "$(awk -v a=$cpu_ours -v b=$cpu_theirs -v n=$((count * rounds)) \
      'BEGIN { printf "%5.2f %5.2f", a * 1000 / n, b * 1000 / n }')" \
    "$(awk '{ printf "%s%.2f", (NR > 1 ? " " : ""), $1 / $2 }' "$scratch/rates")"
}

echo "rounds: $rounds, $keys keys, values of 100 bytes, 50 clients; load average $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%-11s %-4s %-5s %9s %9s   %5s   %s   %s\n' engine "" "" serve other ratio "CPU us/op  " "ratio of each round"
for engine in $pairs; do
  start "$engine"
  fill $port_ours & filling=$!
  fill $port_theirs
  wait $filling
  echo "$engine memory: serve $(rss_mib "${pids[0]}") MiB, other $(rss_mib "${pids[1]}") MiB"
  # Gets first, on the result of the fill, so that no server reads while it compacts the sets of this benchmark.
  sleep "${SETTLE:-5}"
  for command in get set; do
    for pipeline in $pipelines; do measure "$engine" $command "$pipeline"; done
  done
  stop
  rm -rf "${scratch:?}/$engine"
done
