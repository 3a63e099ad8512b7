/* Gleaner's communication library: sums tensors over all ranks of a job through summers. C11, and C++.
 *
 * Life of a session: gln_open() joins the job and returns when all members are there; gln_declare() names tensors;
 * gln_push_pull() starts sums, gln_wait() ends them; gln_close() leaves. All functions are thread safe unless said
 * otherwise. None aborts, prints, installs a signal handler or throws. When a rank is lost, every
 * blocking call ends within the session's deadline, with GLN_UNAVAILABLE and a message that names it. A CPU summer that
 * is lost costs time only, unless no coordinator is left to plan without it: that ends calls in the same way.
 *
 * fork(): a session's threads and connections stay with the process that opened it. A child of that process, or of one
 * that has ever opened a session, gets GLN_FAILED_PRECONDITION from every function below, gln_open() included; what it
 * starts by exec may open its own. Forking before the first gln_open() is no matter.
 *
 * Ranks: worker w with local rank l of g is rank w * g + l, of n * g.
 */
#ifndef GLEANER_GLEANER_H_
#define GLEANER_GLEANER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GLN_API __attribute__((visibility("default")))
#else
#define GLN_API
#endif

typedef enum gln_status {
  GLN_OK = 0,
  GLN_INVALID_ARGUMENT = 1,    /* fix the call */
  GLN_FAILED_PRECONDITION = 2, /* the call comes at the wrong time: before open, after close, tensor in flight */
  GLN_DEADLINE_EXCEEDED = 3, /* gln_wait()'s timeout ran out; wait again. gln_open(): the message says who is missing */
  GLN_UNAVAILABLE = 4,       /* a peer or the coordinator is lost; the session is dead, close it */
  GLN_PERMISSION_DENIED = 5, /* wrong token */
  GLN_RESOURCE_EXHAUSTED = 6, /* memory, file descriptors */
  GLN_INTERNAL = 7,           /* a bug of ours */
  GLN_WORKERS_CHANGED = 8     /* an elastic job goes on with other workers: gln_close_to_return(), then gln_open() */
} gln_status;

typedef enum gln_data_type {
  GLN_FLOAT32 = 1,
  GLN_FLOAT64 = 2,
  GLN_FLOAT16 = 3,
  GLN_BFLOAT16 = 4,
  GLN_INT32 = 5,
  GLN_DATA_TYPE_IS_INT = 0x7fffffff /* no type: makes it an int, of which any value may be passed */
} gln_data_type;

typedef enum gln_op {
  GLN_SUM = 1,
  GLN_AVERAGE = 2,           /* over all ranks, divided before the one rounding; not for GLN_INT32 */
  GLN_ACCUMULATE = 3,        /* of tensors from gln_declare_accumulated(), and only of these */
  GLN_OP_IS_INT = 0x7fffffff /* no op, as above */
} gln_op;

typedef struct gln_session gln_session;

/* Every field may be 0 or NULL: then the environment counts (docs/cli.md#environment), then a default. Start from
 * GLN_OPTIONS_INIT, so that `size` tells the library which fields you know. */
typedef struct gln_options {
  size_t size;
  const char* coordinator;     /* HOST:PORT; GLEANER_COORDINATOR */
  const char* job;             /* GLEANER_JOB, "default" */
  const char* worker;          /* decimal index; GLEANER_WORKER */
  const char* local_rank;      /* GLEANER_LOCAL_RANK, "0" */
  const char* local_size;      /* GLEANER_LOCAL_SIZE, "1" */
  const char* address;         /* HOST:PORT where this worker's summer listens; GLEANER_ADDRESS, "127.0.0.1:0" */
  const char* token_file;      /* GLEANER_TOKEN_FILE */
  double open_timeout_seconds; /* until everybody has joined; GLEANER_OPEN_TIMEOUT, 60 */
  const char* transports;      /* "auto", "shm,tcp", "rdma" ...; GLEANER_TRANSPORTS, "auto" */
} gln_options;
#define GLN_OPTIONS_INIT \
  { sizeof(gln_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0.0, NULL }

typedef struct gln_topology {
  size_t size;
  uint32_t rank;
  uint32_t ranks; /* n * g */
  uint32_t worker;
  uint32_t workers; /* n */
  uint32_t local_rank;
  uint32_t local_ranks; /* g */
  uint32_t summers;     /* k, the CPU summers */
} gln_topology;
#define GLN_TOPOLOGY_INIT \
  { sizeof(gln_topology), 0, 0, 0, 0, 0, 0, 0 }

typedef struct gln_stats {
  size_t size;
  uint64_t steps;
  uint64_t bytes;               /* gradient bytes reduced */
  double communication_seconds; /* with at least one push_pull in flight */
  double bound_seconds;         /* best communication time of a step, by the plan's model; 0: unknown links */
  uint32_t epoch;
} gln_stats;
#define GLN_STATS_INIT \
  { sizeof(gln_stats), 0, 0, 0.0, 0.0, 0 }

/* "0.1.0" */
GLN_API const char* gln_version(void);
GLN_API const char* gln_status_name(int status); /* a gln_status; others are "unknown status" */

/* Why the last call of this thread failed, for people; valid until its next call. Never NULL. */
GLN_API const char* gln_last_error(void);

GLN_API gln_status gln_open(const gln_options* options, gln_session** session);

/* Leaves the job. Outstanding push_pulls are waited for if `failed` is 0, up to the deadline, and given up otherwise;
 * `failed` also tells the coordinator that this rank ended in error. Frees the session whatever is returned. NULL: OK.
 * Where tensors are accumulated it waits until all ranks close, however long: the others may need what this one has.
 */
GLN_API gln_status gln_close(gln_session* session, int failed);

/* As gln_close(session, 0), of a process that is going to gln_open() the same elastic job again: its next round waits
 * for it. OK also when the session has ended with GLN_WORKERS_CHANGED. */
GLN_API gln_status gln_close_to_return(gln_session* session);

/* How many workers wait for the next round of an elastic job: it begins when all of this one have left to return. Ranks
 * may hear of it at different times. */
GLN_API gln_status gln_get_newcomers(gln_session* session, uint32_t* workers);

GLN_API gln_status gln_get_topology(gln_session* session, gln_topology* topology);
GLN_API gln_status gln_get_stats(gln_session* session, gln_stats* stats);

/* By what this worker reaches each summer now, for people: "inproc: worker/0; shm: worker/1; tcp: summer/0". At most
 * `size` bytes of it, the terminating NUL included. Empty on local ranks above 0, which reach none. */
GLN_API gln_status gln_get_transports(gln_session* session, char* text, size_t size);

/* Names a tensor of `elements` elements; sets *tensor to its id on this rank. Every rank must declare it alike, in any
 * order. Lower priority values are served first, ties in order of declaration by rank 0. Returns at once; a mismatch
 * with other ranks shows at the first push_pull's wait. Declaring a name again alike returns the same id, otherwise
 * GLN_INVALID_ARGUMENT. Declare everything before the first push_pull where you can: one plan is then made for all.
 *
 * `name` has 1 to GLN_MAX_NAME_BYTES bytes (for gln_broadcast 10 fewer); GLN_INVALID_ARGUMENT fails this call
 * and not the job. */
#define GLN_MAX_NAME_BYTES 4096
GLN_API gln_status gln_declare(gln_session* session, const char* name, uint64_t elements, gln_data_type type,
                               int32_t priority, uint32_t* tensor);

#define GLN_UNBOUNDED UINT32_MAX

/* The same for a tensor whose push_pulls, with GLN_ACCUMULATE, add to a running sum that starts from zero: each gives
 * the sum of all that was added so far, its own input included, and does not wait for other workers. So workers go at
 * their own pace, see different sums, and no two runs need be alike. `staleness`: a push_pull waits until no other
 * worker is more than that many push_pulls of this tensor behind; GLN_UNBOUNDED: for nobody. Local ranks of one worker
 * keep step with each other. GLN_FLOAT32 and GLN_INT32. */
GLN_API gln_status gln_declare_accumulated(gln_session* session, const char* name, uint64_t elements,
                                           gln_data_type type, int32_t priority, uint32_t staleness, uint32_t* tensor);

/* Starts the sum of `tensor` over all ranks. `input` and `output` (which may be the same) hold its elements and stay
 * valid and untouched until the handle is waited for. One push_pull per tensor at a time. Every rank asks for the same
 * `op` in the same step of a tensor: ranks that differ end the session with an error that names them. */
GLN_API gln_status gln_push_pull(gln_session* session, uint32_t tensor, const void* input, void* output, gln_op op,
                                 uint64_t* handle);

/* Says that these bytes stay where they are until gln_unregister_memory(), so that push_pulls whose input lies there
 * need no copy of it where RDMA carries them: its adapter gets to know the memory once. Optional, and without effect
 * elsewhere. GLN_INVALID_ARGUMENT: no bytes, or some of them are registered. */
GLN_API gln_status gln_register_memory(gln_session* session, void* data, uint64_t bytes);

/* Before the memory goes; gln_close() does it, too. GLN_INVALID_ARGUMENT: nothing was registered at that address;
 * GLN_FAILED_PRECONDITION: push_pulls of it are in flight, wait for them first. */
GLN_API gln_status gln_unregister_memory(gln_session* session, const void* data);

/* 1 in *done when gln_wait() would not block. */
GLN_API gln_status gln_poll(gln_session* session, uint64_t handle, int* done);

/* Waits and gives the handle back; the status is the push_pull's own. timeout_seconds < 0: as long as it takes.
 * GLN_DEADLINE_EXCEEDED keeps the handle. */
GLN_API gln_status gln_wait(gln_session* session, uint64_t handle, double timeout_seconds);

/* Waits until any push_pull of `session` is done and tells which, for threads that serve callbacks. Does not give
 * the handle back. Each finished push_pull is told once. GLN_DEADLINE_EXCEEDED: none; GLN_FAILED_PRECONDITION: closing.
 */
GLN_API gln_status gln_next_done(gln_session* session, double timeout_seconds, uint64_t* handle);

/* Copies `bytes` bytes of rank `root` to every rank, bit for bit. Blocks. `name` as for gln_declare (all ranks alike).
 * GLN_INVALID_ARGUMENT on every rank: they ask for different roots. */
GLN_API gln_status gln_broadcast(gln_session* session, const char* name, void* data, uint64_t bytes, uint32_t root);

/* Tells statistics that an iteration of training ended. Optional: without it the most push_pulls of one tensor count.
 */
GLN_API gln_status gln_step(gln_session* session);

#ifdef __cplusplus
}
#endif
#endif /* GLEANER_GLEANER_H_ */
