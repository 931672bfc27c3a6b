# The verbs of this project, the same for people and for CI: `make run` measures, `make test` checks, `make` builds.
# ARGS="..." is passed on by `make run`.

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build run test test-all check bench fuzz doctor install clean plugins go-plugins engines-extra engines-table sanitized native-benches go-bench redis-bench packages test-packages toolchains

# What Debian and Ubuntu call what is needed: to build, and for tests only.
PACKAGES := gcc g++ libc6-dev make cmake libleveldb-dev librocksdb-dev libkyotocabinet-dev libdb5.3-dev libwiredtiger-dev \
  libtkrzw-dev libtokyocabinet-dev libgdbm-dev liblmdb-dev libsqlite3-dev
BROWSER_PACKAGES := chromium
TEST_PACKAGES := strace clang-format redis-server redis-tools python3-redis

comma := ,
empty :=
space := $(empty) $(empty)

# With CI=true the tests fail when one of these is not there, so that nothing is skipped unseen.
REQUIRED_ENGINES := $(subst $(space),$(comma),$(strip \
  null memory-map memory-btree redb fjall sled canopydb surrealkv persy lmdb sqlite redis quick-cache example example-cpp null-c \
  leveldb rocksdb kyotocabinet kyotocabinet-hash berkeleydb berkeleydb-hash berkeleydb-cds berkeleydb-plain \
  wiredtiger wiredtiger-lsm tkrzw tkrzw-hash tokyocabinet tokyocabinet-hash gdbm lmdb-system sqlite-system \
  null-go null-go-keeps example-go badger badger-memory bbolt bolt buntdb buntdb-memory goleveldb kv pebble pogreb nutsdb sniper \
  rosedb lotusdb grocksdb go-map go-map-memory go-btree go-btree-memory))

CARGO ?= cargo
CC ?= cc
FUZZ_SECONDS ?= 60
STRICT := true
# One selection of packages and features for every verb, so that one release build serves them all.
WHOLE := --release --workspace --features all-engines,png
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
KVDYNO := $(TARGET)/release/kvdyno
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# A rustup that was installed in this very shell is not in its PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

ifeq ($(CI),true)
export KVDYNO_REQUIRED_ENGINES := $(REQUIRED_ENGINES)
endif

# The build script watches each engine.toml, not folders, for a driver in C is none of its business; a new folder is.
build: toolchains
	@[ ! engines -nt $(KVDYNO) ] && [ ! engines/go -nt $(KVDYNO) ] || touch engines/plugins.rs
	@$(CARGO) build $(WHOLE)
	@$(MAKE) --no-print-directory plugins

run: packages build
	@$(KVDYNO) $(ARGS)

# A clippy newer than ours may know more warnings, so only CI and a plain `make check` fail for them.
test: STRICT := $(CI)
test: packages test-packages check build
	@$(MAKE) --no-print-directory -C engines/example check OUT=$(TARGET)/checked
	@if command -v $(GO) >/dev/null; then (cd driver/go && $(GO) test -race ./...); else [ "$(CI)" != true ]; fi
	@$(CARGO) test $(WHOLE)
	@$(CARGO) bench --workspace --features all-engines,png --bench harness -- --small
	@$(CARGO) bench --workspace --features all-engines,png --bench statistics -- --small
	@$(MAKE) --no-print-directory native-benches go-bench BENCH=--small

# And what takes longer: the same with overflow checks and assertions of debug builds and the features of a plain
# `cargo build`, distributions at ten million draws, every command of docs/replaces.md, the C kit under sanitizers, the
# harness's tests of itself, and every engine against the model.
test-all: test
	@$(CARGO) test --workspace
	$(call install,$(BROWSER_PACKAGES))
	@$(CARGO) test $(WHOLE) --test browser -- --ignored --nocapture
	@$(CARGO) test $(WHOLE) --lib ten_thousand -- --ignored --nocapture
	@$(CARGO) bench --workspace --features all-engines,png --bench statistics
	@$(CARGO) test $(WHOLE) --lib ten_million -- --ignored --nocapture
	@$(CARGO) test $(WHOLE) --test go_soak -- --ignored --nocapture
	@$(CARGO) test $(WHOLE) --test hostile -- --ignored --nocapture
	@$(CARGO) test $(WHOLE) --test replaces -- --ignored --nocapture
	@$(CARGO) test $(WHOLE) --test resp -- --ignored --nocapture
	@$(MAKE) --no-print-directory -C engines/example check OUT=$(TARGET)/sanitized \
	  CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
	@$(MAKE) --no-print-directory sanitized
	@$(KVDYNO) selftest
	@$(KVDYNO) verify

# driver.h is laid out by hand: its comments are tables.
C_SOURCES = $(filter-out driver/include/driver.h,$(shell git ls-files '*.c' '*.cc' '*.h' '*.hpp'))

# $(call component,command,name): whether a component of the toolchain is there; it must be with CI=true.
component = if $(CARGO) $(1) --version >/dev/null 2>&1; then true; \
  elif [ "$(CI)" = true ]; then echo "CI needs $(2): run \`rustup component add $(2)\`" >&2; exit 1; \
  else echo "$(2) is not here, so its check is left out: run \`rustup component add $(2)\`" >&2; false; fi

check: toolchains
	@if $(call component,fmt,rustfmt); then $(CARGO) fmt --all --check; fi
	@if $(call component,clippy,clippy); then $(CARGO) clippy $(WHOLE) --all-targets $(if $(filter true,$(STRICT)),-- -D warnings); fi
	@if command -v clang-format >/dev/null; then \
	  clang-format --style=file:driver/.clang-format --dry-run --Werror $(C_SOURCES); \
	else echo "clang-format is not here, so its check is left out (apt-get install clang-format)" >&2; [ "$(CI)" != true ]; fi
	@if command -v $(GO) >/dev/null; then for module in driver/go engines/go benches/redcon tests/resp/go-redis tests/hostile/go; do \
	  (cd $$module && found=$$(gofmt -l .) && [ -z "$$found" ] && $(GO) vet ./...) || \
	  { echo "$$module: gofmt -l or go vet found something" >&2; exit 1; }; done; \
	else echo "go is not here, so its checks are left out" >&2; [ "$(CI)" != true ]; fi

bench: build
	@$(CARGO) bench --workspace --features all-engines,png --bench harness
	@$(MAKE) --no-print-directory native-benches go-bench

# Drivers in C, C++ and Go against loops by hand on the same database; BENCH=--small runs them all and measures nothing.
native-benches:
	@cmake -S engines -B $(PLUGIN_BUILD) -DKVDYNO_OUT=$(TARGET)/release/plugins -DKVDYNO_BENCHES=ON >$(PLUGIN_BUILD).log && \
	  cmake --build $(PLUGIN_BUILD) -j 2 >>$(PLUGIN_BUILD).log || { tail -20 $(PLUGIN_BUILD).log >&2; exit 1; }
	@for bench in $(PLUGIN_BUILD)/benches/bench-*; do $$bench $(BENCH) || exit 1; done

go-bench:
	@cd engines/go && $(GO) run ./fidelity $(BENCH)

# `kvdyno serve` against redis-server, and against plain servers in Go over the same engines (docs/redis.md).
redis-bench: build
	@benches/redis.sh $(KVDYNO)

fuzz: toolchains
	@$(CARGO) fuzz --version >/dev/null 2>&1 || \
	  { echo "fuzzing needs cargo-fuzz: run \`cargo install cargo-fuzz\`" >&2; exit 1; }
	@if $(CARGO) fuzz run --sanitizer none canary -- -max_total_time=$(FUZZ_SECONDS) >/dev/null 2>&1; then \
	  echo "the canary was not found: the fuzzer finds nothing" >&2; exit 1; \
	fi
	@for target in $$($(CARGO) fuzz list | grep -v canary); do \
	  $(CARGO) fuzz run --sanitizer none $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

doctor: build
	@$(KVDYNO) doctor

# The plug-ins of C and C++ engines, where kvdyno looks for those of its own build. What cannot be built is named and
# left out; with CI=true that is an error.
PLUGIN_BUILD := $(TARGET)/release/plugins-build
plugins:
	@if ! command -v cmake >/dev/null; then \
	  echo "the engines in C and C++ are left out: they need cmake (apt-get install cmake)" >&2; \
	elif ! cmake -S engines -B $(PLUGIN_BUILD) -DKVDYNO_OUT=$(TARGET)/release/plugins -DKVDYNO_BENCHES=OFF \
	    >$(PLUGIN_BUILD).log 2>&1; then \
	  echo "the engines in C and C++ are left out: see $(PLUGIN_BUILD).log" >&2; [ "$(CI)" != true ]; \
	elif ! cmake --build $(PLUGIN_BUILD) -j 2 -- --no-print-directory -k >>$(PLUGIN_BUILD).log 2>&1; then \
	  echo "some engines in C and C++ could not be built:" >&2; \
	  grep -E '(error|Error)[: ]' $(PLUGIN_BUILD).log | head -20 >&2; [ "$(CI)" != true ]; \
	fi
	@$(MAKE) --no-print-directory go-plugins

# The plug-ins of engines in Go: one for all, as there can be one Go runtime in a process, and one for RocksDB by cgo.
GO ?= go
GO_VERSION = $(shell sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' engines/go/go.mod)
GO_FLAGS = -buildmode=c-shared -trimpath -ldflags "-s -w -extldflags '-Wl,--version-script=$(abspath driver/plugin.map)'"
GO_PLUGINS = ./plugin:libkvdyno_go.so $(shell $(CC) -x c -fsyntax-only -include rocksdb/c.h /dev/null 2>/dev/null && \
  echo ./grocksdb:libkvdyno_grocksdb.so)
go-plugins:
	@mkdir -p $(PLUGIN_BUILD)/go; found=$$($(GO) version 2>/dev/null | sed -n 's/^go version go\([0-9]*\.[0-9]*\).*/\1/p'); \
	if ! echo "$${found:-0.0}" | awk -F. -v wanted=$(GO_VERSION) \
	    '{ split(wanted, w, "."); exit !($$1 > w[1] || ($$1 == w[1] && $$2 >= w[2])) }'; then \
	  echo "the engines in Go are left out: they need Go $(GO_VERSION) or newer, found $${found:-none} (https://go.dev/dl)" >&2; \
	  rm -f $(TARGET)/release/plugins/libkvdyno_go.so $(TARGET)/release/plugins/libkvdyno_grocksdb.so; [ "$(CI)" != true ]; exit; \
	fi; \
	for pair in $(GO_PLUGINS); do package=$${pair%%:*}; name=$${pair##*:}; module=engines/go; \
	  if [ -f engines/go/$$package/go.mod ]; then module=engines/go/$$package; package=.; fi; \
	  if (cd $$module && $(GO) build $(GO_FLAGS) -o $(PLUGIN_BUILD)/go/$$name $$package) 2>$(PLUGIN_BUILD)/go.log; then \
	    cmp -s $(PLUGIN_BUILD)/go/$$name $(TARGET)/release/plugins/$$name || \
	      install -m755 $(PLUGIN_BUILD)/go/$$name $(TARGET)/release/plugins/; \
	  else echo "$$name could not be built:" >&2; head -20 $(PLUGIN_BUILD)/go.log >&2; [ "$(CI)" != true ] || exit 1; fi; \
	done

# engines/README.md out of what verify has proven: `kvdyno verify --proven engines/proven.toml` tries all that is here.
engines-table:
	@UPDATE=1 $(CARGO) test $(WHOLE) --test catalogue the_table

# Engines that take a large download, so only when asked for: a newer RocksDB, out of a Maven artifact.
EXTRA := $(TARGET)/release/extra
ROCKSDB_JNI := 11.8.1
ROCKSDB_JNI_FILE = librocksdbjni-$(if $(filter x86_64,$(shell uname -m)),linux64,linux-$(shell uname -m)).so
ifeq ($(KVDYNO_ROCKSDB_JNI_PREFIX),)
export KVDYNO_ROCKSDB_JNI_PREFIX := $(wildcard $(EXTRA)/rocksdb-jni)
endif
engines-extra: build
	@command -v mvn >/dev/null || { echo "this needs Maven: run \`apt-get install maven\`" >&2; exit 1; }
	@mkdir -p $(EXTRA)/rocksdb-jni/lib
	@mvn -q -B dependency:copy -Dartifact=org.rocksdb:rocksdbjni:$(ROCKSDB_JNI) -DoutputDirectory=$(EXTRA)
	@cd $(EXTRA) && cmake -E tar xf rocksdbjni-$(ROCKSDB_JNI).jar $(ROCKSDB_JNI_FILE) && \
	  mv $(ROCKSDB_JNI_FILE) rocksdb-jni/lib/librocksdbjni.so
	@$(MAKE) --no-print-directory plugins

# Every plug-in in C and C++ against the model, with AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer in
# our code; the engines' libraries are as they are, so what only they leak is let pass (tests/leaks.txt).
SANITIZED := $(TARGET)/sanitized
sanitized: build
	@mkdir -p $(SANITIZED)/plugins && rm -f $(SANITIZED)/log.*
	@cmake -S engines -B $(SANITIZED)/build -DKVDYNO_OUT=$(SANITIZED)/plugins -DKVDYNO_SANITIZE=ON >$(SANITIZED)/build.log
	@cmake --build $(SANITIZED)/build -j 2 >>$(SANITIZED)/build.log || { cat $(SANITIZED)/build.log >&2; exit 1; }
	@names=$$(for name in $$(ls $(SANITIZED)/plugins | sed -n 's/^libkvdyno_\(.*\)\.so$$/\1/p'); do \
	    sed -n 's/^name = "\(.*\)"$$/\1/p' engines/$$name/engine.toml | tr -d ,; done); \
	  export LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"; \
	  export ASAN_OPTIONS=log_path=$(SANITIZED)/log:abort_on_error=1 UBSAN_OPTIONS=log_path=$(SANITIZED)/log:abort_on_error=1; \
	  export LSAN_OPTIONS=suppressions=$(abspath tests/leaks.txt):print_suppressions=0; \
	  $(KVDYNO) verify --plugins $(SANITIZED)/plugins --seconds 3 $$names; \
	  code=$$?; unset LD_PRELOAD; cat $(SANITIZED)/log.* 2>/dev/null && exit 1; exit $$code

# The command and its plug-ins for everyone who has PREFIX/bin in the path.
PREFIX ?= $(HOME)/.local
install: build
	@install -Dm755 -t $(PREFIX)/bin $(KVDYNO)
	@install -Dm755 -t $(PREFIX)/lib/kvdyno $(wildcard $(TARGET)/release/plugins/*.so)

clean:
	@$(CARGO) clean

toolchains:
	@for tool in $(CARGO) rustc; do \
	  found=$$($$tool --version 2>/dev/null | sed -n '1s/^[a-z]* \([0-9]*\.[0-9]*\).*/\1/p'); \
	  echo "$${found:-0.0}" | awk -F. -v wanted=$(RUST_VERSION) \
	    '{ split(wanted, w, "."); exit !($$1 > w[1] || ($$1 == w[1] && $$2 >= w[2])) }' && continue; \
	  echo "kvdyno needs Rust $(RUST_VERSION) or newer, found $${found:-none}: install it with rustup" \
	    "(https://rustup.rs) and run make again" >&2; \
	  exit 1; \
	done
	@printf '#include <stdio.h>\n' | $(CC) -x c -fsyntax-only - 2>/dev/null || { \
	  echo "kvdyno needs a C compiler with the C library's headers, and $(CC) is none: install one" \
	    "(apt-get install gcc libc6-dev) and run make again" >&2; \
	  exit 1; }

# $(call install,packages): installs those that are missing where apt-get is and may be used; else names them.
define install
	@command -v dpkg >/dev/null && command -v apt-get >/dev/null || exit 0; \
	for name in $(1); do \
	  dpkg -s $$name 2>/dev/null | grep -q '^Status: .* installed' || missing="$$missing $$name"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ]; then as=; elif sudo -n true 2>/dev/null; then as="sudo -n"; \
	else echo "these packages are missing:$$missing; run \`sudo apt-get install$$missing\`" >&2; exit 0; fi; \
	echo "installing$$missing" >&2; \
	get() { $$as env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60 "$$@" >/dev/null 2>&1; }; \
	get install -y --no-install-recommends $$missing || \
	  { get update && get install -y --no-install-recommends $$missing; } || \
	  echo "could not install$$missing; run \`apt-get install$$missing\` to see why" >&2
endef

packages:
	$(call install,$(PACKAGES))

test-packages:
	$(call install,$(TEST_PACKAGES))
