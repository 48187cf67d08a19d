// Reads an engine's own settings (EngineSpec::settings), texts by dotted keys. The first thing that is wrong is kept;
// what is asked for afterwards comes out as its default, so that a reader asks for everything and checks once, with
// finish().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine_kind.h"

namespace spillway::engine {

class Settings {
 public:
  // REQUIRES: `given` outlives it
  explicit Settings(const StringMap& given) : given_(given) {}

  std::uint64_t whole(const std::string& key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high);
  double number(const std::string& key, double fallback, double low, double high);
  bool flag(const std::string& key, bool fallback);
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
  std::vector<std::string> asked_;
  Status problem_;
};

}  // namespace spillway::engine
