/* Gleaner's communication library: it sums tensors over all ranks of a job, by summers. For C11 and C++.
 *
 * Life of a session: gln_open() joins the job and returns when all members have joined. gln_declare() names tensors,
 * gln_push_pull() starts sums, and gln_wait() waits for them. gln_close() leaves the job. A *rank* is one session's
 * place in the job: worker w with local rank l of g is rank w * g + l, of n * g ranks. A *request* is one call of
 * gln_push_pull(); its *handle* identifies it until gln_wait() returns its outcome.
 *
 * Errors: a gln_status is GLN_OK, an error that the function's comment names, or the error that has ended the session.
 * gln_last_error() returns the reason. A NULL session gives GLN_FAILED_PRECONDITION (but GLN_OK in gln_close() and
 * gln_close_to_return()); any other NULL that is not allowed gives GLN_INVALID_ARGUMENT. When a rank is lost, every
 * blocking call returns GLN_UNAVAILABLE within the job's deadline, and the message names the rank; in an elastic job it
 * returns GLN_WORKERS_CHANGED. A lost CPU summer costs only time, unless no coordinator is left that can make a plan
 * without it; calls then end with GLN_UNAVAILABLE, too.
 *
 * Threads: all functions are thread safe unless their comment says otherwise. No function aborts, installs a signal
 * handler or throws. The library writes warnings to standard error (GLEANER_LOG_LEVEL).
 *
 * fork(): a session's threads and connections exist only in the process that opened it. In a child of a process that
 * has ever called gln_open(), every function that takes a session returns GLN_FAILED_PRECONDITION, and so does
 * gln_open(). A program that this child starts by exec may open a session. A child forked before the first gln_open()
 * may open one, too.
 *
 * exit(): a process may exit with an open session; the job then takes this rank for lost. The session's threads run
 * until the end of the process. They use OpenSSL, so gln_open() turns off OpenSSL's cleanup at exit. That has no effect
 * in a program that has used OpenSSL before: such a program must call gln_close() before it exits.
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
  GLN_INVALID_ARGUMENT = 1,    /* an argument is wrong, or ranks disagree; fix the call */
  GLN_FAILED_PRECONDITION = 2, /* the call comes at the wrong time, e.g. while the tensor is in flight */
  GLN_DEADLINE_EXCEEDED = 3,   /* a timeout ran out; after gln_wait() and gln_next_done(): call again */
  GLN_UNAVAILABLE = 4,         /* a peer or the coordinator is lost; the session has ended, close it */
  GLN_PERMISSION_DENIED = 5,   /* wrong token */
  GLN_RESOURCE_EXHAUSTED = 6,  /* no memory or no file descriptor is left */
  GLN_INTERNAL = 7,            /* a bug in Gleaner */
  GLN_WORKERS_CHANGED = 8      /* an elastic job's workers change: gln_close_to_return(), then gln_open() */
} gln_status;

typedef enum gln_data_type {
  GLN_FLOAT32 = 1,
  GLN_FLOAT64 = 2,
  GLN_FLOAT16 = 3,
  GLN_BFLOAT16 = 4,
  GLN_INT32 = 5,
  GLN_DATA_TYPE_IS_INT = 0x7fffffff /* not a type: makes the enum an int, so that any value may be passed */
} gln_data_type;

typedef enum gln_op {
  GLN_SUM = 1,
  GLN_AVERAGE = 2,           /* the sum divided by the number of ranks, rounded once; not for GLN_INT32 */
  GLN_ACCUMULATE = 3,        /* for tensors of gln_declare_accumulated(), and only for these */
  GLN_OP_IS_INT = 0x7fffffff /* not an op, as above */
} gln_op;

/* One rank's part in a job. gln_open() makes it, gln_close() or gln_close_to_return() frees it. */
typedef struct gln_session gln_session;

/* Options of gln_open(). A field that is 0 or NULL is read from its environment variable (docs/cli.md#environment),
 * else it has its default. Initialize the struct with GLN_OPTIONS_INIT: its `size` tells the library which fields the
 * caller's version of this header has. The structs below use `size` in the same way. */
typedef struct gln_options {
  size_t size;
  const char* coordinator;     /* HOST:PORT; GLEANER_COORDINATOR, no default */
  const char* job;             /* GLEANER_JOB, "default" */
  const char* worker;          /* decimal index; GLEANER_WORKER, no default */
  const char* local_rank;      /* GLEANER_LOCAL_RANK, "0" */
  const char* local_size;      /* GLEANER_LOCAL_SIZE, "1" */
  const char* address;         /* HOST:PORT of this worker's summer; GLEANER_ADDRESS, on the route to the coordinator */
  const char* token_file;      /* file with the job's token; GLEANER_TOKEN_FILE, no default */
  double open_timeout_seconds; /* until all members have joined; GLEANER_OPEN_TIMEOUT, 60 */
  const char* transports;      /* "auto", "shm,tcp", "rdma" ...; GLEANER_TRANSPORTS, "auto" */
} gln_options;
#define GLN_OPTIONS_INIT \
  { sizeof(gln_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0.0, NULL }

/* Numbers of one rank, and of the job that it is part of: rank = worker * local_ranks + local_rank. */
typedef struct gln_rank_info {
  size_t size;
  uint32_t rank;
  uint32_t ranks; /* n * g */
  uint32_t worker;
  uint32_t workers; /* n */
  uint32_t local_rank;
  uint32_t local_ranks; /* g */
  uint32_t summers;     /* k, the CPU summers */
} gln_rank_info;
#define GLN_RANK_INFO_INIT \
  { sizeof(gln_rank_info), 0, 0, 0, 0, 0, 0, 0 }

/* Earlier names of gln_rank_info, its initializer and gln_get_rank_info(). */
typedef gln_rank_info gln_topology;
#define GLN_TOPOLOGY_INIT GLN_RANK_INFO_INIT

/* Figures of one rank since gln_open(), up to 250 ms old. */
typedef struct gln_stats {
  size_t size;
  uint64_t steps;               /* iterations, see gln_step() */
  uint64_t bytes;               /* bytes of tensors whose sums this rank has received */
  double communication_seconds; /* time with at least one request in flight */
  double bound_seconds;         /* of a step that owners sum; 0: links unknown, a schedule sums tensors, or no step */
  uint32_t epoch;               /* of the plan in force */
  /* Of compressed tensors; on local rank 0 of each worker, whose contributions are the sums of its local ranks: */
  uint64_t compressed_elements; /* that were rounded to the type in which they travel */
  uint64_t clipped_elements;    /* of these: finite before, infinite after */
  uint64_t flushed_elements;    /* of these: not zero before, zero after */
} gln_stats;
#define GLN_STATS_INIT \
  { sizeof(gln_stats), 0, 0, 0.0, 0.0, 0, 0, 0, 0 }

/* Returns the version of the library, such as "0.1.0". */
GLN_API const char* gln_version(void);

/* Returns the name of a gln_status, such as "UNAVAILABLE", or "unknown status". */
GLN_API const char* gln_status_name(int status);

/* Returns the error message, for people, of this thread's last call that returned a gln_status, or "" if that call did
 * not fail. Never NULL. The library owns the text, which is valid until the thread's next call. */
GLN_API const char* gln_last_error(void);

/* Joins the job. Blocks until all members have joined and are connected, for at most the open timeout and 5 seconds.
 * Sets *session, or sets it to NULL on error. `options` may be NULL.
 *
 * GLN_INVALID_ARGUMENT: an option or variable is missing or wrong. GLN_UNAVAILABLE: the coordinator can't be reached, a
 * member was lost, or members have not joined within the open timeout or the coordinator's start timeout; the message
 * names them. GLN_DEADLINE_EXCEEDED: the session has not opened 5 seconds after the open timeout.
 * GLN_PERMISSION_DENIED: wrong token. GLN_WORKERS_CHANGED: an elastic job's workers changed meanwhile; call again. */
GLN_API gln_status gln_open(const gln_options* options, gln_session** session);

/* Leaves the job and frees the session, also if it returns an error; only a forked child frees nothing. No other call
 * may use the session at the same time or later. NULL is allowed and gives GLN_OK.
 *
 * If `failed` is 0, gln_close() waits for requests in flight, up to the job's deadline, and until no other member needs
 * this rank. Otherwise it abandons requests, and tells the coordinator that this rank ended in error. If a tensor was
 * declared by gln_declare_accumulated() and `failed` is 0, gln_close() first waits until all ranks close, without a
 * limit: other ranks may need sums that this rank has.
 *
 * GLN_DEADLINE_EXCEEDED: requests were still in flight. Returns the error that ended the session, if one did. */
GLN_API gln_status gln_close(gln_session* session, int failed);

/* Leaves like gln_close(session, 0), for a process that will call gln_open() again for the same elastic job: the job's
 * next round waits for this worker. Returns GLN_OK also if the session ended with GLN_WORKERS_CHANGED. Does not wait
 * for accumulated tensors. */
GLN_API gln_status gln_close_to_return(gln_session* session);

/* Sets *workers to the number of workers that wait for the next round of an elastic job. That round begins when all
 * workers of the present round have left by gln_close_to_return(). Ranks may see the number change at different times.
 * GLN_INVALID_ARGUMENT: `workers` is NULL. */
GLN_API gln_status gln_get_newcomers(gln_session* session, uint32_t* workers);

/* Fill in *info or *stats, up to its `size`. GLN_INVALID_ARGUMENT: the pointer is NULL or `size` is wrong. */
GLN_API gln_status gln_get_rank_info(gln_session* session, gln_rank_info* info);
GLN_API gln_status gln_get_topology(gln_session* session, gln_topology* topology);
GLN_API gln_status gln_get_stats(gln_session* session, gln_stats* stats);

/* Writes to `text` the transport by which this worker reaches each summer, for people: "inproc: worker/0; shm:
 * worker/1; tcp: summer/0". Writes at most `size` bytes, the terminating NUL included. The text may be 250 ms old. It
 * is empty on local ranks above 0, which connect to no summer. GLN_INVALID_ARGUMENT: `text` is NULL or `size` is 0. */
GLN_API gln_status gln_get_transports(gln_session* session, char* text, size_t size);

/* Writes to `text` how the job sums a tensor, as JSON: {"algorithm": "summers", "stages": [], "radix": 0, "blocks": 0,
 * "ranks": [], "group_sizes": [], "global_chunks": [], "local_chunks": [], "partition_bytes": [1048576, 1048576],
 * "owners": [0, 2], "members": [], "from": 0}. "summers": the owners of its partitions sum it; "owners" has the owner
 * of each, a worker or n + the place of a CPU summer. "members": the workers that sum it, or none for all workers.
 * Otherwise it is summed by the schedule of this algorithm between the workers, with these parameters
 * (docs/schedules.md); "ranks" has each worker's rank in the schedule, and is empty if worker i has rank i. "from": the
 * number of the tensor's first push_pull that is summed so; the job has summed earlier ones by another strategy. Writes
 * at most `size` bytes, the terminating NUL included. GLN_INVALID_ARGUMENT: there is no such tensor, `text` is NULL, or
 * `size` is too small. GLN_FAILED_PRECONDITION: no plan has the tensor yet; its first push_pull brings it into one. */
GLN_API gln_status gln_get_tensor_plan(gln_session* session, uint32_t tensor, char* text, size_t size);

/* Declares a tensor of `elements` elements, at most 1 TiB in all, and sets *tensor to its id on this rank. `name` is
 * UTF-8 without control characters and has 1 to GLN_MAX_NAME_BYTES bytes, for gln_broadcast() 10 fewer. Every rank must
 * declare the name with the same elements and type, in any order. Tensors with a lower `priority` value are sent first.
 * Rank 0's priorities count, and ties go by its order of declaration.
 *
 * Does not wait for other ranks. If ranks declare a name differently, the job fails, and gln_wait() returns an error
 * that names the tensor and the ranks. Declare all tensors before the first gln_push_pull() if possible: one plan then
 * has them all.
 *
 * A repeated declaration of a name with the same arguments sets the same id. GLN_INVALID_ARGUMENT: this rank declared
 * the name with other arguments, or an argument is out of range; the job goes on. */
#define GLN_MAX_NAME_BYTES 4096
GLN_API gln_status gln_declare(gln_session* session, const char* name, uint64_t elements, gln_data_type type,
                               int32_t priority, uint32_t* tensor);

/* Declares a tensor that only some ranks sum; otherwise like gln_declare(). `members` are these ranks, this rank among
 * them, in ascending order, which is the order of the sum. Each of them must declare the name with the same members,
 * and makes its requests; other ranks must not declare it. An average is that of the members. Owners sum such tensors,
 * by any strategy of the job. If `members` are all ranks, this is gln_declare().
 *
 * GLN_INVALID_ARGUMENT: also if a member does not exist, the order is another, or this rank is no member.
 * GLN_FAILED_PRECONDITION: workers have several local ranks. */
GLN_API gln_status gln_declare_for_members(gln_session* session, const char* name, uint64_t elements,
                                           gln_data_type type, int32_t priority, const uint32_t* members,
                                           uint32_t count, uint32_t* tensor);

/* Declares a compressed tensor; otherwise like gln_declare(). Its elements are GLN_FLOAT32 in the memory of ranks, and
 * travel as `sent_as`, GLN_FLOAT16 or GLN_BFLOAT16, so with half the bytes. Each worker's contribution, which is the
 * sum of its local ranks, is rounded to `sent_as`; contributions are added in fp32; and the result is rounded to
 * `sent_as` once. Every rank gets the same bits. Rounding is to nearest even. A magnitude that is too large for
 * `sent_as` becomes infinite, and so does the result on all ranks (gln_stats counts such elements). All ranks pass the
 * same `sent_as`.
 *
 * GLN_INVALID_ARGUMENT: also if `type` can't be sent as `sent_as`. */
GLN_API gln_status gln_declare_compressed(gln_session* session, const char* name, uint64_t elements, gln_data_type type,
                                          gln_data_type sent_as, int32_t priority, uint32_t* tensor);

/* How elements of a tensor travel. The values of GLN_AS_FLOAT16 and GLN_AS_BFLOAT16 are those of gln_data_type. */
typedef enum gln_method {
  GLN_AS_FLOAT16 = 3,
  GLN_AS_BFLOAT16 = 4,
  GLN_AS_INT8 = 7,               /* a byte each, and a scale for each block of GLN_BLOCK_ELEMENTS */
  GLN_AS_INT4 = 8,               /* 4 bits each, rounded at random (dithering), and a scale for each block */
  GLN_AS_SIGN = 9,               /* the sign each, and the mean magnitude of each block; results as with GLN_AS_INT8 */
  GLN_AS_TOP_K = 16,             /* of each block, the `kept` elements of the largest magnitude */
  GLN_AS_RANDOM_K = 24,          /* of each block, `kept` elements at random places, which are the same on all ranks */
  GLN_METHOD_IS_INT = 0x7fffffff /* not a method, as above */
} gln_method;

#define GLN_BLOCK_ELEMENTS 1024
#define GLN_MOST_KEPT 128

/* How ranks compress a tensor (docs/compression.md). Set `size` to sizeof(gln_codec); GLN_CODEC_INIT does. */
typedef struct gln_codec {
  size_t size;
  gln_method method;
  uint32_t kept;      /* of GLN_AS_TOP_K and GLN_AS_RANDOM_K: a power of two, at most GLN_MOST_KEPT; else 0 */
  uint64_t seed;      /* of random numbers */
  int error_feedback; /* not 0: what a contribution lacks is added to the worker's next one; not for 16 bits */
  float momentum;     /* 0 to below 1: contributions have Nesterov momentum with this factor; 0 for 16 bits */
} gln_codec;
#define GLN_CODEC_INIT \
  { sizeof(gln_codec), GLN_AS_INT8, 0, 0, 1, 0.0f }

/* Declares a compressed tensor of GLN_FLOAT32, like gln_declare_compressed(), with one of more methods. A contribution
 * is the sum of a worker's local ranks. Contributions are added in fp32, in the order of the strategy, and the sum is
 * encoded once, by the same method. Every rank gets the same bits. A block with an element that is not finite becomes
 * a block of NaNs, or keeps the element, on all ranks. The residuals of error feedback are fp32 memory of local rank 0
 * of each worker; they live as long as the session.
 *
 * GLN_INVALID_ARGUMENT: also if `codec` is NULL or has a value that is out of range. */
GLN_API gln_status gln_declare_encoded(gln_session* session, const char* name, uint64_t elements,
                                       const gln_codec* codec, int32_t priority, uint32_t* tensor);

#define GLN_UNBOUNDED UINT32_MAX

/* Declares a tensor that accumulates, of type GLN_FLOAT32 or GLN_INT32; otherwise like gln_declare(). Requests for it
 * use GLN_ACCUMULATE. They add to a running sum that starts from zero, and return the sum of all inputs added so far,
 * including their own. They do not wait for other workers. So each worker trains at its own pace, workers see different
 * sums, and runs may differ in their results. Local ranks of one worker stay in step with each other.
 *
 * `staleness`: a worker's request number t of the tensor (from 0) waits until the sum contains the requests before
 * t - staleness of every worker. With GLN_UNBOUNDED it waits for no worker. */
GLN_API gln_status gln_declare_accumulated(gln_session* session, const char* name, uint64_t elements,
                                           gln_data_type type, int32_t priority, uint32_t staleness, uint32_t* tensor);

/* Starts a request: the sum of `tensor` over all ranks, or over its members. Sets *handle, which the caller passes to
 * gln_wait(). `input` and `output` hold the tensor's elements. They belong to the caller, which must keep them valid
 * and not touch them until the request is done. They must be the same memory or not overlap. A tensor can have one
 * request in flight. Every rank must ask for the same `op` at the same step of a tensor; if ranks differ, the session
 * ends with an error that names them.
 *
 * GLN_INVALID_ARGUMENT: there is no such tensor, a pointer is NULL or of a GPU's memory, or the tensor can't have this
 * op.
 * GLN_FAILED_PRECONDITION: the tensor is in flight. gln_wait() returns later errors. */
GLN_API gln_status gln_push_pull(gln_session* session, uint32_t tensor, const void* input, void* output, gln_op op,
                                 uint64_t* handle);

/* Starts a request as gln_push_pull() does, for `input` and `output` in the memory of a GPU. `device` is the CUDA
 * ordinal of the GPU, and `stream` a stream of it (a CUstream or cudaStream_t; NULL is the legacy default stream). The
 * request reads the input after all that is queued on the stream at the time of the call. A rank uses one GPU. The
 * first call opens it, by its primary context.
 *
 * The program may free or reuse the memory by what it queues on a stream that gln_wait() or gln_wait_on_stream() has
 * made wait for the request. Of a request that it does not wait for, the memory must stay valid until gln_close() has
 * returned; so must the stream.
 *
 * GLN_INVALID_ARGUMENT: also if the memory is not on this GPU, an earlier request of this rank was on another GPU, or
 * there is no driver or GPU. GLN_FAILED_PRECONDITION: also if the driver is too old, or a CUDA graph is captured on the
 * stream. GLN_RESOURCE_EXHAUSTED: the GPU or the host has no memory left. GLN_UNAVAILABLE: the GPU has failed. */
GLN_API gln_status gln_push_pull_on_stream(gln_session* session, uint32_t tensor, const void* input, void* output,
                                           gln_op op, int device, void* stream, uint64_t* handle);

/* Makes a group of ranks: member i has rank i in it. All members must make it, with the same number and members. A rank
 * that makes it late holds what others send in calls of it until then: from each at least 256 MiB for all such groups.
 * A rank that sends more than another can hold ends the job with an error.
 *
 * A job whose workers have one local rank each has groups. GLN_INVALID_ARGUMENT: a rank is named twice or does not
 * exist, this rank is no member, or the number is or was that of a group. GLN_FAILED_PRECONDITION: workers have several
 * local ranks. */
GLN_API gln_status gln_add_group(gln_session* session, uint32_t group, const uint32_t* members, uint32_t count);

/* Removes a group, and frees its memory. Each member does so for itself, once it has waited for its calls; others may
 * be behind. The number can't be used for another group of this rank. A member that makes a further call of the
 * group ends the job with an error. GLN_FAILED_PRECONDITION: a call that this rank has made is in flight.
 * GLN_INVALID_ARGUMENT: there is no such group. */
GLN_API gln_status gln_remove_group(gln_session* session, uint32_t group);

/* Collectives that move bytes. */
typedef enum gln_collective {
  GLN_BROADCAST = 1,  /* the root's input goes to all; the root may have no output */
  GLN_ALL_GATHER = 2, /* each rank gets the inputs of all, in the order of ranks */
  GLN_GATHER = 3,     /* the root does */
  GLN_SCATTER = 4,    /* each rank gets its part of the root's input */
  GLN_ALL_TO_ALL = 5, /* each rank gets a part of each rank's input */
  GLN_COLLECTIVE_IS_INT = 0x7fffffff
} gln_collective;

/* A call of a collective. Initialize it with GLN_CALL_INIT. */
typedef struct gln_call {
  size_t size;
  uint32_t group;
  gln_collective collective;
  uint32_t root; /* a rank of the group */
  const void* input;
  uint64_t input_bytes; /* 0 where the rank has no input */
  void* output;
  uint64_t output_bytes;
  /* GLN_ALL_TO_ALL: the bytes for and from each rank, and the number of ranks; NULL and 0: the same for all ranks */
  const uint64_t* sent;
  const uint64_t* received;
  uint32_t ranks;
  /* less than 2048; calls of ranks with different kinds differ. A program may number the types of its elements so. */
  uint32_t kind;
} gln_call;
#define GLN_CALL_INIT \
  { sizeof(gln_call), 0, GLN_BROADCAST, 0, NULL, 0, NULL, 0, NULL, NULL, 0, 0 }

/* Starts a call. Sets *handle, which the caller passes to gln_wait(). All members of the group must make the same calls
 * in the same order, with sizes that fit; if they differ, the session ends with an error that names them. Input and
 * output belong to the caller, which must keep them valid and not touch them until the call is done. They must not
 * overlap. GLN_INVALID_ARGUMENT: a pointer is NULL, or `size` is wrong. gln_wait() returns later errors, such as a
 * group that does not exist or sizes that do not fit the collective; no other rank learns of these. */
GLN_API gln_status gln_start_call(gln_session* session, const gln_call* call, uint64_t* handle);

/* Sets *arrived to 1 if bytes of another rank have come for this rank's next call of a group, else to 0. So a rank that
 * makes a group with each of several senders finds the first one that has sent. */
GLN_API gln_status gln_has_arrived(gln_session* session, uint32_t group, int* arrived);

/* Registers memory that must exist until gln_unregister_memory(). RDMA adapters then register it once, and
 * requests whose `input` lies in it need no copy. Optional. It has no effect without RDMA or on workers with several
 * local ranks. The memory still belongs to the caller. GLN_INVALID_ARGUMENT: `bytes` is 0, or some of the bytes are
 * registered already. */
GLN_API gln_status gln_register_memory(gln_session* session, void* data, uint64_t bytes);

/* Unregisters memory that was passed to gln_register_memory(), by its address. To be called before the memory is freed;
 * gln_close() unregisters all memory. May block for 2 seconds while requests still use the memory.
 * GLN_INVALID_ARGUMENT: no memory is registered at that address. GLN_FAILED_PRECONDITION: requests of this memory are
 * in flight; wait for them first.
 */
GLN_API gln_status gln_unregister_memory(gln_session* session, const void* data);

/* Sets *done to 1 if the request is done, so that gln_wait() would not block, and otherwise to 0. GLN_INVALID_ARGUMENT:
 * there is no such handle. */
GLN_API gln_status gln_poll(gln_session* session, uint64_t handle, int* done);

/* Waits until the request is done, returns its outcome, and frees the handle. timeout_seconds < 0 waits without a
 * limit. GLN_DEADLINE_EXCEEDED: the request is not done yet; the handle stays valid. Of a call, the message says for
 * which ranks of the group it waits: "not done after 5s: call 7 of group 3 (all-gather) waits for rank 1 (worker 4)".
 * Such a rank has sent nothing to this rank, because it has not made the call or waits for others itself.
 * GLN_INVALID_ARGUMENT: there is no
 * such handle, or this is the request's own error, such as an output that overlaps the input in part. */
GLN_API gln_status gln_wait(gln_session* session, uint64_t handle, double timeout_seconds);

/* Calls gln_wait(). If the request's memory is that of a GPU, all that the program queues on `stream` after this call
 * sees the result; with gln_wait() that is so for the stream of gln_push_pull_on_stream(). Both wait until all ranks
 * have made their inputs and the sum is there, and not for its copy to the GPU, which may still be queued. Other
 * streams, and the host, must wait for `stream`, as they wait for a kernel. This is also so if the request has failed,
 * since copies that were queued still write to the output. cudaStreamPerThread is the stream of the thread that passes
 * it.
 *
 * GLN_FAILED_PRECONDITION: a CUDA graph is captured on the stream; the handle stays valid. */
GLN_API gln_status gln_wait_on_stream(gln_session* session, uint64_t handle, double timeout_seconds, void* stream);

/* Waits until some request of `session` is done and sets *handle, for threads that serve callbacks. Does not free the
 * handle. Reports each request at most once, and no request whose handle gln_wait() has freed. timeout_seconds < 0
 * waits without a limit. GLN_DEADLINE_EXCEEDED: no request was done in time. GLN_FAILED_PRECONDITION: the session has
 * ended, and all requests were reported. */
GLN_API gln_status gln_next_done(gln_session* session, double timeout_seconds, uint64_t* handle);

/* Copies `bytes` bytes at `data` of rank `root` to `data` of every rank, bit for bit. Blocks until the bytes have
 * arrived. All ranks must pass the same `name`, `bytes` and `root`; see gln_declare() for names. `data` is in the
 * memory of the host. GLN_INVALID_ARGUMENT: `data` is in the memory of a GPU, `root` is not a rank, or ranks pass
 * different roots, which fails the call on every rank. GLN_FAILED_PRECONDITION: a broadcast of this name is in flight.
 */
GLN_API gln_status gln_broadcast(gln_session* session, const char* name, void* data, uint64_t bytes, uint32_t root);

/* Sums memory of the host, without a session: output[e] = sources[0][e] + sources[1][e] + ... in this order, with
 * GLN_AVERAGE divided by `count`. The bits are those that a job's sums have: additions of fp16 and bf16 are made in
 * fp32, the result is rounded once, and int32 wraps around. Each source and the output have `elements` elements, at any
 * alignment. The output may be the same memory as a source, and must not overlap one in part. The first call in a
 * process reads GLEANER_KERNEL. Forked children may call this function, too.
 *
 * GLN_INVALID_ARGUMENT: a pointer is NULL though there are elements, `count` is 0, `type` has no such `op`, memory
 * overlaps in part, or GLEANER_KERNEL names no kernel of this processor. */
GLN_API gln_status gln_sum(gln_data_type type, gln_op op, const void* const* sources, uint32_t count, void* output,
                           uint64_t elements);

/* Writes the L1 norm of each of `rows` rows at `values` to norms[row], as float32. Rows lie one after another in the
 * memory of the host, with `columns` elements of `type` each, at any alignment. Magnitudes are rounded to fp32 and
 * added in fp32 by halves: the second half of all columns is added to the first half, which has the middle column of an
 * odd number, until one column is left: [a, b, c, d, e] -> [a + d, b + e, c] -> [(a + d) + c, b + e] -> the norm. So
 * all processors give the same bits. A norm that is NaN is 0x7FC00000, and without columns all norms are 0. Needs no
 * session, and any thread may call it, in forked children as well. The first call in a process reads GLEANER_KERNEL.
 *
 * GLN_INVALID_ARGUMENT: a pointer is NULL though there are rows, `type` is GLN_INT32 or unknown, the rows do not fit
 * into memory, or GLEANER_KERNEL names no kernel of this processor. */
GLN_API gln_status gln_l1_norms(gln_data_type type, const void* values, uint64_t rows, uint64_t columns, float* norms);

/* Counts an iteration of training in gln_stats. Optional: without it, the tensor with the most requests gives the
 * number of iterations. */
GLN_API gln_status gln_step(gln_session* session);

/* Counts `bytes` bytes of gradients that the program does not send in the current iteration, as in sparse
 * communication. Negative: it sends more than the gradients, as with padding. With them the coordinator, `gleaner
 * explain` and metrics tell what an iteration would send without it. GLN_INVALID_ARGUMENT: the magnitude of `bytes` is
 * above 2^40. */
GLN_API gln_status gln_count_saved(gln_session* session, int64_t bytes);

/* Counts `seconds` as time that the program has waited for requests, in the metric gleaner_worker_wait_seconds_total.
 * The library itself counts the time in gln_wait(). Programs that wait for callbacks of a thread with gln_next_done()
 * count their time by this function. GLN_INVALID_ARGUMENT: `seconds` is negative or not finite. */
GLN_API gln_status gln_add_wait(gln_session* session, double seconds);

/* Tells the coordinator which packs of gradients this rank has chosen, for its summary and `gleaner explain`; those of
 * rank 0 count. Gradients of at most `fusion_bytes` bytes are in packs (INFINITY: all are; 0: none is). The exchange of
 * a step's gradients is predicted to end `seconds` after the first of them, and `seconds_without_packs` with each on
 * its own. GLN_INVALID_ARGUMENT: a number is negative or NaN, or a time is infinite. */
GLN_API gln_status gln_tell_packs(gln_session* session, double fusion_bytes, double seconds,
                                  double seconds_without_packs);

#ifdef __cplusplus
}
#endif
#endif /* GLEANER_GLEANER_H_ */
