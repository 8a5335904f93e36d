// OpenMpi: the functions of an Open MPI library that is loaded at run time.
//
// Nothing here is linked or compiled against MPI, so that one build of Embedra
// serves machines without it. What is declared below is Open MPI's binary
// interface, the same in its versions 4 and 5: handles are pointers to objects
// of the library. Other kinds of MPI (MPICH and its descendants) have another
// interface and are refused.

#ifndef EMBEDRA_MPI_OPEN_MPI_H_
#define EMBEDRA_MPI_OPEN_MPI_H_

#include <cstddef>
#include <string>

#include "embedra/core/status.h"

namespace embedra::mpi {

using Comm = struct CommObject*;
using Datatype = struct DatatypeObject*;
using ReduceOp = struct ReduceOpObject*;
using ErrorHandler = struct ErrorHandlerObject*;
using Info = struct InfoObject*;
using Request = struct RequestObject*;

struct MessageStatus {
  int source;
  int tag;
  int error;
  int cancelled;
  size_t bytes;
};

constexpr int kAnySource = -1;
constexpr int kThreadMultiple = 3;
constexpr int kSharedMemory = 0;  // MPI_COMM_TYPE_SHARED
inline void* InPlace() { return reinterpret_cast<void*>(1); }

struct OpenMpi {
  int (*Initialized)(int* flag);
  int (*Finalized)(int* flag);
  int (*Init_thread)(int* argc, char*** argv, int required, int* provided);
  int (*Query_thread)(int* provided);
  int (*Finalize)();
  int (*Abort)(Comm comm, int code);
  int (*Comm_dup)(Comm comm, Comm* copy);
  int (*Comm_rank)(Comm comm, int* rank);
  int (*Comm_size)(Comm comm, int* size);
  int (*Comm_split_type)(Comm comm, int type, int key, Info info, Comm* part);
  int (*Comm_free)(Comm* comm);
  int (*Comm_set_errhandler)(Comm comm, ErrorHandler handler);
  int (*Error_string)(int code, char* text, int* length);
  int (*Get_library_version)(char* text, int* length);
  int (*Type_contiguous)(int count, Datatype element, Datatype* type);
  int (*Type_commit)(Datatype* type);
  int (*Type_free)(Datatype* type);
  int (*Send)(const void* data, int count, Datatype type, int to, int tag,
              Comm comm);
  int (*Recv)(void* data, int count, Datatype type, int from, int tag,
              Comm comm, MessageStatus* status);
  int (*Iprobe)(int from, int tag, Comm comm, int* flag, MessageStatus* status);
  int (*Ibarrier)(Comm comm, Request* request);
  int (*Test)(Request* request, int* flag, MessageStatus* status);
  int (*Bcast)(void* data, int count, Datatype type, int root, Comm comm);
  int (*Allgather)(const void* sent, int sent_count, Datatype sent_type,
                   void* received, int count, Datatype type, Comm comm);
  int (*Allgatherv)(const void* sent, int sent_count, Datatype sent_type,
                    void* received, const int* counts, const int* begins,
                    Datatype type, Comm comm);
  int (*Alltoall)(const void* sent, int sent_count, Datatype sent_type,
                  void* received, int count, Datatype type, Comm comm);
  int (*Alltoallv)(const void* sent, const int* sent_counts,
                   const int* sent_begins, Datatype sent_type, void* received,
                   const int* counts, const int* begins, Datatype type,
                   Comm comm);
  int (*Allreduce)(const void* sent, void* received, int count, Datatype type,
                   ReduceOp op, Comm comm);

  Comm world;
  Datatype byte, float32, float64, int32, int64;
  ReduceOp sum, max, min;
  ErrorHandler errors_return;
  Info no_info;
  std::string version;  // what the library says of itself

  // Loads the library at `path`, or the one the system finds by that name. One
  // of the same name that the process has loaded is used as it is.
  static Status Load(const std::string& path, OpenMpi* mpi);

  // An error with the library's own words, unless `code` is success.
  Status Check(int code, const char* what) const;
};

}  // namespace embedra::mpi

#endif  // EMBEDRA_MPI_OPEN_MPI_H_
