#include "lsm/background.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>
#include <utility>

#include "lsm/preload.h"

namespace spillway::lsm {
namespace {

// A record is read by its place in the spill store's log: the host reads each page that it lies on.
double pages_of_record(double bytes, double page_bytes) { return bytes / page_bytes + 1; }

// All entries of each file.
std::vector<Entries> values_of(const Files& files) {
  std::vector<Entries> values;
  for (const File& file : files) values.push_back(file->entries);
  return values;
}

// The newest first: L0 has its own order, and what lies deeper is older.
Files newest_first(const Tree& tree, Files files) {
  const Files& l0 = tree.level(0);
  const auto place = [&](const File& file) {
    return file->level > 0 ? l0.size() + file->level
                           : static_cast<std::size_t>(std::find(l0.begin(), l0.end(), file) - l0.begin());
  };
  std::stable_sort(files.begin(), files.end(), [&](const File& a, const File& b) { return place(a) < place(b); });
  return files;
}

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
      tree_(spec.tree),
      blobs_(spec.tree.blobs, entry_.blob),
      fixed_once_in_(static_cast<std::uint64_t>(std::llround(std::max(1.0, spec.grain * spec.divided_by)))) {
  figures_.levels.resize(tree_.levels());
  figures_.compactions_from.resize(tree_.levels());
}

Files Background::preload() {
  double entries = 0;
  for (std::size_t c = 0; c < keys_.classes(); ++c) entries += keys_.class_keys(c);
  const std::size_t level = settled_level(tree_, entries * entry_.file);
  Files files = settled_files(keys_, entry_.file, tree_.target_file_bytes(level), random_);
  tree_.replace({}, files, level);
  if (spec_.separates_values()) {
    blobs_.replace({}, files, blobs_.write(files, values_of(files), memtable_puts(spec_)));
  }
  return files;
}

void Background::schedule(Nanos now, bool speed_up) {
  const auto waits = [](const Immutable& memtable) { return !memtable.in_flush; };
  while (flushes_ < spec_.tree.flush_threads && std::any_of(immutable_.begin(), immutable_.end(), waits)) {
    start_flush(now);
  }
  const std::uint32_t most = speed_up ? spec_.tree.compaction_threads : 1;
  while (compactions_ < most) {
    auto compaction = pick_compaction(tree_, blobs_.forced(tree_));
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
    if (memtable.memtable.in_order) sources.push_back(memtable.memtable.in_order);
    job.memtables.push_back(memtable.memtable);
  }
  MergeSpec spec;
  spec.inputs = std::move(sources);
  spec.entry_bytes = entry_.file;
  job.outputs = merge(keys_, spec, random_);
  if (spec_.separates_values()) job.values = values_of(job.outputs);
  job.merge_ns = puts * (spec_.host.flush_entry_ns + (entry_.file + entry_.blob) * spec_.host.flush_byte_ns);
  flush_order_.push_back(index);
  ++flushes_;
  start_lanes(now, index);
}

MergeSpec Background::merge_spec(const Compaction& compaction) const {
  MergeSpec spec;
  spec.inputs = compaction.all();
  if (spec_.separates_values()) spec.inputs = newest_first(tree_, std::move(spec.inputs));
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
    if (spec_.separates_values()) job.values = blobs_.collect(job.outputs, job.relocations);
    blobs_.begin_reading(job.relocations);
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
  for (const Entries& moved : job.values) {
    job.merge_ns += total(moved) * (spec_.host.probe_ns + entry_.blob * spec_.host.merge_byte_ns);
  }
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
  if (spec_.separates_values()) job.values = values_of(job.outputs);
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

// Files that a lane writes: outputs [first, end), and before them the blob files of their values.
void Background::add_pieces(Job& job, Lane& lane, std::size_t first, std::size_t end) {
  lane.piece = job.pieces.size();
  const std::span<const File> outputs = std::span(job.outputs).subspan(first, end - first);
  double values = 0;
  if (!job.values.empty()) {
    const std::span<const Entries> theirs = std::span(job.values).subspan(first, end - first);
    for (const Entries& entries : theirs) values += total(entries);
    for (const Blob& blob : blobs_.write(outputs, theirs)) {
      job.pieces.push_back({&blob->place, blob->bytes, true});
      job.blobs.push_back(blob);
      lane.write_pages += pages_of(job.pieces.back());
    }
  }
  if (job.kind == Job::Kind::compaction && values > 0) {
    lane.values_due = values;
    lane.pages_a_value = static_cast<double>(lane.write_pages) / values;
  }
  for (const File& file : outputs) {
    job.pieces.push_back({&file->place, file->bytes, false});
    lane.write_pages += pages_of(job.pieces.back());
  }
}

// A lane for each range between cuts: it writes the files that begin in the range, and reads its share of the input.
std::vector<Lane> Background::planned_lanes(std::size_t index) {
  Job& job = jobs_[index];
  std::vector<Lane> lanes(job.cuts.size() + 1);
  const std::uint64_t reads = job.input.pages();
  std::uint64_t reads_before = 0;
  std::size_t file = 0;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const bool last = i + 1 == lanes.size();
    const double share = std::min(1.0, static_cast<double>(i + 1) * job.lane_share);
    const std::uint64_t reads_until = last ? reads : static_cast<std::uint64_t>(static_cast<double>(reads) * share);
    const std::size_t first = file;
    while (file < job.outputs.size() && (last || job.outputs[file]->low < job.cuts[i])) ++file;
    Lane& lane = lanes[i];
    lane.job = index;
    add_pieces(job, lane, first, file);
    lane.read_pages = reads_until - std::exchange(reads_before, reads_until);
    if (lane.write_pages > 0) lane.file_pages = pages_of(job.pieces[lane.piece]);
    if (lane.read_pages > 0) {
      lane.values_a_page = std::exchange(lane.values_due, 0) / static_cast<double>(lane.read_pages);
    }
  }
  return lanes;
}

void Background::start_lanes(Nanos now, std::size_t index) {
  std::vector<Lane> lanes = planned_lanes(index);
  Job& job = jobs_[index];
  std::uint64_t writes = 0;
  std::uint64_t merged = 0;  // of the writes, what comes out of the input and not out of other blob files
  for (const Piece& piece : job.pieces) {
    writes += pages_of(piece);
    if (job.kind != Job::Kind::compaction || !piece.has_values) merged += pages_of(piece);
  }
  const std::uint64_t reads = job.input.pages();
  job.chunk_unit = reads > 0 ? reads : writes;
  job.lanes_left = lanes.size();
  for (Lane& planned : lanes) {
    const std::uint32_t id = free_lane();
    planned.pages_out_of_page_in = reads > 0 ? static_cast<double>(merged) / static_cast<double>(reads) : 0;
    planned.step = Lane::Step::writing;  // taken, and nothing in flight
    lanes_[id] = planned;
    step(now, id);
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
  figures_.files_written += job.pieces.size();
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
  figures_.blobs.bytes_flushed += replace_blobs(now, {}, job);
  figures_.files_written += job.pieces.size();
  ++figures_.flushes;
  job.running = false;
}

// The job's blob files are complete, and those that it has made garbage of are deleted. Returns the bytes of the first.
double Background::replace_blobs(Nanos now, const Files& removed, Job& job) {
  blobs_.replace(removed, job.outputs, job.blobs);
  blobs_.end_reading(job.relocations);
  for (const Blob& blob : blobs_.take_dead()) release(now, blob->place);
  double bytes = 0;
  for (const Blob& blob : job.blobs) bytes += blob->bytes;
  return bytes;
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
  figures_.blobs.bytes_relocated += replace_blobs(now, inputs, job);
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
  figures_.rollback_bytes_written += replace_blobs(now, {}, job);
  ++figures_.rollbacks;
  --rollbacks_;
}

}  // namespace spillway::lsm
