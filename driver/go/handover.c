/* Hands batches over to the session's own goroutine. A goroutine called from C occupies C's thread, and each of
 * its waits for another goroutine is a thread switch, which users of an engine in Go do not pay: with one writer
 * and two readers, a map under a lock was ten times as slow. So the calling thread sleeps here, outside Go, while
 * a goroutine that is not bound to a thread runs the batch. */
#include "glue.h"

#include "kit.h"

kv_go_mail *kv_go_mail_new(void) {
  kv_go_mail *mail = calloc(1, sizeof *mail);
  if (mail == NULL) abort(); /* as Go does without memory */
  pthread_mutex_init(&mail->lock, NULL);
  pthread_cond_init(&mail->is_sent, NULL);
  pthread_cond_init(&mail->is_answered, NULL);
  return mail;
}

void kv_go_mail_free(kv_go_mail *mail) {
  pthread_cond_destroy(&mail->is_answered);
  pthread_cond_destroy(&mail->is_sent);
  pthread_mutex_destroy(&mail->lock);
  free(mail);
}

static int has_write(const kv_batch *batch) {
  for (uint32_t i = 0; i < batch->count; i++) {
    const uint8_t kind = batch->ops[i].kind;
    if (kind != KV_GET && kind != KV_SCAN) return 1;
  }
  return 0;
}

void kv_go_count_session(kv_go_box *database, int32_t change) {
  __atomic_fetch_add(&database->sessions, (uint32_t)change, __ATOMIC_RELAXED);
}

int kv_go_is_for_goroutine(uint32_t rule, uint32_t sessions, uintptr_t batch) {
  if (rule == KV_GO_ALWAYS) return 1;
  if (sessions > 1 && (rule == KV_GO_SEVERAL || rule == KV_GO_EITHER)) return 1;
  return (rule == KV_GO_WRITES || rule == KV_GO_EITHER) && has_write((const kv_batch *)batch);
}

/* Sends a batch, or null for the end, and sleeps until the goroutine has answered. */
static uint32_t send(kv_go_mail *mail, kv_batch *batch) {
  pthread_mutex_lock(&mail->lock);
  mail->batch = batch;
  __atomic_store_n(&mail->state, KV_GO_SENT, __ATOMIC_RELEASE);
  pthread_cond_signal(&mail->is_sent);
  while (mail->state != KV_GO_ANSWERED) pthread_cond_wait(&mail->is_answered, &mail->lock);
  mail->state = KV_GO_EMPTY;
  const uint32_t status = mail->status;
  pthread_mutex_unlock(&mail->lock);
  return status;
}

/* The transfer there and back is part of no op's time: it is added to the batch's `waited`. */
uint32_t kv_go_hand_over(kv_go_mail *mail, uintptr_t address) {
  kv_batch *batch = (kv_batch *)address;
  if (batch == NULL) return send(mail, NULL);
  const uint64_t entered = kv_ticks(batch->clock);
  const uint32_t status = send(mail, batch);
  const uint64_t left = kv_ticks(batch->clock);
  if (mail->received > entered) batch->waited += mail->received - entered;
  if (left > mail->ended) batch->waited += left - mail->ended;
  return status;
}

kv_batch *kv_go_receive(kv_go_mail *mail) {
  pthread_mutex_lock(&mail->lock);
  while (mail->state != KV_GO_SENT) pthread_cond_wait(&mail->is_sent, &mail->lock);
  kv_batch *batch = mail->batch;
  pthread_mutex_unlock(&mail->lock);
  return batch;
}

void kv_go_answer(kv_go_mail *mail, uint32_t status, uint64_t received, uint64_t ended) {
  pthread_mutex_lock(&mail->lock);
  mail->status = status;
  mail->received = received;
  mail->ended = ended;
  mail->state = KV_GO_ANSWERED;
  pthread_cond_signal(&mail->is_answered);
  pthread_mutex_unlock(&mail->lock);
}
