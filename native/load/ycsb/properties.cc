#include "load/ycsb/properties.h"

#include <cmath>
#include <utility>

namespace spillway::load::ycsb {
namespace {

constexpr std::uint64_t kMostRecordBytes = std::uint64_t{1} << 30;  // as load.value_bytes: the value buffer holds two
// More records would exceed the 10^10 ranks of the scrambled zipfian distribution.
constexpr std::uint64_t kMostRecords = 10'000'000'000;
constexpr std::uint32_t kMostPadding = 1024;
constexpr std::size_t kMostPrefixBytes = 1024;

std::string problem_of_records(const Properties& p, const std::string& where) {
  if (p.recordcount == 0) return where + "recordcount is 0: say how many records the load phase inserts";
  if (p.recordcount > kMostRecords) {
    return where + "recordcount is " + std::to_string(p.recordcount) + ": choose at most " +
           std::to_string(kMostRecords);
  }
  if (p.fieldcount == 0) return where + "fieldcount is 0: a record has at least one field";
  if (p.fieldlengthdistribution != Length::constant && p.minfieldlength > p.fieldlength) {
    return where + "minfieldlength is " + std::to_string(p.minfieldlength) +
           ", more than fieldlength = " + std::to_string(p.fieldlength) + ": lower it";
  }
  if (std::uint64_t{p.fieldcount} * p.fieldlength > kMostRecordBytes) {
    return where + "fieldcount x fieldlength is " + std::to_string(std::uint64_t{p.fieldcount} * p.fieldlength) +
           " bytes: choose at most " + std::to_string(kMostRecordBytes);
  }
  if (p.zeropadding > kMostPadding || p.keyprefix.size() > kMostPrefixBytes) {
    return where + (p.zeropadding > kMostPadding ? "zeropadding" : "keyprefix") +
           " makes keys too long: choose at most " +
           std::to_string(p.zeropadding > kMostPadding ? kMostPadding : kMostPrefixBytes);
  }
  if (p.insertstart > p.recordcount || p.inserts_of_load() > p.recordcount - p.insertstart) {
    return where + "insertstart + insertcount is more than recordcount = " + std::to_string(p.recordcount) +
           ": lower one of them or raise recordcount";
  }
  if (p.inserts_of_load() == 0) return where + "insertcount is 0: a phase needs at least one record";
  return "";
}

std::string problem_of_mix(const Properties& p, const std::string& where) {
  const auto proportions = {
      std::pair{"readproportion", p.readproportion}, std::pair{"updateproportion", p.updateproportion},
      std::pair{"insertproportion", p.insertproportion}, std::pair{"scanproportion", p.scanproportion},
      std::pair{"readmodifywriteproportion", p.readmodifywriteproportion}};
  double sum = 0;
  for (const auto& [name, share] : proportions) {
    if (!(share >= 0 && share <= 1)) return where + name + " is not a share from 0 to 1";
    sum += share;
  }
  return sum > 0 ? "" : where + "readproportion and the other proportions are all 0: raise one of them";
}

std::string problem_of_requests(const Properties& p, const std::string& where) {
  if (!(p.zipfian_const > 0 && p.zipfian_const < 1)) {
    return where + "zipfian_const must be above 0 and below 1: the generator's formula holds in between";
  }
  for (const auto& [name, share] : {std::pair{"hotspotdatafraction", p.hotspotdatafraction},
                                    std::pair{"hotspotopnfraction", p.hotspotopnfraction}}) {
    if (!(share >= 0 && share <= 1)) return where + name + " is not a share from 0 to 1";
  }
  if (!(p.exponential_percentile > 0 && p.exponential_percentile < 100)) {
    return where + "exponential.percentile must be above 0 and below 100";
  }
  if (!(p.exponential_frac > 0 && std::isfinite(p.exponential_frac))) {
    return where + "exponential.frac must be above 0";
  }
  if (p.requestdistribution == Request::latest && p.recordcount < 2) {
    return where + "recordcount is 1, too few for requestdistribution = latest: give at least 2";
  }
  if (p.scanproportion > 0 && (p.minscanlength < 1 || p.minscanlength > p.maxscanlength)) {
    return where + "minscanlength is " + std::to_string(p.minscanlength) +
           ": choose 1 to maxscanlength = " + std::to_string(p.maxscanlength);
  }
  return "";
}

}  // namespace

std::string find_problem(const Properties& properties, const std::string& where, bool loads) {
  if (std::string records = problem_of_records(properties, where); !records.empty() || loads) return records;
  if (std::string mix = problem_of_mix(properties, where); !mix.empty()) return mix;
  return problem_of_requests(properties, where);
}

std::string first_difference_of_records(const Properties& one, const Properties& other) {
  if (one.recordcount != other.recordcount) return "recordcount";
  if (one.fieldcount != other.fieldcount) return "fieldcount";
  if (one.fieldlength != other.fieldlength) return "fieldlength";
  if (one.minfieldlength != other.minfieldlength) return "minfieldlength";
  if (one.fieldlengthdistribution != other.fieldlengthdistribution) return "fieldlengthdistribution";
  if (one.insertorder != other.insertorder) return "insertorder";
  if (one.zeropadding != other.zeropadding) return "zeropadding";
  if (one.keyprefix != other.keyprefix) return "keyprefix";
  if (one.fieldnameprefix != other.fieldnameprefix) return "fieldnameprefix";
  if (one.layout != other.layout) return "spillway.layout";
  return "";
}

}  // namespace spillway::load::ycsb
