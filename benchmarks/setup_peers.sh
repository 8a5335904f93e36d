#!/bin/sh
# Makes a virtual environment for each peer system under DIR, from the package
# registries. About 4 GB, more where PyTorch comes with CUDA. Needs Python 3.11,
# and for HybridBackend 3.6, whose path PYTHON36 gives; it is left out otherwise.
set -eu

dir=${1:?usage: setup_peers.sh DIR}
python=${PYTHON:-python3.11}
mkdir -p "$dir"

make_environment() {
  name=$1
  shift
  "$python" -m venv "$dir/$name"
  "$dir/$name/bin/pip" install --quiet "$@"
}

make_environment tfra \
  tensorflow-cpu==2.16.2 tf_keras==2.16.0 \
  tensorflow-recommenders-addons==0.8.1

# torchrec asks for fbgemm-gpu, whose CUDA build would overwrite the files of
# fbgemm-gpu-cpu: so its other requirements are named here.
make_environment torchrec \
  torch==2.13.0 fbgemm-gpu-cpu==1.8.0 \
  torchmetrics==1.0.3 tensordict==0.15.3 pyre-extensions==0.0.32 tqdm
"$dir/torchrec/bin/pip" install --quiet --no-deps torchrec==1.8.0

if [ -n "${PYTHON36:-}" ]; then
  "$PYTHON36" -m venv "$dir/hybridbackend"
  # The pip that came with it does not know the wheel's tag.
  "$dir/hybridbackend/bin/pip" install --quiet --upgrade 'pip<22'
  "$dir/hybridbackend/bin/pip" install --quiet \
    tensorflow==1.15.5 hybridbackend-tf115-cpu==1.0.0 \
    tensorflow-estimator==1.15.1 'protobuf<3.20' 'h5py<3' 'numpy<1.19'
fi

# The static tf_keras tables run in Embedra's own environment, which needs
# `pip install tf_keras==2.21.0 rich matplotlib`.
