// Measures how fast a coordinator changes the plan of a job with many members, and how much memory jobs take.
//
//   build/release/tests/coordinator_scale [--sessions 1000] [--tensors 160] [--changes 300]
//   build/release/tests/coordinator_scale --jobs 1000
//
// The first command measures one job. Each member is a gRPC stream over its own TLS connection, and the coordinator
// accepts every bearer token at once. A second process runs all members in one thread (coordinator_members.h). This
// process measures the time from the last member's Declare until every member has the Commit of the plan with that
// tensor. The second command adds and removes jobs of eight workers and two summers, without members. Both print JSON.
#include <malloc.h>
#include <prometheus/registry.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/coordinator_members.h"
#include "bench/cpu_seconds.h"
#include "coordinator/service/service.h"

namespace gleaner::bench {
namespace {

using coordinator::Service;

// Accepts every token.
class Yes final : public coordinator::Authenticator {
  void authenticate(const std::string&, const coordinator::Identity&, const std::string&,
                    std::function<void(absl::Status)> done) override {
    done(absl::OkStatus());
  }
};

// A self-signed certificate in a temporary directory, which the destructor removes.
class Certificate {
 public:
  Certificate() {
    std::string path = "/tmp/gleaner-bench-XXXXXX";
    directory_ = ::mkdtemp(path.data());
    const std::string command = absl::StrCat(
        "exec openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=bench "
        "-addext "
        "subjectAltName=IP:127.0.0.1 -keyout ",
        directory_, "/key.pem -out ", directory_, "/certificate.pem 2>/dev/null");
    made_ = std::system(command.c_str()) == 0;
  }
  ~Certificate() { std::filesystem::remove_all(directory_); }
  bool made() const { return made_; }
  Service::Tls tls() const { return {directory_ + "/certificate.pem", directory_ + "/key.pem"}; }

 private:
  std::string directory_;
  bool made_ = false;
};

double resident_mib() {
  ::malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

Service::JobOptions job_of(const std::string& name, uint32_t workers, uint32_t summers) {
  Service::JobOptions job;
  job.options.job = name;
  job.options.workers = workers;
  job.options.summers = summers;
  job.options.bits_per_second = 25e9;
  job.options.start_timeout = absl::Minutes(5);
  job.data_secret = std::string(32, 's');
  return job;
}

// Runs the members' process. Returns its output, or an empty string on failure.
std::string run_members(const Address& address, const std::string& roots, const Load& load) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      absl::StrCat("exec ", self, " --members ", address.to_string(), " --roots ", roots, " --sessions ", load.sessions,
                   " --tensors ", load.tensors, " --changes ", load.changes);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  for (char piece[4096]; pipe != nullptr && std::fgets(piece, sizeof piece, pipe) != nullptr;) output += piece;
  return pipe != nullptr && ::pclose(pipe) == 0 ? output : "";
}

int change_plans(Service& service, const std::string& roots, const Load& load) {
  const double before = resident_mib();
  const absl::Status added = service.add(job_of(kScaleJob, load.sessions, 0));
  const absl::Time begin = absl::Now();
  const std::string measured = added.ok() ? run_members(service.address(), roots, load) : "";
  if (measured.empty()) {
    std::fprintf(stderr, "coordinator_scale: the members failed %s\n", added.ToString().c_str());
    return 1;
  }
  auto json = nlohmann::ordered_json::parse(measured);
  const double wall = absl::ToDoubleSeconds(absl::Now() - begin);
  json["coordinator_cpus"] = cpu_seconds() / wall;
  json["coordinator_mib"] = resident_mib() - before;
  std::printf("%s\n", json.dump(2).c_str());
  return 0;
}

int hold_jobs(Service& service, int jobs) {
  nlohmann::ordered_json json;
  json["jobs"] = jobs;
  const double before = resident_mib();
  const absl::Time begin = absl::Now();
  for (int i = 0; i < jobs; ++i) {
    if (!service.add(job_of(absl::StrCat("namespace/job-", i, "/0"), 8, 2)).ok()) return 1;
  }
  json["add_seconds"] = absl::ToDoubleSeconds(absl::Now() - begin);
  absl::SleepFor(absl::Seconds(2));
  json["mib_per_1000_jobs"] = (resident_mib() - before) * 1000 / jobs;
  const double busy = cpu_seconds();
  absl::SleepFor(absl::Seconds(10));
  json["idle_cpus"] = (cpu_seconds() - busy) / 10;
  const absl::Time removal = absl::Now();
  for (int i = 0; i < jobs; ++i) {
    service.remove(absl::StrCat("namespace/job-", i, "/0"), absl::CancelledError("enough"));
  }
  json["remove_seconds"] = absl::ToDoubleSeconds(absl::Now() - removal);
  absl::SleepFor(absl::Seconds(3));
  json["mib_left_after_removal"] = resident_mib() - before;
  std::printf("%s\n", json.dump(2).c_str());
  return 0;
}

int run(const Load& load, int jobs) {
  const SystemEnv system({"coordinator", LogLevel::kError});
  const Certificate certificate;
  if (!certificate.made()) {
    std::fprintf(stderr, "coordinator_scale: openssl can't make a certificate\n");
    return 1;
  }
  Yes authenticator;
  prometheus::Registry registry;
  Service::ServiceOptions options;
  options.listen = {"127.0.0.1", 0};
  options.tls = certificate.tls();
  options.authenticator = &authenticator;
  options.registry = &registry;
  const auto service = Service::start(system.env(), options);
  if (!service.ok()) {
    std::fprintf(stderr, "coordinator_scale: %s\n", service.status().ToString().c_str());
    return 1;
  }
  return jobs > 0 ? hold_jobs(**service, jobs) : change_plans(**service, certificate.tls().certificate_file, load);
}

}  // namespace
}  // namespace gleaner::bench

int main(int argc, char** argv) {
  gleaner::bench::Load load;
  std::string members, roots;
  int jobs = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const absl::string_view flag = argv[i], value = argv[i + 1];
    const bool known = (flag == "--sessions" && absl::SimpleAtoi(value, &load.sessions)) ||
                       (flag == "--tensors" && absl::SimpleAtoi(value, &load.tensors)) ||
                       (flag == "--changes" && absl::SimpleAtoi(value, &load.changes)) ||
                       (flag == "--jobs" && absl::SimpleAtoi(value, &jobs)) ||
                       (flag == "--members" && !(members = std::string(value)).empty()) ||
                       (flag == "--roots" && !(roots = std::string(value)).empty());
    if (!known) {
      std::fprintf(stderr, "usage: %s [--sessions N] [--tensors N] [--changes N] | --jobs N\n", argv[0]);
      return 2;
    }
  }
  return members.empty() ? gleaner::bench::run(load, jobs) : gleaner::bench::run_sessions(members, roots, load);
}
