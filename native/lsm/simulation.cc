#include "lsm/simulation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "lsm/background.h"
#include "lsm/queries.h"
#include "lsm/writer.h"

namespace spillway::lsm {
namespace {

// Per entry. Sources: RocksDB's MemTable::Add and InlineSkipList (varints, sequence number, 1.33 pointers a node);
// BlockBuilder (shared, unshared and value lengths; sequence number); log_writer and WriteBatch (record and batch
// headers).
constexpr double kSequenceBytes = 8;
constexpr double kMemtableOverhead = kSequenceBytes + 3 + 10.6;
constexpr double kBlockEntryOverhead = kSequenceBytes + 4;
constexpr double kLogRecordOverhead = 7 + 12 + 3;
// What the tree has in the place of a separated value: type, number of the file, offset, size, compression; the numbers
// as varints. Source: BlobIndex::EncodeBlob
constexpr double kBlobIndexBytes = 1 + 2 + 4 + 2 + 1;
// Of a value in a blob file, beside it and its key. Source: BlobLogRecord::kHeaderSize
constexpr double kBlobRecordOverhead = 32;
// Of a data block in the index, beside its key: handle, sequence number. Source: IndexBuilder, BlockHandle
constexpr double kIndexEntryBytes = 24;
// Of a memtable's arena. Sources: OptimizeForArena..., MemTable::ShouldFlushNow
constexpr double kMostArenaBlock = 1048576;
constexpr double kOverAllocation = 0.6;  // blocks

constexpr Nanos kProgressEvery = 50'000'000;  // of virtual time

Status drive_full(const DriveFiles& files) {
  return Status::error(Fault::drive_full,
                       "the tree does not fit the drive: " + std::to_string(files.held_bytes()) +
                           " bytes are held; raise capacity.capacity_bytes, or lower load.num or initial.fill");
}

class Simulation {
 public:
  Simulation(const Spec& spec, device::DriveModel& drive, device::DriveModel* query_drive, const Watch& watch)
      : spec_(spec),
        query_drive_(query_drive),
        watch_(watch),
        keys_(spec.load, spec.grain),
        files_(drive, spec.region),
        processor_(spec.host.cores),
        stalls_(spec.tree),
        background_(spec_, keys_, files_, processor_, figures_),
        writer_(spec_, keys_, files_, agenda_, processor_, background_, figures_) {}

  Result<Figures> run() {
    figures_.complete = true;
    if (const Status ready = preload(); !ready) return ready;
    if (const Status loaded = load(); !loaded) return loaded;
    figures_.drive = files_.counters();
    run_queries();
    describe(figures_);
    return std::move(figures_);
  }

 private:
  Status preload() {
    if (spec_.load.preload != Preload::in_order) return {};
    const Files sorted = background_.preload();
    for (const Blob& blob : background_.blob_files().live()) {
      if (!place_before(blob->place, blob->bytes)) return drive_full(files_);
    }
    for (const File& file : sorted) {
      if (!place_before(file->place, file->bytes)) return drive_full(files_);
      figures_.complete = !watch_.progress || watch_.progress(0);
      if (!figures_.complete) break;
    }
    files_.begin_time();
    return {};
  }

  // False: the drive is full.
  bool place_before(fs::ExtentList& place, double bytes) {
    figures_.preloaded_bytes += bytes;
    return files_.append(place, files_.pages_for(bytes)) && files_.write_before(place);
  }

  Status load() {
    if (!figures_.complete) return {};
    is_before_ = spec_.load.preload == Preload::unsettled;
    if (is_before_) {
      writer_.start(0, true);
    } else {
      begin_load();
    }
    while (!over()) {
      const auto computed = processor_.next_done();
      if (!computed && agenda_.only_samples() && !files_.next_event()) {
        return Status::error(Fault::stopped, "the simulation cannot go on: nothing is left that could happen");
      }
      // What the drive does on the way to its next completion changes nothing here.
      const auto planned = earlier(computed, agenda_.next());
      ready_.clear();
      const auto completed = files_.advance_to_completion(planned ? std::max(now_, *planned) : planned, ready_);
      if (const auto next = completed ? completed : planned) now_ = std::max(now_, *next);
      take_drive_events();
      if (computed && *computed <= now_) take_computed();
      take_agenda();
      writer_.follow_processor(now_);
      if (files_.refused()) return drive_full(files_);
      if (background_.drive_is_full() || writer_.drive_is_full()) return drive_full(files_);
      if (now_ >= next_progress_) {
        next_progress_ = now_ + kProgressEvery;
        if (watch_.progress && !watch_.progress(is_before_ ? 0 : writer_.operations())) {
          figures_.complete = false;
          break;
        }
      }
    }
    if (figures_.load_seconds == 0) figures_.load_seconds = load_seconds();
    now_ = files_.run_dry(now_);
    return {};
  }

  // What a load before has done is counted no further; its jobs go on.
  void begin_load() {
    const bool was_before = is_before_;
    if (was_before) {
      Figures fresh;
      fresh.complete = figures_.complete;
      fresh.levels.resize(figures_.levels.size());
      fresh.compactions_from.resize(figures_.compactions_from.size());
      for (std::size_t level = 0; level < fresh.levels.size(); ++level) {
        fresh.preloaded_bytes += background_.tree().bytes(level);
      }
      figures_ = std::move(fresh);
      files_.reset_counters();
      is_before_ = false;
    }
    began_ = stall_since_ = now_;
    writer_.start(now_, false);
    if (was_before) writer_.set_stall(now_, stalls_.state());
    if (spec_.sample_interval_s > 0) agenda_.add(now_ + sample_ns(), Agenda::What::sample, 0);
  }

  bool asks_for_report() const { return spec_.load.report_operations || spec_.load.report_s; }

  void report() {
    count_stall();
    Figures report = figures_;
    report.reports.clear();
    report.load_seconds = load_seconds();
    report.worst_wait_s = writer_.worst_wait_s(now_);
    report.drive = files_.counters();
    describe(report);
    figures_.reports.push_back(std::move(report));
  }

  // The load has ended, and, if it settles, nothing is left to flush, to bring back or to compact.
  bool over() {
    if (asks_for_report() && figures_.reports.empty() && writer_.reaches_report(now_)) report();
    if (!writer_.done()) return false;
    if (is_before_) {
      begin_load();
      return false;
    }
    if (figures_.load_seconds == 0) {
      count_stall();
      if (figures_.reports.size() == 1) report();
      figures_.load_seconds = load_seconds();
      if (!spec_.load.settle) return true;
      writer_.close();
      changed();
    }
    if (!spec_.load.settle) return true;
    writer_.roll_back(now_, stalls_.state(), true);
    background_.schedule(now_, stalls_.state().speed_up);
    if (!background_.idle() || writer_.has_spilled()) return false;
    figures_.settle_seconds = load_seconds() - figures_.load_seconds;
    return true;
  }

  static std::optional<Nanos> earlier(std::optional<Nanos> a, std::optional<Nanos> b) {
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
  }

  void take_drive_events() {
    for (const Owner owner : ready_) {
      if (owner < kFirstLane) {
        writer_.written(now_, owner);
      } else if (background_.continue_lane(now_, owner - kFirstLane)) {
        changed();
      }
    }
  }

  void take_computed() {
    ready_.clear();
    processor_.take_done(now_, ready_);
    for (const std::uint32_t lane : ready_) {
      if (background_.continue_lane(now_, lane)) changed();
    }
  }

  void take_agenda() {
    while (agenda_.next() && *agenda_.next() <= now_) {
      const Agenda::Item item = agenda_.pop();
      switch (item.what) {
        case Agenda::What::writer:
          if (writer_.timer(now_, item.id)) changed();
          break;
        case Agenda::What::sample:
          sample();
          break;
      }
    }
  }

  // The tree or the memtables have changed: new stall conditions, new jobs.
  void changed() {
    for (bool again = true; again;) {
      const std::size_t runs = background_.tree().level(0).size();
      update_stall();
      background_.schedule(now_, stalls_.state().speed_up);
      again = background_.tree().level(0).size() != runs;  // trivial moves
    }
    update_stall();
    if (spec_.spill.capacity_bytes > 0 && !writer_.done()) writer_.roll_back(now_, stalls_.state(), false);
    writer_.set_stall(now_, stalls_.state());
  }

  void update_stall() {
    count_stall();
    StallSignals signals;
    signals.immutable_memtables = background_.immutable_memtables();
    signals.l0_files = background_.tree().stall_runs();
    signals.pending_bytes = background_.tree().pending_compaction_bytes();
    if (signals.immutable_memtables == signals_.immutable_memtables && signals.l0_files == signals_.l0_files &&
        signals.pending_bytes == signals_.pending_bytes) {
      return;
    }
    signals_ = signals;
    stalls_.update(signals);
  }

  void count_stall() {
    if (figures_.load_seconds == 0) {
      const double passed = seconds(now_ - stall_since_);
      const StallState& state = stalls_.state();
      const auto cause = static_cast<std::size_t>(state.cause);
      if (state.stopped) figures_.stopped_s[cause] += passed;
      if (state.delayed) figures_.delayed_s[cause] += passed;
    }
    stall_since_ = now_;
  }

  void sample() {
    const StallState& state = stalls_.state();
    Sample sample;
    sample.seconds = load_seconds();
    sample.operations = writer_.operations();
    const Tree& tree = background_.tree();
    sample.l0_files = tree.level(0).size();
    for (std::size_t level = 0; level < tree.levels(); ++level) sample.level_bytes.push_back(tree.bytes(level));
    sample.immutable_memtables = background_.immutable_memtables();
    sample.pending_compaction_bytes = signals_.pending_bytes;
    sample.host_bytes_written = files_.counters().host_bytes_written;
    sample.nand_bytes_programmed = files_.counters().nand_bytes_programmed_total();
    sample.delayed = state.delayed;
    sample.stopped = state.stopped;
    if (watch_.sample) watch_.sample(sample);
    agenda_.add(now_ + sample_ns(), Agenda::What::sample, 0);
  }

  // One that the watch ends has no figures; those of the load and of the queries before it stay.
  void run_queries() {
    if (!figures_.complete) return;
    const EntryBytes entry = entry_bytes(spec_);
    std::optional<DriveFiles> elsewhere;
    fs::ExtentList anywhere;
    fs::ExtentList blobs;
    for (const Blob& blob : background_.blob_files().live()) {
      for (const fs::Extent& extent : blob->place.extents()) blobs.append(extent);
    }
    Nanos now = now_;
    if (query_drive_ != nullptr) {
      elsewhere.emplace(*query_drive_);
      elsewhere->append(anywhere, query_drive_->capacity_bytes() / elsewhere->page_bytes());
      now = 0;
    }
    for (const QuerySpec& query : spec_.queries) {
      const QueryRun run{spec_,
                         query,
                         keys_,
                         background_.tree(),
                         elsewhere ? &anywhere : nullptr,
                         blobs,
                         entry,
                         ssd::mix(spec_.seed + 17),
                         [&] { return !watch_.progress || watch_.progress(writer_.operations()); }};
      const auto figures = run_query(run, elsewhere ? *elsewhere : files_, now);
      figures_.complete = figures.has_value();
      if (!figures) return;
      figures_.queries.push_back(*figures);
    }
  }

  // What there is now.
  void describe(Figures& figures) const {
    figures.operations = is_before_ ? 0 : writer_.operations();
    const double pair = spec_.load.key_bytes + spec_.load.value_bytes;
    figures.user_bytes = figures.operations * pair;
    const bool all = spec_.load.preload != Preload::none;
    figures.live_user_bytes = pair * (all ? spec_.load.keys : total(keys_.distinct(figures.operations)));
    figures.held_bytes = files_.held_bytes();
    figures.peak_held_bytes = files_.peak_held_bytes();
    for (const Blob& blob : background_.blob_files().live()) {
      ++figures.blobs.files;
      figures.blobs.bytes += blob->bytes;
      figures.blobs.garbage_bytes += background_.blob_files().garbage_bytes(*blob);
    }
    for (std::size_t l = 0; l < figures.levels.size(); ++l) {
      figures.levels[l].files = background_.tree().level(l).size();
      figures.levels[l].bytes = background_.tree().bytes(l);
    }
  }

  static double seconds(Nanos ns) { return static_cast<double>(ns) / 1e9; }
  double load_seconds() const { return seconds(now_ - began_); }
  Nanos sample_ns() const { return static_cast<Nanos>(spec_.sample_interval_s * 1e9); }

  const Spec spec_;
  device::DriveModel* const query_drive_;
  const Watch& watch_;
  const KeySpace keys_;
  Figures figures_;
  DriveFiles files_;
  Agenda agenda_;
  Processor processor_;
  StallController stalls_;
  StallSignals signals_;
  Background background_;
  Writer writer_;
  std::vector<Owner> ready_;
  bool is_before_ = false;  // every key is put in order, before the load
  Nanos now_ = 0;
  Nanos began_ = 0;  // the load
  Nanos stall_since_ = 0;
  Nanos next_progress_ = 0;
};

}  // namespace

EntryBytes entry_bytes(const Spec& spec) {
  const double pair = spec.load.key_bytes + spec.load.value_bytes;
  EntryBytes bytes;
  bytes.memtable = pair + kMemtableOverhead;
  bytes.log = pair + kLogRecordOverhead;
  const bool separated = spec.separates_values();
  bytes.blob = separated ? pair + kBlobRecordOverhead : 0;
  const double in_block = (separated ? spec.load.key_bytes + kBlobIndexBytes : pair) + kBlockEntryOverhead;
  const double a_block = std::max(1.0, spec.tree.block_size / in_block);  // entries
  bytes.file = in_block + index_entry_bytes(spec) / a_block + spec.tree.bits_per_key / 8;
  return bytes;
}

double index_entry_bytes(const Spec& spec) { return spec.load.key_bytes + kIndexEntryBytes; }

// As MemTable::ShouldFlushNow with the default arena_block_size: the arena grows by blocks up to 0.6 of one beyond the
// buffer's size, and the memtable is full when less than a quarter of the last block is left.
double memtable_puts(const Spec& spec) {
  const double size = spec.tree.write_buffer_size;
  const double block = std::min(kMostArenaBlock, size / 8);
  const double blocks = std::max(1.0, std::ceil(size / block + kOverAllocation - 1));
  return std::max(1.0, (blocks - 0.25) * block / entry_bytes(spec).memtable);
}

Result<Figures> simulate(const Spec& spec, device::DriveModel& drive, device::DriveModel* query_drive,
                         const Watch& watch) {
  return Simulation(spec, drive, query_drive, watch).run();
}

}  // namespace spillway::lsm
