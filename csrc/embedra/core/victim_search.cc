#include "embedra/core/victim_search.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "embedra/core/key_index.h"

namespace embedra::internal {
namespace {

constexpr int64_t kRecordCostNs = 10;

uint64_t ScoreOf(const RecordHeader& header, EvictionOrder order) {
  const uint64_t step = header.last_step;
  const uint64_t frequency = header.frequency;
  return order == EvictionOrder::kRecency ? step << 32 | frequency
                                          : frequency << 32 | step;
}

// The key, so that unsigned numbers compare as the keys do.
uint64_t OrderOf(int64_t key) {
  return static_cast<uint64_t>(key) ^ (uint64_t{1} << 63);
}

}  // namespace

// Goes over the records that take part, in ranges of positions.
struct VictimSearch::Walk {
  const RecordStore& store;
  int64_t bound;
  uint32_t spared;
  const ParallelFor& parallel;

  // Calls `visit(range, position, header)` for the records of a range, in
  // order.
  template <typename Visit>
  void Range(int64_t range, const Visit& visit) const {
    const int64_t size = (bound + kRanges - 1) / kRanges;
    const int64_t last = std::min(bound, (range + 1) * size);
    for (int64_t p = range * size; p < last; ++p) {
      const auto position = static_cast<uint32_t>(p);
      const RecordHeader& header = HeaderOf(store.Record(position));
      if (header.live == 0 || header.mark == spared) continue;
      visit(position, header);
    }
  }

  // Calls `body(range)` for all ranges, from several threads.
  template <typename Body>
  void Ranges(const Body& body) const {
    const int64_t cost = (bound / kRanges + 1) * kRecordCostNs;
    parallel(kRanges, cost, [&](int64_t begin, int64_t end) {
      for (int64_t range = begin; range < end; ++range) body(range);
    });
  }
};

// Writes `number` of the records that `select` takes to `scores_`, in any
// order; returns how many there are.
template <typename Select, typename Number>
int64_t VictimSearch::Gather(const Walk& walk, const Select& select,
                             const Number& number) {
  constexpr int64_t kBlock = 512;
  std::atomic<int64_t> total{0};
  walk.Ranges([&](int64_t range) {
    uint64_t block[kBlock];
    int64_t filled = 0;
    const auto flush = [&] {
      std::copy_n(block, filled, scores_.data() + total.fetch_add(filled));
      filled = 0;
    };
    walk.Range(range, [&](uint32_t, const RecordHeader& header) {
      if (!select(header)) return;
      block[filled++] = number(header);
      if (filled == kBlock) flush();
    });
    flush();
  });
  return total;
}

// Writes the positions of the records that `select` takes to `positions_`.
template <typename Select>
void VictimSearch::List(const Walk& walk, const Select& select) {
  int64_t begins[kRanges + 1] = {};
  walk.Ranges([&](int64_t range) {
    int64_t count = 0;
    walk.Range(range, [&](uint32_t, const RecordHeader& header) {
      count += select(header);
    });
    begins[range + 1] = count;
  });
  for (int r = 0; r < kRanges; ++r) begins[r + 1] += begins[r];
  count_ = begins[kRanges];
  walk.Ranges([&](int64_t range) {
    int64_t at = begins[range];
    walk.Range(range, [&](uint32_t position, const RecordHeader& header) {
      if (select(header)) positions_[at++] = position;
    });
  });
}

void VictimSearch::Find(const RecordStore& store, int64_t bound,
                        EvictionOrder order, uint32_t spared, int64_t count,
                        const ParallelFor& parallel) {
  count_ = 0;
  if (count <= 0) return;
  const Walk walk = {store, bound, spared, parallel};
  const int64_t candidates = Gather(
      walk, [](const RecordHeader&) { return true; },
      [&](const RecordHeader& header) { return ScoreOf(header, order); });
  count = std::min(count, candidates);
  if (count == 0) return;
  uint64_t* const first = scores_.data();
  std::nth_element(first, first + count - 1, first + candidates);
  const uint64_t score = first[count - 1];
  const auto tied = [&](const RecordHeader& header) {
    return ScoreOf(header, order) == score;
  };
  // Of the ties, so many go. Those behind the threshold stand in the array
  // after it.
  const int64_t below = std::count_if(first, first + count,
                                      [&](uint64_t s) { return s < score; });
  const int64_t ties_to_go = count - below;
  uint64_t key = std::numeric_limits<uint64_t>::max();
  if (std::find(first + count, first + candidates, score) !=
      first + candidates) {
    const int64_t ties = Gather(walk, tied, [](const RecordHeader& header) {
      return OrderOf(header.key);
    });
    std::nth_element(first, first + ties_to_go - 1, first + ties);
    key = first[ties_to_go - 1];
  }
  List(walk, [&](const RecordHeader& header) {
    const uint64_t own = ScoreOf(header, order);
    return own < score || (own == score && OrderOf(header.key) <= key);
  });
}

int64_t VictimSearch::runs() const {
  int64_t runs = 0;
  for (int64_t i = 0; i < count_; ++i) {
    runs += i == 0 || positions_[i] != positions_[i - 1] + 1;
  }
  return runs;
}

void VictimSearch::OrderByShard(int64_t* begins) {
  constexpr int kShards = KeyIndex::kShards;
  std::fill_n(begins, kShards + 1, 0);
  for (int64_t i = 0; i < count_; ++i) {
    ++begins[KeyIndex::ShardOf(scores_[i]) + 1];
  }
  int64_t next[kShards];
  for (int s = 0; s < kShards; ++s) {
    begins[s + 1] += begins[s];
    next[s] = begins[s];
  }
  for (int64_t i = 0; i < count_; ++i) {
    order_[next[KeyIndex::ShardOf(scores_[i])]++] = static_cast<uint32_t>(i);
  }
}

}  // namespace embedra::internal
