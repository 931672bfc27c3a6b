#!/usr/bin/env bash
# Compares kvdyno's client with redis-benchmark, in turn on the same servers: the CPU time of the client per request against one
# redis-server, the rate of two load generators against a Redis Cluster, and how far apart 16 load generators start.
#
#   benches/ranks.sh [KVDYNO]            all parts, about 4 minutes
#   PARTS="cpu cluster starts" ROUNDS=5 SECONDS_EACH=1 PIPELINES="16 64" benches/ranks.sh
#
# CPU: user and system time of the whole client, for kvdyno with the generation of keys and values, the checks of all answers and the
# thread that samples; in brackets without that thread. It is less sensitive to other work on the machine than a rate. Ratios are
# medians over rounds.
set -euo pipefail
cd "$(dirname "$0")/.."

kvdyno=$(realpath "${1:-target/release/kvdyno}")
parts=${PARTS:-cpu cluster starts}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-1}
pipelines=${PIPELINES:-16 64}
clients=${CLIENTS:-4}
keys=${KEYS:-100000}
masters=3

for tool in redis-server redis-cli redis-benchmark python3; do
  command -v $tool >/dev/null || { echo "ranks.sh needs $tool: run \`apt-get install redis-server redis-tools python3\`" >&2; exit 1; }
done
scratch=$(mktemp -d)
pids=()
stop() { kill "${pids[@]}" 2>/dev/null && wait "${pids[@]}" 2>/dev/null || true; pids=(); }
trap 'stop; rm -rf "$scratch"' EXIT
port=$((20000 + RANDOM % 10000))

# server PORT [ARGUMENT...]
server() {
  mkdir -p "$scratch/$1"
  redis-server --port "$1" --bind 127.0.0.1 --save "" --appendonly no --dir "$scratch/$1" "${@:2}" >/dev/null &
  pids+=($!)
  for _ in $(seq 100); do redis-cli -p "$1" ping >/dev/null 2>&1 && return; sleep 0.1; done
  echo "a server did not start" >&2
  exit 1
}

# The workload for a pipeline of P requests, with threads of each load generator.
workload() {
  cat >"$scratch/pipeline.toml" <<END
about = "SET and GET in pipelines of $1"
keys = $keys
runs = 1
threads = $2
durability = "none"
[key]
size = 16
[value]
size = 100
[[phase]]
name = "load"
mix = { put = 1 }
distribution = "permutation"
each_key = true
join = 64
[[phase]]
name = "set"
mix = { put = 1 }
seconds = $seconds
join = $1
[[phase]]
name = "get"
mix = { multi_get = 1 }
multi_get_keys = $1
seconds = $seconds
END
}

# figures PHASE ENGINE: of the run's records, the rate, and the CPU per request in us: of the whole process, and of the threads with
# the connections.
figures() {
  python3 - "$scratch/results" "$1" "$2" <<'END'
import glob, json, sys
folder, name, engine = sys.argv[1:]
for file in glob.glob(folder + "/*/*/*/record.json") + glob.glob(folder + "/*/*/record.json"):
    record = json.load(open(file))
    if "/ranks/" in file or record["trial"]["engine"] != engine:
        continue
    if record["outcome"]["status"] != "ok":
        sys.exit(f"a trial of kvdyno failed: {record['outcome']}")
    phase = next(phase for phase in record["phases"] if phase["phase"]["name"] == name)
    threads = sum(thread["cpu_ns"] for thread in phase["threads"])
    # Of several load generators only the threads are known.
    whole = threads
    if phase["usage"]["user_cpu_ns"] is not None:
        whole = phase["usage"]["user_cpu_ns"] + phase["usage"]["system_cpu_ns"]
    print(phase["ops"] / phase["elapsed_ns"] * 1e9, whole / phase["ops"] / 1e3, threads / phase["ops"] / 1e3)
END
}

# theirs PORT COMMAND PIPELINE REQUESTS ARGUMENT...: the rate, and the CPU per request in us.
theirs() {
  local rate TIMEFORMAT='%U %S'
  { time redis-benchmark -p "$1" -t "$2" -P "$3" -n "$4" -c "$clients" -r "$keys" -d 100 --csv "${@:5}" >"$scratch/csv" 2>/dev/null; } 2>"$scratch/time"
  rate=$(awk -F '","' -v wanted="\"${2^^}" '$1 == wanted { printf "%d", $2; exit }' "$scratch/csv")
  awk -v rate="$rate" -v n="$4" '{ printf "%s %.4f\n", rate, ($1 + $2) * 1e6 / n }' "$scratch/time"
}

median() { sort -g | awk '{ all[NR] = $1 } END { print (NR % 2) ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2 }'; }

# column N: the median of a column of the rounds.
column() { awk -v n="$1" '{ print $n }' "$scratch/rounds-$command" | median; }

# compare TITLE PORT PIPELINE RANKS THREADS ENGINE ARGUMENT...: rounds of both clients in turn; the arguments are for redis-benchmark.
compare() {
  local title=$1 at=$2 pipeline=$3 ranks=$4 engine=$6 round count command order client
  workload "$pipeline" "$5"
  rm -f "$scratch"/rounds-*
  for command in set get; do
    count=$(theirs "$at" $command "$pipeline" 50000 "${@:7}" | awk -v s="$seconds" '{ print int($1 * s) + 1000 }')
    echo "$count" >"$scratch/count-$command"
  done
  for round in $(seq "$rounds"); do
    order="theirs ours"; [ $((round % 2)) = 1 ] || order="ours theirs"
    for client in $order; do
      if [ $client = ours ]; then
        rm -rf "$scratch/results"
        (cd "$scratch" && "$kvdyno" run pipeline.toml --engines "$engine" --option "$engine.url=redis://127.0.0.1:$at" \
          --option "$engine.database=flush" --load-generators "$ranks" --results "$scratch/results" --quiet >"$scratch/log" 2>&1) ||
          { cat "$scratch/log" >&2; exit 1; }
        for command in set get; do figures $command "$engine" >"$scratch/ours-$command"; done
      else
        for command in set get; do
          theirs "$at" $command "$pipeline" "$(cat "$scratch/count-$command")" "${@:7}" >"$scratch/theirs-$command"
        done
      fi
    done
    for command in set get; do
      paste -d' ' "$scratch/ours-$command" "$scratch/theirs-$command" |
        awk '{ print $0, $1 / $4, $2 / $5, $3 / $5 }' >>"$scratch/rounds-$command"
    done
  done
  for command in set get; do
    printf '%-10s %-4s P=%-3s %9.0f %9.0f %6.3f   %6.3f (%.3f) %6.3f %6.2f (%.2f)   %s\n' "$title" "${command^^}" "$pipeline" \
      "$(column 1)" "$(column 4)" "$(column 6)" "$(column 2)" "$(column 3)" "$(column 5)" "$(column 7)" "$(column 8)" \
      "$(awk '{ printf "%s%.2f", (NR > 1 ? " " : ""), $6 }' "$scratch/rounds-$command")"
  done
}

echo "rounds: $rounds, $keys keys, values of 100 bytes, $clients connections; load average $(cut -d' ' -f1-3 /proc/loadavg)"
printf '%-10s %-4s %-5s %9s %9s %6s   %s\n' "" "" "" kvdyno benchmark ratio "CPU us/op: kvdyno, benchmark, ratio   rate ratio of each round"
for part in $parts; do
  case $part in
    cpu)
      server $port
      for pipeline in $pipelines; do compare "one server" $port "$pipeline" 1 "$clients" redis; done
      stop
      ;;
    cluster)
      ports=()
      for node in $(seq $masters); do
        ports+=($((port + node)))
        server $((port + node)) --cluster-enabled yes --cluster-port $((port + 10000 + node))
      done
      redis-cli --cluster create "${ports[@]/#/127.0.0.1:}" --cluster-yes >/dev/null
      sleep 2
      for pipeline in $pipelines; do
        compare "2 ranks" "${ports[0]}" "$pipeline" 2 $((clients / 2)) redis-cluster --cluster --threads 2
      done
      stop
      ;;
    starts)
      server $port
      workload 16 1
      rm -rf "$scratch/results"
      (cd "$scratch" && "$kvdyno" run pipeline.toml --engines redis --option "redis.url=redis://127.0.0.1:$port" --load-generators 16 \
        --runs "$rounds" --results "$scratch/results" --quiet --full) | sed -n '/^Load generators/,/^Each figure/p' | grep -v '^Each'
      stop
      ;;
    *)
      echo "unknown part: $part" >&2
      exit 1
      ;;
  esac
done
