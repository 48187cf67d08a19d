#include "lsm/background.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "lsm/preload.h"

namespace spillway::lsm {
namespace {

// A record is read by its place in the spill store's log: the host reads each page that it lies on.
double pages_of_record(double bytes, double page_bytes) { return bytes / page_bytes + 1; }

}  // namespace

Background::Background(const Spec& spec, const KeySpace& keys, DriveFiles& files, Processor& processor,
                       Figures& figures)
    : spec_(spec),
      keys_(keys),
      files_(files),
      processor_(processor),
      figures_(figures),
      entry_(entry_bytes(spec)),
      random_(ssd::mix(spec.seed)),
      tree_(spec.tree) {
  figures_.levels.resize(tree_.levels());
  figures_.compactions_from.resize(tree_.levels());
}

Files Background::preload() {
  double entries = 0;
  for (std::size_t c = 0; c < keys_.classes(); ++c) entries += keys_.class_keys(c);
  const std::size_t level = settled_level(tree_, entries * entry_.file);
  Files files = settled_files(keys_, entry_.file, tree_.target_file_bytes(level), random_);
  tree_.replace({}, files, level);
  return files;
}

void Background::schedule(Nanos now, bool speed_up) {
  const auto waits = [](const Immutable& memtable) { return !memtable.in_flush; };
  while (flushes_ < spec_.tree.flush_threads && std::any_of(immutable_.begin(), immutable_.end(), waits)) {
    start_flush(now);
  }
  const std::uint32_t most = speed_up ? spec_.tree.compaction_threads : 1;
  while (compactions_ < most) {
    auto compaction = pick_compaction(tree_);
    if (!compaction) return;
    start_compaction(now, std::move(*compaction));
  }
}

std::size_t Background::new_job(Job::Kind kind) {
  const auto slot = std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return !job.running; });
  const auto index = static_cast<std::size_t>(slot - jobs_.begin());
  if (slot == jobs_.end()) jobs_.emplace_back();
  jobs_[index] = Job();
  jobs_[index].kind = kind;
  jobs_[index].running = true;
  return index;
}

std::uint32_t Background::free_lane() {
  const auto slot =
      std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.step == Lane::Step::done; });
  const auto index = static_cast<std::uint32_t>(slot - lanes_.begin());
  if (slot == lanes_.end()) lanes_.emplace_back();
  return index;
}

void Background::start_flush(Nanos now) {
  const std::size_t index = new_job(Job::Kind::flush);
  Job& job = jobs_[index];
  Files sources;
  double puts = 0;
  for (Immutable& memtable : immutable_) {
    if (memtable.in_flush) continue;
    memtable.in_flush = true;
    auto source = std::make_shared<SortedFile>();
    source->low = memtable.memtable.low;
    source->high = memtable.memtable.high;
    source->entries = memtable.memtable.entries;
    puts += memtable.memtable.puts;
    sources.push_back(std::move(source));
    job.memtables.push_back(memtable.memtable);
  }
  MergeSpec spec;
  spec.inputs = std::move(sources);
  spec.entry_bytes = entry_.file;
  job.outputs = merge(keys_, spec, random_);
  job.merge_ns = puts * (spec_.host.flush_entry_ns + entry_.file * spec_.host.flush_byte_ns);
  flush_order_.push_back(index);
  ++flushes_;
  start_lanes(now, index);
}

MergeSpec Background::merge_spec(const Compaction& compaction) const {
  MergeSpec spec;
  spec.inputs = compaction.all();
  spec.entry_bytes = entry_.file;
  const std::size_t output = compaction.output_level;
  if (output == 0) return spec;
  spec.target_file_bytes = tree_.target_file_bytes(output);
  spec.most_overlap_bytes = spec_.tree.max_compaction_bytes();
  if (spec_.tree.shape == Shape::leveled) {
    spec.grandparents = grandparents_of(tree_, compaction);
    spec.align_to_grandparents = spec_.tree.level_compaction_dynamic_file_size;
  }
  return spec;
}

// What a subcompaction takes of a compaction's input. As Compaction::ShouldFormSubcompactions and
// CompactionJob::GenSubcompactionBoundaries.
double Background::range_bytes_of(const Compaction& compaction, double input_bytes) const {
  const bool universal = spec_.tree.shape == Shape::universal;
  const bool splits = (compaction.start_level == 0 || universal) && compaction.output_level > 0;
  if (!splits || compaction.trivial_move) return input_bytes;
  return std::min(input_bytes, std::max(input_bytes / spec_.tree.max_subcompactions,
                                        tree_.target_file_bytes(compaction.output_level)));
}

void Background::start_compaction(Nanos now, Compaction compaction) {
  const std::size_t index = new_job(Job::Kind::compaction);
  Job& job = jobs_[index];
  const Files inputs = compaction.all();
  if (!compaction.trivial_move) {
    MergeSpec spec = merge_spec(compaction);
    const double all = bytes_of(inputs);
    const double range = range_bytes_of(compaction, all);
    if (range < all) job.cuts = cuts_of(inputs, range, spec_.tree.max_subcompactions);
    job.lane_share = range / all;
    spec.cuts = job.cuts;
    job.outputs = merge(keys_, spec, random_);
  }
  if (compaction.output_level > 0) tree_.begin_writing(compaction.output_level, range_of(inputs));
  double entries = 0;
  tree_.begin_compaction(inputs);
  if (!compaction.trivial_move) {
    for (const File& file : inputs) {
      entries += total(file->entries);
      for (const fs::Extent& extent : file->place.extents()) job.input.append(extent);
    }
  }
  job.merge_ns = entries * (spec_.host.merge_entry_ns + entry_.file * spec_.host.merge_byte_ns);
  job.compaction = std::move(compaction);
  ++compactions_;
  start_lanes(now, index);
}

void Background::roll_back(Nanos now, fs::ExtentList spilled, double puts) {
  assert(!rolling_back());
  const std::size_t index = new_job(Job::Kind::rollback);
  Job& job = jobs_[index];
  auto source = std::make_shared<SortedFile>();
  source->entries = keys_.distinct(puts);
  MergeSpec spec;
  spec.inputs = {source};
  spec.entry_bytes = entry_.file;
  job.outputs = merge(keys_, spec, random_);
  job.spilled = std::move(spilled);
  const auto page = static_cast<double>(files_.page_bytes());
  const double entries = total(source->entries);
  const auto wanted = static_cast<std::uint64_t>(entries * pages_of_record(entry_.log, page));
  // The same pages are read again where records share them.
  while (job.input.pages() < wanted) {
    for (const fs::Extent& extent : job.spilled.extents()) {
      const std::uint64_t pages = std::min(extent.pages, wanted - job.input.pages());
      job.input.append({extent.first_page, pages});
    }
  }
  job.merge_ns = entries * (spec_.host.merge_entry_ns + entry_.file * spec_.host.merge_byte_ns);
  ++rollbacks_;
  start_lanes(now, index);
}

// A lane for each range between cuts: it reads its share of the input, and writes the files that begin in the range.
void Background::start_lanes(Nanos now, std::size_t index) {
  Job& job = jobs_[index];
  std::uint64_t writes = 0;
  for (const File& file : job.outputs) writes += files_.pages_for(file->bytes);
  const std::uint64_t reads = job.input.pages();
  job.chunk_unit = reads > 0 ? reads : writes;
  const std::size_t count = job.cuts.size() + 1;
  job.lanes_left = count;
  std::uint64_t reads_before = 0;
  std::size_t file = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    const double share = std::min(1.0, static_cast<double>(i + 1) * job.lane_share);
    const std::uint64_t reads_until = last ? reads : static_cast<std::uint64_t>(static_cast<double>(reads) * share);
    const std::size_t first = file;
    while (file < job.outputs.size() && (last || job.outputs[file]->low < job.cuts[i])) ++file;
    const std::uint32_t id = free_lane();
    Lane& lane = lanes_[id];
    lane = Lane();
    lane.job = index;
    lane.read_pages = reads_until - std::exchange(reads_before, reads_until);
    lane.file = first;
    for (std::size_t f = first; f < file; ++f) lane.write_pages += files_.pages_for(job.outputs[f]->bytes);
    if (lane.write_pages > 0) lane.file_pages = files_.pages_for(job.outputs[lane.file]->bytes);
    lane.pages_out_of_page_in = reads > 0 ? static_cast<double>(writes) / static_cast<double>(reads) : 0;
    lane.step = Lane::Step::writing;  // taken, and nothing in flight
    step(now, id);
  }
}

bool Background::continue_lane(Nanos now, std::uint32_t id) {
  changed_ = false;
  Lane& lane = lanes_[id];
  switch (lane.step) {
    case Lane::Step::reading:
      merge_chunk(now, id, lane.chunk_pages);
      break;
    case Lane::Step::merging:
    case Lane::Step::writing:
    case Lane::Step::syncing:
      step(now, id);
      break;
    case Lane::Step::opening:
      open_or_record(now, id);
      break;
    case Lane::Step::recording:
      lane.step = Lane::Step::committing;
      files_.flush(now, kFirstLane + id);
      break;
    case Lane::Step::committing:
      finish(now, id);
      break;
    case Lane::Step::done:
      assert(false);
  }
  return changed_;
}

// Chooses what a lane does next. REQUIRES: nothing of it is in flight
void Background::step(Nanos now, std::uint32_t id) {
  Lane& lane = lanes_[id];
  const Job& job = jobs_[lane.job];
  if (lane.unsynced && lane.file_pages == 0) {  // a file is complete
    lane.unsynced = false;
    if (lane.write_pages > 0) lane.file_pages = files_.pages_for(job.outputs[++lane.file]->bytes);
    if (due(Fixed::sync)) {
      lane.step = Lane::Step::syncing;
      return files_.flush(now, kFirstLane + id);
    }
  }
  const double chunk =
      std::min(kWriteChunkBytes / static_cast<double>(files_.page_bytes()), static_cast<double>(lane.file_pages));
  const bool only_writes = job.input.pages() == 0;
  if (lane.write_pages > 0 && (lane.gathered_pages >= chunk || (lane.gathered_pages >= 1 && lane.read_pages == 0))) {
    return write_chunk(now, id);
  }
  if (lane.read_pages > 0) return read_chunk(now, id);
  if (lane.write_pages > 0) {
    if (only_writes)
      return merge_chunk(now, id, std::min(lane.write_pages, static_cast<std::uint64_t>(std::max(1.0, chunk))));
    lane.gathered_pages = static_cast<double>(lane.write_pages);  // rounding has left a page
    return write_chunk(now, id);
  }
  close_lane(now, id);
}

// The last lane of a job opens the outputs and records the change.
void Background::close_lane(Nanos now, std::uint32_t id) {
  Job& job = jobs_[lanes_[id].job];
  lanes_[id].step = Lane::Step::done;
  if (--job.lanes_left > 0) return;
  place_outputs(job);
  open_or_record(now, id);
}

// Of a file that is opened: its index, a block's handle and last key each, and the footer.
std::uint64_t Background::index_pages(const File& file) const {
  const double blocks = std::ceil(file->bytes / spec_.tree.block_size);
  const double filter = total(file->entries) * spec_.tree.bits_per_key / 8;
  const std::uint64_t pages = files_.pages_for(blocks * index_entry_bytes(spec_) + filter) + 1;
  return std::min(pages, file->place.pages());
}

void Background::open_or_record(Nanos now, std::uint32_t id) {
  Lane& lane = lanes_[id];
  Job& job = jobs_[lane.job];
  while (job.opened < job.outputs.size()) {
    const File& file = job.outputs[job.opened++];
    if (!due(Fixed::open)) continue;
    const std::uint64_t pages = index_pages(file);
    lane.step = Lane::Step::opening;
    files_.read(now, file->place.slice(file->place.pages() - pages, pages), device::Cause::user, kFirstLane + id);
    return;
  }
  if (job.kind == Job::Kind::flush && leaves_record(lane.job)) {
    lane.step = Lane::Step::done;
    changed_ = true;
    return;
  }
  record(now, id);
}

// Whether another flush records this one's change: that of an older memtable, or the one that is recorded now. As
// MemTableList::TryInstallMemtableFlushResults.
bool Background::leaves_record(std::size_t flush) {
  jobs_[flush].complete = true;
  if (recorded_flushes_ == 0 && flush_order_.front() == flush) {
    recorded_flushes_ = complete_flushes();
    return false;
  }
  --flushes_;
  return true;
}

// From the oldest on.
std::size_t Background::complete_flushes() const {
  const auto first =
      std::find_if(flush_order_.begin(), flush_order_.end(), [&](std::size_t flush) { return !jobs_[flush].complete; });
  return static_cast<std::size_t>(first - flush_order_.begin());
}

void Background::record(Nanos now, std::uint32_t id) {
  if (!due(Fixed::record)) return finish(now, id);
  lanes_[id].step = Lane::Step::recording;
  if (manifest_.pages() == 0 && !files_.append(manifest_, 1)) {
    drive_is_full_ = true;
    return;
  }
  files_.write(now, manifest_.extents(), device::Cause::manifest, kFirstLane + id);
}

void Background::read_chunk(Nanos now, std::uint32_t id) {
  Lane& lane = lanes_[id];
  Job& job = jobs_[lane.job];
  const auto chunk =
      static_cast<std::uint64_t>(std::max(1.0, kReadChunkBytes / static_cast<double>(files_.page_bytes())));
  const std::uint64_t pages = std::min(lane.read_pages, chunk);
  lane.step = Lane::Step::reading;
  lane.chunk_pages = pages;
  const auto cause = job.kind == Job::Kind::rollback ? device::Cause::spill : device::Cause::compaction;
  files_.read(now, job.input.slice(job.next_read, pages), cause, kFirstLane + id);
  job.next_read += pages;
  lane.read_pages -= pages;
}

void Background::merge_chunk(Nanos now, std::uint32_t id, std::uint64_t pages) {
  Lane& lane = lanes_[id];
  const Job& job = jobs_[lane.job];
  lane.step = Lane::Step::merging;
  const bool only_writes = job.input.pages() == 0;
  lane.gathered_pages += static_cast<double>(pages) * (only_writes ? 1 : lane.pages_out_of_page_in);
  const double share = static_cast<double>(pages) / static_cast<double>(std::max<std::uint64_t>(1, job.chunk_unit));
  processor_.begin(now, job.merge_ns * share, id);
}

void Background::write_chunk(Nanos now, std::uint32_t id) {
  Lane& lane = lanes_[id];
  Job& job = jobs_[lane.job];
  const auto chunk =
      static_cast<std::uint64_t>(std::max(1.0, kWriteChunkBytes / static_cast<double>(files_.page_bytes())));
  const auto gathered = static_cast<std::uint64_t>(lane.gathered_pages);
  const std::uint64_t pages = std::max<std::uint64_t>(1, std::min({chunk, gathered, lane.file_pages}));
  const std::uint64_t before = job.written.pages();
  lane.step = Lane::Step::writing;
  if (!files_.append(job.written, pages)) {
    drive_is_full_ = true;
    return;
  }
  const auto cause = job.kind == Job::Kind::flush      ? device::Cause::flush
                     : job.kind == Job::Kind::rollback ? device::Cause::spill
                                                       : device::Cause::compaction;
  files_.write(now, job.written.slice(before, pages), cause, kFirstLane + id);
  lane.write_pages -= pages;
  lane.file_pages -= pages;
  lane.unsynced = true;
  lane.gathered_pages = std::max(0.0, lane.gathered_pages - static_cast<double>(pages));
}

void Background::place_outputs(Job& job) {
  std::uint64_t at = 0;
  for (const File& file : job.outputs) {
    const std::uint64_t pages = files_.pages_for(file->bytes);
    for (const fs::Extent& extent : job.written.slice(at, pages)) file->place.append(extent);
    at += pages;
  }
}

void Background::finish(Nanos now, std::uint32_t id) {
  Lane& lane = lanes_[id];
  Job& job = jobs_[lane.job];
  lane.step = Lane::Step::done;
  changed_ = true;
  if (job.kind == Job::Kind::flush) return finish_flushes(now, id);
  if (job.kind == Job::Kind::compaction) {
    finish_compaction(now, job);
  } else {
    finish_rollback(now, job);
  }
  figures_.files_written += job.outputs.size();
  job.running = false;
}

// Flushes that were completed while the record was written are in the next one, by the same thread.
void Background::finish_flushes(Nanos now, std::uint32_t id) {
  for (; recorded_flushes_ > 0; --recorded_flushes_) {
    install_flush(now, jobs_[flush_order_.front()]);
    flush_order_.pop_front();
  }
  recorded_flushes_ = complete_flushes();
  if (recorded_flushes_ > 0) {
    lanes_[id].job = flush_order_.front();
    return record(now, id);
  }
  --flushes_;
}

void Background::install_flush(Nanos now, Job& job) {
  for (const Memtable& memtable : job.memtables) release(now, memtable.log);
  immutable_.erase(immutable_.begin(), immutable_.begin() + static_cast<std::ptrdiff_t>(job.memtables.size()));
  for (const File& file : job.outputs) {
    figures_.flush_bytes += file->bytes;
    figures_.levels[0].bytes_written += file->bytes;
    tree_.add_newest(file);
  }
  figures_.files_written += job.outputs.size();
  ++figures_.flushes;
  job.running = false;
}

void Background::finish_compaction(Nanos now, Job& job) {
  const Compaction& done = job.compaction;
  const Files inputs = done.all();
  --compactions_;
  if (done.output_level > 0) tree_.end_writing(done.output_level, range_of(inputs));
  tree_.end_compaction(inputs);
  if (done.trivial_move) {
    tree_.replace(inputs, inputs, done.output_level);
    ++figures_.trivial_moves;
    return;
  }
  tree_.replace(inputs, job.outputs, done.output_level);
  for (const File& file : inputs) {
    figures_.compaction_bytes_read += file->bytes;
    release(now, file->place);
  }
  figures_.levels[done.start_level].bytes_read += bytes_of(done.inputs);
  figures_.levels[done.output_level].bytes_read += bytes_of(done.lower);
  figures_.compaction_bytes_written += bytes_of(job.outputs);
  figures_.levels[done.output_level].bytes_written += bytes_of(job.outputs);
  CompactionFigures& from = figures_.compactions_from[done.start_level];
  ++from.compactions;
  from.files_touched += inputs.size();
  ++figures_.compactions;
  if (done.start_level == 0 && done.output_level == 0) ++figures_.intra_l0_compactions;
}

void Background::finish_rollback(Nanos now, Job& job) {
  release(now, job.spilled);
  for (const File& file : job.outputs) {
    figures_.rollback_bytes_written += file->bytes;
    figures_.levels[0].bytes_written += file->bytes;
    tree_.add_newest(file);
  }
  ++figures_.rollbacks;
  --rollbacks_;
}

}  // namespace spillway::lsm
