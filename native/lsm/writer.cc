#include "lsm/writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace spillway::lsm {
namespace {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
constexpr double kAlmost = 1e-6;          // puts: what rounding may leave
constexpr double kMemtableAlmost = 1e-3;  // share of a memtable, and at most a put, that it may miss when it is full
constexpr double kGenerations = 8;        // of the spill store, if nothing else is asked for

}  // namespace

double spill_chunk_bytes(const SpillPolicy& spill, std::uint32_t grain) {
  return std::clamp(spill.capacity_bytes / kGenerations, kLogChunkBytes / grain, kLogChunkBytes);
}

double least_spill_bytes(double chunk_bytes, const LoadSpec& load) {
  return 2 * std::max(chunk_bytes, load.key_bytes + load.value_bytes);
}

bool has_room_for_rollback(const Tree& tree, const StallState& stall) {
  return !stall.stopped && !stall.delayed && tree.stall_runs() <= tree.options().level0_file_num_compaction_trigger;
}

Writer::Writer(const Spec& spec, const KeySpace& keys, DriveFiles& files, Agenda& agenda, Processor& processor,
               Background& background, Figures& figures)
    : spec_(spec),
      keys_(keys),
      files_(files),
      agenda_(agenda),
      processor_(processor),
      background_(background),
      figures_(figures),
      entry_(entry_bytes(spec)),
      memtable_puts_(memtable_puts(spec)) {
  const auto page = static_cast<double>(files.page_bytes());
  log_.chunk_bytes = std::max(page, kLogChunkBytes);
  log_.most_pending_bytes = std::max(log_.chunk_bytes, spec.host.log_dirty_bytes);
  for (Owner owner = 0; owner < kLogRequests; ++owner) log_.free.push_back(owner);
  spill_log_.chunk_bytes = std::max(page, spill_chunk_bytes(spec.spill, spec.grain));
  spill_log_.most_pending_bytes = spill_log_.chunk_bytes;
  generation_bytes_ =
      spec.spill.generation_bytes > 0 ? spec.spill.generation_bytes : spec.spill.capacity_bytes / kGenerations;
  spill_log_.free = {kSpillOwner};
}

void Writer::start(Nanos now, bool before) {
  before_ = before;
  since_ = began_ = now;
  const auto after = [&](const std::optional<double>& length_s) {
    if (before || !length_s) return kNever;
    return now + std::max<Nanos>(1, static_cast<Nanos>(std::llround(*length_s * 1e9)));
  };
  ends_ = after(spec_.load.duration_s);
  reports_ = after(spec_.load.report_s);
  operations_ = 0;
  most_operations_ = before ? spec_.load.keys : spec_.load.operations;
  rate_ops_s_ = before ? std::nullopt : spec_.load.rate_ops_s;
  finished_ = false;
  plan(now);
}

double Writer::put_ns() const {
  return spec_.host.put_ns + spec_.host.put_byte_ns * (spec_.load.key_bytes + spec_.load.value_bytes);
}

double Writer::spilled_bytes() const {
  double puts = open_.puts;
  for (const Generation& generation : generations_) puts += generation.puts;
  return puts * entry_.log;
}

bool Writer::diverts() const {
  return (stall_.stopped || stall_.delayed) && spilled_bytes() + spill_log_.chunk_bytes < spec_.spill.capacity_bytes;
}

double Writer::rate() const {
  if (finished_) return 0;
  double rate = 1 / (put_ns() * slowdown_);
  if (diverting_) {
    if (spill_log_.full()) return 0;
  } else {
    if (stall_.stopped || (spec_.tree.wal && log_.full())) return 0;
    const double user_bytes = spec_.load.key_bytes + spec_.load.value_bytes;
    if (stall_.delayed) rate = std::min(rate, stall_.rate_bytes_s / 1e9 / user_bytes);
  }
  if (rate_ops_s_) {
    // Behind its schedule, the load goes as fast as it can.
    const double wanted = *rate_ops_s_ / 1e9 * elapsed_ns(since_);
    if (operations_ >= wanted - 1) rate = std::min(rate, *rate_ops_s_ / 1e9);
  }
  return rate;
}

// The number of puts at which the load ends, or reports before.
double Writer::next_stop() const {
  const auto& report = spec_.load.report_operations;
  const bool reports = !before_ && report && operations_ < *report - kAlmost;
  return reports ? std::min(*report, most_operations_) : most_operations_;
}

bool Writer::reaches_report(Nanos now) const {
  const auto& report = spec_.load.report_operations;
  return !before_ && ((report && operations_ >= *report - kAlmost) || now >= reports_);
}

double Writer::worst_wait_s(Nanos now) const {
  const double waits_s = waits_since_ ? static_cast<double>(now - *waits_since_) / 1e9 : 0;
  return std::max(figures_.worst_wait_s, waits_s);
}

void Writer::advance(Nanos now) {
  const double puts = std::min(rate_ * static_cast<double>(now - since_), next_stop() - operations_);
  since_ = now;
  operations_ += puts;
  if (diverting_) {
    open_.puts += puts;
    spill_log_.pending_bytes += puts * entry_.log;
    figures_.spilled_operations += puts;
  } else {
    puts_ += puts;
    if (in_order()) ordered_puts_ += puts;
    if (spec_.tree.wal) log_.pending_bytes += puts * entry_.log;
  }
}

// Sets the rate, and an agenda item for when something has to be done.
void Writer::plan(Nanos now) {
  diverting_ = diverts();
  processor_.leave(now, load_);
  slowdown_ = processor_.slowdown(1);
  rate_ = rate();
  load_ = std::min(1.0, rate_ * put_ns() * slowdown_);
  processor_.enter(now, load_);
  seen_changes_ = processor_.changes();
  count_wait(now);
  ++plan_;
  const Nanos next = next_deed(now);
  if (next != kNever) agenda_.add(next, Agenda::What::writer, plan_);
}

// When something has to be done at the latest.
Nanos Writer::next_deed(Nanos now) const {
  if (finished_) return kNever;
  const Nanos stop = now < reports_ ? std::min(ends_, reports_) : ends_;
  if (rate_ <= 0) return stop;
  double puts = next_stop() - operations_;
  if (diverting_) {
    puts = std::min(puts, until_log_acts(spill_log_) / entry_.log);
    const double until_generation_ends = generation_bytes_ / entry_.log - open_.puts;
    if (until_generation_ends > 0) puts = std::min(puts, until_generation_ends);
  } else {
    puts = std::min(puts, memtable_puts_ - puts_);
    if (spec_.tree.wal) puts = std::min(puts, until_log_acts(log_) / entry_.log);
  }
  double ns = std::max(0.0, puts) / rate_;
  if (rate_ops_s_) {
    const double per_ns = *rate_ops_s_ / 1e9;
    const double behind = per_ns * elapsed_ns(now) - operations_;
    if (behind > 1 && rate_ > per_ns) ns = std::min(ns, behind / (rate_ - per_ns));
  }
  return std::min(std::max(now, stop), now + std::max<Nanos>(1, static_cast<Nanos>(std::ceil(ns))));
}

void Writer::count_wait(Nanos now) {
  if (rate_ <= 0 && !finished_) {
    if (!waits_since_) waits_since_ = now;
    return;
  }
  if (waits_since_)
    figures_.worst_wait_s = std::max(figures_.worst_wait_s, static_cast<double>(now - *waits_since_) / 1e9);
  waits_since_.reset();
  if (!rate_ops_s_) return;
  const double behind = *rate_ops_s_ / 1e9 * elapsed_ns(now) - operations_;
  figures_.worst_wait_s = std::max(figures_.worst_wait_s, behind / *rate_ops_s_);
}

void Writer::set_stall(Nanos now, const StallState& stall) {
  if (finished_) return;
  advance(now);
  stall_ = stall;
  plan(now);
}

// Until a request may be sent, or until the writer must wait for one.
double Writer::until_log_acts(const Log& log) const {
  return (log.free.empty() ? log.most_pending_bytes : log.chunk_bytes) - log.pending_bytes;
}

// Sends a chunk, or less if no more has gathered. REQUIRES: a request may be sent
bool Writer::send(Nanos now, Log& log, fs::ExtentList& place) {
  const std::uint64_t pages =
      std::max<std::uint64_t>(1, files_.pages_for(std::min(log.pending_bytes, log.chunk_bytes)));
  const std::uint64_t before = place.pages();
  if (!files_.append(place, pages)) return false;
  const Owner owner = log.free.back();
  log.free.pop_back();
  const bool spills = owner == kSpillOwner;
  files_.write(now, place.slice(before, pages), spills ? device::Cause::spill : device::Cause::wal, owner);
  const auto bytes = static_cast<double>(pages * files_.page_bytes());
  (spills ? figures_.spilled_bytes : figures_.wal_bytes) += bytes;
  log.pending_bytes = std::max(0.0, log.pending_bytes - bytes);
  return true;
}

// Sends what has gathered, by the chunk, or as much as a whole entry more would make it. At least a page.
bool Writer::write_log(Nanos now, Log& log, fs::ExtentList& place) {
  const double enough = std::max(static_cast<double>(files_.page_bytes()), log.chunk_bytes - entry_.log);
  while (!log.free.empty() && log.pending_bytes >= enough) {
    if (!send(now, log, place)) return false;
  }
  return true;
}

bool Writer::write_logs(Nanos now) {
  return write_log(now, log_, log_place_) && write_log(now, spill_log_, open_.place) && end_full_generation(now);
}

bool Writer::end_full_generation(Nanos now) {
  return !diverting_ || open_.puts * entry_.log < generation_bytes_ || end_generation(now);
}

// All of a generation is written before it ends. While a request is in flight, it goes on unless nothing but what
// rounding has left waits, which the next one writes.
bool Writer::end_generation(Nanos now) {
  const bool written = open_.place.pages() > 0 && spill_log_.pending_bytes < static_cast<double>(files_.page_bytes());
  if (!written) {
    if (spill_log_.free.empty()) return true;
    if (!send(now, spill_log_, open_.place)) return false;
  }
  generations_.push_back(std::exchange(open_, {}));
  return true;
}

bool Writer::end_memtable() {
  if (puts_ <= 0) return false;
  Memtable memtable;
  memtable.puts = puts_;
  memtable.entries = keys_.distinct(puts_ - ordered_puts_);
  if (ordered_puts_ > kAlmost) take_in_order(memtable);
  // What is left of the log is written back later, as a part of the next one.
  memtable.log = std::exchange(log_place_, {});
  background_.add_immutable(std::move(memtable));
  puts_ = ordered_puts_ = 0;
  return true;
}

// The keys that follow those of the memtable before.
void Writer::take_in_order(Memtable& memtable) {
  auto keys = std::make_shared<SortedFile>();
  keys->low = sequential_end_;
  keys->high = sequential_end_ = in_order() ? std::min(1.0, operations_ / spec_.load.keys) : 1.0;
  keys->entries = keys_.all(ordered_puts_ / spec_.load.keys);
  if (!in_order()) {  // the load has gone on with the memtable
    memtable.in_order = std::move(keys);
    return;
  }
  memtable.low = keys->low;
  memtable.high = keys->high;
  memtable.entries = std::move(keys->entries);
}

bool Writer::timer(Nanos now, std::uint64_t id) {
  if (id != plan_ || finished_) return false;
  advance(now);
  bool changed = false;
  drive_is_full_ = drive_is_full_ || !write_logs(now);
  if (puts_ >= memtable_puts_ - std::min(1.0, kMemtableAlmost * memtable_puts_)) changed = end_memtable();
  if (operations_ >= most_operations_ - kAlmost || now >= ends_) {
    finished_ = true;
    changed = true;
  }
  plan(now);
  return changed;
}

void Writer::follow_processor(Nanos now) {
  if (processor_.changes() == seen_changes_) return;
  seen_changes_ = processor_.changes();
  if (finished_ || rate_ <= 0 || processor_.slowdown(1 - load_) == slowdown_) return;
  advance(now);
  plan(now);
}

void Writer::written(Nanos now, Owner owner) {
  (owner == kSpillOwner ? spill_log_ : log_).free.push_back(owner);
  if (finished_) return;
  advance(now);
  drive_is_full_ = drive_is_full_ || !write_logs(now);
  plan(now);
}

void Writer::roll_back(Nanos now, const StallState& stall, bool all) {
  if (background_.rolling_back() || !has_spilled()) return;
  if (!all && !has_room_for_rollback(background_.tree(), stall)) return;
  if (generations_.empty()) {
    if (spill_log_.free.empty() || (diverting_ && !finished_)) return;
    drive_is_full_ = drive_is_full_ || !end_generation(now);
    if (generations_.empty()) return;
  }
  Generation oldest = std::move(generations_.front());
  generations_.pop_front();
  background_.roll_back(now, std::move(oldest.place), oldest.puts);
}

}  // namespace spillway::lsm
