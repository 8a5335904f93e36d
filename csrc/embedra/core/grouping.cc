#include "embedra/core/grouping.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "embedra/core/dense_ids.h"
#include "embedra/core/key_index.h"

namespace embedra::internal {
namespace {

constexpr int64_t kEntriesPerPart = 1024;
constexpr int kMaxPositionPartBits = 8;
constexpr int64_t kEntriesPerRange = 8192;
constexpr int64_t kEntryCostNs = 4;

// Ranges into which the splitting of a batch is itself split over threads. The
// outcome does not depend on their number.
int NumRanges(int64_t n, const ParallelFor& parallel) {
  return static_cast<int>(std::clamp<int64_t>(
      n / kEntriesPerRange, 1, std::max(parallel.max_threads, 1)));
}

}  // namespace

Grouping Grouping::OfKeys(const int64_t* keys, const uint32_t* entries,
                          int64_t n, const ParallelFor& parallel) {
  Grouping grouping;
  grouping.parts_ = KeyIndex::kShards;
  grouping.Partition(
      n, entries,
      [keys](uint32_t entry) {
        return KeyIndex::ShardOf(HashKey(keys[entry]));
      },
      parallel);
  grouping.GroupParts(keys, parallel);
  return grouping;
}

Grouping Grouping::OfPositions(const int64_t* positions, int64_t n,
                               const ParallelFor& parallel) {
  int bits = 0;
  while (bits < kMaxPositionPartBits && (kEntriesPerPart << bits) < n) ++bits;
  Grouping grouping;
  grouping.parts_ = 1 << bits;
  const int parts = grouping.parts_;
  grouping.Partition(
      n, nullptr,
      [positions, bits, parts](uint32_t entry) {
        if (positions[entry] < 0) return parts;  // left out
        // Hashed, as positions may be strided.
        const uint64_t hash = HashKey(positions[entry]);
        return bits == 0 ? 0 : static_cast<int>(hash >> (64 - bits));
      },
      parallel);
  grouping.GroupParts(positions, parallel);
  return grouping;
}

// A stable counting sort by part. Each range counts its entries, then writes
// them where the counts of the earlier parts, and of the earlier ranges of the
// same part, leave off.
template <typename PartOf>
void Grouping::Partition(int64_t n, const uint32_t* entries,
                         const PartOf& part_of, const ParallelFor& parallel) {
  const int ranges = NumRanges(n, parallel);
  const int stride = parts_ + 1;  // the last part is left out
  const int64_t length = (n + ranges - 1) / ranges;
  Buffer<int64_t> cursors(int64_t{ranges} * stride);
  Buffer<uint16_t> part_of_entry(n);
  std::fill(cursors.begin(), cursors.end(), 0);
  parallel(ranges, length * kEntryCostNs, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t stop = std::min(n, (r + 1) * length);
      for (int64_t i = r * length; i < stop; ++i) {
        const uint32_t entry =
            entries == nullptr ? static_cast<uint32_t>(i) : entries[i];
        const int part = part_of(entry);
        part_of_entry[i] = static_cast<uint16_t>(part);
        ++cursors[r * stride + part];
      }
    }
  });
  part_begins_ = Buffer<int64_t>(stride + 1);
  int64_t total = 0;
  for (int p = 0; p <= parts_; ++p) {
    part_begins_[p] = total;
    for (int r = 0; r < ranges; ++r) {
      const int64_t count = cursors[int64_t{r} * stride + p];
      cursors[int64_t{r} * stride + p] = total;
      total += count;
    }
  }
  order_ = Buffer<uint32_t>(n);
  parallel(ranges, length * kEntryCostNs, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t stop = std::min(n, (r + 1) * length);
      for (int64_t i = r * length; i < stop; ++i) {
        order_[cursors[r * stride + part_of_entry[i]]++] =
            entries == nullptr ? static_cast<uint32_t>(i) : entries[i];
      }
    }
  });
}

void Grouping::GroupParts(const int64_t* values, const ParallelFor& parallel) {
  const int64_t n = entries();
  group_counts_ = Buffer<int64_t>(parts_);
  members_ = Buffer<uint32_t>(n);
  values_ = Buffer<int64_t>(n);
  member_begins_ = Buffer<uint32_t>(n);
  counts_ = Buffer<uint32_t>(n);
  std::atomic<bool> short_of_memory{false};
  const int64_t cost = (n / parts_ + 1) * 2 * kEntryCostNs;
  parallel(parts_, cost, [&](int64_t begin, int64_t end) {
    int64_t most = 0;
    for (int64_t p = begin; p < end; ++p) {
      most = std::max(most, entries(static_cast<int>(p)));
    }
    auto table = Buffer<uint32_t>::TryMake(DenseIds::TableSize(most));
    auto ids = Buffer<uint32_t>::TryMake(most);
    if (!table || !ids) {
      short_of_memory = true;
      return;
    }
    for (int64_t p = begin; p < end; ++p) {
      GroupPart(values, static_cast<int>(p), table.data(), ids.data());
    }
  });
  if (short_of_memory) throw std::bad_alloc();
}

// `ids` is scratch: the group of each entry of the part.
void Grouping::GroupPart(const int64_t* values, int part, uint32_t* table,
                         uint32_t* ids) {
  const int64_t first = part_begins_[part];
  const int64_t n = entries(part);
  const uint32_t* order = order_.data() + first;
  uint32_t* members = members_.data() + first;
  uint32_t* counts = counts_.data() + first;
  uint32_t* begins = member_begins_.data() + first;
  if (n == 0) {
    group_counts_[part] = 0;
    return;
  }
  DenseIds groups(n, table, values_.data() + first);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t known = groups.size();
    const uint32_t id = groups.FindOrAdd(values[order[i]]);
    ids[i] = id;
    if (id == known) counts[id] = 0;
    ++counts[id];
  }
  group_counts_[part] = groups.size();
  uint32_t at = static_cast<uint32_t>(first);
  for (uint32_t g = 0; g < groups.size(); ++g) {
    begins[g] = at;
    at += counts[g];
  }
  if (groups.size() == n) {  // nothing repeats
    std::memcpy(members, order, static_cast<size_t>(n) * sizeof(uint32_t));
    return;
  }
  for (int64_t i = 0; i < n; ++i) members_[begins[ids[i]]++] = order[i];
  for (uint32_t g = 0; g < groups.size(); ++g) begins[g] -= counts[g];
}

int64_t Grouping::num_groups() const {
  int64_t total = 0;
  for (int p = 0; p < parts_; ++p) total += group_counts_[p];
  return total;
}

}  // namespace embedra::internal
