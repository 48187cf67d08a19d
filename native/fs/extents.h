// Which pages of a drive are free, and which a file holds. Pure bookkeeping: no lock, no device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace spillway::fs {

// A run of pages (kPageBytes each) on the drive.
struct Extent {
  std::uint64_t first_page = 0;
  std::uint64_t pages = 0;

  bool operator==(const Extent&) const = default;
};

// The pages of a file, in file order. Pages that are contiguous on the drive form one extent.
class ExtentList {
 public:
  void append(const Extent& extent);
  // Cuts the list to its first `pages` pages and returns the rest.
  std::vector<Extent> cut(std::uint64_t pages);
  // The places of the file's pages [first, first + count). REQUIRES: first + count <= pages().
  std::vector<Extent> slice(std::uint64_t first, std::uint64_t count) const;

  std::uint64_t pages() const { return pages_; }
  const std::vector<Extent>& extents() const { return extents_; }

 private:
  std::vector<Extent> extents_;
  std::vector<std::uint64_t> starts_;  // file page at which each extent begins
  std::uint64_t pages_ = 0;
};

// Free pages. Adjacent free runs are merged.
class FreeExtents {
 public:
  explicit FreeExtents(std::uint64_t pages);

  // Takes a free run of at most `pages` pages: the first at or after `from` that has all of them (then from the start
  // of the drive), else the longest. None if no page is free. REQUIRES: pages > 0.
  std::optional<Extent> take(std::uint64_t pages, std::uint64_t from);
  // Takes exactly these pages. False, with nothing taken, if one of them is not free.
  bool take_exactly(const Extent& extent);
  // REQUIRES: every page of the extent is taken.
  void give_back(const Extent& extent);

  std::uint64_t free_pages() const { return free_pages_; }
  std::size_t runs() const { return runs_.size(); }

 private:
  using Runs = std::map<std::uint64_t, std::uint64_t>;  // first page → pages

  Extent carve(Runs::iterator run, std::uint64_t first, std::uint64_t pages);

  Runs runs_;
  std::uint64_t free_pages_;
};

}  // namespace spillway::fs
