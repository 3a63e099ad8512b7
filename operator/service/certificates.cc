#include "operator/service/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace gleaner::operation {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

constexpr size_t kDataKeyBytes = 32;
constexpr int kSerialBytes = 16;
// Members' clocks may be behind the operator's.
constexpr absl::Duration kBackdate = absl::Minutes(10);

absl::Status openssl_error(const char* what) {
  char text[256] = "";
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  return absl::InternalError(absl::StrCat("can't ", what, ": ", text));
}

std::string contents(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

X509Pointer parse_certificate(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  X509Pointer certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

Key parse_key(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return key;
}

absl::StatusOr<Certificate> to_pem(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_bio(BIO_new(BIO_s_mem()));
  const Bio key_bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_bio.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_error("write a certificate");
  }
  return Certificate{contents(certificate_bio.get()), contents(key_bio.get())};
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool set_serial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;  // serial numbers are positive
  BIGNUM* number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool set = number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

struct Wanted {
  std::string common_name;
  absl::Duration life;
  std::vector<std::pair<int, std::string>> extensions;
};

// Makes a key and its certificate, signed by `issuer`, or by itself if `issuer` is null.
absl::StatusOr<Certificate> make(const Wanted& wanted, const Certificate* issuer, absl::Time now) {
  const Key key(EVP_EC_gen("P-256"));
  const X509Pointer certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return openssl_error("make a key");
  const X509Pointer issuer_certificate = issuer == nullptr ? nullptr : parse_certificate(issuer->certificate);
  const Key issuer_key = issuer == nullptr ? nullptr : parse_key(issuer->key);
  X509* const by = issuer == nullptr ? certificate.get() : issuer_certificate.get();
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  const std::string& text = wanted.common_name;
  bool good = X509_set_version(certificate.get(), X509_VERSION_3) == 1 && set_serial(certificate.get()) &&
              X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.data()),
                                         static_cast<int>(text.size()), -1, 0) == 1 &&
              X509_set_issuer_name(certificate.get(), X509_get_subject_name(by)) == 1 &&
              ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(now - kBackdate)) != nullptr &&
              ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(now + wanted.life)) != nullptr &&
              X509_set_pubkey(certificate.get(), key.get()) == 1;
  for (const auto& [nid, value] : wanted.extensions) good = good && add_extension(certificate.get(), by, nid, value);
  EVP_PKEY* const signer = issuer == nullptr ? key.get() : issuer_key.get();
  if (!good || X509_sign(certificate.get(), signer, EVP_sha256()) == 0) return openssl_error("sign a certificate");
  return to_pem(certificate.get(), key.get());
}

absl::Time to_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

bool has_long_to_live(X509* certificate, absl::Duration life, absl::Time now) {
  return to_time(X509_get0_notAfter(certificate)) - now > life / 3 && to_time(X509_get0_notBefore(certificate)) <= now;
}

bool keys_match(X509* certificate, const std::string& key_pem) {
  const Key key = parse_key(key_pem);
  const bool match = key != nullptr && X509_check_private_key(certificate, key.get()) == 1;
  ERR_clear_error();
  return match;
}

bool good_ca(const Certificate& ca, absl::Time now) {
  const X509Pointer certificate = parse_certificate(ca.certificate);
  return certificate != nullptr && keys_match(certificate.get(), ca.key) &&
         has_long_to_live(certificate.get(), kCaLife, now);
}

bool good_server(const Identity& identity, const std::vector<std::string>& host_names, absl::Time now) {
  const X509Pointer certificate = parse_certificate(identity.server.certificate);
  const X509Pointer ca = parse_certificate(identity.ca.certificate);
  if (certificate == nullptr || ca == nullptr || !keys_match(certificate.get(), identity.server.key)) return false;
  const bool signed_by_ca = X509_verify(certificate.get(), X509_get0_pubkey(ca.get())) == 1;
  ERR_clear_error();
  if (!signed_by_ca || !has_long_to_live(certificate.get(), kServerLife, now)) return false;
  for (const std::string& host : host_names) {
    if (X509_check_host(certificate.get(), host.data(), host.size(), 0, nullptr) != 1) return false;
  }
  return true;
}

absl::StatusOr<Certificate> make_ca(absl::Time now) {
  return make({"gleaner-coordinator-ca",
               kCaLife,
               {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                {NID_key_usage, "critical,keyCertSign,cRLSign"},
                {NID_subject_key_identifier, "hash"}}},
              nullptr, now);
}

absl::StatusOr<Certificate> make_server(const Certificate& ca, const std::vector<std::string>& host_names,
                                        absl::Time now) {
  const std::string names = absl::StrJoin(
      host_names, ",", [](std::string* out, const std::string& host) { absl::StrAppend(out, "DNS:", host); });
  return make({"gleaner-coordinator",
               kServerLife,
               {{NID_basic_constraints, "critical,CA:FALSE"},
                {NID_key_usage, "critical,digitalSignature"},
                {NID_ext_key_usage, "serverAuth"},
                {NID_authority_key_identifier, "keyid:always"},
                {NID_subject_alt_name, names}}},
              &ca, now);
}

}  // namespace

absl::StatusOr<absl::Time> expiry(const std::string& certificate) {
  const X509Pointer parsed = parse_certificate(certificate);
  if (parsed == nullptr) return absl::InvalidArgumentError("expected a PEM certificate");
  return to_time(X509_get0_notAfter(parsed.get()));
}

absl::StatusOr<bool> renew(Identity& identity, const std::vector<std::string>& host_names, absl::Time now) {
  bool changed = false;
  if (!good_ca(identity.ca, now)) {
    const auto earlier_end = expiry(identity.ca.certificate);
    identity.earlier_ca = earlier_end.ok() && *earlier_end > now ? identity.ca.certificate : "";
    GLN_ASSIGN_OR_RETURN(identity.ca, make_ca(now));
    changed = true;
  }
  if (!good_server(identity, host_names, now)) {
    GLN_ASSIGN_OR_RETURN(identity.server, make_server(identity.ca, host_names, now));
    changed = true;
  }
  if (identity.data_key.size() != kDataKeyBytes) {
    identity.data_key.resize(kDataKeyBytes);
    if (RAND_bytes(reinterpret_cast<unsigned char*>(identity.data_key.data()), kDataKeyBytes) != 1) {
      return openssl_error("draw a key");
    }
    changed = true;
  }
  return changed;
}

}  // namespace gleaner::operation
