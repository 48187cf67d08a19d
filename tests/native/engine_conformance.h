// The common part of the conformance suites: every engine, on an emulated drive and on a plain directory, against an
// ordered map.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/emulated/emulated.h"
#include "device/faulty_device.h"
#include "engine/factory/factory.h"
#include "engine_built_modules.h"
#include "engine_numbered_pairs.h"
#include "fs/volume.h"
#include "fs/write_counts.h"
#include "temporary_directory.h"

namespace spillway::engine {

// An engine with options that are small enough for flushes and compactions in a test.
struct Case {
  const char* engine;
  bool on_drive;
  StringMap options;
  StringMap settings;
};

inline void PrintTo(const Case& one, std::ostream* out) { *out << one.engine << (one.on_drive ? " on a drive" : ""); }

inline std::vector<Case> cases() {
  const StringMap rocksdb = {{"write_buffer_size", "65536"},
                             {"target_file_size_base", "65536"},
                             {"max_bytes_for_level_base", "262144"},
                             {"compression", "kNoCompression"}};
  const StringMap blob = {{"write_buffer_size", "65536"},
                          {"compression", "kNoCompression"},
                          {"enable_blob_files", "true"},
                          {"min_blob_size", "64"},
                          {"enable_blob_garbage_collection", "true"}};
  const StringMap leveldb = {{"write_buffer_size", "65536"}, {"compression", "kNoCompression"}};
  const StringMap wiredtiger = {
      {"cache_size", "1MiB"}, {"log.file_max", "1MiB"}, {"checkpoint.log_size", "256KiB"}, {"leaf_page_max", "8KiB"}};
  std::vector<Case> all;
  for (const bool on_drive : {true, false}) {
    all.push_back({"rocksdb", on_drive, rocksdb, {}});
    all.push_back({"rocksdb", on_drive, blob, {}});
    all.push_back({"spillway", on_drive, rocksdb, {}});
    all.push_back({"leveldb", on_drive, leveldb, {}});
    all.push_back(
        {"leveldb-vlog", on_drive, leveldb, {{"vlog.segment_bytes", "65536"}, {"vlog.gc_garbage_ratio", "0.3"}}});
#ifdef SPILLWAY_BUILT_ENGINES
    all.push_back({"wiredtiger", on_drive, wiredtiger, {}});
#endif
  }
  return all;
}

inline std::vector<Case> cases_on(bool drive) {
  std::vector<Case> some = cases();
  std::erase_if(some, [&](const Case& one) { return one.on_drive != drive; });
  return some;
}

inline Pairs pairs_of(const Model& model) { return {model.begin(), model.end()}; }

class Conformance : public ::testing::TestWithParam<Case> {
 protected:
  ~Conformance() override {
    engine_.reset();
    volume_.reset();
  }

  // Each opening has a new drive, on which the files of the directory are unknown.
  void make_drive(std::uint64_t capacity_bytes = 256ULL << 20, device::IoFaultRule rule = {},
                  fs::VolumeObserver* observer = nullptr) {
    engine_.reset();
    volume_.reset();
    if (!GetParam().on_drive) return;
    ssd::SsdConfig config;
    config.geometry.pages_per_block = 32;
    config.capacity.capacity_bytes = capacity_bytes;
    config.capacity.spare_factor = 0.2;
    device_ = device::make_simulated(ssd::Ssd(config, 1));
    faulty_ = std::make_unique<device::FaultyDevice>(
        *device_, rule ? rule : [](const device::Io&) { return device::IoFault(); });
    fs::VolumeOptions options;
    options.observer = observer;
    volume_ = std::make_unique<fs::Volume>(*faulty_, options);
  }

  Status try_open(const StringMap& more = {}) {
    EngineSpec spec;
    spec.name = GetParam().engine;
    spec.directory = directory_;
    spec.options = GetParam().options;
    for (const auto& [name, value] : more) spec.options[name] = value;
    spec.settings = GetParam().settings;
    spec.volume = volume_.get();
    if (!GetParam().on_drive) spec.writes = &writes_;
    engine_.reset();
    auto opened = open_engine(spec);
    if (!opened) return opened.status();
    engine_ = std::move(*opened);
    return Status::ok();
  }
  Engine& open(const StringMap& more = {}) {
    const Status status = try_open(more);
    EXPECT_TRUE(status) << status.message();
    return *engine_;
  }

  void expect_same(const Model& model) {
    Pairs forward;
    auto seen = engine_->scan("", model.size() + 10, Direction::forward, &forward);
    ASSERT_TRUE(seen) << seen.status().message();
    EXPECT_EQ(*seen, model.size());
    EXPECT_EQ(forward, pairs_of(model));
    Pairs backward;
    seen = engine_->scan("\xff", model.size() + 10, Direction::backward, &backward);
    ASSERT_TRUE(seen) << seen.status().message();
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(backward, pairs_of(model));
    for (const auto& [key, value] : model) {
      std::string found;
      auto there = engine_->get(key, &found);
      ASSERT_TRUE(there) << there.status().message();
      ASSERT_TRUE(*there) << key;
      ASSERT_EQ(found, value) << key;
    }
  }

  // Everything that was acknowledged before a failure is there. Only the failed write may or may not have been done.
  void expect_acknowledged(const Model& model, const std::string& failed_key = "", const std::string& failed = "") {
    for (const auto& [key, value] : model) {
      std::string found;
      auto there = engine_->get(key, &found);
      ASSERT_TRUE(there) << there.status().message();
      ASSERT_TRUE(*there) << key;
      ASSERT_TRUE(found == value || (key == failed_key && found == failed)) << key << " is " << found.substr(0, 20);
    }
  }
  // The same during the failure: reads may fail, but no read returns a wrong result.
  void expect_no_lies(const Model& model, const std::string& failed_key = "", const std::string& failed = "") {
    for (const auto& [key, value] : model) {
      std::string found;
      auto there = engine_->get(key, &found);
      if (!there) continue;
      ASSERT_TRUE(*there) << key;
      ASSERT_TRUE(found == value || (key == failed_key && found == failed)) << key << " is " << found.substr(0, 20);
    }
  }

  // Puts values of that size under alternating keys until one fails, or `most` are written. Returns the failed one.
  struct Written {
    Model model;
    Status status;
    std::string failed_key;
    std::string failed_value;
  };
  Written write_until_failure(std::uint64_t most, std::uint64_t keys, std::size_t value_bytes) {
    Written written;
    for (std::uint64_t i = 0; i < most && written.status; ++i) {
      const std::string key = key_of(i % keys);
      const std::string value = value_of(i, value_bytes);
      written.status = engine_->put(key, value);
      if (written.status) {
        written.model[key] = value;
      } else {
        written.failed_key = key;
        written.failed_value = value;
      }
    }
    return written;
  }

  // Does `operations` puts, overwrites, removals and batches on `keys` keys, on the engine and on the model.
  void work(Model& model, std::uint64_t seed, int operations, std::uint64_t keys, std::size_t most_value_bytes) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < operations; ++i) {
      const std::string key = key_of(random() % keys);
      const std::string value = value_of(random() % 1'000'000, random() % most_value_bytes);
      switch (random() % 10) {
        case 0:
          ASSERT_TRUE(engine_->remove(key));
          model.erase(key);
          break;
        case 1: {
          const std::string other = key_of(random() % keys);
          const std::vector<Write> batch = {{Write::Kind::put, other, "before"},
                                            {Write::Kind::remove, key, {}},
                                            {Write::Kind::put, key, value},
                                            {Write::Kind::remove, other, {}}};
          ASSERT_TRUE(engine_->write(batch));
          model[key] = value;
          model.erase(other);
          break;
        }
        default:
          ASSERT_TRUE(engine_->put(key, value));
          model[key] = value;
      }
    }
  }

  const TemporaryDirectory temporary_{memory_path()};
  std::string directory_ = temporary_.path("db");
  std::unique_ptr<device::EmulatedDevice> device_;
  std::unique_ptr<device::FaultyDevice> faulty_;
  std::unique_ptr<fs::Volume> volume_;
  fs::WriteCounts writes_;  // for a directory
  std::unique_ptr<Engine> engine_;
};

inline std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.engine;
  std::replace(name.begin(), name.end(), '-', '_');
  if (info.param.options.contains("enable_blob_files")) name += "_blob";
  return name + (info.param.on_drive ? "_on_a_drive" : "_in_a_directory");
}

}  // namespace spillway::engine
