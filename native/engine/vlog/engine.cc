#include "engine/vlog/engine.h"

#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "engine/leveldb/options.h"
#include "engine/vlog/collector.h"
#include "engine/vlog/store.h"

namespace spillway::engine {

namespace {

// LevelDB's causes, and waiting for the garbage collector to free space.
struct VlogCause {
  static constexpr StallCause gc = LevelDbCause::names.size();
  static constexpr std::array names = {LevelDbCause::names[0], LevelDbCause::names[1], LevelDbCause::names[2],
                                       "vlog_gc"};
  static_assert(names.size() == gc + 1);
};

struct VlogOptions {
  LevelDbOptions leveldb;
  vlog::StoreOptions store;
  vlog::CollectorOptions collector;
};

// Limits of the segment size: below, a header for every few records; above, offsets of 32 bits.
constexpr std::uint64_t kLeastSegment = 4 << 10;
constexpr std::uint64_t kMostSegment = 1 << 30;
// Source: guess. At the 54 GiB of the paper's largest runs 432 files, less than the 1024 that a process may hold open.
constexpr std::uint64_t kDefaultSegment = 128 << 20;
// The collector frees whole segments, and needs one to move the live records of another. With fewer segments on the
// drive, garbage in all of them fills it. Source: measured with a twelfth of a drive of 256 MiB live and overwritten:
// four segments fill it, eight do not.
constexpr std::uint64_t kLeastSegments = 8;
// Source: Lu et al., WiscKey, FAST'16, section 4: 32 threads prefetch values.
constexpr std::uint64_t kDefaultPrefetch = 32;

// Capacity of the drive or the file system under the store; 0: unknown.
std::uint64_t capacity_bytes(const EngineSpec& spec) {
  if (spec.volume != nullptr) return spec.volume->space().capacity_bytes;
  if (spec.capacity_bytes != 0) return spec.capacity_bytes;
  std::error_code unknown;
  std::filesystem::path place = std::filesystem::absolute(spec.directory, unknown);
  while (!std::filesystem::exists(place, unknown) && place.has_relative_path()) place = place.parent_path();
  const auto space = std::filesystem::space(place, unknown);
  return unknown ? 0 : space.capacity;
}

Result<VlogOptions> parse(const EngineSpec& spec) {
  VlogOptions parsed;
  Settings settings = settings_of(spec);
  const std::uint64_t capacity = capacity_bytes(spec);
  const std::uint64_t most = capacity == 0 ? kMostSegment : std::max(kLeastSegment, capacity / kLeastSegments);
  parsed.store.segment_bytes =
      settings.whole("vlog.segment_bytes", std::min(kDefaultSegment, most), kLeastSegment, kMostSegment);
  if (parsed.store.segment_bytes > most) {
    return Status::bad_input("engine.vlog.segment_bytes is " + std::to_string(parsed.store.segment_bytes) +
                             ", and the drive has room for less than " + std::to_string(kLeastSegments) +
                             " of these; lower it to " + std::to_string(most) + ", so that the collector can work");
  }
  parsed.store.min_value_bytes = settings.whole("vlog.min_value_bytes", 0, 0, kMostSegment);
  parsed.store.prefetch = settings.whole("vlog.prefetch", kDefaultPrefetch, 1, 1024);
  parsed.collector.gc = settings.flag("vlog.gc", parsed.collector.gc);
  parsed.collector.gc_garbage_ratio =
      settings.number("vlog.gc_garbage_ratio", parsed.collector.gc_garbage_ratio, 0.01, 1);
  parsed.collector.gc_free_ratio = settings.number("vlog.gc_free_ratio", parsed.collector.gc_free_ratio, 0, 1);
  if (Status status = settings.finish(); !status) return status;
  auto leveldb = parse_leveldb_options(spec.options);
  if (!leveldb) return leveldb.status();
  if (leveldb->db.reuse_logs) {
    return Status::bad_input("engine.options.reuse_logs: leveldb-vlog keeps no log of LevelDB's; leave it out");
  }
  parsed.leveldb = std::move(*leveldb);
  return parsed;
}

vlog::StoreSpace store_space(const fs::Volume* volume, const std::string& directory) {
  if (volume != nullptr) {
    const fs::Space space = volume->space();
    return {.free_bytes = space.free_bytes, .capacity_bytes = space.capacity_bytes};
  }
  std::error_code ignored;
  return {.free_bytes = std::filesystem::space(directory, ignored).available, .capacity_bytes = 0};
}

class VlogEngine final : public Engine {
 public:
  VlogEngine(const EngineSpec& spec, VlogOptions options)
      : store_(spec, std::move(options.leveldb), options.store),
        collector_(store_, options.collector,
                   [volume = spec.volume, directory = spec.directory] { return store_space(volume, directory); }) {}
  ~VlogEngine() override { (void)VlogEngine::close(); }

  Status open() {
    Status status = store_.open();
    open_ = status.is_ok();
    if (open_) collector_.start();
    return status;
  }

  Status put(std::string_view key, std::string_view value) override {
    const engine::Write one{.kind = engine::Write::Kind::put, .key = key, .value = value};
    return write({&one, 1});
  }
  Status remove(std::string_view key) override {
    const engine::Write one{.kind = engine::Write::Kind::remove, .key = key, .value = {}};
    return write({&one, 1});
  }
  Status write(std::span<const engine::Write> writes) override {
    if (collector_.writers_must_wait()) {
      WriterStalls& stalls = store_.tree().stalls();
      stalls.begin(StallState::stopped, VlogCause::gc);
      collector_.wait_for_space();
      stalls.end();
    }
    Status status = store_.write(writes);
    collector_.note_write();
    return status;
  }

  Result<bool> get(std::string_view key, std::string* value) override { return store_.get(key, value); }
  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs) override {
    return store_.scan(key, nexts, direction, pairs);
  }

  std::span<const char* const> stall_causes() const override { return VlogCause::names; }

  Observation observe() override {
    Observation seen;
    if (!open_) return seen;
    store_.tree().observe(seen);
    const std::uint64_t bytes = store_.log().bytes();
    seen.set("live_bytes", seen.gauge("live_bytes") + bytes);
    seen.set("vlog_bytes", bytes);
    seen.set("vlog_segments", store_.log().segments()->size());
    seen.set("vlog_collecting", collector_.is_collecting() ? 1U : 0U);
    seen.set("vlog_garbage_permille", collector_.garbage_permille());
    return seen;
  }
  std::vector<Stall> stalls() override { return store_.tree().stalls().stalls(); }
  std::map<std::string, std::uint64_t> statistics() override {
    std::map<std::string, std::uint64_t> figures;
    if (!open_) return figures;
    store_.tree().add_statistics(figures);
    store_.add_statistics(figures);
    collector_.add_statistics(figures);
    return figures;
  }

  Status flush() override { return store_.flush(); }
  Status wait_for_compaction(const std::atomic<bool>& stop) override { return store_.tree().wait_for_compaction(stop); }
  Status settle(const std::atomic<bool>& stop) override {
    if (Status status = collector_.settle(stop); !status) return status;
    return Engine::settle(stop);
  }

  Status close() override {
    if (!std::exchange(open_, false)) return Status::ok();
    collector_.stop();
    Status status = store_.close();
    return status ? collector_.failure() : status;
  }

 private:
  vlog::Store store_;
  vlog::Collector collector_;
  bool open_ = false;
};

Status check_vlog(const EngineSpec& spec) {
  auto options = parse(spec);
  return options ? Status::ok() : options.status();
}

Result<std::unique_ptr<Engine>> open_vlog(const EngineSpec& spec) {
  auto options = parse(spec);
  if (!options) return options.status();
  auto engine = std::make_unique<VlogEngine>(spec, std::move(*options));
  if (Status status = engine->open(); !status) return status;
  return std::unique_ptr<Engine>(std::move(engine));
}

// Values in the log are not compressed. LevelDB compresses what is in its tree.
bool vlog_compresses(const EngineSpec& spec) {
  auto options = parse(spec);
  return options && options->store.min_value_bytes > 0 && options->leveldb.db.compression != leveldb::kNoCompression;
}

}  // namespace

EngineKind leveldb_vlog_engine() {
  return {.name = "leveldb-vlog",
          .check = check_vlog,
          .open = open_vlog,
          .versions = leveldb_versions,
          .compresses = vlog_compresses};
}

}  // namespace spillway::engine
