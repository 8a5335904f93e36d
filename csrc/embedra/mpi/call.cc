#include "embedra/mpi/call.h"

#include <algorithm>
#include <cstring>

namespace embedra::mpi {
namespace {

const char* KindName(CallKind kind) {
  switch (kind) {
    case CallKind::kAllToAllV:
      return "all_to_all_v";
    case CallKind::kAllReduce:
      return "all_reduce";
    case CallKind::kAllGatherV:
      return "all_gather_v";
    case CallKind::kBroadcast:
      return "broadcast";
    case CallKind::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

// FNV-1a.
uint64_t Hash(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

bool BeginsCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// The first bytes of a text in UTF-8, at most `size`, of whole characters.
std::string Head(const std::string& text, size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && !BeginsCharacter(text[size])) --size;
  return text.substr(0, size);
}

// The last ones.
std::string Tail(const std::string& text, size_t size) {
  size_t begin = text.size() - std::min(text.size(), size);
  while (begin < text.size() && !BeginsCharacter(text[begin])) ++begin;
  return text.substr(begin);
}

// Names that begin alike often differ at their ends.
std::string WithoutMiddle(const std::string& text, size_t size) {
  if (text.size() <= size) return text;
  const std::string dots = "...";
  const size_t half = (size - dots.size()) / 2;
  return Head(text, half) + dots + Tail(text, half);
}

template <size_t kSize>
void CopyText(const std::string& text, char (&to)[kSize]) {
  const std::string copied = Head(text, kSize - 1);
  std::memcpy(to, copied.c_str(), copied.size() + 1);
}

std::string Describe(const CallHeader& header) {
  std::string text = NameOf(header);
  if (header.text[0] != '\0') text += std::string(" of ") + header.text;
  return text;
}

bool SameKindAndLayout(const CallHeader& a, const CallHeader& b) {
  return a.kind == b.kind && a.layout == b.layout;
}

bool SameLabel(const CallHeader& a, const CallHeader& b) {
  return a.label == b.label;
}

// Fails if a rank is not like rank 0. `advice` says what to do then.
Status CheckAlike(int64_t sequence, int rank,
                  const std::vector<CallHeader>& headers,
                  bool (*alike)(const CallHeader&, const CallHeader&),
                  const std::string& advice) {
  const CallHeader& first = headers[0];
  const auto other =
      std::find_if(headers.begin(), headers.end(),
                   [&](const CallHeader& h) { return !alike(first, h); });
  if (other == headers.end()) return Status();
  const bool looks_alike = Describe(first) == Describe(*other);
  return Status::InvalidArgument(
      "Ranks differ in collective " + std::to_string(sequence) +
      ": rank 0 called " + Describe(first) + ", rank " +
      std::to_string(other - headers.begin()) + " called " + Describe(*other) +
      (looks_alike ? ", which differ in what is left out here" : "") +
      " (this is rank " + std::to_string(rank) + "). " + advice);
}

}  // namespace

CallHeader MakeHeader(CallKind kind, const std::string& label,
                      const std::string& layout, int64_t rows, Labels labels) {
  CallHeader header;
  header.kind = kind;
  header.layout = Hash(layout);
  header.label = labels == Labels::kAny ? 0 : Hash(label);
  header.rows = rows;
  CopyText(WithoutMiddle(label, sizeof(header.name) - 1), header.name);
  CopyText(layout, header.text);
  return header;
}

std::string NameOf(const CallHeader& header) {
  return std::string(KindName(header.kind)) + " '" + header.name + "'";
}

Status CheckHeaders(int64_t sequence, int rank, const std::string& problem,
                    const std::vector<CallHeader>& headers) {
  const CallHeader& own = headers[rank];
  const auto failed =
      std::find_if(headers.begin(), headers.end(),
                   [](const CallHeader& h) { return h.failed != 0; });
  if (own.failed != 0) {
    return Status::InvalidArgument("Rank " + std::to_string(rank) + ", " +
                                   Describe(own) + ": " + problem);
  }
  if (failed != headers.end()) {
    return Status::FailedPrecondition(
        "Rank " + std::to_string(failed - headers.begin()) +
        " could not take part in " + Describe(*failed) +
        ", so no rank did (this is rank " + std::to_string(rank) +
        "). The error of that rank says why.");
  }
  const Status status =
      CheckAlike(sequence, rank, headers, SameKindAndLayout,
                 "All ranks must run the same collectives in the same order, "
                 "of the same dtypes and shapes but for the number of rows.");
  if (!status.ok()) return status;
  return CheckAlike(
      sequence, rank, headers, SameLabel,
      "All ranks must run the same lookups and other collectives in the same "
      "order, each by the same label on all of them. That of a lookup names "
      "its table: name layers explicitly, as Keras else numbers them in the "
      "order in which a rank makes them.");
}

}  // namespace embedra::mpi
