// A database of leveldb-vlog with small segments, in a directory or on an emulated drive, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/emulated/emulated.h"
#include "device/faulty_device.h"
#include "engine/factory/factory.h"
#include "engine_numbered_pairs.h"
#include "fs/volume.h"
#include "temporary_directory.h"

namespace spillway::engine {

inline const std::atomic<bool> kNeverStopped{false};

class VlogFixture : public ::testing::Test {
 protected:
  ~VlogFixture() override {
    engine_.reset();
    volume_.reset();
  }

  // A new drive, on which the files of the directory are unknown.
  void make_drive(std::uint64_t capacity_bytes, device::IoFaultRule rule = {}, fs::VolumeObserver* observer = nullptr) {
    engine_.reset();
    volume_.reset();
    ssd::SsdConfig config;
    config.geometry.pages_per_block = 32;
    config.capacity.capacity_bytes = capacity_bytes;
    config.capacity.spare_factor = 0.2;
    device_ = device::make_simulated(ssd::Ssd(config, 1));
    faulty_ = std::make_unique<device::FaultyDevice>(
        *device_, rule ? std::move(rule) : [](const device::Io&) { return device::IoFault(); });
    fs::VolumeOptions options;
    options.observer = observer;
    volume_ = std::make_unique<fs::Volume>(*faulty_, options);
  }

  EngineSpec spec(StringMap settings) const {
    settings.emplace("vlog.segment_bytes", "16384");
    settings.emplace("vlog.gc_garbage_ratio", "0.3");
    return {.name = "leveldb-vlog",
            .directory = directory_,
            .options = {{"write_buffer_size", std::to_string(memtable_bytes_)},
                        {"compression", "kNoCompression"},
                        {"sync", sync_ ? "true" : "false"}},
            .settings = std::move(settings),
            .volume = volume_.get()};
  }
  Status try_open(const StringMap& settings = {}) {
    engine_.reset();
    auto opened = open_engine(spec(settings));
    if (!opened) return opened.status();
    engine_ = std::move(*opened);
    return Status::ok();
  }
  Engine& open(const StringMap& settings = {}) {
    const Status status = try_open(settings);
    EXPECT_TRUE(status) << status.message();
    return *engine_;
  }

  void expect_same(const Model& model) {
    Pairs pairs;
    const auto seen = engine_->scan("", model.size() + 1, Direction::forward, &pairs);
    ASSERT_TRUE(seen) << seen.status().message();
    ASSERT_EQ(pairs, Pairs(model.begin(), model.end()));
  }
  std::uint64_t statistic(const char* name) { return engine_->statistics().at(name); }

  std::vector<std::string> segments() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().extension() == ".vlog") found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  const TemporaryDirectory temporary_{memory_path()};
  std::uint64_t memtable_bytes_ = 65536;
  bool sync_ = false;
  std::string directory_ = temporary_.path("db");
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<device::FaultyDevice> faulty_;
  std::unique_ptr<fs::Volume> volume_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace spillway::engine
