// Runs one rank of an all-reduce by MPI. mpirun starts the ranks and selects the algorithm. Argument: --bytes-file FILE
#include <mpi.h>

#include "steps.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  peers::Arguments arguments = peers::parse(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &arguments.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &arguments.size);
  auto tensors = peers::make_tensors(arguments);
  peers::run(
      arguments, tensors, arguments.rank, [] { MPI_Barrier(MPI_COMM_WORLD); },
      [&] {
        for (auto& tensor : tensors) {
          MPI_Allreduce(MPI_IN_PLACE, tensor.data(), static_cast<int>(tensor.size()), MPI_FLOAT, MPI_SUM,
                        MPI_COMM_WORLD);
        }
      });
  MPI_Finalize();
}
