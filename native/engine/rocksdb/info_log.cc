#include "engine/rocksdb/info_log.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>

namespace spillway::engine {

namespace {

class InfoLog final : public rocksdb::Logger {
 public:
  explicit InfoLog(int fd) : fd_(fd) {}
  ~InfoLog() override { ::close(fd_); }
  InfoLog(const InfoLog&) = delete;
  InfoLog& operator=(const InfoLog&) = delete;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    if (length < 0) return;
    std::string text(static_cast<std::size_t>(length) + 1, '\0');
    std::vsnprintf(text.data(), text.size(), format, arguments);
    text.back() = '\n';
    const std::string line = now() + " " + text;
    if (::write(fd_, line.data(), line.size()) > 0) size_ += line.size();  // a line at once: no lock
  }
  std::size_t GetLogFileSize() const override { return size_; }

 private:
  // As RocksDB's own: "2022/11/30-12:00:00.123456".
  static std::string now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
    const std::time_t seconds = us / 1'000'000;
    std::tm local{};
    ::localtime_r(&seconds, &local);
    std::array<char, 32> day{};
    std::strftime(day.data(), day.size(), "%Y/%m/%d-%H:%M:%S", &local);
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%s.%06d", day.data(), static_cast<int>(us % 1'000'000));
    return text.data();
  }

  const int fd_;
  std::atomic<std::size_t> size_{0};
};

class FileSystem final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "SpillwayInfoLog"; }

  rocksdb::IOStatus NewLogger(const std::string& path, const rocksdb::IOOptions& /*options*/,
                              std::shared_ptr<rocksdb::Logger>* log, rocksdb::IODebugContext* /*debug*/) override {
    const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) return rocksdb::IOStatus::IOError("cannot make " + path);
    *log = std::make_shared<InfoLog>(fd);
    return rocksdb::IOStatus::OK();
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> with_own_info_log(std::shared_ptr<rocksdb::FileSystem> below) {
  return std::make_shared<FileSystem>(std::move(below));
}

}  // namespace spillway::engine
