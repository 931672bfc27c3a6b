// Sessions that are driven through the boundary's C calls, like the core's.

package main

/*
#cgo CFLAGS: -std=c11 -O2 -I${SRCDIR}/../../../driver/include
#include <stdlib.h>
#include <string.h>
#include "driver.h"

enum { BATCH = 64, KEY = 16, VALUE = 100, ROWS = 100, OUT = ROWS * (8 + KEY + VALUE) };

// One session's side of the boundary.
typedef struct work {
  const kv_driver *driver;
  kv_session *session;
  kv_batch batch;
  kv_op ops[BATCH];
  uint8_t keys[BATCH][KEY], values[BATCH][VALUE], outs[BATCH][OUT];
  uint32_t stop;
  uint8_t kind;
  uint32_t left;                // batches to send
  uint32_t wrong;               // ops with a wrong answer
  uint64_t first, step;         // the numbers of its keys: first, first + step, ...
  uint64_t written;             // how many it has put
  uint64_t random;              // splitmix64
  uint64_t *took, count;        // the ticks of each op
} work;

static void write_key(uint64_t number, uint8_t *key) {
  const uint64_t halves[2] = {__builtin_bswap64(number * 0x9e3779b97f4a7c15u), __builtin_bswap64(number)};
  memcpy(key, halves, KEY);
}

static uint64_t draw(work *own) {
  uint64_t z = own->random += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (z ^ z >> 31) % own->written;
}

static void prepare(work *own) {
  for (uint32_t i = 0; i < BATCH; i++) {
    kv_op *op = &own->ops[i];
    const uint64_t index = own->kind == KV_PUT ? own->written++ : draw(own);
    write_key(own->first + index * own->step, own->keys[i]);
    *op = (kv_op){.kind = own->kind, .key = own->keys[i], .key_length = KEY, .value = own->values[i],
                  .out = own->outs[i], .out_size = OUT, .status = KV_NOT_RUN};
    if (own->kind == KV_PUT) {
      op->value_length = VALUE;
      for (uint32_t at = 0; at < VALUE; at += KEY)
        memcpy(own->values[i] + at, own->keys[i], VALUE - at < KEY ? VALUE - at : KEY);
    }
    op->limit = own->kind == KV_SCAN ? ROWS : 0;
  }
  own->batch.ops = own->ops, own->batch.count = BATCH, own->batch.stop = &own->stop;
}

static void check(work *own) {
  for (uint32_t i = 0; i < BATCH; i++) {
    const uint8_t *found = own->kind == KV_GET ? own->outs[i] : own->kind == KV_SCAN ? own->outs[i] + 8 : own->keys[i];
    own->wrong += memcmp(found, own->keys[i], KEY) != 0;
    memset(own->outs[i], 0, 8 + KEY);
  }
}

// The core's half of the loop.
static kv_batch *turn(void *context, uint32_t status) {
  work *own = context;
  if (own->batch.ops != NULL) {
    for (uint32_t i = 0; i < BATCH; i++) own->took[own->count++] = own->ops[i].end - own->ops[i].start;
    check(own);
    own->wrong += own->batch.done != BATCH;
  }
  if (own->left == 0 || status != KV_OK) return NULL;
  own->left--;
  prepare(own);
  return &own->batch;
}

static uint32_t drive(work *own) {
  own->batch.ops = NULL;
  return own->driver->drive(own->session, turn, own);
}

static uint32_t call_open(const kv_driver *driver, kv_config *config, kv_opened *opened, kv_database **database) {
  return driver->open(config, opened, database);
}
static uint32_t call_session(work *own, kv_database *database) {
  kv_arena arena = {NULL, 0};
  return own->driver->session(database, &arena, &own->session, NULL);
}
static uint32_t call_end(work *own) { return own->driver->session_end(own->session, NULL); }
static uint32_t call_close(const kv_driver *driver, kv_database *database) { return driver->close(database, NULL); }
static uintptr_t handle_of(kv_database *database) { return *(uintptr_t *)database; }
static const kv_driver *table(const kv_drivers *list, uint32_t index) { return list->drivers[index]; }
*/
import "C"

import (
	"bytes"
	"log"
	"unsafe"

	"kvdyno/driver"
)

const (
	batchSize = C.BATCH
	keySize   = C.KEY
	valueSize = C.VALUE
	scanRows  = C.ROWS
)

// through is a database that was opened through the boundary's C calls, like the core opens it.
type through struct {
	table    *C.kv_driver
	database *C.kv_database
	works    []*C.work
}

func open(name, path string, level driver.Level, threads int) *through {
	list := C.kv_plugin()
	t := &through{}
	for index := range list.count {
		if table := C.table(list, index); C.GoString(table.name) == name {
			t.table = table
		}
	}
	if t.table == nil {
		log.Fatalf("no driver named %s", name)
	}
	config := (*C.kv_config)(C.calloc(1, C.sizeof_kv_config))
	opened := (*C.kv_opened)(C.calloc(1, C.sizeof_kv_opened))
	defer C.free(unsafe.Pointer(config))
	defer C.free(unsafe.Pointer(opened))
	config.abi, config.size, config.path = C.KV_ABI, C.sizeof_kv_config, C.CString(path)
	config.level, config.flags, config.keyspaces = C.uint32_t(level), C.KV_CREATE, 1
	config.threads, config.cache_bytes = C.uint32_t(threads), 256<<20
	database := (**C.kv_database)(C.calloc(1, C.sizeof_size_t))
	if C.call_open(t.table, config, opened, database) != C.KV_OK {
		log.Fatalf("open: %s", C.GoString(&opened.error[0]))
	}
	t.database = *database
	for thread := range threads {
		own := (*C.work)(C.calloc(1, C.sizeof_work))
		own.driver, own.first, own.step = t.table, C.uint64_t(thread), C.uint64_t(threads)
		own.random, own.batch.clock = C.uint64_t(thread), C.uint32_t(driver.BestClock)
		if C.call_session(own, t.database) != C.KV_OK {
			log.Fatal("no session")
		}
		t.works = append(t.works, own)
	}
	return t
}

// engine returns the database that the driver uses.
func (t *through) engine() any {
	return driver.DatabaseOf(uintptr(C.handle_of(t.database))).(interface{ Engine() any }).Engine()
}

// session is one thread's work, by the driver or by hand.
type session struct {
	work  *C.work
	slots []slot
	took  []uint64 // of the last side
	ahead []slot   // for a bare loop: the ops of all batches
}

// slot is one op's key, value and room for what is read, in C memory, used by both sides.
type slot struct {
	key, value, out []byte
}

func inC(bytes *C.uint8_t, size int) []byte { return unsafe.Slice((*byte)(bytes), size) }

func (t *through) sessions(batches int) []session {
	var sessions []session
	for _, own := range t.works {
		C.free(unsafe.Pointer(own.took))
		own.took = (*C.uint64_t)(C.calloc(C.size_t(batches*batchSize), 8))
		made := session{work: own, took: unsafe.Slice((*uint64)(unsafe.Pointer(own.took)), batches*batchSize)}
		for i := range batchSize {
			made.slots = append(made.slots,
				slot{inC(&own.keys[i][0], keySize), inC(&own.values[i][0], valueSize), inC(&own.outs[i][0], C.OUT)})
		}
		sessions = append(sessions, made)
	}
	return sessions
}

// driven runs batches in the driver's loop.
func (s *session) driven(kind kind, batches int) {
	s.begin(kind)
	s.work.left = C.uint32_t(batches)
	if status := C.drive(s.work); status != C.KV_OK {
		log.Fatalf("drive: status %d", status)
	}
}

// byHand runs batches in a plain loop.
func (s *session) byHand(hand hand, kind kind, batches int) {
	s.begin(kind)
	op := hand.op(kind)
	at := 0
	for range batches {
		C.prepare(s.work)
		start := driver.Ticks(driver.BestClock)
		for i := range s.slots {
			op(&s.slots[i])
			end := driver.Ticks(driver.BestClock)
			s.took[at] = end - start
			at++
			start = end
		}
		C.check(s.work)
	}
}

// prepare makes the keys and values of all batches for a bare loop.
func (s *session) prepare(kind kind, batches int) {
	s.begin(kind)
	s.ahead = s.ahead[:0]
	for range batches {
		C.prepare(s.work)
		for _, slot := range s.slots {
			slot.key, slot.value = bytes.Clone(slot.key), bytes.Clone(slot.value)
			s.ahead = append(s.ahead, slot)
		}
	}
}

// bare runs the prepared ops one after the other, without stamps and checks.
func (s *session) bare(hand hand, kind kind) {
	op := hand.op(kind)
	for i := range s.ahead {
		op(&s.ahead[i])
	}
}

func (s *session) begin(kind kind) { s.work.kind, s.work.count = C.uint8_t(kind), 0 }

// wrong is the number of wrong answers so far, of both sides.
func (s *session) wrong() int { return int(s.work.wrong) }

func (t *through) close() {
	for _, own := range t.works {
		if C.call_end(own) != C.KV_OK {
			log.Fatal("end of a session failed")
		}
		C.free(unsafe.Pointer(own.took))
		C.free(unsafe.Pointer(own))
	}
	if C.call_close(t.table, t.database) != C.KV_OK {
		log.Fatal("close failed")
	}
}
