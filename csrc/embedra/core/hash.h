// Mix64: the hash of the core.

#ifndef EMBEDRA_CORE_HASH_H_
#define EMBEDRA_CORE_HASH_H_

#include <cstdint>

namespace embedra::internal {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection of 64 bits in
// which every input bit moves every output bit, so that contiguous, strided and
// sparse ids spread alike. Bijective, so distinct keys never share a hash.
inline uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline uint64_t HashKey(int64_t key) {
  return Mix64(static_cast<uint64_t>(key));
}

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_HASH_H_
