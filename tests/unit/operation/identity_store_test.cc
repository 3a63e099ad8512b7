// Tests of the store of the coordinator's identity, with a fake of the API server.
#include "operator/service/identity_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/manual_clock.h"
#include "tests/unit/operation/fakes.h"

namespace gleaner::operation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kGetSecret[] = "get secrets gleaner-operator";

class IdentityStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    delete_secret();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Plays the API server: the Secret is what was written last.
  void keep_secret() {
    client_.objects[kGetSecret] = client_.written;
    client_.errors.erase(kGetSecret);
  }
  void delete_secret() { client_.errors[kGetSecret] = absl::NotFoundError("there is no Secret"); }

  const std::filesystem::path folder_ = testing::TempDir() + "identity_store_test";
  ManualClock clock_;
  Log log_{{"test", LogLevel::kOff}};
  Env env_{&clock_, nullptr, &log_};
  FakeClient client_;
  std::optional<std::string> bootstrap_;  // the CA in the ConfigMap of every namespace, as the cache has it
  IdentityStore store_{
      env_, client_, "gleaner-system", {"coordinator"}, folder_, [this](const std::string&) { return bootstrap_; }};
};

TEST_F(IdentityStoreTest, WritesBootstrapIfCacheHasAnother) {
  ASSERT_TRUE(store_.refresh().ok());
  for (const std::optional<std::string>& cached :
       {std::optional<std::string>(), std::optional<std::string>("edited")}) {
    bootstrap_ = cached;
    client_.calls.clear();
    ASSERT_TRUE(store_.ensure_bootstrap("team").ok());
    EXPECT_THAT(client_.calls, ElementsAre("apply configmaps gleaner-bootstrap"));
    EXPECT_EQ(client_.written["data"]["ca.crt"], store_.identity().ca_bundle());
  }
  bootstrap_ = store_.identity().ca_bundle();
  client_.calls.clear();
  ASSERT_TRUE(store_.ensure_bootstrap("team").ok());
  EXPECT_THAT(client_.calls, IsEmpty());
}

TEST_F(IdentityStoreTest, RestoresDeletedSecret) {
  ASSERT_TRUE(store_.refresh().ok());
  const Identity before = store_.identity();
  client_.written["metadata"]["annotations"] = {{"meta.helm.sh/release-name", "gleaner"}};
  const kube::Object secret = client_.written;
  keep_secret();
  ASSERT_TRUE(store_.refresh().ok());
  delete_secret();
  client_.written = {};
  ASSERT_TRUE(store_.refresh().ok());
  EXPECT_EQ(store_.identity().ca.certificate, before.ca.certificate);
  EXPECT_EQ(store_.identity().data_key, before.data_key) << "running jobs keep their secrets";
  EXPECT_EQ(client_.written["data"], secret["data"]);
  EXPECT_EQ(client_.written["metadata"]["annotations"], secret["metadata"]["annotations"]) << "Helm needs them";
}

TEST_F(IdentityStoreTest, RenewsEmptiedSecret) {
  ASSERT_TRUE(store_.refresh().ok());
  const Identity before = store_.identity();
  client_.written = {{"metadata", {{"name", kSecretName}}}};
  keep_secret();
  ASSERT_TRUE(store_.refresh().ok());
  EXPECT_NE(store_.identity().ca.certificate, before.ca.certificate);
  EXPECT_NE(store_.identity().data_key, before.data_key);
}

}  // namespace
}  // namespace gleaner::operation
