/* Tests the C ABI from C11. `c_abi_test offline` needs no job; `c_abi_test job` and `c_abi_test exit` run under
 * `gleaner run`. */
#include <arpa/inet.h>
#include <gleaner/gleaner.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                         \
  do {                                                                                                           \
    if (!(condition)) {                                                                                          \
      fprintf(stderr, "%s:%d: failed: %s (last error: %s)\n", __FILE__, __LINE__, #condition, gln_last_error()); \
      exit(1);                                                                                                   \
    }                                                                                                            \
  } while (0)

static void check_error(gln_status got, gln_status expected, const char* part_of_message) {
  if (got != expected || strstr(gln_last_error(), part_of_message) == NULL) {
    fprintf(stderr, "expected %s with '%s', got %s: %s\n", gln_status_name(expected), part_of_message,
            gln_status_name(got), gln_last_error());
    exit(1);
  }
}

static void calls_without_a_session(void) {
  uint32_t tensor = 0;
  uint64_t handle = 0;
  float value = 0;
  int done = 0;
  check_error(gln_declare(NULL, "x", 1, GLN_FLOAT32, 0, &tensor), GLN_FAILED_PRECONDITION, "gln_open");
  check_error(gln_push_pull(NULL, 0, &value, &value, GLN_SUM, &handle), GLN_FAILED_PRECONDITION, "gln_open");
  check_error(gln_push_pull_on_stream(NULL, 0, &value, &value, GLN_SUM, 0, NULL, &handle), GLN_FAILED_PRECONDITION,
              "gln_open");
  check_error(gln_wait(NULL, 1, 0), GLN_FAILED_PRECONDITION, "gln_open");
  check_error(gln_wait_on_stream(NULL, 1, 0, NULL), GLN_FAILED_PRECONDITION, "gln_open");
  check_error(gln_poll(NULL, 1, &done), GLN_FAILED_PRECONDITION, "gln_open");
  CHECK(gln_close(NULL, 0) == GLN_OK);
  CHECK(gln_last_error()[0] == 0);
}

static void bad_options(void) {
  gln_session* session = (gln_session*)1;
  gln_options options = GLN_OPTIONS_INIT;
  check_error(gln_open(&options, NULL), GLN_INVALID_ARGUMENT, "session is NULL");
  check_error(gln_open(NULL, &session), GLN_INVALID_ARGUMENT, "GLEANER_WORKER");
  CHECK(session == NULL);
  options.worker = "two";
  check_error(gln_open(&options, &session), GLN_INVALID_ARGUMENT, "'two'");
  options.worker = "0";
  check_error(gln_open(&options, &session), GLN_INVALID_ARGUMENT, "GLEANER_COORDINATOR");
  options.coordinator = "nowhere";
  check_error(gln_open(&options, &session), GLN_INVALID_ARGUMENT, "HOST:PORT");
  options.coordinator = "127.0.0.1:1";
  options.token_file = "/nonexistent/token";
  check_error(gln_open(&options, &session), GLN_INVALID_ARGUMENT, "/nonexistent/token");
  options.size = 1;
  check_error(gln_open(&options, &session), GLN_INVALID_ARGUMENT, "GLN_OPTIONS_INIT");
}

static void sums_of_memory(void) {
  const float a[3] = {1, 2, 3};
  float b[3] = {10, 20, 30};
  float c[3] = {1e8f, -1e8f, 0};
  const void* sources[] = {a, b, c};
  int32_t ints[2] = {INT32_MAX, 7};
  const int32_t ones[2] = {1, 1};
  const void* of_ints[] = {ints, ones};
  const void* none[] = {a, NULL};
  CHECK(gln_sum(GLN_FLOAT32, GLN_SUM, sources, 2, b, 3) == GLN_OK && b[0] == 11 && b[1] == 22 && b[2] == 33);
  CHECK(gln_sum(GLN_FLOAT32, GLN_AVERAGE, sources, 3, c, 3) == GLN_OK);
  CHECK(c[0] == (12.0f + 1e8f) / 3 && c[1] == (24.0f - 1e8f) / 3 && c[2] == 12);
  CHECK(gln_sum(GLN_INT32, GLN_SUM, of_ints, 2, ints, 2) == GLN_OK && ints[0] == INT32_MIN && ints[1] == 8);
  CHECK(gln_sum(GLN_FLOAT64, GLN_SUM, none, 2, NULL, 0) == GLN_OK);
  check_error(gln_sum(GLN_INT32, GLN_AVERAGE, of_ints, 2, ints, 2), GLN_INVALID_ARGUMENT, "int32");
  check_error(gln_sum(GLN_FLOAT32, GLN_ACCUMULATE, sources, 2, b, 3), GLN_INVALID_ARGUMENT, "op 3");
  check_error(gln_sum((gln_data_type)257, GLN_SUM, sources, 2, b, 3), GLN_INVALID_ARGUMENT, "data type 0");
  check_error(gln_sum(GLN_FLOAT32, GLN_SUM, NULL, 2, b, 3), GLN_INVALID_ARGUMENT, "sources is NULL");
  check_error(gln_sum(GLN_FLOAT32, GLN_SUM, none, 2, b, 3), GLN_INVALID_ARGUMENT, "source 1 is NULL");
  check_error(gln_sum(GLN_FLOAT32, GLN_SUM, sources, 2, NULL, 3), GLN_INVALID_ARGUMENT, "output is NULL");
  check_error(gln_sum(GLN_FLOAT32, GLN_SUM, sources, 0, b, 3), GLN_INVALID_ARGUMENT, "count is 0");
  check_error(gln_sum(GLN_FLOAT32, GLN_SUM, sources, 2, b + 1, 2), GLN_INVALID_ARGUMENT, "source 1 overlap");
  check_error(gln_sum(GLN_FLOAT64, GLN_SUM, sources, 2, b, UINT64_MAX / 8 + 1), GLN_INVALID_ARGUMENT, "elements");
}

static void norms_of_memory(void) {
  const float rows[6] = {1, -2, 3, -4, 5, 6};
  float norms[2] = {0, 0};
  CHECK(gln_l1_norms(GLN_FLOAT32, rows, 2, 3, norms) == GLN_OK && norms[0] == 6 && norms[1] == 15);
  CHECK(gln_l1_norms(GLN_FLOAT32, NULL, 0, 3, NULL) == GLN_OK);
  check_error(gln_l1_norms(GLN_INT32, rows, 2, 3, norms), GLN_INVALID_ARGUMENT, "data type 5");
  check_error(gln_l1_norms((gln_data_type)7, rows, 2, 3, norms), GLN_INVALID_ARGUMENT, "data type 7");
  check_error(gln_l1_norms(GLN_FLOAT32, NULL, 2, 3, norms), GLN_INVALID_ARGUMENT, "values is NULL");
  check_error(gln_l1_norms(GLN_FLOAT32, rows, 2, 3, NULL), GLN_INVALID_ARGUMENT, "norms is NULL");
  check_error(gln_l1_norms(GLN_FLOAT32, rows, UINT64_MAX / 8, 3, norms), GLN_INVALID_ARGUMENT, "fit into memory");
}

static void offline(void) {
  CHECK(strcmp(gln_version(), GLEANER_EXPECTED_VERSION) == 0);
  CHECK(strcmp(gln_status_name(GLN_UNAVAILABLE), "UNAVAILABLE") == 0);
  CHECK(strcmp(gln_status_name(99), "unknown status") == 0);
  calls_without_a_session();
  bad_options();
  sums_of_memory();
  norms_of_memory();
}

/* Every rank contributes rank + 1. The last element is NaN on rank 0, so its sum must be NaN. */
static void sums(gln_session* session, const gln_rank_info* where) {
  enum { kElements = 1000 };
  float values[kElements];
  float result[kElements];
  uint32_t tensor = 0;
  uint64_t handle = 0;
  int done = 0;
  for (int i = 0; i < kElements; ++i) values[i] = (float)(where->rank + 1);
  if (where->rank == 0) values[kElements - 1] = NAN;
  CHECK(gln_declare(session, "x", kElements, GLN_FLOAT32, 0, &tensor) == GLN_OK);
  CHECK(gln_push_pull(session, tensor, values, result, GLN_SUM, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  const float expected = (float)(where->ranks * (where->ranks + 1) / 2);
  CHECK(result[0] == expected && result[kElements - 2] == expected && isnan(result[kElements - 1]));
  check_error(gln_wait(session, handle, 0), GLN_INVALID_ARGUMENT, "not open");

  CHECK(gln_push_pull(session, tensor, values, values, GLN_AVERAGE, &handle) == GLN_OK);
  uint64_t told = 0;
  CHECK(gln_next_done(session, 30, &told) == GLN_OK && told == handle);
  CHECK(gln_poll(session, handle, &done) == GLN_OK && done == 1);
  CHECK(gln_wait(session, handle, 0) == GLN_OK);
  CHECK(values[0] == expected / (float)where->ranks);
}

/* The first ranks sum without the last one, if there are several. */
static void sums_of_members(gln_session* session, const gln_rank_info* where) {
  enum { kElements = 1000 };
  uint32_t members[8];
  uint32_t tensor = 0;
  uint64_t handle = 0;
  float values[kElements];
  const uint32_t count = where->ranks > 1 ? where->ranks - 1 : 1;
  for (uint32_t i = 0; i < count; ++i) members[i] = i;
  if (where->local_ranks > 1) {
    check_error(gln_declare_for_members(session, "m", kElements, GLN_FLOAT32, 0, members, count, &tensor),
                GLN_FAILED_PRECONDITION, "local ranks");
    return;
  }
  if (where->rank >= count) {
    check_error(gln_declare_for_members(session, "m", kElements, GLN_FLOAT32, 0, members, count, &tensor),
                GLN_INVALID_ARGUMENT, "among them");
    return;
  }
  for (int i = 0; i < kElements; ++i) values[i] = (float)(where->rank + 1);
  CHECK(gln_declare_for_members(session, "m", kElements, GLN_FLOAT32, 0, members, count, &tensor) == GLN_OK);
  CHECK(gln_push_pull(session, tensor, values, values, GLN_AVERAGE, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  CHECK(values[0] == (float)(count + 1) / 2 && values[kElements - 1] == values[0]);
  members[0] = members[count - 1];
  members[count - 1] = where->ranks;
  check_error(gln_declare_for_members(session, "n", 1, GLN_FLOAT32, 0, members, count, &tensor), GLN_INVALID_ARGUMENT,
              "ascending order");
  check_error(gln_declare_for_members(session, "n", 1, GLN_FLOAT32, 0, members, 0, &tensor), GLN_INVALID_ARGUMENT,
              "ascending order");
}

/* In fp16, 1 + 2^-12 rounds to 1, and a sum of some of them in one worker to their number. */
static void compressed_sums(gln_session* session, const gln_rank_info* where) {
  enum { kElements = 1000 };
  float values[kElements];
  uint32_t tensor = 0;
  uint64_t handle = 0;
  for (int i = 0; i < kElements; ++i) values[i] = 1 + 0x1p-12f;
  values[1] = where->rank == 0 ? 1e6f : 0;
  CHECK(gln_declare_compressed(session, "c", kElements, GLN_FLOAT32, GLN_FLOAT16, 0, &tensor) == GLN_OK);
  CHECK(gln_push_pull(session, tensor, values, values, GLN_SUM, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  CHECK(values[0] == (float)where->ranks && isinf(values[1]) && values[kElements - 1] == values[0]);
  check_error(gln_declare_compressed(session, "c", kElements, GLN_FLOAT32, GLN_BFLOAT16, 0, &tensor),
              GLN_INVALID_ARGUMENT, "fp32 sent as fp16");
  check_error(gln_declare_compressed(session, "d", kElements, GLN_FLOAT64, GLN_FLOAT16, 0, &tensor),
              GLN_INVALID_ARGUMENT, "only fp32 can");
  check_error(gln_declare_compressed(session, "d", kElements, GLN_FLOAT32, (gln_data_type)99, 0, &tensor),
              GLN_INVALID_ARGUMENT, "99");
}

/* Each rank's largest element is the same one, so top-k returns its sum, and zeros for the others. */
static void sums_of_blocks(gln_session* session, const gln_rank_info* where) {
  enum { kElements = 1500 };
  float values[kElements];
  uint32_t tensor = 0;
  uint64_t handle = 0;
  gln_codec codec = GLN_CODEC_INIT;
  codec.method = GLN_AS_TOP_K;
  codec.kept = 1;
  for (int i = 0; i < kElements; ++i) values[i] = i == 1200 ? 5 : 1;
  CHECK(gln_declare_encoded(session, "blocks", kElements, &codec, 0, &tensor) == GLN_OK);
  CHECK(gln_push_pull(session, tensor, values, values, GLN_SUM, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  CHECK(values[1200] == 5 * (float)where->workers * (float)where->local_ranks && values[1201] == 0);
  codec.error_feedback = 0;
  check_error(gln_declare_encoded(session, "blocks", kElements, &codec, 0, &tensor), GLN_INVALID_ARGUMENT,
              "without error feedback");
  codec.kept = 3;
  check_error(gln_declare_encoded(session, "d", kElements, &codec, 0, &tensor), GLN_INVALID_ARGUMENT, "power of two");
  codec.method = GLN_AS_INT8;
  check_error(gln_declare_encoded(session, "d", kElements, &codec, 0, &tensor), GLN_INVALID_ARGUMENT, "expected 0");
  codec.kept = 0;
  codec.momentum = 1;
  check_error(gln_declare_encoded(session, "d", kElements, &codec, 0, &tensor), GLN_INVALID_ARGUMENT, "momentum");
  codec.method = (gln_method)99;
  check_error(gln_declare_encoded(session, "d", kElements, &codec, 0, &tensor), GLN_INVALID_ARGUMENT, "99");
  codec.size = 1;
  check_error(gln_declare_encoded(session, "d", kElements, &codec, 0, &tensor), GLN_INVALID_ARGUMENT, "codec.size");
  check_error(gln_declare_encoded(session, "d", kElements, NULL, 0, &tensor), GLN_INVALID_ARGUMENT, "codec");
}

/* Every rank adds 1 three times, at its own pace. After a sum that all ranks wait for, the total has all additions. */
static void running_sums(gln_session* session, const gln_rank_info* where) {
  uint32_t tensor = 0;
  uint32_t meeting = 0;
  uint64_t handle = 0;
  int32_t total = 0;
  float value = 0;
  CHECK(gln_declare_accumulated(session, "counter", 1, GLN_INT32, 0, GLN_UNBOUNDED, &tensor) == GLN_OK);
  for (int i = 1; i <= 3; ++i) {
    const int32_t one = 1;
    CHECK(gln_push_pull(session, tensor, &one, &total, GLN_ACCUMULATE, &handle) == GLN_OK);
    CHECK(gln_wait(session, handle, -1) == GLN_OK);
    CHECK(total >= i && total <= 3 * (int32_t)where->ranks);
  }
  CHECK(gln_declare(session, "all have added", 1, GLN_FLOAT32, 0, &meeting) == GLN_OK);
  CHECK(gln_push_pull(session, meeting, &value, &value, GLN_SUM, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  const int32_t none = 0;
  CHECK(gln_push_pull(session, tensor, &none, &total, GLN_ACCUMULATE, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  CHECK(total == 3 * (int32_t)where->ranks);
  check_error(gln_push_pull(session, tensor, &none, &total, GLN_SUM, &handle), GLN_INVALID_ARGUMENT,
              "its op must be GLN_ACCUMULATE");
  check_error(gln_push_pull(session, meeting, &value, &value, GLN_ACCUMULATE, &handle), GLN_INVALID_ARGUMENT,
              "gln_declare_accumulated()");
  check_error(gln_declare_accumulated(session, "h", 1, GLN_FLOAT16, 0, 0, &tensor), GLN_INVALID_ARGUMENT, "fp16");
  check_error(gln_declare(session, "counter", 1, GLN_INT32, 0, &tensor), GLN_INVALID_ARGUMENT, "declared twice");
}

static void wrong_calls(gln_session* session) {
  uint32_t tensor = 0;
  uint64_t handle = 0;
  float value = 0;
  check_error(gln_push_pull(session, 12345, &value, &value, GLN_SUM, &handle), GLN_INVALID_ARGUMENT, "not declared");
  check_error(gln_declare(session, "x", 7, GLN_FLOAT32, 0, &tensor), GLN_INVALID_ARGUMENT, "declared twice");
  check_error(gln_declare(session, "", 7, GLN_FLOAT32, 0, &tensor), GLN_INVALID_ARGUMENT, "name is empty");
  check_error(gln_declare(session, "caf\xe9", 7, GLN_FLOAT32, 0, &tensor), GLN_INVALID_ARGUMENT,
              "'caf\\xe9' is not UTF-8");
  check_error(gln_declare(session, "two\nlines", 7, GLN_FLOAT32, 0, &tensor), GLN_INVALID_ARGUMENT,
              "control character");
  check_error(gln_broadcast(session, "cut\xe6\xa8", &value, sizeof value, 0), GLN_INVALID_ARGUMENT, "is not UTF-8");
  char name[GLN_MAX_NAME_BYTES + 2];
  memset(name, 'n', sizeof name);
  name[GLN_MAX_NAME_BYTES + 1] = '\0';
  check_error(gln_declare(session, name, 7, GLN_FLOAT32, 0, &tensor), GLN_INVALID_ARGUMENT, "has 4097 bytes");
  check_error(gln_broadcast(session, name, &value, sizeof value, 0), GLN_INVALID_ARGUMENT, "at most 4096");
  name[GLN_MAX_NAME_BYTES] = '\0';
  CHECK(gln_declare(session, name, 1, GLN_FLOAT32, 0, &tensor) == GLN_OK);
  CHECK(gln_push_pull(session, tensor, &value, &value, GLN_SUM, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  check_error(gln_declare(session, "y", 7, (gln_data_type)77, 0, &tensor), GLN_INVALID_ARGUMENT, "data type 77");
  check_error(gln_declare(session, "z", 7, (gln_data_type)257, 0, &tensor), GLN_INVALID_ARGUMENT, "data type 0");
  CHECK(gln_declare(session, "ints", 1, GLN_INT32, 0, &tensor) == GLN_OK);
  check_error(gln_push_pull(session, tensor, &value, &value, GLN_AVERAGE, &handle), GLN_INVALID_ARGUMENT, "int32");
  check_error(gln_push_pull(session, tensor, NULL, &value, GLN_SUM, &handle), GLN_INVALID_ARGUMENT, "NULL");
  check_error(gln_push_pull(session, tensor, &value, &value, (gln_op)9, &handle), GLN_INVALID_ARGUMENT, "op 9");
}

static void broadcasts(gln_session* session, const gln_rank_info* where) {
  const uint32_t root = where->ranks - 1;
  unsigned char data[7];
  for (int i = 0; i < 7; ++i) data[i] = (unsigned char)(where->rank == root ? 250 + i : 1);
  CHECK(gln_broadcast(session, "bytes", data, sizeof data, root) == GLN_OK);
  for (int i = 0; i < 7; ++i) CHECK(data[i] == (unsigned char)(250 + i));
  check_error(gln_broadcast(session, "bytes", data, sizeof data, where->ranks), GLN_INVALID_ARGUMENT, "not a rank");
}

/* All ranks are a group, in reverse order. */
static void calls(gln_session* session, const gln_rank_info* where) {
  enum { kGroup = 3, kMost = 8 };
  uint32_t members[kMost];
  for (uint32_t i = 0; i < where->ranks; ++i) members[i] = where->ranks - 1 - i;
  if (where->local_ranks > 1) {
    check_error(gln_add_group(session, kGroup, members, where->ranks), GLN_FAILED_PRECONDITION, "local ranks");
    return;
  }
  CHECK(gln_add_group(session, kGroup, members, where->ranks) == GLN_OK);
  const uint32_t rank = where->ranks - 1 - where->rank;
  uint64_t handle = 0;
  uint64_t gathered[kMost] = {0};
  uint64_t got[kMost] = {0};
  uint64_t mine = 100 + rank;
  gln_call call = GLN_CALL_INIT;
  call.group = kGroup;
  call.collective = GLN_ALL_GATHER;
  call.input = &mine;
  call.input_bytes = sizeof mine;
  call.output = gathered;
  call.output_bytes = where->ranks * sizeof mine;
  CHECK(gln_start_call(session, &call, &handle) == GLN_OK && gln_wait(session, handle, -1) == GLN_OK);
  for (uint32_t i = 0; i < where->ranks; ++i) CHECK(gathered[i] == 100 + i);

  /* Rank i sends i + j bytes to rank j. */
  unsigned char sent[64], received[64];
  uint64_t to[kMost], from[kMost];
  call.collective = GLN_ALL_TO_ALL;
  call.input = sent;
  call.output = received;
  call.input_bytes = 0;
  for (uint32_t i = 0; i < where->ranks; ++i) call.input_bytes += to[i] = from[i] = rank + i;
  memset(sent, (int)rank, sizeof sent);
  call.output_bytes = call.input_bytes;
  call.sent = to;
  call.received = from;
  call.ranks = where->ranks;
  CHECK(gln_start_call(session, &call, &handle) == GLN_OK && gln_wait(session, handle, -1) == GLN_OK);
  for (uint64_t i = 0, at = 0; i < where->ranks; ++i) {
    for (uint64_t j = 0; j < rank + i; ++j) CHECK(received[at++] == i);
  }

  const gln_call empty = GLN_CALL_INIT;
  call = empty;
  call.group = kGroup;
  *(rank == 0 ? (const void**)&call.input : (const void**)&call.output) = rank == 0 ? (void*)gathered : (void*)got;
  *(rank == 0 ? &call.input_bytes : &call.output_bytes) = sizeof got;
  CHECK(gln_start_call(session, &call, &handle) == GLN_OK && gln_wait(session, handle, -1) == GLN_OK);
  CHECK(rank == 0 || memcmp(got, gathered, sizeof got) == 0);

  check_error(gln_start_call(session, NULL, &handle), GLN_INVALID_ARGUMENT, "call is NULL");
  check_error(gln_add_group(session, kGroup, members, where->ranks), GLN_INVALID_ARGUMENT, "exists");
  call.root = where->ranks;
  CHECK(gln_start_call(session, &call, &handle) == GLN_OK);
  check_error(gln_wait(session, handle, -1), GLN_INVALID_ARGUMENT, "root");
  call.size = 1;
  check_error(gln_start_call(session, &call, &handle), GLN_INVALID_ARGUMENT, "GLN_CALL_INIT");
}

/* Rank 0 makes its call once the others wait for it alone, which they tell it by a call of another group. */
static void late_calls(gln_session* session, const gln_rank_info* where) {
  enum { kLate = 8, kSignal = 9 };
  uint32_t members[8];
  unsigned char byte = 1, gathered[8];
  uint64_t handle = 0, signal = 0;
  if (where->local_ranks > 1 || where->ranks == 1) return;
  for (uint32_t i = 0; i < where->ranks; ++i) members[i] = i;
  CHECK(gln_add_group(session, kLate, members, where->ranks) == GLN_OK);
  CHECK(gln_add_group(session, kSignal, members, where->ranks) == GLN_OK);
  gln_call call = GLN_CALL_INIT;
  call.group = kLate;
  call.collective = GLN_ALL_TO_ALL;
  call.input = members;
  call.input_bytes = where->ranks;
  call.output = gathered;
  call.output_bytes = where->ranks;
  gln_call gather = GLN_CALL_INIT;
  unsigned char signals[8];
  gather.group = kSignal;
  gather.collective = GLN_GATHER;
  gather.input = &byte;
  gather.input_bytes = 1;
  if (where->rank == 0) {
    gather.output = signals;
    gather.output_bytes = where->ranks;
  } else {
    CHECK(gln_start_call(session, &call, &handle) == GLN_OK);
    check_error(gln_remove_group(session, kLate), GLN_FAILED_PRECONDITION, "in flight");
    do {
      CHECK(gln_wait(session, handle, 0.01) == GLN_DEADLINE_EXCEEDED);
    } while (strstr(gln_last_error(), "call 0 of group 8 (all-to-all) waits for rank 0 (worker 0)") == NULL);
  }
  CHECK(gln_start_call(session, &gather, &signal) == GLN_OK && gln_wait(session, signal, -1) == GLN_OK);
  if (where->rank == 0) CHECK(gln_start_call(session, &call, &handle) == GLN_OK);
  CHECK(gln_wait(session, handle, -1) == GLN_OK);
  CHECK(gln_remove_group(session, kLate) == GLN_OK);
  check_error(gln_remove_group(session, kLate), GLN_INVALID_ARGUMENT, "no group 8");
  check_error(gln_add_group(session, kLate, members, where->ranks), GLN_INVALID_ARGUMENT, "was removed");
  CHECK(gln_start_call(session, &call, &handle) == GLN_OK);
  check_error(gln_wait(session, handle, -1), GLN_INVALID_ARGUMENT, "no group 8");
}

/* A forked child has a copy of the session's memory, but not its threads, so every call must fail at once. */
static void forked_child(gln_session* session) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    uint32_t tensor = 0;
    gln_session* own = NULL;
    check_error(gln_declare(session, "x", 1, GLN_FLOAT32, 0, &tensor), GLN_FAILED_PRECONDITION, "forked");
    check_error(gln_open(NULL, &own), GLN_FAILED_PRECONDITION, "forked");
    check_error(gln_close(session, 0), GLN_FAILED_PRECONDITION, "forked");
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void job(void) {
  gln_session* session = NULL;
  gln_rank_info where = GLN_RANK_INFO_INIT;
  gln_stats stats = GLN_STATS_INIT;
  CHECK(gln_open(NULL, &session) == GLN_OK);
  CHECK(gln_get_rank_info(session, &where) == GLN_OK);
  CHECK(where.rank == where.worker * where.local_ranks + where.local_rank);
  sums(session, &where);
  sums_of_members(session, &where);
  compressed_sums(session, &where);
  sums_of_blocks(session, &where);
  running_sums(session, &where);
  wrong_calls(session);
  broadcasts(session, &where);
  calls(session, &where);
  late_calls(session, &where);
  forked_child(session);
  CHECK(gln_step(session) == GLN_OK);
  CHECK(gln_count_saved(session, 1000) == GLN_OK);
  CHECK(gln_count_saved(session, -1000) == GLN_OK);
  check_error(gln_count_saved(session, INT64_MIN), GLN_INVALID_ARGUMENT, "bytes is -9223372036854775808");
  CHECK(gln_add_wait(session, 0.5) == GLN_OK);
  check_error(gln_add_wait(session, -1), GLN_INVALID_ARGUMENT, "seconds is -1");
  check_error(gln_add_wait(session, NAN), GLN_INVALID_ARGUMENT, "seconds is nan");
  CHECK(gln_tell_packs(session, INFINITY, 0.25, 0.5) == GLN_OK);
  check_error(gln_tell_packs(session, NAN, 0.25, 0.5), GLN_INVALID_ARGUMENT, "fusion_bytes is nan");
  check_error(gln_tell_packs(session, 0, 0.25, -1), GLN_INVALID_ARGUMENT, "a predicted time is -1");
  CHECK(gln_get_stats(session, &stats) == GLN_OK);
  char transports[256];
  CHECK(gln_get_transports(session, transports, sizeof(transports)) == GLN_OK);
  CHECK(where.local_rank != 0 ? transports[0] == '\0' : strstr(transports, "inproc: worker/") == transports);
  CHECK(gln_get_transports(session, transports, 3) == GLN_OK && strlen(transports) <= 2);
  CHECK(gln_get_transports(session, NULL, 0) == GLN_INVALID_ARGUMENT);
  CHECK(gln_close(session, 0) == GLN_OK);
  printf("rank %u of %u done\n", where.rank, where.ranks);
}

static struct sockaddr_in summers_address; /* where the session that is open at exit listens; port 0: none is open */

/* Runs after all functions of atexit(), such as OpenSSL's, while the session's threads still run: a stranger connects
 * to this rank's summer, which draws random numbers for the handshake. */
__attribute__((destructor)) static void connect_at_exit(void) {
  if (summers_address.sin_port == 0) return;
  for (int i = 0; i < 10; ++i) {
    const int stranger = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(stranger, (struct sockaddr*)&summers_address, sizeof summers_address) != 0) _exit(3);
    usleep(20000);
  }
}

/* Sets a free address. A socket stays bound to it, so no other process gets it before the session listens there. */
static void set_free_address(struct sockaddr_in* address) {
  socklen_t size = sizeof *address;
  const int one = 1;
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
  CHECK(bind(socket_, (struct sockaddr*)address, sizeof *address) == 0);
  CHECK(getsockname(socket_, (struct sockaddr*)address, &size) == 0);
}

/* A program may end with an open session, whose threads then still run while global objects are destroyed. */
static void exit_with_an_open_session(void) {
  gln_session* session = NULL;
  gln_options options = GLN_OPTIONS_INIT;
  struct sockaddr_in address;
  char text[32];
  memset(&address, 0, sizeof address);
  set_free_address(&address);
  snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(address.sin_port));
  options.address = text;
  CHECK(gln_open(&options, &session) == GLN_OK);
  summers_address = address;
  exit(0);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "offline") == 0) {
    offline();
  } else if (argc == 2 && strcmp(argv[1], "job") == 0) {
    job();
  } else if (argc == 2 && strcmp(argv[1], "exit") == 0) {
    exit_with_an_open_session();
  } else {
    fprintf(stderr, "usage: c_abi_test offline|job|exit\n");
    return 2;
  }
  return 0;
}
