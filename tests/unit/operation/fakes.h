// Fakes of the API server, the coordinator service and the recorder of Events. They only record calls, and answer with
// the errors that a test sets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/kube/client.h"
#include "common/kube/events.h"
#include "coordinator/service/service.h"

namespace gleaner::operation {

class FakeClient final : public kube::Client {
 public:
  // "VERB PLURAL NAME" of every call in order: "create pods digits-worker-0", "replace trainingjobs digits status".
  std::vector<std::string> calls;
  std::map<std::string, absl::Status> errors;   // the answer to a call of this text; else OK
  std::map<std::string, kube::Object> objects;  // the object of that answer; else an empty one
  kube::Object written;                         // the last object that was created, replaced or applied

  absl::StatusOr<kube::Object> get(const kube::Resource& resource, const std::string&,
                                   const std::string& name) override {
    return answer("get", resource, name);
  }
  absl::StatusOr<kube::List> list(const kube::Resource&, const kube::Selector&) override { return unused(); }
  absl::StatusOr<std::string> list_pages(const kube::Resource&, const kube::Selector&, uint32_t,
                                         const std::function<void(std::vector<kube::Object>)>&) override {
    return unused();
  }
  absl::StatusOr<kube::Object> create(const kube::Resource& resource, const kube::Object& object) override {
    written = object;
    return answer("create", resource, name_of(object));
  }
  absl::StatusOr<kube::Object> replace(const kube::Resource& resource, const kube::Object& object,
                                       const std::string& subresource) override {
    written = object;
    return answer("replace", resource, absl::StrCat(name_of(object), subresource.empty() ? "" : " ", subresource));
  }
  absl::StatusOr<kube::Object> apply(const kube::Resource& resource, const kube::Object& object,
                                     const kube::ApplyOptions& options) override {
    written = object;
    return answer("apply", resource,
                  absl::StrCat(name_of(object), options.subresource.empty() ? "" : " ", options.subresource));
  }
  absl::StatusOr<kube::Object> merge_patch(const kube::Resource& resource, const std::string&, const std::string& name,
                                           const kube::Object&, const std::string&) override {
    return answer("patch", resource, name);
  }
  absl::Status remove(const kube::Resource& resource, const std::string&, const std::string& name,
                      const kube::DeleteOptions&) override {
    return answer("remove", resource, name).status();
  }
  absl::Status remove_all(const kube::Resource&, const kube::Selector&, const kube::DeleteOptions&) override {
    return unused();
  }
  absl::StatusOr<kube::Object> get_raw(const std::string&) override { return unused(); }
  std::unique_ptr<kube::Client> bounded(absl::Duration, kube::Cancellation*) override { return nullptr; }
  absl::Status watch(const kube::Resource&, const kube::Selector&, const std::string&, kube::Cancellation&,
                     const std::function<void(kube::WatchEvent)>&) override {
    return unused();
  }

 private:
  static std::string name_of(const kube::Object& object) { return object["metadata"]["name"].get<std::string>(); }
  static absl::Status unused() { return absl::UnimplementedError("this fake has no such call"); }
  absl::StatusOr<kube::Object> answer(const char* verb, const kube::Resource& resource, const std::string& name) {
    calls.push_back(absl::StrCat(verb, " ", resource.plural, " ", name));
    const auto error = errors.find(calls.back());
    if (error != errors.end()) return error->second;
    const auto object = objects.find(calls.back());
    return object != objects.end() ? object->second : kube::Object::object();
  }
};

class FakeSessions final : public coordinator::Service {
 public:
  std::vector<std::string> calls;              // "add team/digits/0", "release 1", "ended 2", ...
  std::map<std::string, absl::Status> errors;  // the answer to a call of this text; else OK
  std::optional<coordinator::JobState> job;    // the state of every job

  Address address() const override { return {}; }
  absl::Status add(const JobOptions& options) override { return answer(absl::StrCat("add ", options.options.job)); }
  void remove(const std::string& name, const absl::Status& why) override {
    calls.push_back(absl::StrCat("remove ", name, ": ", why.message()));
  }
  absl::Status set_summers(const std::string&, uint32_t summers) override {
    return answer(absl::StrCat("summers ", summers));
  }
  absl::Status release_summer(const std::string&, uint32_t index) override {
    return answer(absl::StrCat("release ", index));
  }
  absl::Status set_bandwidth(const std::string&, coordinator::Role, uint32_t index, double) override {
    return answer(absl::StrCat("bandwidth ", index));
  }
  absl::Status set_summer_switch(const std::string&, uint32_t index, uint32_t at) override {
    return answer(absl::StrCat("summer ", index, " at switch ", at));
  }
  void ended(const std::string&, coordinator::Role, uint32_t index, const absl::Status&) override {
    calls.push_back(absl::StrCat("ended ", index));
  }
  std::optional<coordinator::JobState> state(const std::string&) const override { return job; }

 private:
  absl::Status answer(const std::string& call) {
    calls.push_back(call);
    const auto error = errors.find(call);
    return error == errors.end() ? absl::OkStatus() : error->second;
  }
};

class FakeEvents final : public kube::EventRecorder {
 public:
  std::vector<std::string> reasons, messages;  // of the Events recorded

  void normal(const kube::ObjectReference&, absl::string_view reason, absl::string_view message) override {
    reasons.emplace_back(reason);
    messages.emplace_back(message);
  }
  void warning(const kube::ObjectReference& about, absl::string_view reason, absl::string_view message) override {
    normal(about, reason, message);
  }
};

}  // namespace gleaner::operation
