#include "spill/store/binding_record.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "spill/store/checksum.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;

constexpr std::string_view kGuardPrefix = "spillway guard ";
// Between the fields of a guard's name and the sentence that RocksDB's refusal shows.
constexpr std::string_view kGuardSays = ": writes may lie in the spill store ";
constexpr std::string_view kGuardAsks = "; open with spillway::DB or run 'spillway spill drain'";
constexpr std::string_view kFormatPrefix = "spillway binding ";
constexpr std::string_view kFormat = "spillway binding 1";
constexpr std::size_t kIdDigits = 32;
// Of a path that is kept for messages, so that the record fits into one pair of any drive. Source: guess.
constexpr std::size_t kMostPathBytes = 256;

std::string hex_of(std::uint64_t number) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return digits.data();
}

std::string text_of(const Opening& opening) { return std::to_string(opening.number) + " " + hex_of(opening.nonce); }

bool parse(std::string_view text, int base, std::uint64_t* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// "NUMBER NONCE"
bool parse(std::string_view text, Opening* opening) {
  const std::size_t space = text.find(' ');
  return space != std::string_view::npos && parse(text.substr(0, space), 10, &opening->number) &&
         parse(text.substr(space + 1), 16, &opening->nonce);
}

// On one line, and not longer than is kept of it.
std::string kept_of(std::string path) {
  if (path.size() > kMostPathBytes) path = "..." + path.substr(path.size() - kMostPathBytes);
  for (char& one : path) {
    if (static_cast<unsigned char>(one) < ' ') one = '?';
  }
  return path;
}

std::string checksum_text(std::string_view text) {
  std::string result;
  for (const char byte : checksum_of({rocksdb::Slice(text.data(), text.size())})) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    result += digits.data();
  }
  return result;
}

// What stands before the checksum in the last line. Nothing: they do not fit.
std::optional<std::string> checked_text(const rocksdb::Slice& bytes) {
  const std::string text = bytes.ToString();
  const std::size_t end = text.rfind("crc32c ");
  if (end == std::string::npos || text.substr(end) != "crc32c " + checksum_text(text.substr(0, end)) + "\n") {
    return std::nullopt;
  }
  return text.substr(0, end);
}

// The rest of the next line, behind its name.
std::optional<std::string> field(std::istringstream& lines, const std::string& name) {
  std::string line;
  if (!std::getline(lines, line) || !line.starts_with(name + " ")) return std::nullopt;
  return line.substr(name.size() + 1);
}

Status refused(const std::string& sentence) { return Status::InvalidArgument(sentence); }

std::string abandon(const Pairing& pairing) {
  return "or, if that is lost, give up the writes in it with 'spillway spill drain --abandon " + pairing.database + "'";
}

Status no_record(const Pairing& pairing) {
  return refused("database " + pairing.database + " has writes in its spill store (" + pairing.guard->location +
                 "), and there is none of it in " + pairing.location +
                 "; open it with SpillOptions::path naming the spill store that belongs to it, " + abandon(pairing));
}

Status other_database(const Pairing& pairing) {
  return refused("the spill store in " + pairing.location + " belongs to the database " + pairing.record->database +
                 ", not to " + pairing.database + ", whose spill store was " + pairing.guard->location +
                 "; name that one in SpillOptions::path, " + abandon(pairing));
}

Status other_opening(const Pairing& pairing) {
  const std::uint64_t of_database = pairing.guard->opening.number;
  const std::uint64_t of_store = pairing.record->confirmed.number;
  const std::string which = of_database < of_store   ? "is an older copy than its spill store in "
                            : of_database > of_store ? "is newer than the copy of its spill store in "
                                                     : "was opened apart from the copy of its spill store in ";
  return refused("database " + pairing.database + " (opening " + std::to_string(of_database) + ") " + which +
                 pairing.location + " (opening " + std::to_string(of_store) +
                 "); restore both as they were at one moment, " + abandon(pairing));
}

Status unknown_writes(const Pairing& pairing) {
  const std::string owner = pairing.record ? "of the database " + pairing.record->database
                                           : std::string("of a database that did not say which it is");
  return refused("the spill store in " + pairing.location + " holds writes " + owner +
                 " as it was then, and the database " + pairing.database +
                 ", which may be new or restored from a copy, knows nothing of them; restore the database that they "
                 "belong to, or move " +
                 pairing.location + " away to open this one without them");
}

Status in_use(const Pairing& pairing) {
  return refused("the spill store in " + pairing.location + " belongs to the database " + pairing.record->database +
                 ", which was not closed; give " + pairing.database +
                 " a SpillOptions::path of its own, or remove the spill store if that database is gone");
}

}  // namespace

bool is_guard(std::string_view family) { return family.starts_with(kGuardPrefix); }

std::string name_of(const Guard& guard) {
  return std::string(kGuardPrefix) + guard.id + " " + text_of(guard.opening) + std::string(kGuardSays) +
         kept_of(guard.location) + std::string(kGuardAsks);
}

std::optional<Guard> parse_guard(std::string_view family) {
  if (!is_guard(family)) return std::nullopt;
  family.remove_prefix(kGuardPrefix.size());
  const std::size_t end = family.find(kGuardSays);
  if (end == std::string_view::npos || end <= kIdDigits || !family.ends_with(kGuardAsks)) return std::nullopt;
  Guard guard;
  guard.id = family.substr(0, kIdDigits);
  if (family[kIdDigits] != ' ' || !parse(family.substr(kIdDigits + 1, end - kIdDigits - 1), &guard.opening)) {
    return std::nullopt;
  }
  family.remove_prefix(end + kGuardSays.size());
  if (family.size() < kGuardAsks.size()) return std::nullopt;
  guard.location = family.substr(0, family.size() - kGuardAsks.size());
  return guard;
}

std::optional<Guard> newest_guard(const std::vector<std::string>& families) {
  std::optional<Guard> newest;
  for (const std::string& family : families) {
    auto guard = parse_guard(family);
    if (guard && (!newest || newest->opening.number < guard->opening.number)) newest = std::move(guard);
  }
  return newest;
}

std::string encode(const BindingRecord& record) {
  std::string text(kFormat);
  text += "\nid " + record.id;
  text += "\nconfirmed " + text_of(record.confirmed);
  text += "\npending " + text_of(record.pending);
  text += "\nreleased " + std::to_string(static_cast<int>(record.is_released));
  text += "\nidentity " + record.identity;
  text += "\ndatabase " + kept_of(record.database) + "\n";
  return text + "crc32c " + checksum_text(text) + "\n";
}

bool names_another_version(const rocksdb::Slice& bytes) {
  const std::string text = bytes.ToString();
  return text.starts_with(kFormatPrefix) && text.substr(0, text.find('\n')) != kFormat;
}

bool is_binding_of_another_version(const rocksdb::Slice& bytes) {
  return names_another_version(bytes) && checked_text(bytes);
}

std::optional<BindingRecord> decode_binding(const rocksdb::Slice& bytes) {
  const std::optional<std::string> text = checked_text(bytes);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  std::string format;
  if (!std::getline(lines, format) || format != kFormat) return std::nullopt;
  const auto id = field(lines, "id");
  const auto confirmed = field(lines, "confirmed");
  const auto pending = field(lines, "pending");
  const auto released = field(lines, "released");
  const auto identity = field(lines, "identity");
  const auto database = field(lines, "database");
  BindingRecord record;
  if (!id || !confirmed || !pending || !released || !identity || !database || !parse(*confirmed, &record.confirmed) ||
      !parse(*pending, &record.pending)) {
    return std::nullopt;
  }
  record.id = *id;
  record.is_released = *released == "1";
  record.identity = *identity;
  record.database = *database;
  return record;
}

Status check_pairing(const Pairing& pairing) {
  const std::optional<Guard>& guard = pairing.guard;
  const std::optional<BindingRecord>& record = pairing.record;
  if (guard) {
    if (!record) return no_record(pairing);
    if (guard->id != record->id) return other_database(pairing);
    const bool fits = guard->opening == record->confirmed || guard->opening == record->pending;
    return fits ? Status::OK() : other_opening(pairing);
  }
  if (pairing.has_writes) return unknown_writes(pairing);
  // Nothing is lost by taking it, but the database that it belongs to could not be opened any more.
  const bool is_taken = record && !record->is_released && record->identity != pairing.identity &&
                        record->database != kept_of(pairing.database);
  return is_taken ? in_use(pairing) : Status::OK();
}

}  // namespace spillway::spill
