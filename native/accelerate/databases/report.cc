#include "accelerate/databases/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "accelerate/databases/write_line.h"

namespace spillway::accelerate {

using Json = nlohmann::ordered_json;

namespace {

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string count_of(std::uint64_t number, const std::string& noun) {
  return with_commas(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string bytes_of(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.3g %s", value, kUnits.at(unit));
  return text.data();
}

std::string seconds_of(std::uint64_t us) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.3g s", static_cast<double>(us) * 1e-6);
  return text.data();
}

std::string program_name() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

Json document_of(const std::string& name) {
  return {{"database", name}, {"program", program_name()}, {"process", ::getpid()}};
}

class ClosedListener final : public SpillCloseListener {
 public:
  ClosedListener(Report& report, std::string name) : report_(report), name_(std::move(name)) {}

  void on_spill_event(const SpillEvent& event) override {
    if (event.kind == SpillEvent::Kind::root_handed_out) {
      report_.say(name_ +
                  ": the program asked for RocksDB itself (GetRootDB); nothing is diverted until it is reopened");
    }
  }
  void on_spill_close(const SpillStatistics& last) override { report_.close(this, name_, last); }

 private:
  Report& report_;
  const std::string name_;
};

// Returns false if the line was not written. Does not wait for a reader where the file is a pipe.
bool append_line(const std::string& path, const Json& document) {
  constexpr mode_t kMode = 0644;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, kMode);
  if (file < 0) return false;
  const bool was_written = write_line(file, document.dump(-1, ' ', false, Json::error_handler_t::replace));
  ::close(file);
  return was_written;
}

}  // namespace

std::string waits_by_cause(const std::vector<std::pair<std::string, std::uint64_t>>& statistics) {
  constexpr std::string_view kPrefix = "waits_";
  std::string text;
  for (const auto& [name, value] : statistics) {
    if (value == 0 || !name.starts_with(kPrefix)) continue;
    std::string cause = name.substr(kPrefix.size());
    std::replace(cause.begin(), cause.end(), '_', ' ');
    text += (text.empty() ? "" : ", ") + with_commas(value) + " for " + cause;
  }
  return text.empty() ? "" : " (" + text + ")";
}

std::string describe(const SpillStatistics& s) {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for_each_statistic(s, [&](std::string_view name, std::uint64_t value) { all.emplace_back(name, value); });
  std::string text = count_of(s.diverted_writes, "write") + " (" + bytes_of(s.diverted_bytes) + ") diverted in " +
                     count_of(s.stalls_diverted, "stall") + ", " + count_of(s.main_writes, "write call") +
                     " to RocksDB; " + count_of(s.waits, "write") + " waited";
  text += waits_by_cause(all);
  if (s.waits > 0) text += " for " + seconds_of(s.wait_us) + " in all";
  text += "; " + count_of(s.rollbacks_by_ingest + s.rollbacks_by_put, "rollback") + " brought " +
          count_of(s.rolled_back_entries, "write") + " back";
  if (s.rollback_failures > 0) text += ", " + count_of(s.rollback_failures, "attempt") + " failed";
  if (s.live_entries == 0) return text + "; nothing remains in the spill store";
  return text + "; " + count_of(s.live_entries, "write") + " (" + bytes_of(s.live_bytes) +
         ") remain in the spill store";
}

Report& Report::of_process() {
  static Report* const report = [] {
    auto* const made = new Report;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed, listeners refer to it
    std::atexit([] { of_process().report_open(); });
    return made;
  }();
  return *report;
}

Report::Report()
    : file_([] {
        const char* const file = std::getenv("SPILLWAY_REPORT");
        return std::string(file == nullptr ? "" : file);
      }()),
      write_to_standard_error_([](const std::string& line) { (void)write_line(STDERR_FILENO, line); }) {}

void Report::begin(const Process& process) {
  const MutexLock lock(mutex_);
  if (!file_.empty() && file_.front() != '/') file_ = process.directory + "/" + file_;
  write_to_standard_error_ = process.write_to_standard_error;
}

void Report::write_sentence(const std::string& text) { write_to_standard_error_("spillway: " + text); }

void Report::say(const std::string& text) {
  const MutexLock lock(mutex_);
  if (said_.insert(text).second) write_sentence(text);
}

void Report::add_unaccelerated(const std::string& name, const std::string& why) {
  say(name + ": opened without acceleration: " + why);
  if (file_.empty()) return;
  Json document = document_of(name);
  document["accelerated"] = false;
  document["reason"] = why;
  append(document);
}

std::shared_ptr<SpillListener> Report::make_listener(const std::string& name) {
  return std::make_shared<ClosedListener>(*this, name);
}

void Report::add_open(const SpillListener* listener, const std::string& name, Statistics statistics) {
  const MutexLock lock(mutex_);
  open_.emplace(listener, Open{name, std::move(statistics), ::getpid()});
}

void Report::close(const SpillListener* listener, const std::string& name, const SpillStatistics& last) {
  const MutexLock lock(mutex_);
  open_.erase(listener);
  write(name, /*is_closed=*/true, last);
}

void Report::report_open() {
  const MutexLock lock(mutex_);
  for (const auto& [listener, open] : open_) {
    if (open.process == ::getpid()) write(open.name, /*is_closed=*/false, open.statistics());
  }
  open_.clear();
}

void Report::write(const std::string& name, bool is_closed, const SpillStatistics& statistics) {
  write_sentence(name + (is_closed ? ": " : " (not closed): ") + describe(statistics));
  if (file_.empty()) return;
  Json document = document_of(name);
  document["accelerated"] = true;
  document["closed"] = is_closed;
  for_each_statistic(statistics,
                     [&](std::string_view key, auto value) { document["statistics"][std::string(key)] = value; });
  append(document);
}

void Report::append(const Json& document) {
  if (!append_line(file_, document)) write_sentence("SPILLWAY_REPORT: cannot write to " + file_);
}

}  // namespace spillway::accelerate
