// Where on the drive the tree lies.
#include <gtest/gtest.h>

#include "device/emulated/emulated.h"
#include "lsm_simulations.h"

namespace spillway::lsm {
namespace {

// Other data on the drive: the tree lies beside it.
device::InitialState other_data(double fill) {
  device::InitialState initial;
  initial.kind = device::InitialState::Kind::steady;
  initial.fill = fill;
  return initial;
}

struct Beside {
  Result<Figures> figures;
  std::uint64_t units_before = 0;
  std::uint64_t units_after = 0;
};

Beside run_beside(const Spec& given, double fill, const device::Drive& drive = small_drive()) {
  device::DriveModel model(drive, 1);
  EXPECT_TRUE(device::prepare(model, other_data(fill), 1));
  model.reset_counters();
  Spec spec = given;
  spec.region.begin = static_cast<std::uint64_t>(fill * static_cast<double>(model.capacity_bytes()));
  Beside result{Figures(), model.mapped_units(), 0};
  result.figures = simulate(spec, model, nullptr, {});
  result.units_after = model.mapped_units();
  return result;
}

// What the tree writes and discards, whatever it is, leaves the other data as it was.
TEST(LsmPlace, OtherDataStays) {
  for (const double fill : {0.0, 0.3, 0.7}) {
    for (const bool discard : {false, true}) {
      Spec spec = small_spec();
      spec.tree.discard = discard;
      Beside beside = run_beside(spec, fill);
      ASSERT_TRUE(beside.figures) << beside.figures.status().message();
      device::DriveModel model(small_drive(), 1);
      const std::uint64_t unit = model.mapping_unit_bytes();
      const std::uint64_t of_tree = beside.units_after - beside.units_before;
      SCOPED_TRACE(testing::Message() << fill << ' ' << discard);
      EXPECT_GE(of_tree * unit, beside.figures->held_bytes - (1 << 20));  // the log's last pages were released
      if (discard) {
        EXPECT_LE(of_tree * unit, beside.figures->held_bytes + (1 << 20));
      }
    }
  }
}

TEST(LsmPlace, TheMoreOtherDataTheMoreTheDriveWrites) {
  Spec spec = small_spec();
  spec.load.keys = 100'000;
  spec.load.operations = 500'000;
  double before = 0;
  for (const double fill : {0.0, 0.4, 0.7}) {
    Beside beside = run_beside(spec, fill, small_drive(1));
    ASSERT_TRUE(beside.figures) << beside.figures.status().message();
    const auto host = static_cast<double>(beside.figures->drive.host_bytes_written);
    const double amplified = static_cast<double>(beside.figures->drive.nand_bytes_programmed_total()) / host;
    EXPECT_GT(amplified, before) << fill;
    before = amplified;
  }
  EXPECT_GT(before, 1.05);
}

TEST(LsmPlace, ATreeThatFitsTheDriveAloneMayNotFitBesideOtherData) {
  Spec spec = small_spec();
  EXPECT_TRUE(run_beside(spec, 0.5, small_drive(1)).figures);
  Beside beside = run_beside(spec, 0.9, small_drive(1));
  ASSERT_FALSE(beside.figures);
  EXPECT_EQ(beside.figures.status().fault(), Fault::drive_full);
}

}  // namespace
}  // namespace spillway::lsm
