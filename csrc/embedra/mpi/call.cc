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

template <size_t kSize>
void CopyText(const std::string& text, char (&to)[kSize]) {
  const size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

std::string Describe(const CallHeader& header) {
  std::string text = NameOf(header);
  if (header.text[0] != '\0') text += std::string(" of ") + header.text;
  return text;
}

}  // namespace

CallHeader MakeHeader(CallKind kind, const std::string& name,
                      const std::string& layout, int64_t rows) {
  CallHeader header;
  header.kind = kind;
  header.layout = Hash(layout);
  header.rows = rows;
  CopyText(name, header.name);
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
  const auto other = std::find_if(
      headers.begin(), headers.end(), [&headers](const CallHeader& h) {
        return h.kind != headers[0].kind || h.layout != headers[0].layout;
      });
  if (other == headers.end()) return Status();
  return Status::InvalidArgument(
      "Ranks differ in collective " + std::to_string(sequence) +
      ": rank 0 called " + Describe(headers[0]) + ", rank " +
      std::to_string(other - headers.begin()) + " called " + Describe(*other) +
      " (this is rank " + std::to_string(rank) +
      "). All ranks must run the same collectives in the same order, of the "
      "same dtypes and shapes but for the number of rows.");
}

}  // namespace embedra::mpi
