// The gate before RocksDB: closing waits for the writers inside, and no writer waits at the gate.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "spill/commit/gate.h"

namespace spillway::spill {
namespace {

TEST(Gate, LetsWritersInUntilItIsClosed) {
  Gate gate;
  EXPECT_FALSE(gate.is_closed());
  {
    const Gate::Pass one(gate);
    const Gate::Pass another(gate);
    EXPECT_TRUE(one && another);
  }
  gate.close();
  EXPECT_TRUE(gate.is_closed());
  EXPECT_FALSE(Gate::Pass(gate));  // refused without a wait
  gate.open();
  EXPECT_TRUE(Gate::Pass(gate));
}

TEST(Gate, OpensWithItsLastCloser) {
  Gate gate;
  gate.close();
  gate.close();
  gate.open();
  EXPECT_TRUE(gate.is_closed());
  EXPECT_FALSE(Gate::Pass(gate));
  gate.open();
  EXPECT_TRUE(Gate::Pass(gate));
}

TEST(Gate, CloseReturnsWhenThoseInsideHaveLeft) {
  Gate gate;
  std::atomic<bool> is_alone = false;
  std::thread closing;
  {
    const Gate::Pass inside(gate);
    ASSERT_TRUE(inside);
    closing = std::thread([&] {
      gate.close();
      is_alone = true;
    });
    while (!gate.is_closed()) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) {  // a refused writer does not count as inside
      EXPECT_FALSE(Gate::Pass(gate));
      EXPECT_FALSE(is_alone);
    }
  }
  closing.join();
  EXPECT_TRUE(is_alone);
}

// Writers on more threads than the gate has stripes, and concurrent closings: no writer is inside while it is closed.
TEST(Gate, NoWriterIsInsideWhileItIsClosed) {
  Gate gate;
  std::atomic<int> inside = 0;
  std::atomic<bool> is_over = false;
  std::atomic<std::uint64_t> passed = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < 17; ++i) {
    writers.emplace_back([&] {
      while (!is_over) {
        const Gate::Pass pass(gate);
        if (!pass) {
          std::this_thread::yield();  // a refused writer is diverted, and does not return at once
          continue;
        }
        ++inside;
        ++passed;
        --inside;
      }
    });
  }
  for (int i = 0; i < 40; ++i) {
    gate.close();
    EXPECT_EQ(inside, 0);
    gate.open();
    std::this_thread::yield();
  }
  while (passed == 0) std::this_thread::yield();
  is_over = true;
  for (std::thread& one : writers) one.join();
}

}  // namespace
}  // namespace spillway::spill
