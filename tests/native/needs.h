// Requirements of a test: of the machine, such as direct I/O, io_uring, a loop device; and time.
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

// Whether the tests of ten seconds and more run, too: `make long` and `make sanitize` set the variable.
inline bool runs_long_tests() {
  const char* const runs = std::getenv("SPILLWAY_LONG");
  return runs != nullptr && *runs != '\0';
}

}  // namespace spillway

// Ends a test that takes ten seconds and more unless those are asked for.
#define SPILLWAY_LONG_TEST()                                                                               \
  do {                                                                                                     \
    if (!::spillway::runs_long_tests()) GTEST_SKIP() << "takes long; `make long` runs it (SPILLWAY_LONG)"; \
  } while (false)

// Ends the test unless the machine has `what`: skipped on a developer's machine, failed in CI.
#define SPILLWAY_NEEDS(is_there, what)                                                                      \
  do {                                                                                                      \
    if (!(is_there)) {                                                                                      \
      if (::spillway::absence_is_a_failure()) FAIL() << "this machine lacks, and CI must have: " << (what); \
      GTEST_SKIP() << "this machine lacks: " << (what);                                                     \
    }                                                                                                       \
  } while (false)
