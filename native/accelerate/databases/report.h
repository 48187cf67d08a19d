// What the accelerator did for each database: a line on stderr when it is closed, and a JSON line in the file that
// SPILLWAY_REPORT names.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "accelerate/databases/opener.h"
#include "base/mutex.h"
#include "spillway/close_listener.h"
#include "spillway/statistics.h"

namespace spillway::accelerate {

// Of statistics by name, the counts that are called "waits_CAUSE": " (2 for rocksdb, 1 for rollback)"; empty if all are
// 0.
std::string waits_by_cause(const std::vector<std::pair<std::string, std::uint64_t>>& statistics);
// "12,345 writes (5.1 MB) diverted in 3 stalls; …": one sentence.
std::string describe(const SpillStatistics& statistics);

// Of this process; lives as long as it does. Thread-safe.
class Report {
 public:
  using Statistics = std::function<SpillStatistics()>;

  static Report& of_process();
  // Before anything is reported. Without it, lines go to file descriptor 2, and SPILLWAY_REPORT is relative to the
  // working directory of each time.
  void begin(const Process& process);

  // One line on stderr, each text once.
  void say(const std::string& text) EXCLUDES(mutex_);
  // The database was opened without acceleration.
  void add_unaccelerated(const std::string& name, const std::string& why) EXCLUDES(mutex_);

  // The listener reports when its database is closed.
  std::shared_ptr<SpillListener> make_listener(const std::string& name);
  // A database that is still open when the process exits is reported then, by its statistics of that time.
  void add_open(const SpillListener* listener, const std::string& name, Statistics statistics) EXCLUDES(mutex_);
  void close(const SpillListener* listener, const std::string& name, const SpillStatistics& last) EXCLUDES(mutex_);

 private:
  struct Open {
    std::string name;
    Statistics statistics;
    pid_t process;  // a child that was forked has its parent's databases, which are not its own to report
  };

  Report();
  void report_open() EXCLUDES(mutex_);
  void write_sentence(const std::string& text);
  void write(const std::string& name, bool is_closed, const SpillStatistics& statistics);
  void append(const nlohmann::ordered_json& document);

  std::string file_;  // SPILLWAY_REPORT
  void (*write_to_standard_error_)(const std::string& line);
  Mutex mutex_;
  std::set<std::string> said_ GUARDED_BY(mutex_);
  std::map<const SpillListener*, Open> open_ GUARDED_BY(mutex_);
};

}  // namespace spillway::accelerate
