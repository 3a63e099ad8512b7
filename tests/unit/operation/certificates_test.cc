// Tests of the coordinator's certificates: they are made if missing, renewed before they expire, and valid for no other
// name.
#include "operator/service/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace gleaner::operation {
namespace {

const absl::Time kIssueTime = absl::FromUnixSeconds(1'800'000'000);
const std::vector<std::string> kHosts = {"gleaner-coordinator.gleaner-system.svc", "gleaner-coordinator"};

Identity fresh(absl::Time now = kIssueTime) {
  Identity identity;
  const auto changed = renew(identity, kHosts, now);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(changed.ok() && *changed);
  return identity;
}

X509* parse(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

// Verifies as a member does: chain, time, purpose and name.
bool verifies(const Identity& identity, const std::string& host, absl::Time at) {
  X509_STORE* store = X509_STORE_new();
  const std::string pem = identity.ca_bundle();
  BIO* bundle = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  while (X509* ca = PEM_read_bio_X509(bundle, nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(store, ca);
    X509_free(ca);
  }
  BIO_free(bundle);
  X509* server = parse(identity.server.certificate);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, server, nullptr);
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_time(parameters, absl::ToTimeT(at));
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), host.size());
  const bool good = X509_verify_cert(context) == 1;
  X509_STORE_CTX_free(context);
  X509_free(server);
  X509_STORE_free(store);
  return good;
}

TEST(Certificates, AreMadeAndVerify) {
  const Identity identity = fresh();
  for (const std::string& host : kHosts) EXPECT_TRUE(verifies(identity, host, kIssueTime)) << host;
  EXPECT_FALSE(verifies(identity, "somebody.else.svc", kIssueTime));
  EXPECT_EQ(identity.data_key.size(), 32U);
}

TEST(Certificates, AreKeptWhileTheyAreGood) {
  Identity identity = fresh();
  const Identity before = identity;
  const auto changed = renew(identity, kHosts, kIssueTime + kServerLife / 2);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
  EXPECT_EQ(identity.server.certificate, before.server.certificate);
}

TEST(Certificates, TheServersCertificateIsRenewedInTheLastThirdOfItsTime) {
  Identity identity = fresh();
  const Identity before = identity;
  const absl::Time later = kIssueTime + kServerLife * 0.7;
  ASSERT_TRUE(*renew(identity, kHosts, later));
  EXPECT_NE(identity.server.certificate, before.server.certificate);
  EXPECT_EQ(identity.ca.certificate, before.ca.certificate) << "members need no new CA";
  EXPECT_EQ(identity.data_key, before.data_key) << "secrets of running jobs do not change";
  EXPECT_TRUE(verifies(identity, kHosts[0], later));
}

TEST(Certificates, AnEarlierCaStaysTrusted) {
  Identity identity = fresh();
  const Identity before = identity;
  const absl::Time later = kIssueTime + kCaLife * 0.7;
  ASSERT_TRUE(*renew(identity, kHosts, later));
  EXPECT_NE(identity.ca.certificate, before.ca.certificate);
  EXPECT_EQ(identity.earlier_ca, before.ca.certificate);
  EXPECT_TRUE(verifies(identity, kHosts[0], later));
}

TEST(Certificates, BrokenCertificatesAreReplaced) {
  for (const auto& spoil :
       std::vector<void (*)(Identity&)>{[](Identity& identity) { identity.server.certificate = "no PEM"; },
                                        [](Identity& identity) { identity.server.key = fresh().server.key; },
                                        [](Identity& identity) { identity.server = fresh().server; },
                                        [](Identity& identity) { identity.ca.key.clear(); },
                                        [](Identity& identity) { identity.data_key = "short"; }}) {
    Identity identity = fresh();
    spoil(identity);
    ASSERT_TRUE(*renew(identity, kHosts, kIssueTime));
    EXPECT_TRUE(verifies(identity, kHosts[0], kIssueTime));
    EXPECT_FALSE(*renew(identity, kHosts, kIssueTime));
  }
}

TEST(Certificates, AnotherNameNeedsAnotherCertificate) {
  Identity identity = fresh();
  ASSERT_TRUE(*renew(identity, {"other.svc"}, kIssueTime));
  EXPECT_TRUE(verifies(identity, "other.svc", kIssueTime));
}

TEST(Certificates, CertificatesFromTheFutureAreReplaced) {
  Identity identity = fresh(kIssueTime + absl::Hours(24 * 365));
  ASSERT_TRUE(*renew(identity, kHosts, kIssueTime)) << "not valid yet";
  EXPECT_TRUE(verifies(identity, kHosts[0], kIssueTime));
}

TEST(Certificates, HaveAnExpiryTime) {
  const Identity identity = fresh();
  EXPECT_EQ(*expiry(identity.server.certificate), kIssueTime + kServerLife);
  EXPECT_FALSE(expiry("nothing").ok());
}

}  // namespace
}  // namespace gleaner::operation
