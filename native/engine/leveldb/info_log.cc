#include "engine/leveldb/info_log.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

namespace spillway::engine {

namespace {

constexpr std::string_view kTable = "Level-0 table #";

}  // namespace

void LevelDbInfoLog::Logv(const char* format, std::va_list arguments) {
  std::va_list again;
  va_copy(again, arguments);
  std::array<char, 256> line{};  // longer ones are lists of tables, of which only the beginning is needed
  const int length = std::vsnprintf(line.data(), line.size(), format, again);
  va_end(again);
  if (length > 0) read(line.data());
  if (log_) log_->Logv(format, arguments);
}

void LevelDbInfoLog::read(const std::string& line) {
  if (line.starts_with("Current memtable full; waiting")) return on_wait_(Wait::memtable);
  if (line.starts_with("Too many L0 files; waiting")) return on_wait_(Wait::l0);
  if (line.starts_with(kTable)) {
    if (!line.ends_with(": started")) {
      ++flushes_;
      return;
    }
    std::uint64_t number = 0;
    std::from_chars(line.data() + kTable.size(), line.data() + line.size(), number);
    const std::lock_guard lock(mutex_);
    flushing_ = number;
  } else if (line.starts_with("Compacting ")) {
    compacting_ = true;
  } else if (line.starts_with("Compacted ")) {
    compacting_ = false;
    ++compactions_;
  } else if (line.starts_with("Moved #")) {
    ++moves_;
  }
}

bool LevelDbInfoLog::is_flush(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return number == flushing_;
}

}  // namespace spillway::engine
