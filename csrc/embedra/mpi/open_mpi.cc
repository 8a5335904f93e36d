#include "embedra/mpi/open_mpi.h"

#include <dlfcn.h>

#include <cstring>

namespace embedra::mpi {
namespace {

constexpr int kMaxText = 1024;

class Library {
 public:
  explicit Library(const std::string& path)
      // Its plugins look its names up among the global ones.
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    if (handle_ == nullptr) error_ = dlerror();
  }

  bool loaded() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  const std::string& missing() const { return missing_; }

  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(Symbol(name));
  }

  template <typename Object>
  void FindObject(const char* name, Object** object) {
    *object = static_cast<Object*>(Symbol(name));
  }

 private:
  void* Symbol(const char* name) {
    void* symbol = dlsym(handle_, name);
    if (symbol == nullptr && missing_.empty()) missing_ = name;
    return symbol;
  }

  void* handle_;  // never closed: MPI does not survive it
  std::string error_;
  std::string missing_;
};

void FindFunctions(Library& library, OpenMpi* mpi) {
#define EMBEDRA_FIND(name) library.Find("MPI_" #name, &mpi->name)
  EMBEDRA_FIND(Initialized);
  EMBEDRA_FIND(Finalized);
  EMBEDRA_FIND(Init_thread);
  EMBEDRA_FIND(Query_thread);
  EMBEDRA_FIND(Finalize);
  EMBEDRA_FIND(Abort);
  EMBEDRA_FIND(Comm_dup);
  EMBEDRA_FIND(Comm_rank);
  EMBEDRA_FIND(Comm_size);
  EMBEDRA_FIND(Comm_split_type);
  EMBEDRA_FIND(Comm_free);
  EMBEDRA_FIND(Comm_set_errhandler);
  EMBEDRA_FIND(Error_string);
  EMBEDRA_FIND(Get_library_version);
  EMBEDRA_FIND(Type_contiguous);
  EMBEDRA_FIND(Type_commit);
  EMBEDRA_FIND(Type_free);
  EMBEDRA_FIND(Send);
  EMBEDRA_FIND(Recv);
  EMBEDRA_FIND(Iprobe);
  EMBEDRA_FIND(Ibarrier);
  EMBEDRA_FIND(Test);
  EMBEDRA_FIND(Bcast);
  EMBEDRA_FIND(Allgather);
  EMBEDRA_FIND(Allgatherv);
  EMBEDRA_FIND(Alltoall);
  EMBEDRA_FIND(Alltoallv);
  EMBEDRA_FIND(Allreduce);
#undef EMBEDRA_FIND
}

void FindObjects(Library& library, OpenMpi* mpi) {
  library.FindObject("ompi_mpi_comm_world", &mpi->world);
  library.FindObject("ompi_mpi_byte", &mpi->byte);
  library.FindObject("ompi_mpi_float", &mpi->float32);
  library.FindObject("ompi_mpi_double", &mpi->float64);
  library.FindObject("ompi_mpi_int32_t", &mpi->int32);
  library.FindObject("ompi_mpi_int64_t", &mpi->int64);
  library.FindObject("ompi_mpi_op_sum", &mpi->sum);
  library.FindObject("ompi_mpi_op_max", &mpi->max);
  library.FindObject("ompi_mpi_op_min", &mpi->min);
  library.FindObject("ompi_mpi_errors_return", &mpi->errors_return);
  library.FindObject("ompi_mpi_info_null", &mpi->no_info);
}

}  // namespace

Status OpenMpi::Load(const std::string& path, OpenMpi* mpi) {
  Library library(path);
  if (!library.loaded()) {
    return Status::FailedPrecondition(
        "The MPI library '" + path + "' could not be loaded: " +
        library.error() + ". Install one with `pip install embedra[mpi]`.");
  }
  FindFunctions(library, mpi);
  const bool is_mpi = library.missing().empty();
  FindObjects(library, mpi);
  if (!library.missing().empty()) {
    std::string found = "something that is no MPI";
    if (is_mpi) {
      char text[kMaxText * 8] = "";  // MPICH's takes up to 8192 bytes
      int length = 0;
      mpi->Get_library_version(text, &length);
      found = std::string(text).substr(0, 60);
    }
    return Status::FailedPrecondition(
        "The MPI library '" + path + "' is of a kind that is not supported: " +
        found + " (it has no " + library.missing() +
        "). Embedra needs Open MPI 4 or 5: `pip install embedra[mpi]`.");
  }
  char text[kMaxText] = "";
  int length = 0;
  mpi->Get_library_version(text, &length);
  mpi->version = std::string(text).substr(0, std::strcspn(text, ",\n"));
  return Status();
}

Status OpenMpi::Check(int code, const char* what) const {
  if (code == 0) return Status();
  char text[kMaxText] = "unknown error";
  int length = 0;
  Error_string(code, text, &length);
  return Status(StatusCode::kInternal,
                std::string("MPI: ") + what + " failed: " + text);
}

}  // namespace embedra::mpi
