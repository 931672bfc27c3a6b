# The verbs of this project, the same for people and for CI: `make run` measures, `make test` tests, `make` builds.
#
# ARGS="..." is passed to kvdyno by `make run`. NO_INSTALL=1 installs no Debian packages. CI=true makes everything that is
# skipped an error.

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build run test test-all check bench fuzz doctor install uninstall archive deb clean plugins go-plugins rust-plugins server-plugins engines-extra engines-table sanitized native-benches go-bench redis-bench packages test-packages toolchains cassandra tikv

# Debian packages: to build, for `make test-all`, and for `make test`.
PACKAGES := gcc g++ libc6-dev make cmake libleveldb-dev librocksdb-dev libkyotocabinet-dev libdb5.3-dev libwiredtiger-dev \
  libtkrzw-dev libtokyocabinet-dev libgdbm-dev liblmdb-dev libsqlite3-dev
BROWSER_PACKAGES := chromium
CASSANDRA_PACKAGES := maven openjdk-17-jre-headless
SCHEDULER_PACKAGES := slurmctld slurmd slurm-client openmpi-bin parallel python3-venv
TEST_PACKAGES := clang-format redis-server redis-tools python3-redis librsvg2-bin e2fsprogs xfsprogs \
  etcd-server memcached postgresql

# What tests need of the machine: rows of `kvdyno doctor`. With CI=true the tests fail if one is missing; otherwise such a test
# is skipped. The engines that they need then are in the catalogue (`required` in engine.toml).
REQUIRED_FACILITIES := seccomp notification,memory cap,cgroup v2,loop devices,power cut on ext4,power cut on XFS,FUSE,drop_caches,thread states,network links

CARGO ?= cargo
CC ?= cc
GO ?= go
FUZZ_SECONDS ?= 60
STRICT := true
PREFIX ?= $(HOME)/.local
# Engines in Rust that are plug-ins, because they take long to build: only for `make engines-extra` and `make test`.
RUST_PLUGINS := $(patsubst engines/%/Cargo.toml,%,$(shell grep -ls '^crate-type = \["cdylib"\]' engines/*/Cargo.toml))
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
KVDYNO := $(TARGET)/release/kvdyno
EXTRA := $(TARGET)/release/extra
ROCKSDB_JNI := 11.8.1
CASSANDRA := 5.0.6
# One selection of packages for every verb, so that one release build serves them all.
export SELECTION := --workspace $(RUST_PLUGINS:%=--exclude kvdyno-%)
export RUST_PLUGINS
# A rustup installed in this shell is not in its PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

ifeq ($(CI),true)
export KVDYNO_REQUIRED_FACILITIES := $(REQUIRED_FACILITIES)
endif
ifeq ($(KVDYNO_ROCKSDB_JNI_PREFIX),)
export KVDYNO_ROCKSDB_JNI_PREFIX := $(wildcard $(EXTRA)/rocksdb-jni)
endif

build: toolchains
	@scripts/build.sh $(TARGET)

run: packages build
	@$(KVDYNO) $(ARGS)

# A newer clippy may have new warnings, so they are errors only in CI and in a plain `make check`.
test: STRICT := $(CI)
test: packages test-packages toolchains
	@STRICT=$(STRICT) scripts/build.sh $(TARGET) tests
	@$(MAKE) --no-print-directory -C engines/example check OUT=$(TARGET)/checked
	@scripts/test.sh

test-all: test
	@scripts/packages.sh $(BROWSER_PACKAGES) $(SCHEDULER_PACKAGES) $(CASSANDRA_PACKAGES)
	@$(MAKE) --no-print-directory cassandra tikv
	@scripts/test-all.sh $(KVDYNO)
	@$(MAKE) --no-print-directory native-benches go-bench BENCH=--small
	@$(MAKE) --no-print-directory -C engines/example check OUT=$(TARGET)/sanitized \
	  CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
	@$(MAKE) --no-print-directory sanitized

check: toolchains
	@STRICT=$(STRICT) scripts/check.sh

bench: build
	@$(CARGO) bench $(SELECTION) --bench harness
	@$(MAKE) --no-print-directory native-benches go-bench

# Drivers in C, C++ and Go against hand-written loops over the same database; BENCH=--small runs each once.
native-benches:
	@scripts/native-benches.sh $(TARGET) $(BENCH)

go-bench:
	@cd engines/go && $(GO) run ./fidelity $(BENCH)

# `kvdyno serve` against redis-server, and against plain servers in Go over the same engines (docs/redis.md).
redis-bench: build
	@benches/redis.sh $(KVDYNO)

fuzz: toolchains
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh

doctor: build
	@$(KVDYNO) doctor

# The plug-ins of engines in C, C++ and Go, in the folder where kvdyno looks for those of its own build.
plugins:
	@scripts/plugins.sh $(TARGET)
	@$(MAKE) --no-print-directory go-plugins

go-plugins:
	@scripts/go-plugins.sh $(TARGET)

rust-plugins: toolchains
	@scripts/rust-plugins.sh $(TARGET)

# The drivers of servers and clusters, whose clients take long to build.
server-plugins:
	@scripts/go-plugins.sh $(TARGET) servers

# Writes engines/README.md from engines/proven.toml, which `kvdyno prove --only rules --proven engines/proven.toml` writes, and from the
# certificates, whose summary it writes too.
engines-table:
	@UPDATE=1 $(CARGO) test --release $(SELECTION) --test catalogue -- the_table the_summary_of_the_certificates the_pages

# Engines that take long to build, and one that needs a large download.
engines-extra: build rust-plugins server-plugins
	@scripts/rocksdb-jni.sh $(ROCKSDB_JNI) $(EXTRA)
	@$(MAKE) --no-print-directory plugins

# The drivers of TiKV, whose client has some fifty dependencies.
tikv:
	@scripts/go-plugins.sh $(TARGET) tikv

# The jars of Cassandra, for its engine and for `make test-all`.
cassandra:
	@scripts/cassandra.sh $(CASSANDRA) $(EXTRA)

# Every plug-in in C and C++ against the model, under the sanitizers of the compiler.
sanitized: build
	@scripts/sanitized.sh $(KVDYNO) $(TARGET)/sanitized

# The command in PREFIX/bin, its plug-ins in PREFIX/lib/kvdyno, manual pages and completions in PREFIX/share. DESTDIR is
# put before PREFIX, for packages.
install: build
	@PREFIX="$(PREFIX)" scripts/install.sh $(KVDYNO)

# Removes what `make install` has installed, and nothing else.
uninstall:
	@PREFIX="$(PREFIX)" scripts/install.sh --uninstall

# An archive of the command with its plug-ins, and a Debian package, in dist/.
archive: build
	@scripts/archive.sh $(KVDYNO)

deb: build
	@scripts/deb.sh $(KVDYNO)

clean:
	@$(CARGO) clean

toolchains:
	@scripts/toolchains.sh

packages:
	@scripts/packages.sh $(PACKAGES)

test-packages:
	@scripts/packages.sh $(TEST_PACKAGES)
