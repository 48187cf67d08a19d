// Every engine on an emulated drive that fails or is full: failures are reported, and what was acknowledged is there
// when the drive works again.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "engine_conformance.h"

namespace spillway::engine {
namespace {

class ConformanceFaults : public Conformance {
 protected:
  // Opens on a working drive, on which the files are unknown: only the files have what the earlier drive was given.
  void expect_all_on_a_drive_that_works(const Written& written) {
    (void)engine_->close();
    make_drive();
    open();
    expect_acknowledged(written.model, written.failed_key, written.failed_value);
    ASSERT_TRUE(engine_->put("after", "all"));
    ASSERT_TRUE(engine_->close());
  }
};

TEST_P(ConformanceFaults, AFullDriveIsReportedAndLosesNothing) {
  make_drive(16ULL << 20);
  open();
  const Written written = write_until_failure(20'000, 20'000, 4000);
  ASSERT_FALSE(written.status);
  EXPECT_EQ(written.status.fault(), Fault::drive_full) << written.status.message();
  expect_no_lies(written.model, written.failed_key, written.failed_value);
  expect_all_on_a_drive_that_works(written);
}

// From some write on, every write to the drive fails, for some time or for ever.
TEST_P(ConformanceFaults, AFailingDriveIsReportedAndLosesNothing) {
  for (const bool for_good : {true, false}) {
    std::atomic<int> writes{0};
    make_drive(256ULL << 20, [&, for_good](const device::Io& io) {
      device::IoFault injected;
      if (io.op != device::Opcode::write) return injected;
      const int now = ++writes;
      if (now > 40 && (for_good || now < 44)) injected.fault = Fault::io_error;
      return injected;
    });
    open();
    const Written written = write_until_failure(8000, 1000, 1000);
    // Without syncs a store may accept all writes and put them on the drive later. Then a later call reports the
    // failure.
    const std::atomic<bool> go_on{false};
    EXPECT_TRUE(!for_good || !written.status || !engine_->settle(go_on));
    expect_no_lies(written.model, written.failed_key, written.failed_value);
    expect_all_on_a_drive_that_works(written);
    std::filesystem::remove_all(directory_);
  }
}

// A sync write whose flush fails is not acknowledged.
TEST_P(ConformanceFaults, AFailedFlushIsReportedToSyncWrites) {
  std::atomic<bool> fails{false};
  make_drive(256ULL << 20, [&](const device::Io& io) {
    device::IoFault injected;
    if (io.op == device::Opcode::flush && fails) injected.fault = Fault::io_error;
    return injected;
  });
  open({{"sync", "true"}});
  ASSERT_TRUE(engine_->put("before", "all"));
  fails = true;
  EXPECT_FALSE(engine_->put("during", "it"));
  Written written;
  written.model = {{"before", "all"}};
  expect_no_lies(written.model);
  expect_all_on_a_drive_that_works(written);
}

// A read that cannot be done is an error: not an absent key, and not an earlier value.
TEST_P(ConformanceFaults, AFailedReadIsReportedAndLosesNothing) {
  std::atomic<bool> fails{false};
  make_drive(256ULL << 20, [&](const device::Io& io) {
    device::IoFault injected;
    if (io.op == device::Opcode::read && fails) injected.fault = Fault::io_error;
    return injected;
  });
  open();
  const Written written = write_until_failure(4000, 1000, 1000);
  ASSERT_TRUE(written.status) << written.status.message();
  const std::atomic<bool> go_on{false};
  ASSERT_TRUE(engine_->settle(go_on));
  ASSERT_TRUE(engine_->close());
  open();  // with empty caches
  fails = true;
  expect_no_lies(written.model);
  int failed = 0;
  for (const auto& [key, value] : written.model) failed += engine_->get(key, nullptr) ? 0 : 1;
  EXPECT_GT(failed, 0);
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    Pairs pairs;
    const auto seen = engine_->scan(direction == Direction::forward ? "" : "\xff", 5000, direction, &pairs);
    EXPECT_FALSE(seen.is_ok()) << pairs.size() << " pairs of " << written.model.size();
  }
  fails = false;
  expect_all_on_a_drive_that_works(written);
}

INSTANTIATE_TEST_SUITE_P(Engines, ConformanceFaults, ::testing::ValuesIn(cases_on(/*drive=*/true)), name_of_case);

}  // namespace
}  // namespace spillway::engine
