#include "engine/leveldb/engine.h"

#include <leveldb/iterator.h>
#include <leveldb/write_batch.h>

#include <memory>
#include <span>
#include <utility>

#include "engine/leveldb/store.h"

namespace spillway::engine {

namespace {

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

class LevelDbEngine final : public Engine {
 public:
  LevelDbEngine(const EngineSpec& spec, LevelDbOptions options) : store_(spec, std::move(options)) {}
  ~LevelDbEngine() override { (void)LevelDbEngine::close(); }

  Status open() {
    Status status = store_.open();
    open_ = status.is_ok();
    return status;
  }

  Status put(std::string_view key, std::string_view value) override {
    thread_local leveldb::WriteBatch batch;  // emptied and filled again: its buffer stays
    batch.Clear();
    batch.Put(slice(key), slice(value));
    return store_.write(&batch);
  }

  Status remove(std::string_view key) override {
    leveldb::WriteBatch batch;
    batch.Delete(slice(key));
    return store_.write(&batch);
  }

  Status write(std::span<const Write> writes) override {
    leveldb::WriteBatch batch;
    for (const Write& write : writes) {
      if (write.kind == Write::Kind::put) {
        batch.Put(slice(write.key), slice(write.value));
      } else {
        batch.Delete(slice(write.key));
      }
    }
    return store_.write(&batch);
  }

  Result<bool> get(std::string_view key, std::string* value) override {
    thread_local std::string found;
    std::string& into = value != nullptr ? *value : found;
    const leveldb::Status status = store_.db().Get(store_.options().read, slice(key), &into);
    if (status.IsNotFound()) return false;
    if (!status.ok()) return store_.to_status(status, "get");
    return true;
  }

  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, Direction direction, Pairs* pairs) override {
    const std::unique_ptr<leveldb::Iterator> iterator(store_.db().NewIterator(store_.options().read));
    const bool forward = direction == Direction::forward;
    iterator->Seek(slice(key));
    if (!forward) to_at_or_before(*iterator, key);
    std::uint64_t seen = 0;
    for (; iterator->Valid() && seen <= nexts; forward ? iterator->Next() : iterator->Prev()) {
      ++seen;
      if (pairs != nullptr) pairs->emplace_back(iterator->key().ToString(), iterator->value().ToString());
    }
    if (!iterator->status().ok()) return store_.to_status(iterator->status(), "scan");
    return seen;
  }

  std::span<const char* const> stall_causes() const override { return LevelDbCause::names; }

  Observation observe() override {
    Observation seen;
    if (open_) store_.observe(seen);
    return seen;
  }
  std::vector<Stall> stalls() override { return store_.stalls().stalls(); }
  std::map<std::string, std::uint64_t> statistics() override {
    std::map<std::string, std::uint64_t> figures;
    if (open_) store_.add_statistics(figures);
    return figures;
  }

  Status flush() override { return store_.flush(); }
  Status wait_for_compaction(const std::atomic<bool>& stop) override { return store_.wait_for_compaction(stop); }

  Status close() override {
    open_ = false;
    store_.close();
    return Status::ok();
  }

 private:
  // LevelDB seeks forward only.
  static void to_at_or_before(leveldb::Iterator& iterator, std::string_view key) {
    if (!iterator.Valid()) {
      iterator.SeekToLast();
    } else if (iterator.key() != slice(key)) {
      iterator.Prev();
    }
  }

  LevelDbStore store_;
  bool open_ = false;
};

Status check_leveldb(const EngineSpec& spec) {
  Settings settings = settings_of(spec);  // it has none
  if (Status status = settings.finish(); !status) return status;
  auto options = parse_leveldb_options(spec.options);
  return options ? Status::ok() : options.status();
}

Result<std::unique_ptr<Engine>> open_leveldb(const EngineSpec& spec) {
  auto options = parse_leveldb_options(spec.options);
  if (!options) return options.status();
  auto engine = std::make_unique<LevelDbEngine>(spec, std::move(*options));
  if (Status status = engine->open(); !status) return status;
  return std::unique_ptr<Engine>(std::move(engine));
}

bool leveldb_compresses(const EngineSpec& spec) {
  auto options = parse_leveldb_options(spec.options);
  return options && options->db.compression != leveldb::kNoCompression;
}

}  // namespace

EngineKind leveldb_engine() {
  return {.name = "leveldb",
          .check = check_leveldb,
          .open = open_leveldb,
          .versions = leveldb_versions,
          .compresses = leveldb_compresses};
}

}  // namespace spillway::engine
