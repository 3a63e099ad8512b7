// The C ABI (include/gleaner/gleaner.h) over Rank: checks arguments, maps statuses, and catches all exceptions.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm-lib/include/gleaner/gleaner.h"
#include "comm-lib/runtime/broadcast.h"
#include "comm-lib/runtime/encoded_tensor.h"
#include "comm-lib/runtime/host_sum.h"
#include "comm-lib/runtime/rank.h"
#include "comm-lib/runtime/workers_changed.h"
#include "common/base/openssl_lifetime.h"
#include "common/base/status_macros.h"

struct gln_session {
  std::unique_ptr<gleaner::runtime::Rank> rank;
};

namespace {

thread_local std::string last_error;  // for gln_last_error(), which is per thread by contract

// True in a process that was forked from a process that had called gln_open(). The flag is for the whole process,
// because after fork() the threads of all sessions are missing, and those of gRPC, for which a new session would wait.
std::atomic<bool> forked{false};

void watch_forks() {
  [[maybe_unused]] static const int watched = ::pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

absl::Status check_not_forked() {
  if (!forked.load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this process was forked from a process that had opened a session, whose threads and connections exist only "
      "there: communicate in that process; start a process that is a rank of its own without fork (multiprocessing's "
      "'spawn' or 'forkserver', subprocess, gleaner run), or fork it before the first session is opened");
}

gln_status to_c(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return GLN_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
      return GLN_INVALID_ARGUMENT;
    case absl::StatusCode::kFailedPrecondition:
      return GLN_FAILED_PRECONDITION;
    case absl::StatusCode::kDeadlineExceeded:
      return GLN_DEADLINE_EXCEEDED;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDataLoss:
      return GLN_UNAVAILABLE;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return GLN_PERMISSION_DENIED;
    case absl::StatusCode::kResourceExhausted:
      return GLN_RESOURCE_EXHAUSTED;
    default:
      return GLN_INTERNAL;
  }
}

gln_status report(const absl::Status& status) {
  last_error.assign(status.message().data(), status.message().size());
  return gleaner::runtime::is_workers_changed(status) ? GLN_WORKERS_CHANGED : to_c(status.code());
}

// Runs `call`, which returns a Status, and turns an exception into a Status.
template <typename Call>
gln_status guarded(Call&& call) {
  try {
    return report(call());
  } catch (const std::bad_alloc&) {
    return report(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return report(absl::InternalError(error.what()));
  }
}

template <typename Call>
gln_status with_rank(gln_session* session, Call&& call) {
  return guarded([&]() -> absl::Status {
    if (session == nullptr) return absl::FailedPreconditionError("the session is NULL: call gln_open() first");
    if (absl::Status status = check_not_forked(); !status.ok()) return status;
    return call(*session->rank);
  });
}

absl::Status null_argument(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

absl::StatusOr<gleaner::collective::Postcondition> collective_of(gln_collective collective) {
  using gleaner::collective::Postcondition;
  switch (collective) {
    case GLN_BROADCAST:
      return Postcondition::kBroadcast;
    case GLN_ALL_GATHER:
      return Postcondition::kAllGather;
    case GLN_GATHER:
      return Postcondition::kGather;
    case GLN_SCATTER:
      return Postcondition::kScatter;
    case GLN_ALL_TO_ALL:
      return Postcondition::kAllToAll;
    case GLN_COLLECTIVE_IS_INT:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("collective ", static_cast<int>(collective), " is not a value of gln_collective"));
}

absl::StatusOr<gleaner::executor::Call> call_of(const gln_call& given) {
  if (given.size != sizeof(gln_call)) {
    return absl::InvalidArgumentError(
        absl::StrCat("call.size is ", given.size, ", expected ", sizeof(gln_call), ": start from GLN_CALL_INIT"));
  }
  if (given.input == nullptr && given.input_bytes > 0) return null_argument("input");
  if (given.output == nullptr && given.output_bytes > 0) return null_argument("output");
  if ((given.sent == nullptr) != (given.received == nullptr)) return null_argument("one of sent and received");
  gleaner::executor::Call call;
  GLN_ASSIGN_OR_RETURN(call.collective, collective_of(given.collective));
  call.group = given.group;
  call.root = given.root;
  call.kind = given.kind;
  call.input = {static_cast<const std::byte*>(given.input), given.input_bytes};
  call.output = {static_cast<std::byte*>(given.output), given.output_bytes};
  if (given.sent != nullptr) {
    call.sent.assign(given.sent, given.sent + given.ranks);
    call.received.assign(given.received, given.received + given.ranks);
  }
  return call;
}

// Fills in the part of a struct that the caller's version of the struct has. Its first member `size` is the size of
// that version.
template <typename Struct>
absl::Status fill(const Struct& full, Struct* target, absl::string_view name) {
  if (target == nullptr) return null_argument(name);
  const size_t size = target->size;
  if (size < sizeof(size_t) || size > sizeof(Struct)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".size is ", size, ", expected at most ", sizeof(Struct), ": start from its _INIT macro"));
  }
  std::memcpy(target, &full, size);
  target->size = size;
  return absl::OkStatus();
}

// Converts a user's value to a one-byte enum. Values that do not fit become 0, which no enum has.
template <typename Enum>
Enum narrow(int value) {
  return static_cast<Enum>(value >= 0 && value <= 255 ? value : 0);
}

gleaner::device::CallerStream stream_of(void* stream) {
  return gleaner::device::CallerStream{reinterpret_cast<uintptr_t>(stream)};
}

absl::Duration timeout_of(double seconds) { return seconds < 0 ? absl::InfiniteDuration() : absl::Seconds(seconds); }

gln_status close(gln_session* session, gleaner::runtime::Rank::Leave how) {
  return guarded([&]() -> absl::Status {
    if (session == nullptr) return absl::OkStatus();
    if (absl::Status status = check_not_forked(); !status.ok()) return status;
    const std::unique_ptr<gln_session> owned(session);
    return owned->rank->close(how);
  });
}

}  // namespace

const char* gln_version(void) { return GLEANER_VERSION; }

const char* gln_status_name(int status) {
  switch (status) {
    case GLN_OK:
      return "OK";
    case GLN_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case GLN_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case GLN_DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case GLN_UNAVAILABLE:
      return "UNAVAILABLE";
    case GLN_PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case GLN_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case GLN_INTERNAL:
      return "INTERNAL";
    case GLN_WORKERS_CHANGED:
      return "WORKERS_CHANGED";
  }
  return "unknown status";
}

const char* gln_last_error(void) { return last_error.c_str(); }

gln_status gln_open(const gln_options* options, gln_session** session) {
  return guarded([&]() -> absl::Status {
    if (session == nullptr) return null_argument("session");
    *session = nullptr;
    if (absl::Status status = check_not_forked(); !status.ok()) return status;
    watch_forks();
    gleaner::keep_openssl_until_the_end();  // the program may exit without gln_close()
    gln_options known = GLN_OPTIONS_INIT;
    if (options != nullptr) {
      if (options->size < sizeof(size_t) || options->size > sizeof(gln_options)) {
        return absl::InvalidArgumentError("options.size is wrong: start from GLN_OPTIONS_INIT");
      }
      std::memcpy(&known, options, options->size);
    }
    auto config = gleaner::runtime::read_config(known);
    if (!config.ok()) return config.status();
    auto rank = gleaner::runtime::Rank::open(*config);
    if (!rank.ok()) return rank.status();
    *session = new gln_session{*std::move(rank)};
    return absl::OkStatus();
  });
}

gln_status gln_close(gln_session* session, int failed) {
  using Leave = gleaner::runtime::Rank::Leave;
  return close(session, failed != 0 ? Leave::kFailed : Leave::kCleanly);
}

gln_status gln_close_to_return(gln_session* session) {
  return close(session, gleaner::runtime::Rank::Leave::kToReturn);
}

gln_status gln_get_newcomers(gln_session* session, uint32_t* workers) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (workers == nullptr) return null_argument("workers");
    *workers = rank.newcomers();
    return absl::OkStatus();
  });
}

gln_status gln_get_rank_info(gln_session* session, gln_rank_info* info) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) { return fill(rank.rank_info(), info, "info"); });
}

gln_status gln_get_topology(gln_session* session, gln_topology* topology) {
  return gln_get_rank_info(session, topology);
}

gln_status gln_get_stats(gln_session* session, gln_stats* stats) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) { return fill(rank.stats(), stats, "stats"); });
}

gln_status gln_get_transports(gln_session* session, char* text, size_t size) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (text == nullptr || size == 0) return null_argument("text");
    const std::string used = rank.transports().substr(0, size - 1);
    std::copy(used.begin(), used.end(), text);
    text[used.size()] = '\0';
    return absl::OkStatus();
  });
}

gln_status gln_get_tensor_plan(gln_session* session, uint32_t tensor, char* text, size_t size) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (text == nullptr) return null_argument("text");
    const auto plan = rank.tensor_plan(tensor);
    if (!plan.ok()) return plan.status();
    if (plan->size() >= size) {
      return absl::InvalidArgumentError(absl::StrCat("the text needs ", plan->size() + 1, " bytes, got ", size));
    }
    std::copy(plan->begin(), plan->end(), text);
    text[plan->size()] = '\0';
    return absl::OkStatus();
  });
}

gln_status gln_declare(gln_session* session, const char* name, uint64_t elements, gln_data_type type, int32_t priority,
                       uint32_t* tensor) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (name == nullptr) return null_argument("name");
    if (tensor == nullptr) return null_argument("tensor");
    auto id = rank.declare({name, elements, narrow<gleaner::DataType>(type), priority});
    if (id.ok()) *tensor = *id;
    return id.status();
  });
}

gln_status gln_declare_for_members(gln_session* session, const char* name, uint64_t elements, gln_data_type type,
                                   int32_t priority, const uint32_t* members, uint32_t count, uint32_t* tensor) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (name == nullptr) return null_argument("name");
    if (members == nullptr) return null_argument("members");
    if (tensor == nullptr) return null_argument("tensor");
    gleaner::plan::Tensor declared{name, elements, narrow<gleaner::DataType>(type), priority};
    declared.group = {members, members + count};
    auto id = rank.declare_for_members(std::move(declared));
    if (id.ok()) *tensor = *id;
    return id.status();
  });
}

gln_status gln_declare_compressed(gln_session* session, const char* name, uint64_t elements, gln_data_type type,
                                  gln_data_type sent_as, int32_t priority, uint32_t* tensor) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (name == nullptr) return null_argument("name");
    if (tensor == nullptr) return null_argument("tensor");
    gleaner::plan::Tensor declared{name, elements, narrow<gleaner::DataType>(sent_as), priority};
    declared.memory = {narrow<gleaner::DataType>(type), elements};
    auto id = rank.declare(std::move(declared));
    if (!id.ok()) return id.status();
    *tensor = *id;
    return absl::OkStatus();
  });
}

gln_status gln_declare_encoded(gln_session* session, const char* name, uint64_t elements, const gln_codec* codec,
                               int32_t priority, uint32_t* tensor) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (name == nullptr) return null_argument("name");
    if (codec == nullptr) return null_argument("codec");
    if (tensor == nullptr) return null_argument("tensor");
    auto declared = gleaner::runtime::encoded_tensor(name, elements, *codec, priority);
    if (!declared.ok()) return declared.status();
    auto id = rank.declare(*std::move(declared));
    if (!id.ok()) return id.status();
    *tensor = *id;
    return absl::OkStatus();
  });
}

gln_status gln_declare_accumulated(gln_session* session, const char* name, uint64_t elements, gln_data_type type,
                                   int32_t priority, uint32_t staleness, uint32_t* tensor) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (name == nullptr) return null_argument("name");
    if (tensor == nullptr) return null_argument("tensor");
    gleaner::plan::Tensor declared{name, elements, narrow<gleaner::DataType>(type), priority};
    declared.accumulates = true;
    declared.staleness = staleness;
    auto id = rank.declare(std::move(declared));
    if (id.ok()) *tensor = *id;
    return id.status();
  });
}

gln_status gln_push_pull(gln_session* session, uint32_t tensor, const void* input, void* output, gln_op op,
                         uint64_t* handle) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (handle == nullptr) return null_argument("handle");
    auto id = rank.push_pull(tensor, input, output, narrow<gleaner::ReduceOp>(op));
    if (id.ok()) *handle = *id;
    return id.status();
  });
}

gln_status gln_push_pull_on_stream(gln_session* session, uint32_t tensor, const void* input, void* output, gln_op op,
                                   int device, void* stream, uint64_t* handle) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (handle == nullptr) return null_argument("handle");
    const gleaner::runtime::DeviceStream gpu{{device}, stream_of(stream)};
    auto id = rank.push_pull(tensor, input, output, narrow<gleaner::ReduceOp>(op), gpu);
    if (id.ok()) *handle = *id;
    return id.status();
  });
}

gln_status gln_add_group(gln_session* session, uint32_t group, const uint32_t* members, uint32_t count) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (members == nullptr) return null_argument("members");
    return rank.add_group(group, {members, members + count});
  });
}

gln_status gln_has_arrived(gln_session* session, uint32_t group, int* arrived) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (arrived == nullptr) return null_argument("arrived");
    const auto answer = rank.has_arrived(group);
    if (answer.ok()) *arrived = *answer ? 1 : 0;
    return answer.status();
  });
}

gln_status gln_remove_group(gln_session* session, uint32_t group) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) { return rank.remove_group(group); });
}

gln_status gln_start_call(gln_session* session, const gln_call* call, uint64_t* handle) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (call == nullptr) return null_argument("call");
    if (handle == nullptr) return null_argument("handle");
    auto made = call_of(*call);
    if (!made.ok()) return made.status();
    auto id = rank.call(*std::move(made));
    if (id.ok()) *handle = *id;
    return id.status();
  });
}

gln_status gln_register_memory(gln_session* session, void* data, uint64_t bytes) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (data == nullptr) return null_argument("data");
    return rank.register_memory({static_cast<std::byte*>(data), bytes});
  });
}

gln_status gln_unregister_memory(gln_session* session, const void* data) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) { return rank.unregister_memory(data); });
}

gln_status gln_poll(gln_session* session, uint64_t handle, int* done) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (done == nullptr) return null_argument("done");
    auto finished = rank.handles().done(handle);
    if (finished.ok()) *done = *finished ? 1 : 0;
    return finished.status();
  });
}

gln_status gln_wait(gln_session* session, uint64_t handle, double timeout_seconds) {
  return with_rank(session,
                   [&](gleaner::runtime::Rank& rank) { return rank.wait(handle, timeout_of(timeout_seconds)); });
}

gln_status gln_wait_on_stream(gln_session* session, uint64_t handle, double timeout_seconds, void* stream) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) {
    return rank.wait(handle, timeout_of(timeout_seconds), stream_of(stream));
  });
}

gln_status gln_next_done(gln_session* session, double timeout_seconds, uint64_t* handle) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (handle == nullptr) return null_argument("handle");
    auto next = rank.handles().next_done(timeout_of(timeout_seconds));
    if (next.ok()) *handle = *next;
    return next.status();
  });
}

gln_status gln_broadcast(gln_session* session, const char* name, void* data, uint64_t bytes, uint32_t root) {
  return with_rank(session, [&](gleaner::runtime::Rank& rank) -> absl::Status {
    if (name == nullptr) return null_argument("name");
    if (data == nullptr && bytes > 0) return null_argument("data");
    return gleaner::runtime::broadcast(rank, name, {static_cast<std::byte*>(data), bytes}, root);
  });
}

gln_status gln_sum(gln_data_type type, gln_op op, const void* const* sources, uint32_t count, void* output,
                   uint64_t elements) {
  return guarded([&]() -> absl::Status {
    if (sources == nullptr) return null_argument("sources");
    std::vector<const std::byte*> from(count);
    for (uint32_t i = 0; i < count; ++i) from[i] = static_cast<const std::byte*>(sources[i]);
    return gleaner::runtime::sum_on_host(narrow<gleaner::DataType>(type), narrow<gleaner::ReduceOp>(op), from,
                                         static_cast<std::byte*>(output), elements);
  });
}

gln_status gln_l1_norms(gln_data_type type, const void* values, uint64_t rows, uint64_t columns, float* norms) {
  return guarded([&] {
    return gleaner::runtime::l1_norms_on_host(narrow<gleaner::DataType>(type), static_cast<const std::byte*>(values),
                                              rows, columns, norms);
  });
}

gln_status gln_step(gln_session* session) {
  return with_rank(session, [](gleaner::runtime::Rank& rank) {
    rank.step();
    return absl::OkStatus();
  });
}

constexpr int64_t kMostSaved = int64_t{1} << 40;  // bytes of a tensor are no more, either

gln_status gln_count_saved(gln_session* session, int64_t bytes) {
  return with_rank(session, [bytes](gleaner::runtime::Rank& rank) -> absl::Status {
    if (bytes < -kMostSaved || bytes > kMostSaved) {
      return absl::InvalidArgumentError(
          absl::StrCat("bytes is ", bytes, ", expected at most ", kMostSaved, ", and at least the same below 0"));
    }
    rank.save(bytes);
    return absl::OkStatus();
  });
}

gln_status gln_add_wait(gln_session* session, double seconds) {
  return with_rank(session, [seconds](gleaner::runtime::Rank& rank) -> absl::Status {
    if (!std::isfinite(seconds) || seconds < 0) {
      return absl::InvalidArgumentError(absl::StrCat("seconds is ", seconds, ", expected a time of at least 0"));
    }
    rank.add_wait(absl::Seconds(seconds));
    return absl::OkStatus();
  });
}

gln_status gln_tell_packs(gln_session* session, double fusion_bytes, double seconds, double seconds_without_packs) {
  return with_rank(session, [=](gleaner::runtime::Rank& rank) -> absl::Status {
    if (!(fusion_bytes >= 0)) {
      return absl::InvalidArgumentError(absl::StrCat("fusion_bytes is ", fusion_bytes, ", expected at least 0"));
    }
    for (const double time : {seconds, seconds_without_packs}) {
      if (!std::isfinite(time) || time < 0) {
        return absl::InvalidArgumentError(absl::StrCat("a predicted time is ", time, ", expected at least 0 seconds"));
      }
    }
    rank.set_packs({fusion_bytes, seconds, seconds_without_packs});
    return absl::OkStatus();
  });
}
