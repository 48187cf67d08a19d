#include "spill/settings/spill_settings.h"

#include <array>
#include <cstdint>

#include "base/spelling.h"

namespace spillway::spill {

SpillOptions read_spill_options(Settings& settings, const SpillKeys& keys) {
  constexpr std::uint64_t kMostMs = 60'000;
  constexpr std::uint64_t kMostFiles = 1'000'000;
  constexpr std::array kRollback = {RollbackPolicy::adaptive, RollbackPolicy::eager, RollbackPolicy::lazy,
                                    RollbackPolicy::off};
  const auto key = [&](const char* name) { return keys.prefix + name; };
  const auto size_key = [&](const char* name) { return keys.prefix + name + keys.size_suffix; };
  const auto size = [&](const char* name, std::uint64_t fallback, std::uint64_t low) {
    return settings.size(size_key(name), fallback, low);
  };
  const auto files = [&](const char* name, int fallback) {
    return static_cast<int>(settings.whole(key(name), static_cast<std::uint64_t>(fallback), 0, kMostFiles));
  };
  SpillOptions spill;
  spill.rollback = kRollback[settings.choice(key("rollback"), {"adaptive", "eager", "lazy", "off"}, 0)];
  spill.capacity_bytes = size("capacity", spill.capacity_bytes, 1);
  spill.generation_bytes = size("generation", spill.generation_bytes, 1);
  spill.index_bytes = size("index", spill.index_bytes, 1);
  spill.put_back_bytes = size("put_back", spill.put_back_bytes, 0);
  spill.poll_ms = static_cast<std::uint32_t>(settings.whole(key("poll_ms"), spill.poll_ms, 1, kMostMs));
  DivertPolicy& divert = spill.divert;
  divert.divert_l0_files = files("divert_l0_files", divert.divert_l0_files);
  divert.resume_l0_files = files("resume_l0_files", divert.resume_l0_files);
  divert.divert_pending = settings.number(key("divert_pending"), divert.divert_pending, 0, 1);
  divert.resume_pending = settings.number(key("resume_pending"), divert.resume_pending, 0, 1);
  if (spill.capacity_bytes < spill.generation_bytes) {
    settings.refuse(keys.shown + size_key("capacity") + " is " + std::to_string(spill.capacity_bytes) +
                    ", less than a generation: raise it or lower " + keys.shown + size_key("generation") + " = " +
                    std::to_string(spill.generation_bytes));
  }
  return spill;
}

Result<SpillOptions> parse_spill_options(const std::string& text, const std::string& shown, PathKey path) {
  const auto entries = parse_entries(text);
  if (!entries) return spillway::Status::bad_input(shown + entries.status().message());
  StringMap given;
  for (const auto& [key, value] : entries.value()) {
    if (!given.emplace(key, value).second) return spillway::Status::bad_input(shown + key + " is given twice");
  }
  Settings settings(given, shown, "the accelerator");
  SpillOptions spill = read_spill_options(settings, {.prefix = "", .size_suffix = "", .shown = shown});
  if (path == PathKey::taken) spill.path = settings.text("path", spill.path, "a directory");
  if (spillway::Status status = settings.finish(); !status) return status;
  return spill;
}

}  // namespace spillway::spill
