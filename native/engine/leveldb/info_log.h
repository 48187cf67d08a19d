// Reads LevelDB's info log, the only public place where LevelDB says why a table is written and that a writer waits.
//
// Lines of LevelDB 1.23 (db/db_impl.cc), distinguished by their beginnings:
//   Level-0 table #N: started           the table N that is written next is a flushed memtable's
//   Level-0 table #N: B bytes STATUS    it is done
//   Current memtable full; waiting...   this writer waits: the memtable before it is not flushed yet
//   Too many L0 files; waiting...       this writer waits: L0 has its most files (12)
//   Compacting …  Compacted …  Moved …  compactions, and tables that changed their level without one
// Every line is passed on to LevelDB's own LOG file.
#pragma once

#include <leveldb/env.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace spillway::engine {

class LevelDbInfoLog final : public leveldb::Logger {
 public:
  enum class Wait : std::uint8_t { memtable, l0 };

  // `on_wait` is called by the writer that is about to wait, under LevelDB's lock: it must not call LevelDB.
  explicit LevelDbInfoLog(std::function<void(Wait)> on_wait) : on_wait_(std::move(on_wait)) {}

  // A second destination of the lines; null: none.
  void forward_to(std::unique_ptr<leveldb::Logger> log) { log_ = std::move(log); }

  void Logv(const char* format, std::va_list arguments) override;

  // Whether table `number` is a flushed memtable's.
  bool is_flush(std::uint64_t number) const;
  bool compacting() const { return compacting_; }
  std::uint64_t flushes() const { return flushes_; }
  std::uint64_t compactions() const { return compactions_; }
  std::uint64_t moves() const { return moves_; }

 private:
  void read(const std::string& line);

  const std::function<void(Wait)> on_wait_;
  std::unique_ptr<leveldb::Logger> log_;
  mutable std::mutex mutex_;
  std::uint64_t flushing_ = 0;  // the last table that was started for a memtable
  std::atomic<bool> compacting_{false};
  std::atomic<std::uint64_t> flushes_{0};
  std::atomic<std::uint64_t> compactions_{0};
  std::atomic<std::uint64_t> moves_{0};
};

}  // namespace spillway::engine
