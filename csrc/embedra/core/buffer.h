// Buffer: an array of plain values that is not initialised.
//
// std::vector would write every element once more than needed, which counts
// for scratch arrays the size of a batch.

#ifndef EMBEDRA_CORE_BUFFER_H_
#define EMBEDRA_CORE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace embedra::internal {

template <typename T>
class Buffer {
  static_assert(std::is_trivial_v<T>, "Buffer holds plain values only");

 public:
  Buffer() = default;
  // Throws std::bad_alloc; never call it inside a ParallelFor body.
  explicit Buffer(int64_t size)
      : data_(new T[static_cast<size_t>(size > 0 ? size : 1)]), size_(size) {}

  // For ParallelFor bodies, which must not throw: empty when memory is short.
  static Buffer TryMake(int64_t size) noexcept {
    Buffer buffer;
    buffer.data_.reset(new (std::nothrow)
                           T[static_cast<size_t>(size > 0 ? size : 1)]);
    if (buffer.data_ != nullptr) buffer.size_ = size;
    return buffer;
  }

  explicit operator bool() const { return data_ != nullptr; }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_[static_cast<size_t>(i)]; }
  const T& operator[](int64_t i) const { return data_[static_cast<size_t>(i)]; }
  T* begin() { return data_.get(); }
  T* end() { return data_.get() + size_; }

 private:
  std::unique_ptr<T[]> data_;
  int64_t size_ = 0;
};

}  // namespace embedra::internal

#endif  // EMBEDRA_CORE_BUFFER_H_
