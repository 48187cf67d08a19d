// Requirements of a test on the machine: direct I/O, io_uring, a loop device.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace spillway {

// In CI a missing requirement fails the test, because lists of skipped tests are not read there. Integration servers
// set the variable CI, and so does .ci/run.
inline bool absence_is_a_failure() {
  const char* const ci = std::getenv("CI");
  return ci != nullptr && *ci != '\0' && std::string(ci) != "false";
}

}  // namespace spillway

// Ends the test unless the machine has `what`: skipped on a developer's machine, failed in CI.
#define SPILLWAY_NEEDS(is_there, what)                                                                      \
  do {                                                                                                      \
    if (!(is_there)) {                                                                                      \
      if (::spillway::absence_is_a_failure()) FAIL() << "this machine lacks, and CI must have: " << (what); \
      GTEST_SKIP() << "this machine lacks: " << (what);                                                     \
    }                                                                                                       \
  } while (false)
