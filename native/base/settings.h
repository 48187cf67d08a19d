// Reads settings, texts by keys. The first thing that is wrong is kept; what is asked for afterwards comes out as its
// default, so that a reader asks for everything and checks once, with finish().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace spillway {

using StringMap = std::map<std::string, std::string>;

class Settings {
 public:
  // In messages a key has `prefix` before it ("engine."), and `owner` is what the settings are of ("this engine").
  // REQUIRES: `given` outlives it
  Settings(const StringMap& given, std::string prefix, std::string owner)
      : given_(given), prefix_(std::move(prefix)), owner_(std::move(owner)) {}

  std::uint64_t whole(const std::string& key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high);
  // As whole(), with or without a unit: "4096", "8GiB".
  std::uint64_t size(const std::string& key, std::uint64_t fallback, std::uint64_t low);
  double number(const std::string& key, double fallback, double low, double high);
  bool flag(const std::string& key, bool fallback);
  // Any text but an empty one.
  std::string text(const std::string& key, const std::string& fallback, const std::string& takes);
  // Which of `words`.
  std::size_t choice(const std::string& key, const std::vector<std::string>& words, std::size_t fallback);

  // Reports a problem that only the caller can find.
  void refuse(const std::string& message);
  // The first problem. A key that was not read is one, and is reported with the nearest key that was.
  Status finish() const;

 private:
  const std::string* find(const std::string& key);
  void refuse_value(const std::string& key, const std::string& takes);

  const StringMap& given_;
  const std::string prefix_;
  const std::string owner_;
  std::vector<std::string> asked_;
  Status problem_;
};

}  // namespace spillway
