#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/kube/credentials.h"
#include "common/kube/find_cluster.h"
#include "common/kube/kubeconfig_exec.h"
#include "common/kube/yaml_fields.h"

namespace gleaner::kube {
namespace {

// A kubeconfig file. $KUBECONFIG may list several files; a setting comes from the first file that has it.
struct File {
  std::filesystem::path folder;  // base of relative paths in the file
  YAML::Node root;
};

struct Entry {
  const File* file = nullptr;
  YAML::Node value;
};

absl::StatusOr<std::vector<File>> load(const std::string& path) {
  GLN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, kubeconfig_files(path));
  std::vector<File> files;
  for (const std::string& name : paths) {
    GLN_ASSIGN_OR_RETURN(const std::string contents, read_file(name, "the kubeconfig"));
    File file{std::filesystem::absolute(name).parent_path(), YAML::Load(contents)};
    if (!file.root.IsMap()) return absl::InvalidArgumentError(absl::StrCat(name, " is not a kubeconfig"));
    files.push_back(std::move(file));
  }
  return files;
}

// Returns the entry `name` of the list `lists` ("clusters"). Its content is under `key` ("cluster").
absl::StatusOr<Entry> entry_of(const std::vector<File>& files, const char* lists, const char* key,
                               const std::string& name) {
  for (const File& file : files) {
    const YAML::Node list = file.root[lists];
    if (!list.IsDefined() || !list.IsSequence()) continue;
    for (const YAML::Node& item : list) {
      if (item.IsMap() && text(item, "name") == name && item[key].IsMap()) return Entry{&file, item[key]};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("the kubeconfig has no ", key, " '", name, "'"));
}

// Stores inline data in a file that only this process can see and that ends with the process, so its descriptor stays
// open on purpose. Returns the file's path.
absl::StatusOr<std::string> private_file(const std::string& base64, const char* field) {
  std::string bytes;
  if (!absl::Base64Unescape(base64, &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("the kubeconfig's ", field, " is not base64"));
  }
  const int descriptor = memfd_create("gleaner-kubeconfig", MFD_CLOEXEC);
  if (descriptor < 0 || write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("can't keep the kubeconfig's ", field));
  }
  return absl::StrCat("/proc/self/fd/", descriptor);
}

// Returns the path of the file that `field` names, or of a private file with the inline data in `field`-data. Inline
// data comes first, as with kubectl.
absl::StatusOr<std::string> file_of(const Entry& entry, const char* field) {
  const std::string inline_field = absl::StrCat(field, "-data");
  if (const std::string data = text(entry.value, inline_field.c_str()); !data.empty()) {
    return private_file(data, inline_field.c_str());
  }
  const std::string path = text(entry.value, field);
  return path.empty() ? path : (entry.file->folder / path).string();
}

absl::Status refuse_unsupported(const Entry& cluster, const Entry& user, const std::string& user_name) {
  if (is_set(user.value, "auth-provider")) {
    return absl::UnimplementedError(absl::StrCat(
        "the kubeconfig's user '", user_name,
        "' has 'auth-provider', which is not supported, nor by kubectl since version 1.26; use exec, or a service "
        "account's token: kubectl config set-credentials NAME --token=$(kubectl create token ACCOUNT)"));
  }
  for (const char* field : {"username", "password", "as", "as-uid", "as-groups", "as-user-extra"}) {
    if (!is_set(user.value, field)) continue;
    return absl::UnimplementedError(
        absl::StrCat("the kubeconfig's user '", user_name, "' has '", field,
                     "', which is not supported; use a token, a client certificate or exec"));
  }
  if (is_true(cluster.value, "insecure-skip-tls-verify")) {
    return absl::UnimplementedError(
        "the kubeconfig's cluster has insecure-skip-tls-verify, which is not supported; name the cluster's CA by "
        "certificate-authority, and the name in the server's certificate by tls-server-name");
  }
  return absl::OkStatus();
}

// Returns spec.cluster of the ExecCredential that a command gets.
absl::StatusOr<nlohmann::json> cluster_info(const Entry& cluster, const Credentials& credentials) {
  nlohmann::json info = {{"server", credentials.server}};
  for (const char* field : {"tls-server-name", "proxy-url"}) {
    if (is_set(cluster.value, field)) info[field] = text(cluster.value, field);
  }
  if (is_set(cluster.value, "certificate-authority") || is_set(cluster.value, "certificate-authority-data")) {
    GLN_ASSIGN_OR_RETURN(const std::string authority, read_file(credentials.ca_file, "the kubeconfig's CA"));
    info["certificate-authority-data"] = absl::Base64Escape(authority);
  }
  for (const YAML::Node& extension : cluster.value["extensions"]) {
    if (text(extension, "name") == "client.authentication.k8s.io/exec")
      info["config"] = to_json(extension["extension"]);
  }
  return info;
}

// As with kubectl, a user that has a token or a certificate does not run the command.
absl::Status add_exec(const Entry& cluster, const Entry& user, const std::string& user_name, Credentials& credentials) {
  const YAML::Node exec = user.value["exec"];
  const bool has_other =
      !credentials.token.empty() || !credentials.token_file.empty() || !credentials.client_cert_file.empty();
  if (!exec.IsDefined() || exec.IsNull() || has_other) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(ExecCommand command, read_exec_command(exec, user.file->folder, user_name));
  if (is_true(exec, "provideClusterInfo")) {
    GLN_ASSIGN_OR_RETURN(command.cluster, cluster_info(cluster, credentials));
  }
  credentials.exec = std::move(command);
  return absl::OkStatus();
}

absl::StatusOr<Credentials> read(const std::vector<File>& files, std::string context_name) {
  for (const File& file : files) {
    if (context_name.empty()) context_name = text(file.root, "current-context");
  }
  if (context_name.empty()) {
    return absl::InvalidArgumentError("the kubeconfig has no current-context; choose one by --context");
  }
  GLN_ASSIGN_OR_RETURN(const Entry context, entry_of(files, "contexts", "context", context_name));
  GLN_ASSIGN_OR_RETURN(const Entry cluster, entry_of(files, "clusters", "cluster", text(context.value, "cluster")));
  const std::string user_name = text(context.value, "user");
  Entry user{cluster.file, YAML::Node(YAML::NodeType::Map)};
  if (!user_name.empty()) {
    GLN_ASSIGN_OR_RETURN(user, entry_of(files, "users", "user", user_name));
  }
  GLN_RETURN_IF_ERROR(refuse_unsupported(cluster, user, user_name));

  Credentials credentials;
  credentials.server = text(cluster.value, "server");
  credentials.tls_server_name = text(cluster.value, "tls-server-name");
  credentials.proxy_url = text(cluster.value, "proxy-url");
  credentials.ns = text(context.value, "namespace");
  if (credentials.ns.empty()) credentials.ns = "default";
  GLN_ASSIGN_OR_RETURN(credentials.ca_file, file_of(cluster, "certificate-authority"));
  if (credentials.ca_file.empty() && absl::StartsWith(credentials.server, "https://")) {
    credentials.ca_file = "/etc/ssl/certs/ca-certificates.crt";  // for a server with a public certificate
  }
  GLN_ASSIGN_OR_RETURN(credentials.client_cert_file, file_of(user, "client-certificate"));
  GLN_ASSIGN_OR_RETURN(credentials.client_key_file, file_of(user, "client-key"));
  if (credentials.client_cert_file.empty() != credentials.client_key_file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the kubeconfig's user '", user_name,
                                                   "' needs both client-certificate and client-key, or neither"));
  }
  const std::string token_file = text(user.value, "tokenFile");
  if (!token_file.empty()) credentials.token_file = (user.file->folder / token_file).string();
  if (token_file.empty()) credentials.token = text(user.value, "token");
  GLN_RETURN_IF_ERROR(add_exec(cluster, user, user_name, credentials));
  return credentials;
}

}  // namespace

absl::StatusOr<Credentials> kubeconfig_credentials(const std::string& path, const std::string& context) {
  try {
    GLN_ASSIGN_OR_RETURN(const std::vector<File> files, load(path));
    return read(files, context);
  } catch (const std::exception& error) {  // from yaml-cpp and std::filesystem
    return absl::InvalidArgumentError(absl::StrCat("the kubeconfig can't be read: ", error.what()));
  }
}

}  // namespace gleaner::kube
