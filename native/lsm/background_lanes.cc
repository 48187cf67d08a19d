// How a lane of a job goes on: Background's steps, one request at the drive or piece of computing after another.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "lsm/background.h"

namespace spillway::lsm {

bool Background::continue_lane(Nanos now, std::uint32_t id) {
  changed_ = false;
  Lane& lane = lanes_[id];
  switch (lane.step) {
    case Lane::Step::reading:
      merge_chunk(now, id, lane.chunk_pages);
      break;
    case Lane::Step::merging:
    case Lane::Step::fetching:
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
    if (lane.write_pages > 0) lane.file_pages = pages_of(job.pieces[++lane.piece]);
    if (due(Fixed::sync)) {
      lane.step = Lane::Step::syncing;
      return files_.flush(now, kFirstLane + id);
    }
  }
  const double chunk =
      std::min(kWriteChunkBytes / static_cast<double>(files_.page_bytes()), static_cast<double>(lane.file_pages));
  const bool only_writes = job.input.pages() == 0;
  const bool all_gathered = lane.read_pages == 0 && lane.values_due < 1;
  if (lane.write_pages > 0 && (lane.gathered_pages >= chunk || (lane.gathered_pages >= 1 && all_gathered))) {
    return write_chunk(now, id);
  }
  if (lane.values_due >= 1) return fetch_value(now, id);
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
  lane.values_due += static_cast<double>(pages) * lane.values_a_page;
  const double share = static_cast<double>(pages) / static_cast<double>(std::max<std::uint64_t>(1, job.chunk_unit));
  processor_.begin(now, job.merge_ns * share, id);
}

// Reads one value that is relocated, out of any of the files that have them.
void Background::fetch_value(Nanos now, std::uint32_t id) {
  Lane& lane = lanes_[id];
  const Job& job = jobs_[lane.job];
  lane.step = Lane::Step::fetching;
  lane.values_due -= 1;
  lane.gathered_pages += lane.pages_a_value;
  const double at = random_.uniform() * job.relocations.back().until;
  const auto from = std::partition_point(job.relocations.begin(), job.relocations.end() - 1,
                                         [at](const Relocation& one) { return one.until <= at; });
  const BlobFile& blob = *from->blob;
  const double offset = random_.uniform() * std::max(0.0, blob.bytes - entry_.blob);
  files_.read_bytes(now, blob.place, offset, entry_.blob, device::Cause::blob, kFirstLane + id);
  figures_.blobs.bytes_read += entry_.blob;
}

void Background::write_chunk(Nanos now, std::uint32_t id) {
  Lane& lane = lanes_[id];
  const Job& job = jobs_[lane.job];
  const Piece& piece = job.pieces[lane.piece];
  const auto chunk =
      static_cast<std::uint64_t>(std::max(1.0, kWriteChunkBytes / static_cast<double>(files_.page_bytes())));
  const auto gathered = static_cast<std::uint64_t>(lane.gathered_pages);
  const std::uint64_t pages = std::max<std::uint64_t>(1, std::min({chunk, gathered, lane.file_pages}));
  const std::uint64_t before = piece.place->pages();
  lane.step = Lane::Step::writing;
  if (!files_.append(*piece.place, pages)) {
    drive_is_full_ = true;
    return;
  }
  const auto cause = job.kind == Job::Kind::rollback ? device::Cause::spill
                     : piece.has_values              ? device::Cause::blob
                     : job.kind == Job::Kind::flush  ? device::Cause::flush
                                                     : device::Cause::compaction;
  files_.write(now, piece.place->slice(before, pages), cause, kFirstLane + id);
  lane.write_pages -= pages;
  lane.file_pages -= pages;
  lane.unsynced = true;
  lane.gathered_pages = std::max(0.0, lane.gathered_pages - static_cast<double>(pages));
}

}  // namespace spillway::lsm
