// Keeps OpenSSL usable while a process exits. OpenSSL frees its global objects by a function that its first use passes
// to atexit(). Threads that still use it then crash.
#pragma once

namespace gleaner {

// Makes OpenSSL keep its global objects until the process has ended. Has no effect in a process that has used OpenSSL
// before. Any thread.
void keep_openssl_until_the_end();

}  // namespace gleaner
