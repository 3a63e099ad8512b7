#include "common/topology/probes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/topology/latency.h"
#include "common/topology/probes_json.h"

namespace gleaner::topology {
namespace {

using ReadEntry = absl::StatusOr<double> (*)(const Json& value, Where where);

// Checks that a list has an entry for each host.
absl::Status check_size(absl::string_view what, size_t count, size_t hosts) {
  if (count == hosts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has ", count, " entries; give ", hosts, ", one for each host"));
}

// Returns the matrix in the field `name`, with 0 in the diagonal.
absl::StatusOr<std::vector<double>> read_matrix(const Json& root, absl::string_view name, size_t size, ReadEntry read) {
  const std::string field = absl::StrCat("\"", name, "\"");
  GLN_ASSIGN_OR_RETURN(const Json::array_t* rows, read_list(root[std::string(name)], field, "rows"));
  GLN_RETURN_IF_ERROR(check_size(field, rows->size(), size));
  std::vector<double> matrix(size * size);
  for (size_t i = 0; i < size; ++i) {
    const std::string row_name = absl::StrCat(name, "[", i, "]");
    GLN_ASSIGN_OR_RETURN(const Json::array_t* row, read_list((*rows)[i], row_name, "numbers"));
    GLN_RETURN_IF_ERROR(check_size(row_name, row->size(), size));
    for (size_t j = 0; j < size; ++j) {
      if (i == j) continue;
      const auto where = [&] { return absl::StrCat(row_name, "[", j, "]"); };
      GLN_ASSIGN_OR_RETURN(matrix[i * size + j], read((*row)[j], where));
    }
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (matrix[i * size + j] == matrix[j * size + i]) continue;
      const auto entry = [&](size_t a, size_t b) {
        return absl::StrCat(name, "[", a, "][", b, "] is ", (*rows)[a][b].dump());
      };
      return absl::InvalidArgumentError(absl::StrCat(entry(j, i), ", but ", entry(i, j),
                                                     "; both stand for one link, so give both entries their mean"));
    }
  }
  return matrix;
}

absl::StatusOr<std::vector<double>> read_overheads(const Json& value, size_t hosts) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* list, read_list(value, "\"overhead_us\"", "numbers"));
  GLN_RETURN_IF_ERROR(check_size("\"overhead_us\"", list->size(), hosts));
  std::vector<double> seconds;
  for (const Json& entry : *list) {
    const auto where = [&] { return absl::StrCat("overhead_us[", seconds.size(), "]"); };
    GLN_ASSIGN_OR_RETURN(const double read, read_latency(entry, where));
    seconds.push_back(read);
  }
  return seconds;
}

}  // namespace

absl::StatusOr<Probes> read_probes(const Json& root) {
  GLN_RETURN_IF_ERROR(
      check_fields(root, "the file with probes", {"hosts", "latency_us", "bandwidth"}, {"overhead_us"}));
  Probes probes;
  GLN_ASSIGN_OR_RETURN(const Json::array_t* names, read_list(root["hosts"], "\"hosts\"", "names"));
  for (const Json& name : *names) {
    const auto where = [&] { return absl::StrCat("hosts[", probes.names.size(), "]"); };
    GLN_ASSIGN_OR_RETURN(std::string read, read_name(name, where));
    probes.names.push_back(std::move(read));
  }
  if (probes.names.empty()) return absl::InvalidArgumentError("\"hosts\" is empty; give one name or more");
  const uint64_t hosts = probes.size();
  if (hosts * (hosts + 1) / 2 > kMaxLinks) {
    return absl::InvalidArgumentError(absl::StrCat("there are probes between ", hosts,
                                                   " hosts, which makes more links than the ", kMaxLinks,
                                                   " that are supported; give 4095 hosts or fewer"));
  }
  GLN_ASSIGN_OR_RETURN(probes.latency_seconds, read_matrix(root, "latency_us", hosts, read_latency));
  GLN_ASSIGN_OR_RETURN(probes.bits_per_second, read_matrix(root, "bandwidth", hosts, read_bandwidth));
  if (root.contains("overhead_us")) {
    GLN_ASSIGN_OR_RETURN(probes.overhead_seconds, read_overheads(root["overhead_us"], hosts));
  }
  return probes;
}

absl::StatusOr<Probes> parse_probes(absl::string_view text) {
  GLN_ASSIGN_OR_RETURN(const Json root, parse_json(text));
  return read_probes(root);
}

std::string to_json(const Probes& probes) {
  const auto rows = [&](auto&& value) {
    std::vector<std::string> lines;
    for (size_t i = 0; i < probes.size(); ++i) {
      Json row = Json::array();
      for (size_t j = 0; j < probes.size(); ++j) row.push_back(i == j ? 0 : value(i, j));
      lines.push_back(row.dump());
    }
    return absl::StrJoin(lines, ",\n  ");
  };
  const auto latency = [&](size_t i, size_t j) { return microseconds_of_seconds(probes.latency(i, j)); };
  const auto bandwidth = [&](size_t i, size_t j) { return probes.bandwidth(i, j); };
  std::string overheads;
  if (!probes.overhead_seconds.empty()) {
    Json list = Json::array();
    for (const double seconds : probes.overhead_seconds) list.push_back(microseconds_of_seconds(seconds));
    overheads = absl::StrCat(",\n \"overhead_us\": ", list.dump());
  }
  return absl::StrCat("{\"hosts\": ", Json(probes.names).dump(), ",\n \"latency_us\": [\n  ", rows(latency),
                      "],\n \"bandwidth\": [\n  ", rows(bandwidth), "]", overheads, "}\n");
}

absl::StatusOr<Topology> topology_of(const Probes& probes) {
  const auto hosts = static_cast<uint32_t>(probes.size());
  std::vector<Host> all;
  std::vector<Switch> ports;
  std::vector<Link> links;
  for (uint32_t i = 0; i < hosts; ++i) {
    all.push_back({probes.names[i], {}, probes.overhead_seconds.empty() ? 0 : probes.overhead_seconds[i]});
  }
  if (hosts > 1) {
    links.reserve(size_t{hosts} * (hosts + 1) / 2);
    for (uint32_t i = 0; i < hosts; ++i) {
      ports.push_back({absl::StrCat("port-of-", probes.names[i])});
      const double* row = &probes.bits_per_second[size_t{i} * hosts];
      const double most = *std::max_element(row, row + hosts);
      links.push_back({i, hosts + i, most, most, 0});
    }
  }
  for (uint32_t i = 0; i < hosts; ++i) {
    for (uint32_t j = i + 1; j < hosts; ++j) {
      const double bandwidth = probes.bandwidth(i, j);
      links.push_back({hosts + i, hosts + j, bandwidth, probes.bandwidth(j, i), probes.latency(i, j)});
    }
  }
  return Topology::make(std::move(all), std::move(ports), std::move(links));
}

bool is_of_probes(const Topology& topology) {
  const size_t hosts = topology.host_count();
  if (hosts < 2 || topology.switches().size() != hosts || topology.links().size() != hosts * (hosts + 1) / 2) {
    return false;
  }
  const auto joins = [&](size_t link, size_t a, size_t b) {
    return topology.links()[link].a == a && topology.links()[link].b == b;
  };
  size_t link = 0;
  for (; link < hosts; ++link) {
    if (!joins(link, link, hosts + link)) return false;
  }
  for (size_t i = 0; i < hosts; ++i) {
    for (size_t j = i + 1; j < hosts; ++j) {
      if (!joins(link++, hosts + i, hosts + j)) return false;
    }
  }
  return true;
}

}  // namespace gleaner::topology
