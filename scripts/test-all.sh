#!/usr/bin/env bash
# Runs the tests that take long, in addition to scripts/test.sh: scripts/test-all.sh KVDYNO
#
# The tests of a debug build with overflow checks, the report in a browser, distributions at ten million draws, every command
# of docs/replaces/README.md, every engine against the model, every mutant in all checks and workloads, and the benchmarks of the
# harness at a small size.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
kvdyno=$1

# long SELECTOR...: the ignored tests that these arguments select.
# shellcheck disable=SC2086 # SELECTION is a list of words
long() { "$cargo" test --release $SELECTION "$@" -- --ignored --nocapture; }

"$cargo" test --workspace
long --test browser
long --lib ten_thousand
# shellcheck disable=SC2086 # a list of words
"$cargo" bench $SELECTION --bench statistics
# shellcheck disable=SC2086 # a list of words
"$cargo" bench $SELECTION --bench harness -- --small
long --lib ten_million
for name in calls conformance go_soak hostile load_generators planted replaces replay resp shortages; do long --test $name; done
# The schemas of Kubernetes are in a package of PyPI. Without it, the test of the manifest is skipped.
schemas=$(dirname "$kvdyno")/kubernetes-validate
[ -x "$schemas/bin/kubernetes-validate" ] || [ "${NO_INSTALL:-}" = 1 ] ||
  { python3 -m venv "$schemas" && "$schemas/bin/pip" install --quiet kubernetes-validate; } ||
  echo "kubernetes-validate could not be installed" >&2
PATH="$PATH:$schemas/bin" long --test schedulers
long --test cli rates::
long --test cli cassandra
long --test cli cluster_members
long --test cli servers::
long --test cli stale::
long --test cli links::
(cd engines/servers && KVDYNO_CASSANDRA=$(dirname "$kvdyno")/extra/cassandra ${GO:-go} test -count=1 ./cassandra ./histories -run "Cassandra|Keyspaces")
(cd engines/servers/tikv && ${GO:-go} vet ./... && ${GO:-go} test -count=1 ./...)
long --test cli tikv
"$kvdyno" doctor --self
# TiKV needs clusters: two of the mock of its client, which end when their standard input does.
mocks=$(mktemp -d)
trap 'exec 8>&- 9>&-; rm -rf "$mocks"' EXIT
(cd engines/servers/tikv && ${GO:-go} build -o "$mocks/testserver" ./testserver)
exec 8> >("$mocks/testserver" >"$mocks/tikv") 9> >("$mocks/testserver" >"$mocks/raw")
for _ in $(seq 600); do [ -s "$mocks/tikv" ] && [ -s "$mocks/raw" ] && break || sleep 0.1; done
# Each check of Cassandra starts it several times.
"$kvdyno" prove --only rules --stall-seconds 600 --option "tikv.url=pd://$(<"$mocks/tikv")" --option "tikv-raw.url=pd://$(<"$mocks/raw")"
