#include "common/base/openssl_lifetime.h"

#include <openssl/crypto.h>

namespace gleaner {

void keep_openssl_until_the_end() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

}  // namespace gleaner
