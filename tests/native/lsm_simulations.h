// What tests of whole simulations share: a small drive, a small load, a run of it.
#pragma once

#include <gtest/gtest.h>

#include "device/preset/preset.h"
#include "lsm/simulation.h"

namespace spillway::lsm {

inline device::Drive small_drive(double gib = 4) {
  device::Drive drive;
  drive.config.capacity.capacity_bytes = static_cast<std::uint64_t>(gib * 1073741824);
  drive.config.capacity.spare_factor = 0.1;
  drive.config.timing.program_ns = {400'000};
  drive.config.write_cache.bytes = 16 << 20;
  return drive;
}

inline Spec small_spec() {
  Spec spec;
  spec.tree.write_buffer_size = spec.tree.target_file_size_base = 1 << 20;
  spec.tree.max_bytes_for_level_base = 4 << 20;
  spec.load.value_bytes = 1000;
  spec.load.keys = spec.load.operations = 200'000;
  spec.load.order = KeyOrder::uniform;
  return spec;
}

inline Figures run(const Spec& spec, const device::Drive& drive = small_drive()) {
  device::DriveModel model(drive, spec.seed);
  auto figures = simulate(spec, model, nullptr, {});
  EXPECT_TRUE(figures) << figures.status().message();
  return figures ? *figures : Figures();
}

inline double bytes_in_levels(const Figures& figures) {
  double sum = 0;
  for (const LevelFigures& level : figures.levels) sum += level.bytes;
  return sum;
}

}  // namespace spillway::lsm
