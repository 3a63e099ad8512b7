// Names the calling thread, so that people can find it in top and in a debugger (15 characters at most).
#pragma once

namespace gleaner {

void name_this_thread(const char* name);

}  // namespace gleaner
