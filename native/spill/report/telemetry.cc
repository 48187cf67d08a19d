#include "spill/report/telemetry.h"

#include "spillway/close_listener.h"

namespace spillway::spill {
namespace {

// One line for each event.
void log_event(const SpillEvent& event, const std::shared_ptr<rocksdb::Logger>& log) {
  using Kind = SpillEvent::Kind;
  const bool is_failure = event.kind == Kind::store_failed || event.kind == Kind::rollback_failed;
  const bool is_warning = event.kind == Kind::spill_full || event.kind == Kind::root_handed_out;
  const auto level = is_failure   ? rocksdb::InfoLogLevel::ERROR_LEVEL
                     : is_warning ? rocksdb::InfoLogLevel::WARN_LEVEL
                                  : rocksdb::InfoLogLevel::INFO_LEVEL;
  rocksdb::Log(level, log, "spillway: %s generation=%llu operations=%llu bytes=%llu micros=%lld %s",
               name_of(event.kind), static_cast<unsigned long long>(event.generation),
               static_cast<unsigned long long>(event.entries), static_cast<unsigned long long>(event.bytes),
               static_cast<long long>(event.duration_us), event.message.c_str());
}

}  // namespace

void Telemetry::report(const SpillEvent& event) const {
  log_event(event, info_log_);
  for (const auto& listener : listeners_) listener->on_spill_event(event);
}

void Telemetry::report_closed(const SpillStatistics& last) const {
  for (const auto& listener : listeners_) {
    if (SpillCloseListener* const closing = listener->as_close_listener()) closing->on_spill_close(last);
  }
}

}  // namespace spillway::spill
